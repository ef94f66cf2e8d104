//! SSH keys and lists of allowed signers, made by ssh-keygen.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::git::world::World;

/// A directory of keys.
pub struct Keys(PathBuf);

impl Keys {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Makes a key; `bits` is empty for a kind that has one size.
    pub fn generate(&self, name: &str, kind: &str, bits: &str) -> PathBuf {
        let file = self.private(name);
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", kind, "-N", "", "-C", name, "-f"]).arg(&file);
        if !bits.is_empty() {
            command.args(["-b", bits]);
        }
        run(&mut command);
        file
    }

    /// Generates a key of each kind that can be trusted; their names.
    pub fn generate_each_kind(&self) -> [&'static str; 5] {
        let [ed, p256, p384] = self.generate_signing_kinds();
        for (name, bits) in [("rsa2", "2048"), ("rsa4", "4096")] {
            self.generate(name, "rsa", bits);
        }
        [ed, p256, p384, "rsa2", "rsa4"]
    }

    /// Generates a key of each kind that larder signs with; their names.
    pub fn generate_signing_kinds(&self) -> [&'static str; 3] {
        [("ed", "ed25519", ""), ("p256", "ecdsa", "256"), ("p384", "ecdsa", "384")].map(|(name, kind, bits)| {
            self.generate(name, kind, bits);
            name
        })
    }

    pub fn private(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `ssh-ed25519 AAAA…`, without the comment.
    pub fn public(&self, name: &str) -> String {
        let text = fs::read_to_string(self.0.join(format!("{name}.pub"))).unwrap();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// `SHA256:…`.
    pub fn fingerprint(&self, name: &str) -> String {
        let text = run(Command::new("ssh-keygen").arg("-lf").arg(self.0.join(format!("{name}.pub"))));
        text.split(' ').nth(1).unwrap().to_owned()
    }

    /// Writes a list of these keys.
    pub fn allow(&self, file: &str, names: &[&str]) -> PathBuf {
        self.list(file, &names.iter().map(|name| (*name, "")).collect::<Vec<_>>())
    }

    /// Writes a list of these keys with options.
    pub fn list(&self, file: &str, keys: &[(&str, &str)]) -> PathBuf {
        let line = |(name, options): &(&str, &str)| format!("{name}@example.com {options} {}\n", self.public(name));
        let file = self.0.join(file);
        fs::write(&file, keys.iter().map(line).collect::<String>()).unwrap();
        file
    }

    /// Whether git takes the signature of a commit of the bare repository.
    pub fn git_accepts(&self, world: &World, list: &str, revision: &str) -> bool {
        let mut command = world.git_command(&world.up());
        command.args(["-c", "gpg.format=ssh", "-c"]);
        command.arg(format!("gpg.ssh.allowedSignersFile={}", self.0.join(list).display()));
        command.args(["verify-commit", revision]).output().unwrap().status.success()
    }

    /// Signs a text for a namespace, as `ssh-keygen -Y sign` does.
    pub fn sign(&self, name: &str, namespace: &str, text: &[u8]) -> String {
        let file = self.0.join("to-sign");
        fs::write(&file, text).unwrap();
        let _ = fs::remove_file(self.0.join("to-sign.sig"));
        run(Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
            .arg(self.private(name))
            .arg(&file));
        fs::read_to_string(self.0.join("to-sign.sig")).unwrap()
    }
}

/// A commit of the bare repository as an object that git itself would not make.
pub fn write_commit(world: &World, bytes: &[u8]) -> String {
    let file = world.root().join("object");
    fs::write(&file, bytes).unwrap();
    let path: &Path = &file;
    world.git(&world.up(), &["hash-object", "-t", "commit", "-w", "--literally", path.to_str().unwrap()])
}

/// The bytes of a commit.
pub fn read_commit(world: &World, revision: &str) -> Vec<u8> {
    let output = world.git_command(&world.up()).args(["cat-file", "commit", revision]).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; `make test` installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
