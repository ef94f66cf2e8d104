//! The workflows of `docs/guides/ci`, each step as it is written, in the image that they name and as its user.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::hosted::Hosted;
use crate::scenarios::{
    environment,
    world::{run, script},
};

fn guide(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/ci").join(name);
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The container image, pushed to the local registry.
fn image() -> String {
    let output = run(Command::new(script("build-image")).arg(env!("CARGO_BIN_EXE_larder")));
    String::from_utf8(output.stdout).unwrap().lines().last().unwrap().trim().to_owned()
}

/// A text with its expressions `${{ … }}` evaluated.
fn evaluate(text: &str, known: &[(&str, &str)]) -> String {
    let mut parts = text.split("${{ ");
    let mut evaluated = parts.next().unwrap().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once(" }}").unwrap();
        let found = known.iter().find(|(name, _)| *name == expression);
        evaluated += found.unwrap_or_else(|| panic!("{expression} is not known")).1;
        evaluated += rest;
    }
    evaluated
}

/// `export` lines for the entries of `env`.
fn exports(env: &Value, known: &[(&str, &str)]) -> String {
    let entries = env.as_object().into_iter().flatten();
    let line = |(key, value): (&String, &Value)| {
        format!("export {key}='{}'\n", evaluate(value.as_str().unwrap(), known).replace('\'', "'\\''"))
    };
    entries.map(line).collect()
}

/// All steps of a job in one script, each in a shell of its own, as a runner starts them.
fn steps(job: &Value, known: &[(&str, &str)]) -> String {
    let mut text = exports(&job["env"], known);
    for step in job["steps"].as_array().unwrap() {
        let run = step["run"].as_str().expect("each step is a script: nothing else is needed in the image");
        text += &format!("(\n{}sh -e <<'END_OF_STEP'\n{run}\nEND_OF_STEP\n)\n", exports(&step["env"], known));
    }
    text
}

#[test]
fn the_workflow_for_gitea_validates_plans_and_comments() {
    let hosted = Hosted::new("ci", "");
    let world = &hosted.world;
    let image_name = world.image("notebook");
    world.push_images(&[], &[&format!("{image_name}:1")]);
    world.push_images(&["--seed", "2"], &[&format!("{image_name}:2")]);
    let file = "environments/research/geo.yaml";
    world.commit(&[(file, &environment(&[("notebook", &format!("{image_name}:1"))], ""))], "Add");
    hosted.pass();
    let base = hosted.tip("main");
    hosted.git(&["fetch", "-q", "origin"]);
    hosted.git(&["checkout", "-q", "-b", "change", "origin/main"]);
    let job = guide("gitea.yml")["jobs"]["plan"].clone();
    let image = image();
    let mut number = String::new();
    let mut workflow = |tag: &str| {
        let text = environment(&[("notebook", &format!("{image_name}:{tag}"))], "");
        fs::write(world.path("clone").join(file), text).unwrap();
        hosted.git(&["commit", "-q", "-a", "-m", "Another tag"]);
        hosted.git(&["push", "-q", "origin", "change"]);
        if number.is_empty() {
            let opened = hosted.api("POST", "pulls", Some(&json!({"title": "Tag", "head": "change", "base": "main"})));
            number = opened["number"].to_string();
        }
        let (head, token) = (hosted.tip("change"), fs::read_to_string(world.path("token")).unwrap());
        let known = [
            ("github.server_url", hosted.gitea.url.as_str()),
            ("github.repository", &hosted.repository),
            ("github.event.pull_request.base.sha", &base),
            ("github.event.pull_request.head.sha", &head),
            ("github.event.pull_request.number", &number),
            ("secrets.GITEA_TOKEN", &token),
        ];
        fs::write(world.path("job"), steps(&job, &known)).unwrap();
        let mut command = Command::new(script("in-image"));
        command.arg(&image).arg(world.path("job"));
        // What each runner sets by itself.
        command.env("GITHUB_SERVER_URL", &hosted.gitea.url).env("GITHUB_REPOSITORY", &hosted.repository);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains(&token), "the token is in the job's log");
        let comments = hosted.api("GET", &format!("issues/{number}/comments"), None);
        let bodies: Vec<_> = comments.as_array().unwrap().iter().map(|one| one["body"].as_str().unwrap().to_owned()).collect();
        (output.status.success(), said, bodies)
    };
    let (good, said, comments) = workflow("2");
    assert!(good && said.contains("1 environment is valid") && said.contains("comment created"), "{said}");
    assert!(comments.len() == 1 && comments[0].contains("2 to change"), "{comments:?}");
    let (good, said, comments) = workflow("99");
    assert!(!good && said.contains("comment updated"), "{said}");
    assert!(comments.len() == 1 && comments[0].contains("not resolved"), "{comments:?}");
}
