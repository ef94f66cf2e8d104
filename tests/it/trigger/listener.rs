//! What clients that hold connections can do to the controller's port: nothing.

use std::{sync::Arc, time::Duration};

use larder::{metrics::Metrics, server::serve};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

/// A bound for all of it; each step is over far sooner.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn probes_are_answered_while_others_hold_connections() {
    let shutdown = CancellationToken::new();
    let metrics = Arc::new(Metrics::new(tokio::sync::watch::channel(Arc::default()).1));
    let address = serve("127.0.0.1:0".parse().unwrap(), metrics, shutdown.clone()).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..400 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A head that never ends.
        _ = stream.write_all(format!("GET /metrics HTTP/1.1\r\nx: {}", "x".repeat(4096)).as_bytes()).await;
        held.push(stream);
    }
    let probe = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::time::timeout(PATIENCE, probe).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    // All are closed: those beyond the limit at once, the others when their head takes too long.
    let all_closed = async {
        for stream in &mut held {
            let mut rest = Vec::new();
            _ = stream.read_to_end(&mut rest).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_closed).await.unwrap();

    // A head that is too large is refused, and is not kept.
    let mut stream = TcpStream::connect(address).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nx: ").await;
    let mut sent = 0;
    while sent < 64 && stream.write_all(&piece).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 64, "{sent} MiB were taken in");
    shutdown.cancel();
}
