//! A small image registry in memory, read-only over HTTP: what `larder demo` resolves its references at.
//!
//! Source: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md> (pull).

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::model::digest::Digest;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// The registry; clones share its content.
#[derive(Clone, Default)]
pub struct DemoRegistry(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    /// Digest → media type and bytes, of manifests and blobs.
    blobs: BTreeMap<String, (&'static str, Vec<u8>)>,
    /// `repository:tag` → digest.
    tags: BTreeMap<String, String>,
}

impl DemoRegistry {
    /// Serves on a free port of the loopback address, until the process ends.
    pub async fn serve(&self) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let app = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(address)
    }

    /// Makes an image whose content is told by `seed`, and lets `repository:tag` name it.
    pub fn push(&self, repository: &str, tag: &str, seed: &str) -> Digest {
        let mut content = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let layer = format!("the layer of {repository} {seed}\n").into_bytes();
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {"Labels": {"seed": seed}},
            "rootfs": {"type": "layers", "diff_ids": [Digest::sha256(&layer)]},
        });
        let config = config.to_string().into_bytes();
        let descriptor =
            |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": Digest::sha256(bytes), "size": bytes.len()});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = Digest::sha256(&manifest);
        for (kind, bytes) in [("application/octet-stream", layer), (CONFIG, config), (MANIFEST, manifest)] {
            content.blobs.insert(Digest::sha256(&bytes).to_string(), (kind, bytes));
        }
        content.tags.insert(format!("{repository}:{tag}"), digest.to_string());
        digest
    }

    fn find(&self, path: &str) -> Option<(String, &'static str, Vec<u8>)> {
        let content = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (repository, rest) =
            path.strip_prefix("/v2/")?.split_once("/manifests/").or_else(|| path[4..].split_once("/blobs/"))?;
        let digest = content.tags.get(&format!("{repository}:{rest}")).cloned().unwrap_or_else(|| rest.to_owned());
        let (kind, bytes) = content.blobs.get(&digest)?;
        Some((digest, kind, bytes.clone()))
    }
}

async fn answer(State(registry): State<DemoRegistry>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/v2/" {
        return StatusCode::OK.into_response();
    }
    let Some((digest, kind, bytes)) = registry.find(path) else {
        let body = json!({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]});
        return (StatusCode::NOT_FOUND, body.to_string()).into_response();
    };
    let length = bytes.len();
    let body = if request.method() == Method::HEAD { Body::empty() } else { Body::from(bytes) };
    let headers = [
        (header::CONTENT_TYPE.as_str(), kind.to_owned()),
        (header::CONTENT_LENGTH.as_str(), length.to_string()),
        ("docker-content-digest", digest),
    ];
    (headers, body).into_response()
}
