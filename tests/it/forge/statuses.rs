//! Refusals of a protected branch, and statuses with a reason.

use serde_json::json;

use super::hosted::Hosted;
use crate::scenarios::{environment, world::problems_of};

#[test]
fn a_protected_branch_refuses_in_giteas_own_words() {
    let hosted = Hosted::new("protected", "");
    let world = &hosted.world;
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    world.commit(&[("environments/research/geo.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    hosted.api("POST", "branch_protections", Some(&json!({"rule_name": "main", "enable_push": false})));
    let tip = hosted.tip("main");
    let report = hosted.pass();
    let problem = problems_of(&report, "LockRefused");
    assert!(problem.contains("protected branch main"), "{problem}");
    assert_eq!(hosted.tip("main"), tip);
    let (state, description) = hosted.statuses(&tip).remove(0);
    assert_eq!(state, "failure");
    assert!(description.contains("the push to `main` was refused"), "{description}");
}

#[test]
fn a_broken_environment_makes_its_commit_red_and_a_mended_one_green() {
    let hosted = Hosted::new("red", "");
    let world = &hosted.world;
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let file = "environments/research/geo.yaml";
    world.commit(&[(file, "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec: {imags: []}\n")], "Break");
    let _controller = hosted.controller();
    let (_, description) = hosted.wait_for_status("failure");
    assert!(description.contains("research/geo") && description.contains("imags"), "{description}");
    world.commit(&[(file, &environment(&[("notebook", &reference)], ""))], "Mend");
    let (_, description) = hosted.wait_for_status("success");
    assert_eq!(description, "2 of 2 images are on their nodes");
}
