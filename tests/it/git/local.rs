//! A repository on this machine, by its path.

use larder::io::git::{PushError, Pushed};

use super::world::{World, push, pushed, text, tip};

const FILES: [(&str, &str); 4] = [
    ("larder.yaml", "kind: Larder\n"),
    ("environments/a/x.yaml", "one\n"),
    ("README.md", "not read\n"),
    ("lock/a/x.yaml", "old\n"),
];

#[test]
fn tip_files_and_a_lock_commit() {
    let world = World::new(&FILES);
    let mut repository = world.local();
    let first = tip(&mut repository);
    assert_eq!(first, world.rev("refs/heads/main"));
    let snapshot = repository.fetch(&first).unwrap();
    assert_eq!(snapshot.files.keys().collect::<Vec<_>>(), ["environments/a/x.yaml", "larder.yaml", "lock/a/x.yaml"]);
    assert_eq!(text(&snapshot, "lock/a/x.yaml"), "old\n");

    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n"), ("lock/b/y.yaml", "more\n")]));
    assert_eq!(world.rev("refs/heads/main"), second);
    assert_eq!(world.rev("refs/heads/main~1"), first);
    assert_eq!((world.file("lock/a/x.yaml"), world.file("lock/b/y.yaml")), ("new".into(), "more".into()));
    assert_eq!(world.file("README.md"), "not read");
    let who = world.git(&world.up(), &["log", "-1", "--format=%an <%ae> %cn <%ce> %ct %s", "main"]);
    assert_eq!(who, "larder <larder@example.com> larder bot <bot@example.com> 1780000000 lock: test");
    world.git(&world.up(), &["fsck", "--strict"]);

    // The same files again make no commit.
    assert_eq!(push(&mut repository, second, &[("lock/a/x.yaml", "new\n"), ("lock/c.yaml", "")]), Ok(Pushed::Nothing));
    for _ in 0..100 {
        assert_eq!(push(&mut repository, second, &[("lock/a/x.yaml", "new\n")]), Ok(Pushed::Nothing));
    }
    assert_eq!(tip(&mut repository), second);
    let third = pushed(push(&mut repository, second, &[("lock/b/y.yaml", "")]));
    let snapshot = repository.fetch(&third).unwrap();
    assert!(snapshot.file("lock/b/y.yaml").is_none() && snapshot.file("lock/a/x.yaml").is_some());
}

#[test]
fn the_later_of_two_writers_loses() {
    let world = World::new(&FILES);
    let mut repository = world.local();
    let first = tip(&mut repository);
    let theirs = world.commit(&[("environments/a/x.yaml", "two\n")], "a colleague");
    let lost = push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]);
    assert!(matches!(&lost, Err(PushError::Raced { .. })), "{lost:?}");
    assert_eq!(tip(&mut repository), theirs);
    let ours = pushed(push(&mut repository, theirs, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!(world.rev("refs/heads/main~1"), theirs);
    assert_eq!(world.rev("refs/heads/main"), ours);
}
