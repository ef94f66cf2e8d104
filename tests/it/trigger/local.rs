//! A repository on this machine, polled once an hour: commits are acted upon, saved files are checked.

use std::{fs, process::Command};

use super::peer::{self, passes};
use crate::scenarios::{
    environment,
    world::{Controller, World, run, wait_for},
};

/// What the directory of manifests holds, as one text.
fn manifests(world: &World) -> String {
    let mut text = String::new();
    let mut folders = vec![world.path("out")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                text += &fs::read_to_string(entry.path()).unwrap_or_default();
            }
        }
    }
    text
}

fn wait_for_manifest(world: &World, controller: &Controller, part: &str) {
    wait_for(&format!("{part} to be rendered:\n{}", controller.log()), || {
        manifests(world).contains(part).then_some(())
    });
}

#[test]
fn a_commit_is_acted_upon_at_once_also_in_a_repository_that_was_replaced() {
    let world = World::new("watched", &["research"]);
    let images = ["a", "b", "c"].map(|name| format!("{}:1", world.image(name)));
    world.push_images(&[], &images.each_ref().map(String::as_str));
    let repository = world.repository();
    let controller = peer::listening(&world, &["--repo", &repository, "--target", "dir:out"]);
    passes(&controller);
    let add = |name: &str, image: &str| {
        let file = (format!("environments/research/{name}.yaml"), environment(&[("notebook", image)], ""));
        world.commit(&[(&file.0, &file.1)], name);
        wait_for_manifest(&world, &controller, image);
    };
    add("a", &images[0]);
    // References that move into packed-refs are no new commit.
    let before = passes(&controller);
    world.git(&["pack-refs", "--all"]);
    add("b", &images[1]);
    assert_eq!(passes(&controller), before + 1.0, "our own lock commits cause no pass");

    // Cloned again under the same name.
    let (old, new) = (world.path("old.git"), world.path("environments.git"));
    fs::rename(&new, &old).unwrap();
    run(Command::new("git").args(["clone", "-q", "--bare"]).arg(&old).arg(&new));
    add("c", &images[2]);
    assert!(!controller.log().contains("not watched"), "{}", controller.log());
}

#[test]
fn what_is_saved_is_checked_and_only_what_is_committed_is_applied() {
    let world = World::new("saved", &["research"]);
    let reference = format!("{}:1", world.image("notebook"));
    let good = environment(&[("notebook", &reference)], "");
    let clone = world.path("clone");
    let file = clone.join("environments/research/x.yaml");
    let repository = clone.display().to_string();
    let controller = peer::listening(&world, &["--repo", &repository, "--target", "dir:out", "--follow"]);
    passes(&controller);

    // A directory that was not there before, and a file with a mistake.
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, good.replace("images:", "imags:")).unwrap();
    controller.wait_for_log("saved, not committed");
    controller.wait_for_log("imags");
    // As editors do it: written beside, and renamed.
    fs::write(file.with_extension("yaml~"), &good).unwrap();
    fs::rename(file.with_extension("yaml~"), &file).unwrap();
    controller.wait_for_log("saved: research/x");
    assert!(!manifests(&world).contains("notebook"), "nothing of it is applied");
    assert_eq!(passes(&controller), 1.0);
    assert!(!controller.log().contains("the saved files are those of the commit"));

    // Back as it was; and then committed.
    fs::remove_file(&file).unwrap();
    controller.wait_for_log("the saved files are those of the commit");
    world.commit(&[("environments/research/x.yaml", &good)], "Add");
    wait_for("a pass on the commit", || (passes(&controller) == 2.0).then_some(()));
}

#[test]
fn without_the_systems_help_the_poll_goes_on() {
    let world = World::new("unwatched", &["research"]);
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    // In a user namespace of its own the limit can be set for this process alone.
    let limit = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", limit, "sh", env!("CARGO_BIN_EXE_larder")]);
    command.args(["run", "--interval", "1s", "--target", "dir:out", "--repo", &world.repository()]);
    command.current_dir(world.path(""));
    let controller = Controller::start(command, &world);
    controller.wait_for_log("the repository is not watched");
    controller.wait_for_log("fs.inotify.max_user_instances");
    world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    wait_for_manifest(&world, &controller, &reference);
}
