//! The cache of what was fetched: small, bounded, and worth nothing that could not be fetched again.

use std::{fs, path::Path};

use larder::io::git::{GitError, PushError, Pushed, Repository};

use super::{
    server::{Fault, Server},
    world::{World, push, pushed, text, tip},
};

fn packs(world: &World) -> Vec<u64> {
    let folder = world.root().join("cache/trees/objects/pack");
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    files
        .filter(|file| file.path().extension().is_some_and(|name| name == "pack"))
        .map(|file| file.metadata().unwrap().len())
        .collect()
}

#[test]
fn only_what_is_new_comes_and_the_disk_does_not_fill() {
    // incremental, one commit deep forever, bounded.
    let noise: String = (0..20_000).map(|number| format!("{}\n", number * 7919 % 10_007)).collect();
    let world = World::new(&[("larder.yaml", "x\n"), ("README.md", &noise), ("lock/a/x.yaml", "0\n")]);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let mut current = tip(&mut repository);
    repository.fetch(&current).unwrap();
    let first = packs(&world)[0];
    for number in 0..40 {
        current = if number % 2 == 0 {
            world.git(&world.work(), &["fetch", "-q", "origin", "main"]);
            world.git(&world.work(), &["reset", "-q", "--hard", "origin/main"]);
            world.commit(&[("larder.yaml", &format!("{number}\n"))], "theirs")
        } else {
            pushed(push(&mut repository, current, &[("lock/a/x.yaml", &format!("{number}\n"))]))
        };
        let snapshot = repository.fetch(&current).unwrap();
        assert!(text(&snapshot, "larder.yaml").len() <= 3);
        assert!(packs(&world).len() <= 33, "{}", packs(&world).len());
        if number == 20 {
            assert_eq!(packs(&world).iter().filter(|&&size| size > first / 2).count(), 1, "{:?}", packs(&world));
        }
    }
    assert_eq!(world.count(), 41);
    world.git(&world.up(), &["fsck", "--strict"]);
}

#[test]
fn a_line_that_breaks_costs_only_what_was_on_the_way() {
    // What is here stays here, and the next try brings the rest.
    let noise: String = (0..20_000).map(|number| format!("{}\n", number * 7919 % 10_007)).collect();
    let world = World::new(&[("larder.yaml", "x\n"), ("README.md", &noise), ("lock/a/x.yaml", "0\n")]);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    repository.fetch(&first).unwrap();
    repository.ledger(&first).unwrap();
    let whole = packs(&world)[0];
    let second = world.commit(&[("larder.yaml", "y\n")], "second");
    server.fault(Some(Fault::Cut));
    let asked = server.fetches();
    for error in [repository.fetch(&second).unwrap_err(), repository.ledger(&second).map(|_| ()).unwrap_err()] {
        assert!(matches!(error, GitError::Network { .. }), "{error:?}");
    }
    assert_eq!(server.fetches(), asked + 2, "nothing is asked again at once");
    assert_eq!(packs(&world), [whole]);
    server.fault(None);
    assert_eq!(text(&repository.fetch(&second).unwrap(), "larder.yaml"), "y\n");
    assert!(packs(&world).iter().any(|&size| size < whole / 10), "{:?}", packs(&world));
    assert!(packs(&world).contains(&whole));
}

#[test]
fn what_a_killed_fetch_leaves_is_swept_away() {
    let world = World::new(&[("larder.yaml", "x\n")]);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    repository.fetch(&first).unwrap();
    let folder = world.root().join("cache/trees/objects/pack");
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for name in ["tmp_pack_x", ".tmpAbC", "pack-1.pack", "pack-2.idx", "pack-3.keep"] {
        fs::write(folder.join(name), "half").unwrap();
    }
    repository.fetch(&first).unwrap();
    assert_eq!(names(), before);
}

#[test]
fn a_damaged_cache_is_made_anew() {
    let world = World::new(&[("larder.yaml", "x\n"), ("lock/a/x.yaml", "0\n")]);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    let cache = world.root().join("cache/trees");
    let whole = repository.fetch(&first).unwrap();
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 5] = [
        ("no objects", |cache| fs::remove_dir_all(cache.join("objects/pack")).unwrap()),
        ("no HEAD", |cache| fs::remove_file(cache.join("HEAD")).unwrap()),
        ("nothing", |cache| fs::remove_dir_all(cache).unwrap()),
        ("nonsense", |cache| fs::write(cache.join("shallow"), "nonsense").unwrap()),
        ("broken packs", |cache| {
            for file in fs::read_dir(cache.join("objects/pack")).unwrap() {
                let file = file.unwrap().path();
                fs::remove_file(&file).unwrap();
                fs::write(&file, "broken").unwrap();
            }
        }),
    ];
    for (name, damage) in damages {
        damage(&cache);
        assert_eq!(repository.fetch(&first).unwrap(), whole, "{name}");
        damage(&cache);
        let result = push(&mut repository, first, &[("lock/a/x.yaml", "0\n")]);
        assert_eq!(result, Ok(Pushed::Nothing), "{name}");
    }
}

#[test]
fn many_writers_all_get_through_and_nothing_is_lost() {
    // Each recomputes on the new tip after a lost race.
    let world = World::new(&[("larder.yaml", "x\n")]);
    let server = Server::start(&world, None);
    std::thread::scope(|scope| {
        for writer in 0..5 {
            let (world, server) = (&world, &server);
            scope.spawn(move || {
                let url = if writer % 2 == 0 { server.url() } else { world.up().display().to_string() };
                let mut options = world.options(&url);
                options.cache = world.root().join(format!("cache-{writer}"));
                let mut repository = Repository::open(options).unwrap();
                let path = format!("lock/writer/{writer}.yaml");
                for _ in 0..100 {
                    let parent = tip(&mut repository);
                    match push(&mut repository, parent, &[(&path, "mine\n")]) {
                        Ok(Pushed::Commit(_)) => return,
                        Err(PushError::Raced { .. }) => {}
                        other => panic!("{other:?}"),
                    }
                }
                panic!("writer {writer} never got through");
            });
        }
    });
    assert_eq!(world.count(), 6);
    for writer in 0..5 {
        assert_eq!(world.file(&format!("lock/writer/{writer}.yaml")), "mine");
    }
}
