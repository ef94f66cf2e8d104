//! Revisions in every form, and clones that lack objects.

use larder::io::git::{GitError, Repository};

use super::{
    server::Server,
    world::{World, text, tip},
};

#[test]
fn an_annotated_tag_is_the_commit_that_it_points_to() {
    let world = World::new(&[("larder.yaml", "old\n")]);
    let first = world.rev("main");
    world.git(&world.up(), &["tag", "-a", "-m", "one", "v1", "main"]);
    world.git(&world.up(), &["tag", "-a", "-m", "of a tag", "v2", "v1"]);
    world.git(&world.up(), &["tag", "light", "main"]);
    world.commit(&[("larder.yaml", "new\n")], "second");
    world.git(&world.up(), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let id = |name: &str| world.git(&world.up(), &["rev-parse", name]);
    let server = Server::start(&world, None);
    for url in [world.up().display().to_string(), server.url()] {
        let mut repository = Repository::open(world.options(&url)).unwrap();
        let head = tip(&mut repository);
        for revision in ["v1", "v2", "light", &id("v1"), &id("v2"), &first.to_string()] {
            let commit = repository.revision(revision).unwrap_or_else(|error| panic!("{url} {revision}: {error}"));
            assert_eq!(commit, first, "{url} {revision}");
            assert_eq!(text(&repository.fetch(&commit).unwrap(), "larder.yaml"), "old\n", "{url} {revision}");
        }
        assert_eq!(repository.revision("main").unwrap(), head);
        assert_eq!(text(&repository.fetch(&head).unwrap(), "larder.yaml"), "new\n", "{url}");
    }
}

#[tokio::test]
async fn a_partial_clone_says_how_to_fetch_the_rest() {
    for filter in ["blob:none", "tree:0"] {
        let world = World::new(&[("larder.yaml", "x\n"), ("lock/a/x.yaml", "old\n")]);
        world.commit(&[("lock/a/x.yaml", "new\n")], "second");
        world.git(&world.up(), &["config", "uploadpack.allowFilter", "true"]);
        let (from, clone) = (format!("file://{}", world.up().display()), world.root().join("partial"));
        world.git(&world.root(), &["clone", "-q", "--bare", "--filter", filter, &from, clone.to_str().unwrap()]);
        let repository = larder::io::repository::Repository::open(world.options(clone.to_str().unwrap())).unwrap();
        let commit = repository.commit().await.unwrap();
        let error = repository.fetch(&commit).await.unwrap_err();
        assert!(matches!(error, GitError::Partial { .. }), "{filter}: {error:?}");
        let hint = error.hint();
        let command = hint.split('`').nth(1).unwrap().strip_prefix("git ").unwrap().to_owned();
        let command: Vec<&str> = command.split(' ').collect();
        world.git(&clone, &command);
        let snapshot = repository.fetch(&commit).await.unwrap();
        assert_eq!(text(&snapshot, "lock/a/x.yaml"), "new\n", "{filter}: after `{hint}`");
    }
}
