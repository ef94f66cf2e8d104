//! Registries behind a proxy of the environment.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Command,
};

/// A proxy that wants a login and gets none that it likes.
fn proxy() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    host
}

/// What `larder lock` says about an image of `registry.invalid`.
fn lock(plain_http: bool, environment: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let settings = format!(
        "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants: {{team: {{namespace: team}}}}\n  registries:\n    registry.invalid:5000: {{plainHttp: {plain_http}}}\n"
    );
    write("larder.yaml", &settings);
    write(
        "environments/team/a.yaml",
        "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n    - {name: a, image: registry.invalid:5000/x/a:1}\n",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.env_clear().env("HOME", dir.path()).current_dir(dir.path()).args(["lock", "--check"]);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_proxy_that_wants_a_login_is_named_with_what_it_was_sent() {
    let proxy = proxy();
    let (open, login) = (format!("http://{proxy}"), format!("http://user:canary@{proxy}"));
    for (plain_http, variable) in [(true, "HTTP_PROXY"), (false, "HTTPS_PROXY")] {
        let said = lock(plain_http, &[(variable, &open)]);
        assert!(said.contains(&format!("the proxy {proxy} asks for a login")), "{variable}: {said}");
        let said = lock(plain_http, &[(variable, &login)]);
        assert!(said.contains(&format!("the proxy {proxy} refuses the login")), "{variable}: {said}");
        assert!(!said.contains("canary"), "{said}");
        // Without the proxy there is no such host.
        let said = lock(plain_http, &[(variable, &open), ("NO_PROXY", "registry.invalid:5000")]);
        assert!(said.contains("DNS lookup failed"), "{variable}: {said}");
    }
}
