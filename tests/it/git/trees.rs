//! What the trees of strange commits become, in place and over HTTP alike.

use std::{io::Write as _, process::Stdio};

use larder::{
    io::git::{GitError, Repository},
    model::snapshot::{Entry, Snapshot},
};

use super::{
    server::Server,
    world::{World, push, pushed, text, tip},
};

/// The snapshot of `main`, which has to be the same in place and over HTTP.
fn both(world: &World, path: Option<&str>) -> Snapshot {
    let server = Server::start(world, None);
    let [local, remote] = [world.up().display().to_string(), server.url()].map(|url| {
        let mut options = world.options(&url);
        options.path = path.map(str::to_owned);
        let mut repository = Repository::open(options).unwrap();
        let id = tip(&mut repository);
        repository.fetch(&id).unwrap()
    });
    assert_eq!(local, remote);
    local
}

/// Adds index entries (mode, object text or id, path) to a clone and pushes them.
fn commit_index(world: &World, entries: &[(&str, &str, &str)]) {
    world.git(&world.work(), &["config", "core.protectNTFS", "false"]);
    world.git(&world.work(), &["config", "core.protectHFS", "false"]);
    for (mode, content, path) in entries {
        let id = if *mode == "160000" { (*content).to_owned() } else { object(world, "blob", content.as_bytes()) };
        world.git(&world.work(), &["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{path}")]);
    }
    world.git(&world.work(), &["commit", "-q", "-m", "index"]);
    world.git(&world.work(), &["push", "-q", "origin", "HEAD:refs/heads/main"]);
}

/// Writes an object of any form into the clone.
fn object(world: &World, kind: &str, bytes: &[u8]) -> String {
    let mut command = world.git_command(&world.work());
    command.args(["hash-object", "-w", "--stdin", "--literally", "-t", kind]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn links_submodules_and_large_files() {
    // links as in C's cases
    let world = World::new(&[("larder.yaml", "x\n"), ("shared/s.yaml", "shared\n"), ("environments/a/x.yaml", "x\n")]);
    let large = "x".repeat(1024 * 1024 + 1);
    let head = world.rev("refs/heads/main").to_string();
    commit_index(
        &world,
        &[
            ("120000", "../shared/s.yaml", "environments/in.yaml"),
            ("120000", "in.yaml", "environments/hop.yaml"),
            ("120000", "../../shared/s.yaml", "lock/a/x.yaml"),
            ("120000", "../../../../etc/passwd", "environments/out.yaml"),
            ("120000", "/etc/passwd", "environments/absolute.yaml"),
            ("120000", "loop2", "environments/loop1"),
            ("120000", "loop1", "environments/loop2"),
            ("120000", "a", "environments/folder"),
            ("120000", "sub/x", "environments/into-sub"),
            ("160000", &head, "environments/sub"),
            ("100755", "run\n", "environments/executable.yaml"),
            ("100644", &large, "environments/large.yaml"),
            ("100644", "version https://git-lfs.github.com/spec/v1\n", "environments/lfs.yaml"),
        ],
    );
    let snapshot = both(&world, None);
    let link = |target: &str| Entry::Link(target.into());
    let file = |text: &str| Entry::File(text.as_bytes().into());
    for (path, expected) in [
        ("in.yaml", file("shared\n")),
        ("hop.yaml", file("shared\n")),
        ("out.yaml", link("../../../../etc/passwd")),
        ("absolute.yaml", link("/etc/passwd")),
        ("loop1", link("loop2")),
        ("folder", link("a")),
        ("into-sub", link("sub/x")),
        ("sub", Entry::Submodule),
        ("executable.yaml", file("run\n")),
        ("large.yaml", Entry::TooLarge(1024 * 1024 + 1)),
        // A pointer is what it is; no filter runs.
        ("lfs.yaml", file("version https://git-lfs.github.com/spec/v1\n")),
    ] {
        assert_eq!(snapshot.files.get(&format!("environments/{path}")), Some(&expected), "{path}");
    }
    // What is locked is in the lock's history, or nowhere.
    assert_eq!(snapshot.files["lock/a/x.yaml"], link("../../shared/s.yaml"));
    assert!(!snapshot.files.contains_key("shared/s.yaml"));
}

#[test]
fn a_folder_of_a_larger_repository() {
    let world = World::new(&[
        ("README.md", "of all\n"),
        ("larder.yaml", "of nobody\n"),
        ("clusters/one/larder.yaml", "one\n"),
        ("clusters/one/lock/a/x.yaml", "old\n"),
        ("clusters/two/larder.yaml", "two\n"),
        ("file", "x\n"),
    ]);
    commit_index(&world, &[("120000", "../two/larder.yaml", "clusters/one/environments/up.yaml")]);
    let snapshot = both(&world, Some("clusters/one"));
    assert_eq!(text(&snapshot, "larder.yaml"), "one\n");
    // The other cluster's directory is not this environment repository's.
    assert_eq!(snapshot.files["environments/up.yaml"], Entry::Link("../two/larder.yaml".into()));
    let mut options = world.options(world.up().to_str().unwrap());
    options.path = Some("./clusters//one/".into());
    let mut repository = Repository::open(options).unwrap();
    let first = tip(&mut repository);
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    let changed = world.git(&world.up(), &["diff", "--name-only", &first.to_string(), &second.to_string()]);
    assert_eq!(changed, "clusters/one/lock/a/x.yaml");
    for (path, message) in [("../x", "leaves"), ("/abs", "slash"), ("a/.git", "Git's own"), ("a\\b", "forbidden")] {
        let mut options = world.options(world.up().to_str().unwrap());
        options.path = Some(path.into());
        let error = Repository::open(options).unwrap_err();
        assert!(error.to_string().contains(message), "{path}: {error}");
    }
    assert!(both(&world, Some("clusters/three")).files.is_empty());
    let mut options = world.options(world.up().to_str().unwrap());
    options.path = Some("file".into());
    let error = Repository::open(options).unwrap().fetch(&second).unwrap_err();
    assert!(matches!(error, GitError::Path { .. }), "{error:?}");
}

#[test]
fn names_that_no_honest_git_writes() {
    let world = World::new(&[("larder.yaml", "x\n")]);
    let blob = object(&world, "blob", b"evil\n");
    let raw: Vec<u8> = (0..20).map(|index| u8::from_str_radix(&blob[index * 2..index * 2 + 2], 16).unwrap()).collect();
    for name in ["..", ".", "a/b", "../../x", ".GIT", "GIT~1"] {
        let inner = [format!("100644 {name}\0").as_bytes(), &raw].concat();
        let inner = object(&world, "tree", &inner);
        let listing = format!("040000 tree {inner}\tenvironments\n");
        let mut command = world.git_command(&world.work());
        let mut child = command.arg("mktree").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(listing.as_bytes()).unwrap();
        let root = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned();
        let commit = world.git(&world.work(), &["commit-tree", "-m", "evil", &root]);
        world.git(&world.work(), &["push", "-q", "-f", "origin", &format!("{commit}:refs/heads/main")]);
        let mut repository = world.local();
        let id = tip(&mut repository);
        let snapshot = repository.fetch(&id);
        if name.contains("GIT") {
            // Harmless, as nothing is ever checked out.
            assert!(snapshot.is_ok(), "{name}: {snapshot:?}");
        } else {
            assert!(matches!(snapshot, Err(GitError::Corrupt { .. })), "{name}: {snapshot:?}");
        }
    }
    // Odd, but honest: a line break and bytes that are no UTF-8.
    let world = World::new(&[("larder.yaml", "x\n"), ("environments/a\nb.yaml", "x\n")]);
    assert_eq!(text(&both(&world, None), "environments/a\nb.yaml"), "x\n");
}

fn commit_root(world: &World, tree: &str) {
    let commit = world.git(&world.work(), &["commit-tree", "-p", "HEAD", "-m", "odd", tree]);
    world.git(&world.work(), &["push", "-q", "-f", "origin", &format!("{commit}:refs/heads/main")]);
}

fn raw(id: &str) -> Vec<u8> {
    (0..20).map(|at| u8::from_str_radix(&id[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

/// A tree of entries (mode, name, id).
fn tree(world: &World, entries: &[(&str, &str, &str)]) -> String {
    let entry = |(mode, name, id): &(&str, &str, &str)| [format!("{mode} {name}\0").as_bytes(), &raw(id)].concat();
    object(world, "tree", &entries.iter().flat_map(entry).collect::<Vec<u8>>())
}

/// The commit of `environments` with the trees alpha and beta.
fn commit_alpha(world: &World, alpha: &str) {
    let file = |path: &str| world.git(&world.work(), &["rev-parse", &format!("HEAD:{path}")]);
    let beta = file("environments/beta");
    let environments = tree(world, &[("40000", "alpha", alpha), ("40000", "beta", &beta)]);
    let root =
        tree(world, &[("40000", "environments", &environments), ("100644", "larder.yaml", &file("larder.yaml"))]);
    commit_root(world, &root);
}

#[test]
fn a_directory_that_exceeds_a_bound_is_that_tenants_alone() {
    let world = World::new(&[("larder.yaml", "x\n"), ("environments/beta/x.yaml", "beta\n")]);
    let blob = object(&world, "blob", "x".repeat(1024 * 1024).as_bytes());
    let one = tree(&world, &[("100644", "x.yaml", &blob)]);
    let deep = (0..34).fold(one, |below, _| tree(&world, &[("40000", "d", &below)]));
    let names: Vec<String> = (100..620).map(|number| format!("{number}.yaml")).collect();
    let many = tree(&world, &names.iter().map(|name| ("100644", name.as_str(), blob.as_str())).collect::<Vec<_>>());
    let empty = tree(&world, &[]);
    let doubled = (0..28).fold(empty, |below, _| tree(&world, &[("40000", "a", &below), ("40000", "b", &below)]));
    let odd = tree(&world, &[("100644", "..", &blob)]);
    for (alpha, why) in [(deep, "levels"), (many, "MiB"), (doubled, "files and directories"), (odd, "the name")] {
        commit_alpha(&world, &alpha);
        let started = std::time::Instant::now();
        let snapshot = both(&world, None);
        assert!(started.elapsed().as_secs() < 20, "{why}: {:?}", started.elapsed());
        assert_eq!(text(&snapshot, "environments/beta/x.yaml"), "beta\n");
        let Some(Entry::Unread(said)) = snapshot.files.get("environments/alpha") else { panic!("{why}") };
        assert!(said.contains(why), "{said}");
        assert!(!snapshot.files.keys().any(|path| path.starts_with("environments/alpha/")), "{why}");
    }
}

#[test]
fn equal_files_are_one_in_memory_and_what_is_not_read_is_not_kept() {
    let large = "x".repeat(900 * 1024);
    let world = World::new(&[("larder.yaml", "x\n"), ("environments/a/x.yaml", &large)]);
    let names: Vec<String> = (0..20).map(|number| format!("environments/a/{number}.yaml")).collect();
    let mut entries: Vec<(&str, &str, &str)> =
        names.iter().map(|name| ("100644", large.as_str(), name.as_str())).collect();
    entries.extend([("100644", "x", "environments/a/notes.txt"), ("100644", "x", "templates/README.md")]);
    commit_index(&world, &entries);
    let snapshot = both(&world, None);
    let first = snapshot.file("environments/a/x.yaml").unwrap();
    for name in &names {
        assert!(std::sync::Arc::ptr_eq(first, snapshot.file(name).unwrap()), "{name}");
    }
    assert_eq!(snapshot.files.len(), 22, "{:?}", snapshot.files.keys());
}

#[test]
fn a_commit_that_is_larger_than_memory_is_refused_by_its_size() {
    let world = World::new(&[("larder.yaml", "x\n")]);
    let file = world.root().join("message");
    std::fs::write(&file, "m".repeat(70 * 1024 * 1024)).unwrap();
    let tree = world.git(&world.work(), &["rev-parse", "HEAD^{tree}"]);
    let commit = world.git(&world.work(), &["commit-tree", "-F", file.to_str().unwrap(), &tree]);
    world.git(&world.work(), &["push", "-q", "-f", "origin", &format!("{commit}:refs/heads/main")]);
    let server = Server::start(&world, None);
    for url in [world.up().display().to_string(), server.url()] {
        let mut repository = Repository::open(world.options(&url)).unwrap();
        let id = world.rev("refs/heads/main");
        let error = repository.fetch(&id).unwrap_err();
        assert!(matches!(error, GitError::TooLarge { .. }), "{url}: {error:?}");
        let error = repository.ledger(&id).and_then(|ledger| ledger.tip()).unwrap_err();
        assert!(!error.to_string().contains("mmm"), "{url}: {error:?}");
    }
}

#[test]
fn odd_names_of_peoples_files_do_not_stop_the_lock() {
    let world = World::new(&[("larder.yaml", "x\n"), ("lock/a/x.yaml", "old\n")]);
    let names = ["aux", "con.txt", "a:b", "GIT~1", "back\\slash", "trailing.", "\u{200c}.git"];
    commit_index(&world, &names.map(|name| ("100644", "x\n", name)));
    let server = Server::start(&world, None);
    for url in [world.up().display().to_string(), server.url()] {
        let mut repository = Repository::open(world.options(&url)).unwrap();
        let first = tip(&mut repository);
        pushed(push(&mut repository, first, &[("lock/a/x.yaml", &url)]));
        assert_eq!(world.git(&world.up(), &["diff", "--name-only", "main~1", "main"]), "lock/a/x.yaml");
    }
    let listed = world.git(&world.up(), &["ls-tree", "--name-only", "-z", "main"]);
    assert!(names.iter().all(|name| listed.split('\0').any(|listed| listed == *name)), "{listed:?}");
}

/// `count` bytes that do not get smaller, in lines.
fn noise(count: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(|number| if number % 80 == 79 { '\n' } else { random.alphanumeric() }).collect()
}

#[test]
fn large_files_stay_at_the_server() {
    // Where the server can leave them out. Nothing that is read is missing for it.
    let large = noise(1024 * 1024 + 1);
    let files =
        [("larder.yaml", "x\n"), ("data.bin", &large), ("environments/a.yaml", "a\n"), ("environments/l.yaml", &large)];
    let world = World::new(&files);
    let in_place = both(&world, None);
    assert_eq!(in_place.files["environments/l.yaml"], Entry::TooLarge(1024 * 1024 + 1));
    std::fs::remove_dir_all(world.root().join("cache")).unwrap();
    world.git(&world.up(), &["config", "uploadpack.allowFilter", "true"]);
    assert_eq!(both(&world, None), in_place);
    let size = |folder: std::path::PathBuf| {
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let packs = || size(world.root().join("cache/trees/objects/pack"));
    assert!(packs() < 16 * 1024, "{}", packs());

    // A lock commit leaves them where they are, and one that gets smaller is read, although what it was made of is not here.
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!(world.git(&world.up(), &["diff", "--name-only", "main~1", "main"]), "lock/a/x.yaml");
    assert!(repository.fetch(&second).is_ok());
    world.git(&world.work(), &["pull", "-q", "--ff-only", "origin", "main"]);
    let smaller = &large[..900 * 1024];
    let third = world.commit(&[("environments/l.yaml", smaller), ("data.bin", "")], "smaller");
    assert_eq!(text(&repository.fetch(&third).unwrap(), "environments/l.yaml"), smaller);
    world.git(&world.up(), &["fsck", "--strict"]);
}

#[test]
fn nobodys_filters_and_settings_change_a_byte() {
    // attributes, line ends and locales are for work trees and people.
    let world = World::new(&[
        ("larder.yaml", "x\n"),
        (".gitattributes", "* text eol=crlf filter=evil\n"),
        ("environments/a/x.yaml", "one\n"),
    ]);
    for (key, value) in [
        ("core.autocrlf", "true"),
        ("core.fileMode", "false"),
        ("filter.evil.smudge", "touch ran; cat"),
        ("filter.evil.clean", "touch ran; cat"),
        ("filter.evil.required", "true"),
        ("i18n.commitEncoding", "ISO-8859-1"),
    ] {
        world.git(&world.up(), &["config", key, value]);
    }
    assert_eq!(text(&both(&world, None), "environments/a/x.yaml"), "one\n");
    let mut repository = world.local();
    let first = tip(&mut repository);
    pushed(push(&mut repository, first, &[("lock/a/x.yaml", "ä\n")]));
    assert_eq!(world.git(&world.up(), &["cat-file", "-s", "main:lock/a/x.yaml"]), "3");
    assert!(!world.up().join("ran").exists());
}

#[test]
fn what_people_put_in_the_way_is_not_overwritten() {
    let world = World::new(&[("larder.yaml", "x\n"), ("lock/file", "a file\n"), ("lock/d/x.yaml", "x\n")]);
    let head = world.rev("refs/heads/main").to_string();
    commit_index(
        &world,
        &[("120000", "d", "lock/link"), ("160000", &head, "lock/sub"), ("120000", "d/x.yaml", "lock/l.yaml")],
    );
    let mut repository = world.local();
    let first = tip(&mut repository);
    for path in
        ["lock/file/x.yaml", "lock/link/x.yaml", "lock/sub/x.yaml", "lock/d", "lock/sub", "../x", ".git/x", "/x"]
    {
        let error = push(&mut repository, first, &[(path, "new\n")]).unwrap_err();
        assert!(error.to_string().contains("the path"), "{path}: {error}");
    }
    assert_eq!(tip(&mut repository), first);
    // A link at a lockfile's own place becomes the lockfile; what it led to stays.
    pushed(push(&mut repository, first, &[("lock/l.yaml", "new\n")]));
    assert_eq!((world.file("lock/l.yaml"), world.file("lock/d/x.yaml")), ("new".into(), "x".into()));
}
