//! A smart HTTP server on loopback: git's own `http-backend` behind a few lines of CGI.

use std::{
    io::Write as _,
    net::SocketAddr,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Method, Request, Response, StatusCode, header},
};
use base64::Engine as _;
use futures::StreamExt as _;

use super::world::World;

/// A running server; it ends with the test's process.
pub struct Server {
    pub address: SocketAddr,
    state: Arc<Served>,
}

struct Served {
    root: PathBuf,
    login: Option<String>,
    requests: Mutex<Vec<String>>,
    fault: Mutex<Option<Fault>>,
    old_protocol: AtomicBool,
    fetches: AtomicUsize,
}

/// Something that goes wrong at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is done, but its answer never arrives.
    AnswerLost,
    /// Each request is answered with this status.
    Status(u16),
    /// The push is reported as done, but nothing is done.
    Lie,
    /// The next request is answered with this status.
    Once(u16),
    /// The line breaks in the middle of what is fetched.
    Cut,
    /// What is fetched comes bit by bit, in as many parts, a tenth of a second after the other.
    Slow(usize),
}

impl Server {
    /// Serves the world's `up.git`; with a login (`user:password`) only for those who have it.
    pub fn start(world: &World, login: Option<&str>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let state = Arc::new(Served {
            root: world.root(),
            login: login.map(|login| base64::engine::general_purpose::STANDARD.encode(login)),
            requests: Mutex::default(),
            fault: Mutex::default(),
            old_protocol: AtomicBool::default(),
            fetches: AtomicUsize::default(),
        });
        world.git(&world.up(), &["config", "http.receivepack", "true"]);
        let app = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
            });
        });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}/up.git", self.address)
    }

    /// The requests so far, which are forgotten with that.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    /// From now on it knows only the protocol of before 2018.
    pub fn old_protocol(&self) {
        self.state.old_protocol.store(true, Ordering::Relaxed);
    }

    /// How many times objects were asked for so far.
    pub fn fetches(&self) -> usize {
        self.state.fetches.load(Ordering::Relaxed)
    }

    pub fn fault(&self, fault: Option<Fault>) {
        *self.state.fault.lock().unwrap() = fault;
    }
}

async fn serve(State(state): State<Arc<Served>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    state.requests.lock().unwrap().push(format!("{} {}", parts.method, parts.uri));
    let header = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let fault = *state.fault.lock().unwrap();
    if let Some(Fault::Once(_)) = fault {
        *state.fault.lock().unwrap() = None;
    }
    if let Some(Fault::Status(status) | Fault::Once(status)) = fault {
        return status_only(StatusCode::from_u16(status).unwrap());
    }
    if let Some(login) = &state.login
        && header(header::AUTHORIZATION) != Some(&format!("Basic {login}"))
    {
        let mut response = status_only(StatusCode::UNAUTHORIZED);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, "Basic realm=git".parse().unwrap());
        return response;
    }
    let fetch = body.windows(13).any(|bytes| bytes == b"command=fetch");
    state.fetches.fetch_add(usize::from(fetch), Ordering::Relaxed);
    let push = parts.method == Method::POST && parts.uri.path().ends_with("git-receive-pack");
    if push && fault == Some(Fault::Lie) {
        let mut response = Response::new(Body::from(lie()));
        let kind = "application/x-git-receive-pack-result".parse().unwrap();
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        return response;
    }
    let mut env = vec![
        ("GIT_PROJECT_ROOT", state.root.display().to_string()),
        ("GIT_HTTP_EXPORT_ALL", "1".into()),
        ("PATH_INFO", parts.uri.path().to_owned()),
        ("QUERY_STRING", parts.uri.query().unwrap_or_default().to_owned()),
        ("REQUEST_METHOD", parts.method.to_string()),
        ("CONTENT_TYPE", header(header::CONTENT_TYPE).unwrap_or_default().to_owned()),
        ("CONTENT_LENGTH", body.len().to_string()),
        ("REMOTE_USER", "tester".into()),
        ("HOME", state.root.display().to_string()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
    ];
    if let Some(protocol) = parts.headers.get("git-protocol")
        && !state.old_protocol.load(Ordering::Relaxed)
    {
        env.push(("GIT_PROTOCOL", protocol.to_str().unwrap().to_owned()));
    }
    let answer = tokio::task::spawn_blocking(move || backend(&env, &body)).await.unwrap();
    if push && fault == Some(Fault::AnswerLost) {
        return status_only(StatusCode::BAD_GATEWAY);
    }
    match fault {
        Some(Fault::Cut) if fetch => parts_of(answer, 2, 1).await,
        Some(Fault::Slow(count)) if fetch => parts_of(answer, count, count).await,
        _ => answer,
    }
}

/// The first parts of an answer, one after the other; if some are left out, the line breaks then.
async fn parts_of(answer: Response<Body>, count: usize, first: usize) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let size = bytes.len().div_ceil(count);
    let mut parts: Vec<std::io::Result<Bytes>> = (0..first)
        .map(|part| Ok(bytes.slice((part * size).min(bytes.len())..((part + 1) * size).min(bytes.len()))))
        .collect();
    if first < count {
        parts.push(Err(std::io::Error::other("the line breaks")));
    }
    let parts = futures::stream::iter(parts).then(async |part| {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        part
    });
    Response::from_parts(head, Body::from_stream(parts))
}

fn status_only(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::from("nothing to see"));
    *response.status_mut() = status;
    response
}

/// Runs `git http-backend` for one request.
fn backend(env: &[(&str, String)], body: &Bytes) -> Response<Body> {
    let mut command = std::process::Command::new("git");
    command.arg("http-backend").env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(env.iter().map(|(name, value)| (name, value)));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git http-backend is needed");
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // It may answer before it has read everything.
        scope.spawn(move || stdin.write_all(body));
        child.wait_with_output().unwrap()
    });
    let end = output.stdout.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("CGI headers");
    let head = String::from_utf8_lossy(&output.stdout[..end]).into_owned();
    let mut response = Response::new(Body::from(output.stdout[end + 4..].to_vec()));
    for line in head.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        if name == "Status" {
            *response.status_mut() = StatusCode::from_bytes(&value.as_bytes()[..3]).unwrap();
        } else {
            let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    response
}

/// What a server answers that claims to have moved `main`.
fn lie() -> Vec<u8> {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let report = format!("{}{}0000", line("unpack ok\n"), line("ok refs/heads/main\n"));
    format!("{}0000", line(&format!("\u{1}{report}"))).into_bytes()
}
