//! Holds, and controllers that share a repository: what a person took back stays, and nobody undoes anybody.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::Arc,
    time::Duration,
};

use larder::{
    controller::Controller,
    io::{
        cluster::KubeCluster,
        credentials::StoredCredentials,
        directory::Directory,
        git::{self, Checkout, Identity},
        registry::Patience,
        repository::Repository,
        target::AnyTarget,
    },
    model::plan::Action,
    pipeline::{self, LockMode, Options},
    stages::render,
};
use tokio_util::sync::CancellationToken;

use super::{
    environment,
    world::{World, run, wait_for},
};

const FILE: &str = "environments/research/x.yaml";

/// A world with one environment of the image `notebook:latest`, and that reference.
fn one_image(name: &str, more: &str) -> (World, String) {
    let world = World::new(name, &["research"]);
    let reference = format!("{}:latest", world.image("notebook"));
    world.push_images(&["--seed", "1"], &[&reference]);
    world.commit(&[(FILE, &environment(&[("notebook", &reference)], more))], "Add");
    (world, reference)
}

fn retag(world: &World, reference: &str, seed: &str) -> String {
    world.push_images(&["--seed", seed], &[reference])[reference].clone()
}

/// The locked digest of the only image.
fn locked(world: &World) -> String {
    let lock = world.git(&["show", "main:lock/research/x.yaml"]);
    let line = lock.lines().find_map(|line| line.strip_prefix("    digest: ")).unwrap();
    line.trim_matches('"').to_owned()
}

fn commits(world: &World) -> u32 {
    world.git(&["rev-list", "--count", "main"]).parse().unwrap()
}

fn subject(world: &World) -> String {
    world.git(&["log", "-1", "--format=%s", "main"])
}

/// A verb on the repository, in Ada's name; what it prints.
fn ada(world: &World, arguments: &[&str]) -> String {
    let repository = world.repository();
    let mut command = world.larder(arguments);
    command.args(["--repo", &repository]);
    if matches!(arguments, ["hold" | "release" | "rollback", ..]) {
        command.args(["--author-name", "Ada", "--author-email", "ada@example.com"]);
    }
    String::from_utf8(run(&mut command).stdout).unwrap()
}

// a revert is held by exactly one commit, whatever the registry says and however often larder starts, until it is
// released; then it moves at the next pass.
#[test]
fn a_revert_holds_until_it_is_released() {
    let (world, reference) = one_image("revert", "  refresh: 24h\n");
    let target = ["--target", "dir:out"];
    assert!(world.pass(&target).well);
    let first = locked(&world);
    let second = retag(&world, &reference, "2");
    assert!(world.pass(&target).well);
    assert_eq!(locked(&world), second);
    world.revert("HEAD");
    let third = retag(&world, &reference, "3");
    let before = commits(&world);

    let pass = world.pass(&target);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert_eq!((commits(&world), locked(&world)), (before + 1, first.clone()));
    assert_eq!(subject(&world), "lock: hold research/x notebook at latest");
    let listed = ada(&world, &["hold"]);
    assert!(
        listed.contains("research/x") && listed.contains("  revert  -  ") && listed.contains("Ada went back"),
        "{listed}"
    );
    let message = world.git(&["log", "-1", "--format=%B", "main"]);
    let revert = world.git(&["rev-parse", "main~1"]);
    assert!(
        message.contains(&format!("Larder-Hold: Ada went back to {} in {}", &first[..19], &revert[..10])),
        "{message}"
    );
    let notes = pass.report["environments"]["research/x"]["notes"].to_string();
    assert!(notes.contains("is held at") && notes.contains("larder release research/x notebook"), "{notes}");

    // Started again and again: nothing.
    for _ in 0..2 {
        assert!(world.pass(&target).well);
        assert_eq!(commits(&world), before + 1);
    }
    let blame = ada(&world, &["blame", "research/x"]);
    assert!(blame.contains("Ada went back to"), "{blame}");
    let history = ada(&world, &["history"]);
    assert!(history.contains("research/x notebook: held at"), "{history}");

    let controller = world.controller(&["--target", "dir:out", "--listen", "127.0.0.1:0"]);
    controller.wait_until_idle();
    assert_eq!(commits(&world), before + 1);
    let said = ada(&world, &["release", "research/x", "notebook"]);
    assert!(said.contains("research/x notebook: released at"), "{said}");
    assert_eq!(world.git(&["log", "-1", "--format=%an %s", "main"]), "Ada lock: release research/x notebook");
    wait_for("the move", || (locked(&world) == third).then_some(()));
    assert_eq!(commits(&world), before + 3);

    // Another revert while controllers run is held at once, long before anything is due, and by one of them.
    let other = world.controller(&["--target", "dir:two", "--listen", "127.0.0.1:0"]);
    other.wait_until_idle();
    assert_eq!(commits(&world), before + 3);
    world.revert("HEAD");
    wait_for("the hold", || subject(&world).starts_with("lock: hold").then_some(()));
    controller.wait_until_idle();
    other.wait_until_idle();
    assert_eq!((commits(&world), locked(&world)), (before + 5, first));
}

#[test]
fn a_renamed_environment_keeps_its_digest_and_its_hold() {
    let (world, reference) = one_image("rename", "");
    let target = ["--target", "dir:out"];
    assert!(world.pass(&target).well);
    let first = locked(&world);
    ada(&world, &["hold", "research/x", "notebook", "--reason", "exam"]);
    let second = retag(&world, &reference, "2");
    world.remove(&[FILE], "Make way");
    let renamed = environment(&[("notebook", &reference)], "  refresh: 24h\n");
    world.commit(&[("environments/research/y.yaml", &renamed)], "Rename");
    let diff = world.git(&["diff", "-M50%", "--name-status", "main~2", "main", "--", "environments"]);
    assert!(diff.starts_with('R'), "{diff}");

    let pass = world.pass(&target);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert_eq!(subject(&world), "lock: rename research/x to research/y");
    assert_eq!(world.git(&["ls-tree", "-r", "--name-only", "main", "lock"]), "lock/research/y.yaml");
    let lockfile = || world.git(&["show", "main:lock/research/y.yaml"]);
    assert!(lockfile().contains(&first) && lockfile().contains("reason: \"exam\""), "{}", lockfile());
    let message = world.git(&["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("Larder-Environment: research/y\nLarder-Renamed-From: research/x\n"), "{message}");
    let before = commits(&world);
    assert!(world.pass(&target).well);
    assert_eq!(commits(&world), before);

    // The move was larder's: nothing holds the image once it is released.
    ada(&world, &["release", "research/y", "notebook"]);
    assert!(world.pass(&target).well);
    assert!(lockfile().contains(&second) && !lockfile().contains("hold:"), "{}", lockfile());
}

#[test]
fn rollback_brings_the_tag_back_and_keeps_it() {
    let world = World::new("rollback", &["research"]);
    let (old, new) = (format!("{}:1", world.image("notebook")), format!("{}:2", world.image("notebook")));
    let digests = world.push_images(&[], &[&old, &new]);
    let target = ["--target", "dir:out"];
    world.commit(&[(FILE, &environment(&[("notebook", &old)], ""))], "One");
    assert!(world.pass(&target).well);
    let then = world.tip();
    world.commit(&[(FILE, &environment(&[("notebook", &new)], ""))], "Two");
    assert!(world.pass(&target).well);
    assert_eq!(locked(&world), digests[&new]);

    let before = commits(&world);
    let said = ada(&world, &["rollback", "research/x", "--to", &then, "--dry-run"]);
    assert!(said.contains("nothing was committed"), "{said}");
    assert_eq!(commits(&world), before);
    let said = ada(&world, &["rollback", "research/x", "notebook", "--to", &then, "--reason", "kernels die"]);
    assert!(said.contains("held at") && said.contains("kernels die"), "{said}");
    assert_eq!((commits(&world), locked(&world)), (before + 1, digests[&old].clone()));
    assert_eq!(world.git(&["log", "-1", "--format=%an %s", "main"]), "Ada lock: roll back research/x notebook to 1");

    // The file still asks for the other tag. That is said, and changes nothing; and it is not a revert to be held again.
    for _ in 0..2 {
        let pass = world.pass(&target);
        assert!(pass.problems("research/x").contains("kernels die"), "{:#}", pass.report);
        assert_eq!(commits(&world), before + 1);
    }
    let text = Command::new("grep").args(["-rc", &digests[&old]]).arg(world.path("out")).output().unwrap();
    assert!(text.status.success(), "the old digest is applied");
    // Deleting the line is releasing it.
    let lock = world.git(&["show", "main:lock/research/x.yaml"]);
    let without = format!("{}\n", lock.split("\n    hold:").next().unwrap());
    world.commit(&[("lock/research/x.yaml", &without)], "Let it go");
    assert!(world.pass(&target).well);
    assert_eq!((commits(&world), locked(&world)), (before + 3, digests[&new].clone()));
}

/// A colleague pushes while a hold is pushed: it is recomputed on theirs. A refusal is told in the remote's words.
// The newest wish counts: who takes a change of the file and its lock back, and asks for it again later, gets it, anyone who
// looks; who takes the lock alone back does not.
#[test]
fn a_file_that_is_changed_after_a_reversal_is_followed() {
    let world = World::new("anew", &["research"]);
    let (old, new) = (format!("{}:1", world.image("notebook")), format!("{}:2", world.image("notebook")));
    let digests = world.push_images(&[], &[&old, &new]);
    let target = ["--target", "dir:out"];
    let file = |reference: &str| environment(&[("notebook", reference)], "");
    world.commit(&[(FILE, &file(&old))], "One");
    assert!(world.pass(&target).well);
    world.commit(&[(FILE, &file(&new))], "Two");
    assert!(world.pass(&target).well);
    // The lock, and then the file; nobody holds anything.
    world.revert("HEAD");
    world.commit(&[(FILE, &file(&old))], "One again");
    let before = commits(&world);
    assert!(world.pass(&target).well);
    assert_eq!((commits(&world), locked(&world)), (before, digests[&old].clone()));
    world.commit(&[(FILE, &file(&new))], "Two again");
    assert!(world.pass(&target).well);
    assert_eq!(locked(&world), digests[&new], "{}", subject(&world));

    world.revert("HEAD");
    world.commit(&[("README.md", "Something else.\n")], "Read me");
    assert!(!world.pass(&target).well, "the file asks for something else than what is held");
    assert_eq!(
        (subject(&world).as_str(), locked(&world)),
        ("lock: hold research/x notebook at 1", digests[&old].clone())
    );
}

/// A tag that is changed in a reviewed file is a newer decision than a revert, and not than a hold.
#[test]
fn a_changed_tag_lifts_the_hold_of_a_revert_and_no_other() {
    let world = World::new("lifted", &["research"]);
    let tag = |tag: &str| format!("{}:{tag}", world.image("notebook"));
    let digests = world.push_images(&[], &[&tag("1"), &tag("2"), &tag("3"), &tag("4")]);
    let target = ["--target", "dir:out"];
    let ask_for = |wanted: &str| world.commit(&[(FILE, &environment(&[("notebook", &tag(wanted))], ""))], wanted);
    for wanted in ["1", "2"] {
        ask_for(wanted);
        assert!(world.pass(&target).well);
    }
    world.revert("HEAD");
    assert!(!world.pass(&target).well, "the file continues asking for the tag that was taken back");
    assert_eq!(locked(&world), digests[&tag("1")]);
    let held = world.tip();
    ask_for("3");
    let repository = world.repository();
    let plan = world.larder(&["plan", "--repo", &repository, "--from", &held]).output().unwrap();
    let words = String::from_utf8_lossy(&plan.stdout);
    assert!(plan.status.code() == Some(2) && words.contains("research/x notebook: released at"), "{words}");
    assert!(world.pass(&target).well);
    assert_eq!(
        (locked(&world), subject(&world).as_str()),
        (digests[&tag("3")].clone(), "lock: research/x notebook 1 → 3")
    );

    ada(&world, &["hold", "research/x", "--reason", "exam"]);
    let held = world.tip();
    ask_for("4");
    let plan = world.larder(&["plan", "--repo", &repository, "--from", &held]).output().unwrap();
    let words = String::from_utf8_lossy(&[plan.stdout, plan.stderr].concat()).into_owned();
    assert!(plan.status.code() == Some(1) && words.contains("but the image is held: \"exam\""), "{words}");
    assert!(!world.pass(&target).well);
    assert_eq!(locked(&world), digests[&tag("3")]);
}

/// After its last day a hold is gone by an ordinary lock commit, which follows the tag again.
#[test]
fn a_hold_ends_by_itself() {
    let (world, reference) = one_image("until", "");
    let target = ["--target", "dir:out"];
    assert!(world.pass(&target).well);
    let first = locked(&world);
    ada(&world, &["hold", "research/x", "--reason", "exam", "--until", "9999-12-30"]);
    let listed = ada(&world, &["hold", "--output", "json"]);
    assert!(listed.contains("\"until\": \"9999-12-30\"") && listed.contains("\"origin\": \"person\""), "{listed}");
    let second = retag(&world, &reference, "2");
    assert!(world.pass(&target).well);
    assert_eq!(locked(&world), first);
    // The same hold, after its end.
    let lock = world.git(&["show", "main:lock/research/x.yaml"]).replace("9999-12-30", "2026-11-30");
    world.commit(&[("lock/research/x.yaml", &format!("{lock}\n"))], "Until yesterday");
    assert!(world.pass(&target).well);
    assert_eq!(locked(&world), second);
    assert!(subject(&world).starts_with("lock: research/x notebook sha256:"), "{}", subject(&world));
    assert!(world.git(&["log", "-1", "--format=%B", "main"]).contains("\nLarder-Hold: none\n"));
    let refused = world.larder(&["hold", "research/x", "--reason", "exam", "--until", "2026-01-01"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("2026-01-01 is over"));
}

#[test]
fn a_hold_that_is_overtaken_is_made_anew() {
    let (world, _) = one_image("overtaken", "");
    assert!(world.pass(&["--target", "dir:out"]).well);
    let before = world.tip();
    let colleague = world.commit(&[("README.md", "x\n")], "Something else");
    world.git(&["update-ref", "refs/keep", &colleague]);
    world.git(&["update-ref", "refs/heads/main", &before]);
    super::git::race(&world, &before, &colleague);
    ada(&world, &["hold", "research/x", "--reason", "exam"]);
    assert!(world.path("environments.git/raced").exists(), "the race took place");
    assert_eq!(world.git(&["rev-parse", "main~1"]), colleague);
    assert_eq!(subject(&world), "lock: hold research/x notebook at latest");
    assert!(ada(&world, &["hold", "research/x", "--reason", "exam"]).contains("nothing to do"));

    super::git::hook(&world, "pre-receive", "#!/bin/sh\necho 'POLICY: ask Grace' >&2\nexit 1\n");
    let repository = world.repository();
    let arguments = ["release", "research/x", "--repo", &repository, "--author-name", "Ada", "--author-email", "a@b.c"];
    let output = world.larder(&arguments).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("POLICY: ask Grace"), "{words}");
    assert_eq!(subject(&world), "lock: hold research/x notebook at latest");
}

/// Where lock changes are proposed, the hold is what is proposed, and continues to be.
#[test]
fn a_hold_is_proposed_where_lock_changes_are() {
    let (world, reference) = one_image("propose", "  refresh: 24h\n");
    let target = ["--target", "dir:out"];
    assert!(world.pass(&target).well);
    retag(&world, &reference, "2");
    assert!(world.pass(&target).well);
    world.revert("HEAD");
    let tip = world.tip();
    let modes = ["--target", "dir:out", "--lock-mode", "branch", "--listen", "127.0.0.1:0"];
    let controller = world.controller(&modes);
    let side = || {
        let found = world.git(&["for-each-ref", "--format=%(refname) %(objectname) %(subject)", "refs/heads/larder"]);
        (!found.is_empty()).then_some(found)
    };
    let proposed = wait_for("the proposal", side);
    assert!(proposed.contains("lock: hold research/x notebook at latest"), "{proposed}");
    // Someone changes something else: the proposal is recreated on that, and says the same.
    let next = world.commit(&[("README.md", "x\n")], "Something else");
    wait_for("the proposal on the new tip", || side().filter(|found| *found != proposed));
    controller.wait_until_idle();
    assert!(side().unwrap().contains("lock: hold research/x notebook at latest"), "{:?}", side());
    assert_eq!((world.tip(), world.git(&["rev-parse", "main~1"])), (next, tip));
}

/// `larder lock` in a clone knows what was taken back, and goes back itself only when it is told to.
#[test]
fn the_lock_verb_knows_the_history() {
    let (world, reference) = one_image("verb", "");
    let first = retag(&world, &reference, "1");
    let target = ["--target", "dir:out"];
    assert!(world.pass(&target).well);
    let second = retag(&world, &reference, "2");
    assert!(world.pass(&target).well);
    world.commit(&[("README.md", "x\n")], "Takes up the lock");
    let lock = |more: &[&str]| {
        let mut command = world.larder(&[&["lock"], more].concat());
        let output = command.current_dir(world.path("clone")).output().unwrap();
        let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{words}");
        words
    };
    let in_clone = || std::fs::read_to_string(world.path("clone/lock/research/x.yaml")).unwrap();
    assert_eq!(retag(&world, &reference, "1"), first);
    let words = lock(&[]);
    assert!(
        words.contains("which it had before") && words.contains("0 images updated, 0 lockfiles written"),
        "{words}"
    );
    assert!(in_clone().contains(&format!("    digest: \"{second}\"")));
    let words = lock(&["--accept-earlier"]);
    assert!(words.contains("1 image updated, 1 lockfile written"), "{words}");
    assert!(in_clone().contains(&format!("    digest: \"{first}\"")));

    world.reset("HEAD");
    world.revert("HEAD~1");
    retag(&world, &reference, "3");
    let words = lock(&[]);
    assert!(words.contains("research/x notebook: held at") && words.contains("Ada went back to"), "{words}");
    assert!(in_clone().contains("      reason: \"Ada went back to"), "{}", in_clone());
}

/// In one's own clone the branch is checked out: the work tree follows.
#[test]
fn a_person_holds_in_a_clone() {
    let (world, _) = one_image("clone", "");
    assert!(world.pass(&["--target", "dir:out"]).well);
    let clone = world.path("clone");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(&clone)
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        String::from_utf8(run(&mut command).stdout).unwrap()
    };
    git(&["pull", "-q", "--ff-only", "origin", "main"]);
    let mut hold = world.larder(&["hold", "research/x", "--reason", "exam"]);
    let output = hold.current_dir(&clone).env("HOME", world.path("nobody")).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("no Git identity is configured"), "{words}");

    git(&["config", "user.name", "Grace"]);
    git(&["config", "user.email", "grace@example.com"]);
    let said = String::from_utf8(run(hold.current_dir(&clone)).stdout).unwrap();
    assert!(said.contains("run `git push` to publish it"), "{said}");
    assert_eq!(
        git(&["log", "-1", "--format=%an %ae %s"]),
        "Grace grace@example.com lock: hold research/x notebook at latest\n"
    );
    assert_eq!(git(&["status", "--porcelain"]), "", "the work tree is as the commit");
    git(&["push", "-q", "origin", "main"]);
    assert!(world.git(&["show", "main:lock/research/x.yaml"]).contains("      reason: \"exam\""));

    // A person who signs signs this, too; where larder cannot, it says so.
    run(Command::new("ssh-keygen").args([
        "-q",
        "-t",
        "ed25519",
        "-N",
        "",
        "-f",
        &world.path("ada").display().to_string(),
    ]));
    git(&["config", "commit.gpgSign", "true"]);
    git(&["config", "gpg.format", "ssh"]);
    git(&["config", "user.signingKey", &world.path("ada.pub").display().to_string()]);
    let mut release = world.larder(&["release", "research/x"]);
    let said = run(release.current_dir(&clone));
    assert!(!String::from_utf8_lossy(&said.stderr).contains("not signed"));
    assert!(git(&["cat-file", "commit", "HEAD"]).contains("\ngpgsig -----BEGIN SSH SIGNATURE-----\n"));
    git(&["config", "gpg.format", "openpgp"]);
    let said = run(hold.current_dir(&clone));
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(words.contains("is not signed") && words.contains("--amend --no-edit -S"), "{words}");
}

/// A forward proxy that answers `http://registry.test/…` from the local registry's `VIEW/…`.
fn view(name: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let name = name.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let name = name.clone();
            std::thread::spawn(move || forward(stream.unwrap(), &name));
        }
    });
    address
}

/// Answers one request, and closes the connection.
fn forward(mut client: TcpStream, view: &str) -> Option<()> {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).ok()?;
    let mut lines = request.lines();
    let line = lines.next()?.replace("http://registry.test/v2/", &format!("/v2/{view}/"));
    let accept = lines.filter(|line| line.to_lowercase().starts_with("accept:")).map(|line| format!("{line}\r\n"));
    let request = format!("{line}\r\nHost: 127.0.0.1:5000\r\nConnection: close\r\n{}\r\n", accept.collect::<String>());
    let mut registry = TcpStream::connect("127.0.0.1:5000").ok()?;
    registry.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    registry.read_to_end(&mut answer).ok()?;
    client.write_all(&answer).ok()
}

// Two controllers whose registries disagree for good. Each real change is one commit, and nobody goes back.
#[test]
fn registries_that_disagree_do_not_flip_the_lock() {
    let world = World::new("disagree", &["research"]);
    let image = format!("{}/notebook:latest", world.id);
    let in_views = |seed: &str, views: &[&str]| {
        let names: Vec<String> = views.iter().map(|view| format!("{view}/{image}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let digests = world.push_images(&["--seed", seed, "--content", seed], &names);
        digests[names[0]].clone()
    };
    let first = in_views("1", &["one.test", "two.test"]);
    let settings = world.settings(&["research"], "    registry.test: {plainHttp: true}\n");
    let text = environment(&[("notebook", &format!("registry.test/{image}"))], "  refresh: 10s\n");
    world.commit(&[("larder.yaml", &settings), (FILE, &text)], "Add");
    let before = commits(&world);
    let controllers = ["one", "two"].map(|name| {
        let proxy = format!("http://{}", view(&format!("{name}.test")));
        world.controller_with(&[("http_proxy", &proxy)], &["--target", &format!("dir:{name}")])
    });
    wait_for("the first lock", || (commits(&world) > before).then_some(()));
    assert_eq!(locked(&world), first);

    let second = in_views("2", &["two.test"]);
    wait_for("the new digest", || (locked(&world) == second).then_some(()));
    // The other one is asked three times more and says the same: it lags behind, and the lock stays.
    let asked = |index: usize| controllers[index].log().matches("resolved").count();
    let until = [asked(0) + 3, asked(1) + 3];
    wait_for("both to ask again", || (asked(0) >= until[0] && asked(1) >= until[1]).then_some(()));
    assert!(controllers[0].log().contains("a mirror that lags behind"), "{}", controllers[0].log());
    assert_eq!((commits(&world), locked(&world)), (before + 2, second), "{}", world.git(&["log", "--oneline", "main"]));

    // What is new to both is one more commit; a registry that really goes back is followed when it says so twice.
    let third = in_views("3", &["one.test", "two.test"]);
    wait_for("the next digest", || (locked(&world) == third).then_some(()));
    let until = [asked(0) + 1, asked(1) + 1];
    wait_for("both to ask again", || (asked(0) >= until[0] && asked(1) >= until[1]).then_some(()));
    assert_eq!(commits(&world), before + 3);
    assert_eq!(in_views("1", &["one.test", "two.test"]), first);
    wait_for("the way back", || (locked(&world) == first).then_some(()));
    let until = [asked(0) + 2, asked(1) + 2];
    wait_for("both to ask again", || (asked(0) >= until[0] && asked(1) >= until[1]).then_some(()));
    assert_eq!(commits(&world), before + 4, "{}", world.git(&["log", "--oneline", "main"]));
}

// Two controllers, a hundred passes each over an unchanged world.
#[test]
fn a_hundred_idle_passes_do_nothing() {
    let (world, _) = one_image("idle", "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let larder = || Identity { name: "larder".into(), email: "larder@example.com".into() };
    let mut controllers = ["one", "two"].map(|name| {
        let options = git::Options {
            url: world.repository(),
            branch: None,
            path: None,
            cache: world.path(&format!("cache-{name}")),
            credentials: git::Credentials::default(),
            network: git::Network::default(),
            author: larder(),
            committer: larder(),
            checkout: Checkout::default(),
            signing_key: None,
            trust: git::Trust::default(),
        };
        let options_of_passes = Options {
            render: render::Options { instance: "default".to_owned() },
            lock_mode: LockMode::Configured,
            patience: Patience::PASS,
            halt_before: None,
        };
        let world = pipeline::World {
            repository: Arc::new(Repository::open(options).unwrap()),
            cluster: AnyTarget::Directory(Directory::new(world.path(name), "default".to_owned())),
            credentials: StoredCredentials::new(None::<KubeCluster>, None).unwrap(),
            forge: None,
            options: options_of_passes,
        };
        Controller::new(world, Duration::from_secs(60))
    });
    // As the program's start does; another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cancel = CancellationToken::new();
    let mut pass = |index: usize| runtime.block_on(controllers[index].once(&cancel)).unwrap();
    for index in [0, 1] {
        assert!(pass(index).is_sound());
    }
    let tip = world.tip();
    for round in 0..100 {
        for index in [0, 1] {
            let pass = pass(index);
            assert!(pass.is_sound(), "{:#?}", pass.status);
            assert_eq!(pass.requests.registry, 0, "{round}");
            let writes = [Action::Create, Action::Configure, Action::Delete].map(|action| pass.applied.count(action));
            assert_eq!(writes, [0, 0, 0], "{round}");
            assert!(pass.lock.files.is_empty() && pass.status.last_pass.lock_commit.is_none());
        }
    }
    assert_eq!(world.tip(), tip);
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "3", "begin, add and one lock commit");
}

// The upstream is rewritten while the lock is pushed. What was dropped stays dropped.
#[test]
fn a_rewrite_during_the_push_is_not_undone() {
    let (world, reference) = one_image("rewrite", "");
    let base = world.git(&["rev-parse", "main~1"]);
    let dropped = world.tip();
    // The same environment under another name, on a history without the first commit.
    world.git(&["update-ref", "refs/heads/main", &base]);
    world.reset(&base);
    let text = environment(&[("notebook", &reference)], "");
    let rewritten = world.commit(&[("environments/research/y.yaml", &text)], "Rewritten");
    world.git(&["update-ref", "refs/keep", &rewritten]);
    world.git(&["update-ref", "refs/heads/main", &dropped]);
    super::git::race(&world, &dropped, &rewritten);
    let pass = world.pass(&["--target", "dir:out"]);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert!(world.path("environments.git/raced").exists(), "the rewrite took place during the push");
    assert_eq!(world.git(&["rev-parse", "main~1"]), rewritten, "the lock commit's parent is the new tip");
    let merged = world.git(&["rev-list", "main"]);
    assert!(!merged.contains(&dropped), "the dropped commit is not brought back");
    assert_eq!(world.git(&["ls-tree", "-r", "--name-only", "main", "lock/"]), "lock/research/y.yaml");
}
