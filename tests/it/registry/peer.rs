//! A real registry (`docker-registry`) on a free port of this machine, and images for it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use larder::model::digest::Digest;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) const USER: &str = "puller";
pub(super) const PASSWORD: &str = "correct:horse";

/// Runs a program to its end; a missing one fails with what to do.
fn run(command: &mut Command) -> Vec<u8> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().unwrap_or_else(|error| missing(&program, &error));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn missing(program: &str, error: &std::io::Error) -> ! {
    panic!("{program} cannot be started ({error}): `make test` installs it")
}

/// A private certificate authority with one certificate for 127.0.0.1.
pub(super) struct Authority(TempDir);

impl Authority {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let openssl = |arguments: &[&str]| run(Command::new("openssl").current_dir(dir.path()).args(arguments));
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
        let ca = ["req", "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=A private authority"];
        openssl(&[&ca[..], &key[..]].concat());
        let server =
            ["req", "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.pem"];
        let names = [
            "-subj",
            "/CN=registry",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        openssl(&[&server[..], &key[..], &names[..]].concat());
        Self(dir)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    pub(super) fn pem(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }
}

/// A running registry; it ends with this value.
pub(crate) struct Registry {
    process: Child,
    host: String,
    authority: Option<String>,
    _dir: TempDir,
}

impl Registry {
    /// Plain http, for everybody.
    pub(crate) fn open() -> Self {
        Self::start(None, &json!({}))
    }

    /// https by a private authority, for [`USER`] with [`PASSWORD`].
    pub(super) fn private(authority: &Authority) -> Self {
        Self::start(Some(authority), &json!({}))
    }

    /// As [`Registry::private`], but its blobs are elsewhere: it redirects to this address.
    pub(super) fn redirecting(authority: &Authority, to: &str) -> Self {
        let redirect = json!([{"name": "redirect", "options": {"baseurl": to}}]);
        Self::start(Some(authority), &json!({"middleware": {"storage": redirect}}))
    }

    /// https by a private authority, for those who have a token from this address.
    pub(super) fn with_tokens(authority: &Authority, realm: &str) -> Self {
        let token = json!({"realm": realm, "service": "tests", "issuer": "tests", "rootcertbundle": authority.file()});
        Self::start(Some(authority), &json!({"auth": {"token": token}}))
    }

    /// Plain http, for everybody; it notifies that address of all that happens, with this header `Authorization`.
    pub(crate) fn notifying(url: &str, authorization: &str) -> Self {
        let endpoint = json!({
            "name": "larder", "url": url, "timeout": "2s", "threshold": 3, "backoff": "1s",
            "headers": {"Authorization": [authorization]},
        });
        Self::start(None, &json!({"notifications": {"endpoints": [endpoint]}}))
    }

    fn start(authority: Option<&Authority>, more: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let mut config = json!({
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": path("data")}},
            "http": {"addr": "127.0.0.1:0"},
        });
        if let Some(authority) = authority {
            let htpasswd = run(Command::new("htpasswd").args(["-nbB", USER, PASSWORD]));
            fs::write(path("htpasswd"), htpasswd).unwrap();
            let file = |name: &str| authority.0.path().join(name).display().to_string();
            config["auth"] = json!({"htpasswd": {"realm": "tests", "path": path("htpasswd")}});
            config["http"]["tls"] = json!({"certificate": file("server.pem"), "key": file("server.key")});
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        fs::write(path("config.yml"), config.to_string()).unwrap();
        let mut process = Command::new("docker-registry")
            .args(["serve", &path("config.yml")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| missing("docker-registry", &error));
        let host = listening(&mut process);
        Self { process, host, authority: authority.map(Authority::pem), _dir: dir }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

/// Waits for the line that says where it listens; the log is read on, so that the process never blocks.
fn listening(process: &mut Child) -> String {
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = String::new();
    let host = lines.by_ref().find_map(|line| {
        seen.push_str(&line);
        let (_, rest) = line.split_once("listening on ")?;
        Some(rest.split(['"', ',', ' ']).next()?.to_owned())
    });
    std::thread::spawn(move || lines.for_each(drop));
    host.unwrap_or_else(|| panic!("docker-registry does not listen: {seen}"))
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What was pushed.
pub(crate) struct Pushed {
    pub(crate) index: Digest,
    pub(super) manifest: Digest,
    /// Compressed bytes: configuration and layers.
    pub(crate) size: u64,
}

/// Gives an image another tag, in a registry that asks for no login.
pub(crate) async fn retag(registry: &Registry, repository: &str, from: &str, to: &str) {
    let kind = "application/vnd.oci.image.index.v1+json";
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = |tag: &str| format!("http://{}/v2/{repository}/manifests/{tag}", registry.host());
    let image = client.get(url(from)).header("accept", kind).send().await.unwrap().bytes().await.unwrap();
    let done = client.put(url(to)).header("content-type", kind).body(image).send().await.unwrap();
    assert_eq!(done.status().as_u16(), 201);
}

/// Pushes a tiny image for linux/amd64 behind an index.
pub(crate) async fn push(registry: &Registry, repository: &str, tag: &str) -> Pushed {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder().no_proxy();
    if let Some(pem) = &registry.authority {
        client = client.tls_certs_only([reqwest::Certificate::from_pem(pem.as_bytes()).unwrap()]);
    }
    let client = client.build().unwrap();
    let scheme = if registry.authority.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{}/v2/{repository}", registry.host);
    let config = br#"{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}"#;
    let layer = format!("a layer of {repository}:{tag} that nobody unpacks").into_bytes();
    for blob in [&config[..], &layer[..]] {
        let start =
            client.post(format!("{base}/blobs/uploads/")).basic_auth(USER, Some(PASSWORD)).send().await.unwrap();
        let location = start.headers()["location"].to_str().unwrap();
        let mut location = reqwest::Url::parse(&base).unwrap().join(location).unwrap();
        location.query_pairs_mut().append_pair("digest", Digest::sha256(blob).as_str());
        let done = client.put(location).basic_auth(USER, Some(PASSWORD)).body(blob.to_vec()).send().await.unwrap();
        assert_eq!(done.status().as_u16(), 201);
    }
    let put = async |name: &str, kind: &str, body: &serde_json::Value| {
        let body = serde_json::to_vec_pretty(body).unwrap();
        let request = client
            .put(format!("{base}/manifests/{name}"))
            .basic_auth(USER, Some(PASSWORD))
            .header("content-type", kind);
        assert_eq!(request.body(body.clone()).send().await.unwrap().status().as_u16(), 201);
        (Digest::sha256(&body), body.len())
    };
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2, "mediaType": kind,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": Digest::sha256(config), "size": config.len()},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": Digest::sha256(&layer), "size": layer.len()}],
    });
    let name = Digest::sha256(&serde_json::to_vec_pretty(&manifest).unwrap());
    let (digest, size) = put(name.as_str(), kind, &manifest).await;
    let index_kind = "application/vnd.oci.image.index.v1+json";
    let index = json!({
        "schemaVersion": 2, "mediaType": index_kind,
        "manifests": [{"mediaType": kind, "digest": digest, "size": size, "platform": {"os": "linux", "architecture": "amd64"}}],
    });
    let (index, _) = put(tag, index_kind, &index).await;
    Pushed { index, manifest: digest, size: (config.len() + layer.len()) as u64 }
}
