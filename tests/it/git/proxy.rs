//! A small proxy of the test's own: it knows `CONNECT` and nothing else, and writes down what it was asked.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// A running proxy; it ends with the test's process.
pub struct Proxy {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Leads to `upstream`, whatever host is asked for; with a login only for those who bring it (as `Basic …`).
    pub fn start(upstream: &str, login: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (upstream, login, log) = (upstream.to_owned(), login.map(str::to_owned), asked.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (upstream, login, log) = (upstream.clone(), login.clone(), log.clone());
                // A connection that breaks is no matter.
                std::thread::spawn(move || serve(client, &upstream, login.as_deref(), &log));
            }
        });
        Self { address, asked }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far, which is forgotten with that.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn serve(client: TcpStream, upstream: &str, login: Option<&str>, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut first, mut authorized) = (String::new(), login.is_none());
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        authorized |= name.eq_ignore_ascii_case("proxy-authorization") && login == Some(value.trim());
    }
    log.lock().unwrap().push(first.trim().trim_end_matches(" HTTP/1.1").to_owned());
    let mut client = client;
    if !authorized {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n");
    }
    if !first.starts_with("CONNECT ") {
        return client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n");
    }
    let mut server = TcpStream::connect(upstream)?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut back, mut answer) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut answer, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    let copied = std::io::copy(&mut reader, &mut server).map(drop);
    let _ = server.shutdown(Shutdown::Write);
    copied
}
