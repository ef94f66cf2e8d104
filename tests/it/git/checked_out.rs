//! Branches that git's own push would not move: larder does not move them either.

use std::fs;

use larder::io::git::{Checkout, PushError, Repository};

use super::world::{World, push, pushed, tip};

const CHANGE: [(&str, &str); 1] = [("lock/a/x.yaml", "new\n")];

#[test]
fn a_branch_that_a_linked_work_tree_has_checked_out_stays_where_it_is() {
    let world = World::new(&[("larder.yaml", "x\n")]);
    let tree = world.root().join("wt");
    world.git(&world.up(), &["worktree", "add", "-q", tree.to_str().unwrap(), "main"]);
    let mut repository = world.local();
    let first = tip(&mut repository);
    let error = push(&mut repository, first, &CHANGE).unwrap_err();
    assert!(matches!(error, PushError::CheckedOut { .. }), "{error:?}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    assert_eq!(tip(&mut repository), first);
    world.git(&tree, &["diff", "--quiet", "HEAD"]);
    // Another branch there is in nobody's way.
    world.git(&tree, &["checkout", "-q", "-b", "other"]);
    pushed(push(&mut repository, first, &CHANGE));
}

#[test]
fn what_the_configuration_refuses_is_refused() {
    for (key, value) in [("receive.maxInputSize", "1"), ("transfer.hideRefs", "refs/heads/main")] {
        let world = World::new(&[("larder.yaml", "x\n")]);
        world.git(&world.up(), &["config", key, value]);
        let mut repository = world.local();
        let first = world.rev("refs/heads/main");
        let result = push(&mut repository, first, &CHANGE);
        assert!(result.is_err(), "{key}: {result:?}");
        assert_eq!(world.rev("refs/heads/main"), first, "{key}");
    }
}

#[test]
fn a_work_tree_with_changes_is_named_and_left_alone() {
    let world = World::new(&[("larder.yaml", "x\n"), ("lock/a/x.yaml", "old\n")]);
    let mut options = world.options(world.work().to_str().unwrap());
    options.checkout = Checkout::Update;
    let mut repository = Repository::open(options).unwrap();
    let first = tip(&mut repository);
    fs::write(world.work().join("larder.yaml"), "changed\n").unwrap();
    let error = push(&mut repository, first, &CHANGE).unwrap_err();
    assert!(matches!(error, PushError::Uncommitted { .. }), "{error:?}");
    let said = format!("{error} {}", error.hint());
    assert!(said.contains("work tree") && said.contains("commit or stash") && !said.contains("push"), "{said}");
    // By default, not even a clean one is touched, and that is said in one line.
    let mut plain = Repository::open(world.options(world.work().to_str().unwrap())).unwrap();
    tip(&mut plain);
    let error = push(&mut plain, first, &CHANGE).unwrap_err();
    assert!(matches!(error, PushError::CheckedOut { .. }), "{error:?}");
}
