//! A repository behind a real sshd on loopback.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use larder::io::git::{GitError, Options, PushError, Repository, Tip};

use super::world::{World, push, pushed, text, tip};

const FILES: [(&str, &str); 2] = [("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")];

/// An sshd of the test's own, with throw-away keys; ends with it.
struct Sshd {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl Sshd {
    fn start(world: &World, extra: &str) -> Self {
        let folder = world.root().join("ssh");
        fs::create_dir_all(&folder).unwrap();
        for name in ["host", "other-host", "user", "stranger"] {
            let file = folder.join(name);
            if !file.exists() {
                run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file));
            }
        }
        fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = folder.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {path}/host\nAuthorizedKeysFile {path}/authorized\n\
             StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin yes\nSetEnv GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*\n{extra}\n"
        );
        fs::write(folder.join("config"), config).unwrap();
        let _ = fs::create_dir_all("/run/sshd");
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f"]).arg(folder.join("config")).stderr(Stdio::null());
        let process = command.spawn().expect("sshd is needed: `make test-tools` installs it");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        let sshd = Self { process, port, folder };
        sshd.know("host");
        sshd
    }

    /// Writes a known_hosts file that holds this host key.
    fn know(&self, key: &str) {
        let key = fs::read_to_string(self.folder.join(format!("{key}.pub"))).unwrap();
        fs::write(self.folder.join("known hosts"), format!("[127.0.0.1]:{} {key}", self.port)).unwrap();
    }

    fn options(&self, world: &World, folder: &Path) -> Options {
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let url = format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, folder.display());
        let mut options = world.options(&url);
        options.credentials.ssh_key = Some(self.folder.join("user"));
        options.credentials.known_hosts = Some(self.folder.join("known hosts"));
        options
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(command: &mut Command) {
    assert!(command.status().expect("the OpenSSH client is needed: `make test-tools` installs it").success());
}

#[test]
fn the_whole_way_over_ssh() {
    for extra in ["AcceptEnv GIT_PROTOCOL", ""] {
        let world = World::new(&FILES);
        let sshd = Sshd::start(&world, extra);
        let mut repository = Repository::open(sshd.options(&world, &world.up())).unwrap();
        let first = tip(&mut repository);
        assert_eq!(text(&repository.fetch(&first).unwrap(), "lock/a/x.yaml"), "old\n");
        let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
        assert_eq!((world.rev("refs/heads/main"), world.rev("refs/heads/main~1")), (second, first));
        let third = world.commit(&[("larder.yaml", "three\n")], "a colleague, forced");
        let lost = push(&mut repository, second, &[("lock/a/x.yaml", "newer\n")]);
        assert!(matches!(lost, Err(PushError::Raced { .. })), "{lost:?}");
        assert_eq!(tip(&mut repository), third);
        assert_eq!(text(&repository.fetch(&third).unwrap(), "larder.yaml"), "three\n");
        world.hook("pre-receive", "echo 'POLICY: no' >&2; exit 1");
        let refused = push(&mut repository, third, &[("lock/a/x.yaml", "newer\n")]);
        assert!(
            matches!(&refused, Err(PushError::Refused { message, .. }) if message.contains("POLICY")),
            "{refused:?}"
        );
    }
}

#[test]
fn a_branch_or_repository_that_is_not_there() {
    let world = World::new(&FILES);
    let sshd = Sshd::start(&world, "");
    let mut options = sshd.options(&world, &world.up());
    options.branch = Some("gone".into());
    assert_eq!(Repository::open(options).unwrap().tip(), Ok(Tip::Gone { branch: "gone".into() }));
    let options = sshd.options(&world, &world.root().join("it's-missing.git"));
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::NotFound { .. }), "{error:?}");
    let empty = World::empty();
    let options = sshd.options(&world, &empty.up());
    assert_eq!(Repository::open(options).unwrap().tip(), Ok(Tip::Empty));
}

#[test]
fn a_host_that_is_not_the_known_one_is_refused() {
    let world = World::new(&FILES);
    let sshd = Sshd::start(&world, "");
    let mut repository = Repository::open(sshd.options(&world, &world.up())).unwrap();
    tip(&mut repository);
    sshd.know("other-host");
    let error = repository.tip().unwrap_err();
    assert!(matches!(&error, GitError::HostKey { .. }) && error.to_string().contains("CHANGED"), "{error:?}");
    for key in ["host.pub", "other-host.pub"] {
        assert!(error.to_string().contains(&fingerprint(&sshd.folder.join(key))), "offered and expected: {error}");
    }
    fs::write(sshd.folder.join("known hosts"), "").unwrap();
    let error = repository.tip().unwrap_err();
    assert!(matches!(&error, GitError::HostKey { .. }), "{error:?}");
    assert!(error.hint().contains("known_hosts"));
    // It was not learnt by that either.
    assert!(fs::read(sshd.folder.join("known hosts")).unwrap().is_empty());
}

/// The fingerprint of a public key.
fn fingerprint(file: &Path) -> String {
    let output = Command::new("ssh-keygen").arg("-lf").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn any_listed_key_will_do_and_an_unknown_one_is_named() {
    let world = World::new(&FILES);
    let folder = world.root().join("ssh");
    fs::create_dir_all(&folder).unwrap();
    for (kind, name) in [("rsa", "host-rsa"), ("ecdsa", "host-ecdsa")] {
        let size = if kind == "rsa" { "2048" } else { "256" };
        run(Command::new("ssh-keygen").args(["-q", "-t", kind, "-b", size, "-N", "", "-f"]).arg(folder.join(name)));
    }
    let path = folder.display();
    let sshd = Sshd::start(&world, &format!("HostKey {path}/host-rsa\nHostKey {path}/host-ecdsa"));
    let key = |name: &str| fs::read_to_string(folder.join(format!("{name}.pub"))).unwrap();
    let (host, known) = (format!("[127.0.0.1]:{}", sshd.port), folder.join("known hosts"));
    let mut repository = Repository::open(sshd.options(&world, &world.up())).unwrap();
    for lines in [
        format!("{host} {}", key("host")),
        format!("{host} {}", key("host-rsa")),
        format!("{host} {}", key("host-ecdsa")),
        // A key that is to come beside the present one, in both orders.
        format!("{host} {}{host} {}", key("other-host"), key("host")),
        format!("{host} {}{host} {}", key("host"), key("other-host")),
        format!("git.example.com,{host} {}# a remark\n\n", key("host")),
        format!("@revoked {host} {}{host} {}", key("host-rsa"), key("host")),
    ] {
        fs::write(&known, &lines).unwrap();
        assert!(matches!(repository.tip(), Ok(Tip::Commit(_))), "{:?} with {lines}", repository.tip());
    }
    // Without the host's name in clear.
    fs::write(&known, format!("{host} {}", key("host"))).unwrap();
    run(Command::new("ssh-keygen").args(["-q", "-H", "-f"]).arg(&known));
    assert!(!fs::read_to_string(&known).unwrap().contains("127.0.0.1"));
    tip(&mut repository);

    for (lines, offered) in [
        (String::new(), "host"),
        (format!("other.example.com {}", key("host")), "host"),
        (format!("{host} {}", key("other-host")), "host"),
        // Another key of a listed kind is never what it should be, whatever else is listed.
        (format!("{host} {}{host} {}", key("other-host"), key("host-rsa")), "host"),
    ] {
        fs::write(&known, &lines).unwrap();
        let error = repository.tip().unwrap_err();
        let print = fingerprint(&folder.join(format!("{offered}.pub")));
        assert!(matches!(&error, GitError::HostKey { detail, .. } if detail.contains(&print)), "{lines}: {error}");
        assert!(!error.to_string().contains("debug1"), "{error}");
    }
    fs::write(&known, format!("@revoked {host} {}", key("host"))).unwrap();
    assert!(matches!(repository.tip(), Err(GitError::HostKey { .. })), "{:?}", repository.tip());
    // The file is re-read at each use.
    sshd.know("host");
    tip(&mut repository);
}

#[test]
fn a_key_that_is_not_allowed_or_not_readable_fails_at_once() {
    let world = World::new(&FILES);
    let sshd = Sshd::start(&world, "");
    let mut options = sshd.options(&world, &world.up());
    options.credentials.ssh_key = Some(sshd.folder.join("stranger"));
    let error = Repository::open(options.clone()).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::Authentication { .. }), "{error:?}");
    assert!(error.to_string().contains("Permission denied"), "{error}");
    fs::set_permissions(sshd.folder.join("user"), fs::Permissions::from_mode(0o644)).unwrap();
    options.credentials.ssh_key = Some(sshd.folder.join("user"));
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::Authentication { .. }), "{error:?}");
    assert!(error.to_string().contains("UNPROTECTED"), "{error}");
    let mut options = sshd.options(&world, &world.up());
    options.url = "ssh://git@127.0.0.1:9/x.git".into();
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::Network { .. }), "{error:?}");
}
