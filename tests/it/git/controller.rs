//! The program itself on a repository behind HTTP, with manifests in a directory.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use super::{
    server::{Fault, Server},
    world::World,
};
use crate::scenarios::world::wait_for;

/// Settings and an environment whose image the local registry has.
pub const SETTINGS: &str = "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants: {a: {namespace: a}}\n  \
                            registries:\n    docker.io: {mirrors: [\"http://127.0.0.1:5000/docker.io\"]}\n";
pub const ENVIRONMENT: &str = "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n    - {name: \
                               busybox, image: \"busybox:1.37.0-musl\"}\n";

/// Larder with a cache in the world's directory.
pub fn larder(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).arg("--cache-dir").arg(world.root().join("cache"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).current_dir(world.root());
    command.stdout(Stdio::null());
    command
}

/// A controller that ends with the test.
pub struct Controller(pub Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_fetch_may_take_longer_than_the_interval() {
    // It is waited for, and not begun again.
    let world = World::new(&[("larder.yaml", SETTINGS)]);
    let server = Server::start(&world, None);
    server.fault(Some(Fault::Slow(10)));
    let mut command = larder(&world, &["run", "--follow", "--interval", "50ms", "--target", "dir:out"]);
    let child = command.args(["--repo", &server.url()]).stderr(Stdio::piped()).spawn().unwrap();
    let mut child = Controller(child);
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains(" pass ")));
    assert_eq!(server.fetches(), 1);
}

#[test]
fn a_refused_push_is_no_storm_and_a_new_tip_is_tried_at_once() {
    let world = World::new(&[("larder.yaml", SETTINGS), ("environments/a/x.yaml", ENVIRONMENT)]);
    world.hook("pre-receive", "test -e allowed && exit 0; echo 'POLICY: not now' >&2; echo refused >>refusals; exit 1");
    let server = Server::start(&world, None);
    let log = fs::File::create(world.root().join("log")).unwrap();
    let mut command = larder(&world, &["run", "--interval", "200ms", "--target", "dir:out", "--repo", &server.url()]);
    let _controller = Controller(command.stderr(log).spawn().unwrap());
    let refusals = || fs::read_to_string(world.up().join("refusals")).unwrap_or_default().lines().count();
    wait_for("a refusal", || (refusals() > 0).then_some(()));
    let mut polls = 0;
    wait_for("twenty looks at the tip", || {
        let asked = server.requests();
        polls += asked.iter().filter(|line| line.starts_with("GET") && line.ends_with("git-upload-pack")).count();
        (polls >= 20).then_some(())
    });
    // Each try waits twice as long as the one before.
    assert!(refusals() <= 6, "{} tries in {polls} looks", refusals());
    let said = fs::read_to_string(world.root().join("log")).unwrap();
    assert!(said.contains("POLICY: not now"), "{said}");

    // A person's push is a new tip: its lock is not held up by what was refused before.
    fs::write(world.root().join("allowed"), "").unwrap();
    fs::rename(world.root().join("allowed"), world.up().join("allowed")).unwrap();
    let theirs = world.commit(&[("README.md", "now\n")], "theirs");
    wait_for("the lock", || (world.rev("refs/heads/main") != theirs).then_some(()));
    assert_eq!(world.rev("refs/heads/main~1"), theirs);
    assert_eq!(world.git(&world.up(), &["diff", "--name-only", "main~1", "main"]), "lock/a/x.yaml");
}
