//! A bare repository made by git, a colleague's clone of it, and larder's view of it; hermetic and removed at the end.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use larder::io::git::{
    Checkout, CommitId, Credentials, Draft, Identity, Network, Options, PushError, Pushed, Repository, Tip, Trust,
};
use tempfile::TempDir;

/// The time of larder's commits in tests.
pub const NOW: i64 = 1_780_000_000;

pub struct World {
    pub folder: TempDir,
}

impl World {
    /// A bare repository `up.git` with one commit of `files` on `main`.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let world = Self::empty();
        world.commit(files, "first");
        world
    }

    /// A bare repository without any reference, and a clone of it.
    pub fn empty() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        world.git(&world.root(), &["init", "-q", "--bare", "-b", "main", "up.git"]);
        world.git(&world.root(), &["init", "-q", "-b", "main", "work"]);
        world.git(&world.work(), &["remote", "add", "origin", world.up().to_str().unwrap()]);
        world
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn up(&self) -> PathBuf {
        self.root().join("up.git")
    }

    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Runs git, which has to succeed, and gives its output.
    pub fn git(&self, folder: &Path, args: &[&str]) -> String {
        let output =
            self.git_command(folder).args(args).output().expect("git is needed: `make test-tools` installs it");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn git_command(&self, folder: &Path) -> Command {
        let mut command = Command::new("git");
        command.current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.root()).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.com");
            command.env(format!("GIT_{who}_DATE"), "1770000000 +0100");
        }
        command
    }

    /// A colleague changes files (an empty text removes one) and pushes to `main`.
    pub fn commit(&self, files: &[(&str, &str)], message: &str) -> CommitId {
        for (path, text) in files {
            let file = self.work().join(path);
            if text.is_empty() {
                fs::remove_file(file).unwrap();
                continue;
            }
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        self.git(&self.work(), &["add", "-A"]);
        self.git(&self.work(), &["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&self.work(), &["push", "-q", "-f", "origin", "HEAD:refs/heads/main"]);
        self.rev("refs/heads/main")
    }

    /// What a revision of the bare repository is.
    pub fn rev(&self, revision: &str) -> CommitId {
        self.git(&self.up(), &["rev-parse", "--verify", revision]).parse().unwrap()
    }

    /// The bytes of a file at the tip of `main`.
    pub fn file(&self, path: &str) -> String {
        self.git(&self.up(), &["show", &format!("refs/heads/main:{path}")])
    }

    pub fn count(&self) -> usize {
        self.git(&self.up(), &["rev-list", "--count", "refs/heads/main"]).parse().unwrap()
    }

    /// Installs a hook of the bare repository, a shell script.
    pub fn hook(&self, name: &str, script: &str) {
        let file = self.up().join("hooks").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn options(&self, url: &str) -> Options {
        Options { cache: self.root().join("cache"), ..options(url) }
    }

    /// larder's view of the bare repository by its path.
    pub fn local(&self) -> Repository {
        Repository::open(self.options(self.up().to_str().unwrap())).unwrap()
    }
}

/// Options for a repository, its branch being `main`.
pub fn options(url: &str) -> Options {
    Options {
        url: url.to_owned(),
        branch: Some("main".to_owned()),
        path: None,
        cache: PathBuf::new(),
        credentials: Credentials::default(),
        network: Network::default(),
        author: Identity { name: "larder".into(), email: "larder@example.com".into() },
        committer: Identity { name: "larder bot".into(), email: "bot@example.com".into() },
        signing_key: None,
        trust: Trust::default(),
        checkout: Checkout::default(),
    }
}

/// The tip, which has to be a commit.
pub fn tip(repository: &mut Repository) -> CommitId {
    match repository.tip() {
        Ok(Tip::Commit(id)) => id,
        other => panic!("a commit was expected, not {other:?}"),
    }
}

/// Pushes a commit that writes `files` (an empty text deletes one).
pub fn push(repository: &mut Repository, parent: CommitId, files: &[(&str, &str)]) -> Result<Pushed, PushError> {
    let changes: BTreeMap<String, Option<Vec<u8>>> = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (!text.is_empty()).then(|| text.as_bytes().to_vec())))
        .collect();
    repository.commit_and_push(&Draft { parent, changes: &changes, message: "lock: test\n", seconds: NOW })
}

/// The new commit of a push that has to succeed.
pub fn pushed(result: Result<Pushed, PushError>) -> CommitId {
    match result {
        Ok(Pushed::Commit(id)) => id,
        other => panic!("a commit was expected, not {other:?}"),
    }
}

/// A file's text in a snapshot.
pub fn text(snapshot: &larder::model::snapshot::Snapshot, path: &str) -> String {
    let bytes = snapshot.file(path).unwrap_or_else(|| panic!("{path} is not in {:?}", snapshot.files.keys()));
    String::from_utf8(bytes.to_vec()).unwrap()
}
