//! A real https server with an authority of its own (`tests/cluster/git-server`), and the proxy on the way to it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use base64::Engine as _;
use larder::io::git::{GitError, Options, Repository};

use super::{
    proxy::Proxy,
    world::{World, push, pushed, text, tip},
};
use crate::scenarios::world::{run, script};

const FILES: [(&str, &str); 2] = [("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")];

/// A world whose bare repository the server serves, as `NAME`.
struct Served {
    world: World,
    folder: PathBuf,
    name: String,
}

impl Served {
    fn new() -> Self {
        let folder = folder();
        let (world, name) = (World::new(&FILES), format!("tls-{:08x}", fastrand::u32(..)));
        std::os::unix::fs::symlink(world.up(), folder.join(format!("repositories/{name}.git"))).unwrap();
        Self { world, folder, name }
    }

    /// Options with the login and the authority.
    fn options(&self, host: &str) -> Options {
        let mut options = self.world.options(&format!("https://{host}/private/{}.git", self.name));
        options.credentials.username = Some(self.file("username"));
        options.credentials.password_file = Some(self.folder.join("password"));
        options.network.ca_file = Some(self.folder.join("ca.crt"));
        options
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(format!("repositories/{}.git", self.name)));
    }
}

#[test]
fn an_authority_of_ones_own_is_named_and_read_anew() {
    let served = Served::new();
    let mut options = served.options(&server());
    let file = served.world.root().join("ca.crt");
    fs::copy(served.folder.join("ca.crt"), &file).unwrap();
    options.network.ca_file = Some(file.clone());
    let mut repository = Repository::open(options.clone()).unwrap();
    let first = tip(&mut repository);
    assert_eq!(text(&repository.fetch(&first).unwrap(), "lock/a/x.yaml"), "old\n");
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!(served.world.rev("refs/heads/main"), second);

    // Another authority, and none in the file.
    let other = served.world.root().join("other");
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=other", "-keyout"]);
    run(command.arg(&other).arg("-out").arg(&file));
    let stranger = repository.tip().unwrap_err();
    fs::write(&file, "nothing\n").unwrap();
    let nothing = repository.tip().unwrap_err();
    options.network.ca_file = None;
    let unknown = Repository::open(options).unwrap().tip().unwrap_err();
    for error in [stranger, unknown] {
        assert!(matches!(&error, GitError::Certificate { .. }), "{error:?}");
        assert!(error.hint().contains("--git-ca-file"), "{}", error.hint());
    }
    assert!(matches!(&nothing, GitError::Authority { .. }), "{nothing:?}");
}

#[test]
fn a_proxy_for_git_takes_its_login_from_a_file() {
    let served = Served::new();
    let login = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("ada:pr0xy-s3cret"));
    let proxy = Proxy::start(&server(), Some(&login));
    let file = served.world.root().join("login");
    fs::write(&file, "ada:pr0xy-s3cret\n").unwrap();
    let mut options = served.options("git.example.com");
    options.network.proxy = Some(proxy.url());
    options.network.proxy_login_file = Some(file.clone());
    let mut repository = Repository::open(options.clone()).unwrap();
    let first = tip(&mut repository);
    repository.fetch(&first).unwrap();
    pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    let asked = proxy.asked();
    assert!(asked.len() >= 3 && asked.iter().all(|line| line == "CONNECT git.example.com:443"), "{asked:?}");
    assert!(!format!("{options:?}").contains("s3cret"));

    // A login that is no longer good, and a good one again.
    fs::write(&file, "ada:wr0ng-s3cret\n").unwrap();
    let error = repository.tip().unwrap_err();
    let said = format!("{error} {error:?} {}", error.hint());
    assert!(said.contains("407") && said.contains("--git-proxy-login-file") && !said.contains("s3cret"), "{said}");
    fs::write(&file, "ada:pr0xy-s3cret\n").unwrap();
    tip(&mut repository);

    // The name is checked behind the proxy as well.
    options.url = options.url.replace("git.example.com", "other.example.com");
    let error = Repository::open(options.clone()).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::Certificate { .. }) && error.hint().contains("names"), "{error:?}");
    // Nobody there.
    options.network.proxy = Some("http://127.0.0.1:9".to_owned());
    let error = Repository::open(options.clone()).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::Network { .. }) && error.hint().contains("prox"), "{error:?}");
    // What would stay on this machine without a proxy would leave it in the clear with one.
    options.url = "http://127.0.0.1:8418/private/x.git".to_owned();
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(error.to_string().contains("unencrypted"), "{error}");
}

/// Where it is to be reached by https.
pub fn server() -> String {
    fs::read_to_string(folder().join("https")).unwrap()
}

/// The directory of the running server.
pub fn folder() -> PathBuf {
    let folder = String::from_utf8(run(Command::new(script("git-server")).arg("up")).stdout).unwrap();
    Path::new(folder.trim()).to_owned()
}
