//! The webhooks' listener in this process.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use larder::{
    metrics::Metrics,
    server::{Hooks, SecretFile},
    wake::{Pending, Wake},
};
use reqwest::Client;
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::peer::{SECRET, sign};

/// A listener that ends with this value.
pub struct Server {
    pub address: SocketAddr,
    pub wake: Wake,
    metrics: Arc<Metrics>,
    folder: TempDir,
    client: Client,
    _shutdown: DropGuard,
}

impl Server {
    pub async fn start() -> Self {
        Self::patient(Duration::from_secs(60)).await
    }

    /// One that gives a request so much time.
    pub async fn patient(patience: Duration) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let (wake, metrics) = (Wake::default(), Arc::new(Metrics::new(tokio::sync::watch::channel(Arc::default()).1)));
        let shutdown = CancellationToken::new();
        let secrets = SecretFile::new(folder.path().join("secrets"));
        let hooks = Hooks::new(secrets, wake.clone(), metrics.clone()).with_patience(patience);
        let address = hooks.serve("127.0.0.1:0".parse().unwrap(), shutdown.clone()).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let server = Self { address, wake, metrics, folder, client, _shutdown: shutdown.drop_guard() };
        server.secrets(&[SECRET]);
        server
    }

    /// Writes the file of secrets.
    pub fn secrets(&self, secrets: &[&str]) {
        std::fs::write(self.file(), secrets.join("\n")).unwrap();
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("secrets")
    }

    /// Sends a request; its status.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> u16 {
        let mut request = self.client.post(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let said = response.text().await.unwrap();
        assert!(!said.contains(SECRET) && said.len() < 40, "{said}");
        status
    }

    /// A delivery as GitHub signs it.
    pub async fn github(&self, secret: &str, id: &str, event: &str, body: &str) -> u16 {
        let signature = format!("sha256={}", sign(secret, body.as_bytes()));
        let headers = [
            ("content-type", "application/json"),
            ("x-github-event", event),
            ("x-github-delivery", id),
            ("x-hub-signature-256", &signature),
        ];
        self.post("/hooks/github", &headers, body.to_owned()).await
    }

    /// How many requests of that sender came to that.
    pub fn count(&self, sender: &str, outcome: &str) -> u64 {
        let text = self.metrics.encode();
        let line = format!("larder_webhooks_total{{sender=\"{sender}\",outcome=\"{outcome}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }

    /// News since the last look, as a text.
    pub fn news(&self) -> String {
        let Pending { branch, commits, moved } = self.wake.take();
        let mut all: Vec<String> = branch.then(|| "branch".to_owned()).into_iter().collect();
        all.extend(commits.iter().map(|commit| commit.chars().take(7).collect()));
        all.extend(moved.iter().map(ToString::to_string));
        all.join(" ")
    }
}
