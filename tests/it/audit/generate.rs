//! Long histories of lock commits, made by larder's own lockfiles and messages and `git fast-import`.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use larder::{
    model::{
        digest::Digest,
        lock::{Hold, HoldChange, LockChange, LockedImage, Lockfile, Move, Previous},
        name::{EnvironmentId, Name},
        resolution::PlatformManifest,
    },
    stages::{lock::message, lockfile},
};

/// The time of the first commit, in seconds since 1970; each further one is an hour later.
pub const START: i64 = 1_700_000_000;

/// How large a history is.
#[derive(Clone, Copy)]
pub struct Size {
    pub commits: usize,
    pub environments: usize,
    pub images: usize,
}

/// A history that is being written as a stream for `git fast-import`.
pub struct History {
    stream: Vec<u8>,
    lock: BTreeMap<EnvironmentId, Lockfile>,
    count: usize,
    random: fastrand::Rng,
}

/// Writes a history to the branch `main` of the bare repository `folder`, and gives the lock at its end.
pub fn generate(folder: &Path, size: Size) -> BTreeMap<EnvironmentId, Lockfile> {
    let mut history =
        History { stream: Vec::new(), lock: BTreeMap::new(), count: 0, random: fastrand::Rng::with_seed(7) };
    history.first(size);
    let environments: Vec<_> = history.lock.keys().cloned().collect();
    while history.count < size.commits {
        // Now and then several environments follow the same reference, and people change other files in between.
        let moved = if history.count % 10 == 9 { 3 } else { 1 };
        let moved: Vec<_> = (0..moved).map(|_| history.random.choice(&environments).unwrap().clone()).collect();
        history.step(&moved);
        if history.count % 20 == 19 {
            history.person();
        }
        if history.count % 40 == 30 {
            // Held, and released before it moves again.
            history.hold(&moved[0]);
            history.hold(&moved[0]);
        }
    }
    import(folder, &history.stream);
    history.lock
}

impl History {
    /// All environments at once.
    fn first(&mut self, size: Size) {
        let ids = (0..size.environments).map(|n| format!("tenant-{:02}/env-{n:03}", n % 20).parse().unwrap());
        let ids: Vec<EnvironmentId> = ids.collect();
        let mut moves = Vec::new();
        for id in &ids {
            let mut lockfile = Lockfile::default();
            for n in 0..size.images {
                let name: Name = format!("image {n}").parse().unwrap();
                let entry = self.entry(&name, None);
                moves.push(Move { environment: id.clone(), image: name.clone(), old: None, new: Some(side(&entry)) });
                lockfile.images.insert(name, entry);
            }
            self.lock.insert(id.clone(), lockfile);
        }
        self.moved(moves, &[("larder.yaml", "apiVersion: larder.dev/v1alpha1\nkind: Settings\n".into())]);
    }

    /// One image of each of these environments moves.
    fn step(&mut self, environments: &[EnvironmentId]) {
        let mut moves: Vec<Move> = Vec::new();
        for id in environments {
            let mut lockfile = self.lock[id].clone();
            let names: Vec<_> = lockfile.images.keys().cloned().collect();
            let name = self.random.choice(&names).unwrap().clone();
            if moves.iter().any(|moved| moved.environment == *id) {
                continue;
            }
            let old = lockfile.images[&name].clone();
            let new = self.entry(&name, Some(&old));
            let (old_side, new_side) = (Some(side(&old)), Some(side(&new)));
            moves.push(Move { environment: id.clone(), image: name.clone(), old: old_side, new: new_side });
            lockfile.images.insert(name, new);
            self.lock.insert(id.clone(), lockfile);
        }
        moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
        self.moved(moves, &[]);
    }

    /// The first image of an environment is held, or released.
    fn hold(&mut self, id: &EnvironmentId) {
        let mut lockfile = self.lock[id].clone();
        let (name, image) = lockfile.images.iter_mut().next().unwrap();
        image.hold = image.hold.is_none().then(|| Hold::of_person("exam"));
        let hold = image.hold.clone();
        let hold = HoldChange { environment: id.clone(), image: name.clone(), at: side(image), hold };
        self.lock.insert(id.clone(), lockfile);
        self.commit(std::slice::from_ref(id), Vec::new(), vec![hold], &[]);
    }

    fn entry(&mut self, name: &Name, old: Option<&LockedImage>) -> LockedImage {
        let mut digest = || Digest::sha256(&self.random.u128(..).to_le_bytes());
        let path = name.as_str().replace(' ', "-");
        let reference = format!("registry.example.org/jupyter/{path}:{}", self.count).parse().unwrap();
        let index = digest();
        let platforms = ["linux/amd64", "linux/arm64"].map(|platform| PlatformManifest {
            platform: platform.parse().unwrap(),
            digest: digest(),
            size: Some(1_234_567_890),
        });
        LockedImage {
            reference,
            digest: index,
            media_type: "application/vnd.oci.image.index.v1+json".into(),
            platforms: platforms.into(),
            previous: old.map(side).into_iter().collect(),
            hold: None,
        }
    }

    fn moved(&mut self, moves: Vec<Move>, others: &[(&str, String)]) {
        let ids: Vec<_> = moves.iter().map(|moved| moved.environment.clone()).collect();
        self.commit(&ids, moves, Vec::new(), others);
    }

    fn commit(&mut self, ids: &[EnvironmentId], moves: Vec<Move>, holds: Vec<HoldChange>, others: &[(&str, String)]) {
        let files: BTreeMap<String, Option<Vec<u8>>> =
            ids.iter().map(|id| (id.lock_path(), Some(lockfile::write(&self.lock[id])))).collect();
        let lock = ids.iter().map(|id| (id.clone(), Ok(self.lock[id].clone()))).collect();
        let change = LockChange { lock, files, moves, holds, ..LockChange::default() };
        let text = message(&change, "0.1.0");
        let files = change.files.into_iter().map(|(path, bytes)| (path, bytes.unwrap()));
        let others = others.iter().map(|(path, text)| ((*path).to_owned(), text.clone().into_bytes()));
        self.write("larder <larder@example.org>", &text, files.chain(others).collect());
    }

    /// A person's commit, which locks nothing.
    fn person(&mut self) {
        let path = format!("environments/tenant-00/env-{:03}.yaml", self.count);
        self.write("Ada <ada@example.org>", "environments: one more\n", vec![(path, b"kind: Environment\n".to_vec())]);
    }

    fn write(&mut self, author: &str, message: &str, files: Vec<(String, Vec<u8>)>) {
        let time = START + 3600 * i64::try_from(self.count).unwrap();
        let out = &mut self.stream;
        write!(out, "commit refs/heads/main\nauthor {author} {time} +0100\ncommitter {author} {time} +0100\n").unwrap();
        write!(out, "data {}\n{message}\n", message.len()).unwrap();
        for (path, bytes) in files {
            write!(out, "M 100644 inline {path}\ndata {}\n", bytes.len()).unwrap();
            out.extend(bytes);
            out.push(b'\n');
        }
        self.count += 1;
    }
}

fn side(entry: &LockedImage) -> Previous {
    Previous { reference: entry.reference.clone(), digest: entry.digest.clone() }
}

fn import(folder: &Path, stream: &[u8]) {
    git(folder.parent().unwrap(), &["init", "--quiet", "--bare", "-b", "main", folder.to_str().unwrap()]);
    let mut child = command(folder).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stream).unwrap();
    assert!(child.wait().unwrap().success(), "git fast-import");
}

/// Runs git, which has to succeed, with no configuration but the repository's own.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder).args(arguments).output().expect("git is needed: `make test` installs it");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A git that is about to be started in a directory.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("LC_ALL", "C").env("TZ", "UTC");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
    }
    command
}
