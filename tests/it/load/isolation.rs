//! One broken file leaves all others as they are.

use larder::{
    model::snapshot::{Entry, Snapshot},
    stages::load::load,
};

use super::{ENVIRONMENT, SETTINGS, load_with};

const BROKEN: [&[u8]; 12] = [
    b"",
    b"{",
    b"\xff\xfe\0",
    b"\0GITCRYPT\0",
    b"hello",
    b"kind: ConfigMap\n",
    b"apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec: {images: [{name: a, image: A}]}\n",
    b"apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec: {imags: []}\n",
    b"apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec: {images: [{name: a, image: a}, {name: a, image: b}]}\n",
    b"spec: &a [*a]\n",
    b"a: 1\n---\nb: 2\n",
    b"\tspec: x\n",
];

#[test]
fn breaking_one_environment_changes_nothing_for_another() {
    let other = ENVIRONMENT.replace("app:1", "app:2");
    let good = load_with([("environments/t/a.yaml", ENVIRONMENT), ("environments/t/b.yaml", &other)]);
    let b = "t/b".parse().unwrap();
    let a = "t/a".parse().unwrap();
    for broken in BROKEN {
        let text = String::from_utf8_lossy(broken);
        let found = load_with([("environments/t/a.yaml", broken), ("environments/t/b.yaml", other.as_bytes())]);
        assert_eq!(found.environments[&b], good.environments[&b], "{text}");
        let failure = found.environments[&a].as_ref().unwrap_err();
        for problem in failure.problems() {
            assert_eq!(problem.location.as_ref().unwrap().path, "environments/t/a.yaml", "{text}");
            assert!(problem.hint.is_some(), "{problem}");
        }
        assert_eq!(found.strays, good.strays, "{text}");
    }
}

#[test]
fn an_order_of_files_changes_nothing() {
    let files = ["a", "b", "c"].map(|name| (format!("environments/t/{name}.yaml"), ENVIRONMENT));
    let mut reversed = files.clone();
    reversed.reverse();
    assert_eq!(load_with(files), load_with(reversed));
}

#[test]
fn what_all_share_stops_all() {
    let snapshot = |files: &[(&str, &[u8])]| Snapshot {
        files: files.iter().map(|(path, bytes)| ((*path).to_owned(), Entry::File((*bytes).into()))).collect(),
        ..Snapshot::default()
    };
    // An empty source is not a wish to remove everything.
    let failure = load(&Snapshot::default()).unwrap_err();
    assert!(failure.to_string().contains("there is no larder.yaml"), "{failure}");
    for broken in BROKEN {
        load(&snapshot(&[("larder.yaml", broken)])).unwrap_err();
    }
    let settings = ("larder.yaml", SETTINGS.as_bytes());
    let failure = load(&snapshot(&[settings, ("templates/puller.yaml.j2", b"\xff")])).unwrap_err();
    assert!(failure.to_string().contains("templates/puller.yaml.j2"), "{failure}");
    load(&snapshot(&[settings, ("templates/picture.png", b"\xff")])).unwrap();
}

#[test]
fn a_broken_lockfile_is_a_failure_of_its_environment() {
    let found = load_with([
        ("environments/t/a.yaml", ENVIRONMENT),
        ("environments/t/b.yaml", ENVIRONMENT),
        ("lock/t/a.yaml", "{"),
        ("lock/t/gone.yaml", "<<<<<<< HEAD\n"),
        ("lock/README.md", "not ours"),
        ("lock/a.yaml", "not ours"),
    ]);
    let locks: Vec<String> = found.lock.iter().map(|(id, result)| format!("{id} {}", result.is_ok())).collect();
    assert_eq!(locks, ["t/a false", "t/gone false"]);
    assert!(found.environments.values().all(Result::is_ok));
}
