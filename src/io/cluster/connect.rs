//! From flags to a client of the API server.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tower::{buffer::BufferLayer, retry::RetryLayer};

use super::{problem, retry::Overload};
use crate::model::failure::{Category, Problem};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// Requests that wait for the client, at most; far more than are ever under way.
const QUEUE: usize = 256;

/// The field manager of an instance: `larder`, or `larder-<instance>` for one that is not the `default`.
pub fn field_manager(instance: &str) -> String {
    match instance {
        "default" => "larder".to_owned(),
        other => format!("larder-{other}"),
    }
}

/// A client, without a request having been sent.
pub(super) async fn client(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Client, Problem> {
    let mut config = config(kubeconfig, context).await.map_err(|message| {
        Problem::new(Category::Cluster, message).hint(
            "name a kubeconfig with --kubeconfig or KUBECONFIG, or a directory with --target dir:PATH; in a pod, see that its service account's token is mounted",
        )
    })?;
    config.connect_timeout = Some(CONNECT);
    // Its own policy waits as long as the server likes; ours has a bound.
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).map_err(|error| problem::of_transport("the cluster", &error))?;
    Ok(builder.with_layer(&BufferLayer::new(QUEUE)).with_layer(&RetryLayer::new(Overload::default())).build())
}

async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, String> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let said = kubeconfig.is_some() || context.is_some();
    let from_file = async {
        let kubeconfig = read(kubeconfig)?;
        let proxied = has_proxy(&kubeconfig, context);
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        if !proxied {
            // HTTPS_PROXY is for Git and registries, not for the API server.
            config.proxy_url = None;
        }
        Ok::<_, KubeconfigError>(config)
    };
    match from_file.await {
        Ok(config) => Ok(config),
        Err(error) if said => Err(told(&error)),
        Err(error) => Config::incluster().map_err(|_| format!("no cluster is configured: {}", told(&error))),
    }
}

/// In the words of someone who looks for the file.
fn told(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(cause, path) if cause.kind() == io::ErrorKind::NotFound => {
            format!("there is no kubeconfig {}", path.display())
        }
        KubeconfigError::ReadConfig(cause, path) => {
            format!("the kubeconfig {} cannot be read: {cause}", path.display())
        }
        KubeconfigError::FindPath => "there is no kubeconfig, nor a home directory to look for one".to_owned(),
        error => format!("the kubeconfig cannot be used: {}", problem::chain(error)),
    }
}

fn read(paths: Option<&Path>) -> Result<Kubeconfig, KubeconfigError> {
    let Some(paths) = paths else { return Kubeconfig::read() };
    let mut merged: Option<Kubeconfig> = None;
    // A list skips files that are not there, as kubectl does; a single one must be there.
    let listed: Vec<PathBuf> = std::env::split_paths(paths).filter(|path| !path.as_os_str().is_empty()).collect();
    for path in listed.iter().filter(|path| listed.len() == 1 || path.exists()) {
        let next = Kubeconfig::read_from(path)?;
        merged = Some(match merged {
            Some(merged) => merged.merge(next)?,
            None => next,
        });
    }
    merged.map_or_else(|| Kubeconfig::read_from(paths), Ok)
}

/// Whether the kubeconfig itself names a proxy for the cluster of that context.
fn has_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> bool {
    let name = context.or(kubeconfig.current_context.as_deref());
    let context = kubeconfig.contexts.iter().find(|context| Some(context.name.as_str()) == name);
    let cluster = context.and_then(|context| context.context.as_ref()).map(|context| &context.cluster);
    let cluster = kubeconfig.clusters.iter().find(|named| Some(&named.name) == cluster);
    cluster.and_then(|named| named.cluster.as_ref()).is_some_and(|cluster| cluster.proxy_url.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_instance_is_plain_larder() {
        assert_eq!(field_manager("default"), "larder");
        assert_eq!(field_manager("blue"), "larder-blue");
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named() {
        let text = client(Some(Path::new("/nonexistent/kubeconfig")), None).await.err().unwrap().to_string();
        assert!(text.contains("/nonexistent/kubeconfig") && text.contains("--kubeconfig"), "{text}");
    }

    #[tokio::test]
    async fn a_context_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, "apiVersion: v1\nkind: Config\ncontexts: []\nclusters: []\nusers: []\n").unwrap();
        let text = client(Some(&path), Some("staging")).await.err().unwrap().to_string();
        assert!(text.contains("staging"), "{text}");
    }

    #[tokio::test]
    async fn an_overloaded_server_is_asked_again() {
        use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

        let server = MockServer::start().await;
        let busy = ResponseTemplate::new(429).insert_header("Retry-After", "1").set_body_string("Too many requests");
        Mock::given(any()).respond_with(busy).up_to_n_times(1).expect(1).mount(&server).await;
        let version = serde_json::json!({"major": "1", "minor": "34+", "gitVersion": "v1.34.4", "gitCommit": "", "buildDate": "",
            "compiler": "", "gitTreeState": "", "goVersion": "", "platform": ""});
        Mock::given(any())
            .respond_with(ResponseTemplate::new(200).set_body_json(version))
            .expect(1)
            .mount(&server)
            .await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a", "users": [],
            "contexts": [{"name": "a", "context": {"cluster": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": server.uri()}}],
        });
        std::fs::write(&path, text.to_string()).unwrap();
        let cluster = super::super::KubeCluster::connect(Some(&path), None, "default").await.unwrap();
        assert_eq!(super::super::Cluster::server_version(&cluster).await, Some((1, 34)));
    }
}
