//! A repository at a real Gitea, over HTTP and over its own SSH server.

use std::{fs, path::PathBuf, process::Command, sync::Arc};

use larder::io::git::{CommitId, GitError, Options, PushError, Repository, Tip};
use serde_json::{Value, json};

use super::world::{World, push, pushed, text, tip};
use crate::{forge::gitea::Gitea, scenarios::world::run};

/// A private repository of the user `bot`, and a person's clone of it.
struct Hosted {
    gitea: Arc<Gitea>,
    world: World,
    name: String,
}

impl Hosted {
    /// Without any commit.
    fn empty() -> Self {
        let (gitea, world, name) = (Gitea::shared(), World::empty(), format!("peer-{:08x}", fastrand::u32(..)));
        gitea.api("POST", "user/repos", Some(&json!({"name": name, "private": true, "default_branch": "main"})));
        let remote = format!("{}/bot/{name}.git", gitea.url.replace("://", "://bot:bot-password@"));
        world.git(&world.work(), &["remote", "set-url", "origin", &remote]);
        Self { gitea, world, name }
    }

    fn new() -> Self {
        let hosted = Self::empty();
        hosted.commit(&[("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")], "first");
        hosted
    }

    /// A person changes files and pushes by force.
    fn commit(&self, files: &[(&str, &str)], message: &str) -> CommitId {
        let work = self.world.work();
        for (path, text) in files {
            let file = work.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        self.world.git(&work, &["add", "-A"]);
        self.world.git(&work, &["commit", "-q", "-m", message]);
        self.world.git(&work, &["push", "-q", "-f", "origin", "HEAD:refs/heads/main"]);
        self.world.git(&work, &["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Where a branch is, by git's own word; nothing when there is none.
    fn tip(&self, branch: &str) -> String {
        let line = self.world.git(&self.world.work(), &["ls-remote", "origin", &format!("refs/heads/{branch}")]);
        line.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// The API below this repository.
    fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.gitea.api(method, &format!("repos/bot/{}/{path}", self.name), body)
    }

    /// A new token, in the file that the options name.
    fn token(&self, name: &str) -> String {
        let token = json!({"name": format!("{}-{name}", self.name), "scopes": ["write:repository"]});
        let token = self.gitea.api("POST", "users/bot/tokens", Some(&token))["sha1"].as_str().unwrap().to_owned();
        fs::write(self.token_file(), format!("{token}\n")).unwrap();
        token
    }

    fn token_file(&self) -> PathBuf {
        self.world.root().join("token")
    }

    fn http(&self) -> Options {
        let mut options = self.world.options(&format!("{}/bot/{}.git", self.gitea.url, self.name));
        options.credentials.password_file = Some(self.token_file());
        options
    }
}

#[test]
fn a_token_from_a_file_that_is_rotated() {
    let hosted = Hosted::new();
    let token = hosted.token("first");
    let mut repository = Repository::open(hosted.http()).unwrap();
    let first = tip(&mut repository);
    assert_eq!(text(&repository.fetch(&first).unwrap(), "lock/a/x.yaml"), "old\n");
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!(hosted.tip("main"), second.to_string());

    hosted.gitea.api("DELETE", &format!("users/bot/tokens/{}-first", hosted.name), None);
    let error = repository.tip().unwrap_err();
    assert!(matches!(error, GitError::Authentication { .. } | GitError::NotFound { .. }), "{error:?}");
    assert!(!format!("{error} {error:?} {}", error.hint()).contains(&token), "{error}");
    let rotated = hosted.token("second");
    assert_ne!(token, rotated);
    assert_eq!(tip(&mut repository), second);
    let third = pushed(push(&mut repository, second, &[("lock/a/x.yaml", "newer\n")]));
    assert_eq!(hosted.tip("main"), third.to_string());

    // One that may read, but not write.
    let scopes = json!({"name": format!("{}-reader", hosted.name), "scopes": ["read:repository"]});
    let reader = hosted.gitea.api("POST", "users/bot/tokens", Some(&scopes));
    fs::write(hosted.token_file(), reader["sha1"].as_str().unwrap()).unwrap();
    assert_eq!(tip(&mut repository), third);
    let error = push(&mut repository, third, &[("lock/a/x.yaml", "no\n")]).unwrap_err();
    assert!(matches!(&error, PushError::Git(GitError::Authentication { .. })), "{error:?}");
    assert!(error.hint().contains("write"), "{}", error.hint());
    assert_eq!(hosted.tip("main"), third.to_string());
}

#[test]
fn rules_and_hooks_of_the_forge_refuse_in_their_own_words() {
    let hosted = Hosted::new();
    hosted.token("bot");
    let mut repository = Repository::open(hosted.http()).unwrap();
    let first = tip(&mut repository);
    hosted.api("POST", "branch_protections", Some(&json!({"rule_name": "main", "enable_push": false})));
    let refused = push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]).unwrap_err();
    assert!(
        matches!(&refused, PushError::Refused { message, .. } if message.contains("protected branch")),
        "{refused:?}"
    );
    assert!(refused.hint().contains("allow larder's account"), "{}", refused.hint());
    assert_eq!(hosted.tip("main"), first.to_string());

    // Anyone who is on the list may.
    hosted.api(
        "PATCH",
        "branch_protections/main",
        Some(&json!({"enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": ["bot"]})),
    );
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    // And nobody may rewrite it, nor would larder: what is based on an older commit has lost.
    let raced = push(&mut repository, first, &[("lock/a/x.yaml", "other\n")]);
    assert!(matches!(&raced, Err(PushError::Raced { .. })), "{raced:?}");
    assert_eq!(hosted.tip("main"), second.to_string());

    hosted.gitea.hook(&format!("bot/{}", hosted.name), "printf 'POLICY: need ticket \\033[31mred\\n' >&2; exit 1");
    let refused = push(&mut repository, second, &[("lock/a/x.yaml", "newer\n")]).unwrap_err();
    assert!(matches!(&refused, PushError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("POLICY: need ticket \u{fffd}[31mred"), "{refused}");
    assert_eq!(hosted.tip("main"), second.to_string());
}

#[test]
fn branches_come_move_and_go() {
    let hosted = Hosted::empty();
    hosted.token("bot");
    let unnamed = || {
        let mut options = hosted.http();
        options.branch = None;
        Repository::open(options).unwrap()
    };
    let mut repository = Repository::open(hosted.http()).unwrap();
    assert_eq!((repository.tip(), unnamed().tip()), (Ok(Tip::Empty), Ok(Tip::Empty)));
    let first = hosted.commit(&[("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")], "first");
    assert_eq!(tip(&mut repository), first);

    // Rewritten upstream: followed, and what was dropped never comes back with a push of ours.
    let dropped = hosted.commit(&[("larder.yaml", "dropped\n")], "dropped");
    assert_eq!(tip(&mut repository), dropped);
    repository.fetch(&dropped).unwrap();
    hosted.world.git(&hosted.world.work(), &["reset", "-q", "--hard", &first.to_string()]);
    let rewritten = hosted.commit(&[("larder.yaml", "rewritten\n")], "rewritten");
    let raced = push(&mut repository, dropped, &[("lock/a/x.yaml", "new\n")]);
    assert!(matches!(&raced, Err(PushError::Raced { .. })), "{raced:?}");
    assert_eq!(tip(&mut repository), rewritten);
    assert_eq!(text(&repository.fetch(&rewritten).unwrap(), "larder.yaml"), "rewritten\n");
    let ours = pushed(push(&mut repository, rewritten, &[("lock/a/x.yaml", "new\n")]));
    hosted.world.git(&hosted.world.work(), &["fetch", "-q", "origin"]);
    let history = hosted.world.git(&hosted.world.work(), &["rev-list", &ours.to_string()]);
    assert_eq!(history, format!("{ours}\n{rewritten}\n{first}"));

    // Renamed: the new default branch is followed; a name that was configured is gone, and nothing makes it again.
    hosted.api("PATCH", "branches/main", Some(&json!({"name": "trunk"})));
    let mut following = unnamed();
    assert_eq!((tip(&mut following), following.branch()), (ours, Some("trunk")));
    assert_eq!(repository.tip(), Ok(Tip::Gone { branch: "main".into() }));
    let lost = push(&mut repository, ours, &[("lock/a/x.yaml", "newer\n")]);
    assert!(matches!(&lost, Err(PushError::Raced { .. })), "{lost:?}");
    assert_eq!((hosted.tip("main"), hosted.tip("trunk")), (String::new(), ours.to_string()));
    pushed(push(&mut following, ours, &[("lock/a/x.yaml", "newer\n")]));
}

#[test]
fn over_its_own_ssh_server() {
    let hosted = Hosted::new();
    let (root, port) = (hosted.world.root(), hosted.gitea.ssh_port());
    for name in ["key", "stranger"] {
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(root.join(name)));
    }
    let public = fs::read_to_string(root.join("key.pub")).unwrap();
    hosted.gitea.api("POST", "user/keys", Some(&json!({"title": hosted.name, "key": public.trim()})));
    let scanned = run(Command::new("ssh-keyscan").args(["-p", &port.to_string(), "127.0.0.1"]));
    let scanned = String::from_utf8(scanned.stdout).unwrap();
    assert!(!scanned.trim().is_empty());
    let known = root.join("known_hosts");
    fs::write(&known, &scanned).unwrap();
    let mut options = hosted.world.options(&format!("ssh://git@127.0.0.1:{port}/bot/{}.git", hosted.name));
    options.credentials.ssh_key = Some(root.join("key"));
    options.credentials.known_hosts = Some(known.clone());
    let mut repository = Repository::open(options.clone()).unwrap();
    let first = tip(&mut repository);
    assert_eq!(text(&repository.fetch(&first).unwrap(), "lock/a/x.yaml"), "old\n");
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!(hosted.tip("main"), second.to_string());

    hosted.api("POST", "branch_protections", Some(&json!({"rule_name": "main", "enable_push": false})));
    let refused = push(&mut repository, second, &[("lock/a/x.yaml", "newer\n")]).unwrap_err();
    assert!(matches!(&refused, PushError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("protected branch"), "{refused}");

    // The host's key changes: its new one beside the old one is enough, the old one alone is not.
    let host = format!("[127.0.0.1]:{port}");
    let old = format!("{host} {}", fs::read_to_string(root.join("stranger.pub")).unwrap());
    fs::write(&known, format!("{old}{scanned}")).unwrap();
    assert_eq!(tip(&mut repository), second);
    for text in [old, String::new()] {
        fs::write(&known, text).unwrap();
        let error = repository.tip().unwrap_err();
        assert!(matches!(&error, GitError::HostKey { detail, .. } if detail.contains("SHA256:")), "{error:?}");
    }
    fs::write(&known, scanned).unwrap();
    options.credentials.ssh_key = Some(root.join("stranger"));
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(matches!(&error, GitError::Authentication { .. }), "{error:?}");
}
