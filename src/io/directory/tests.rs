//! A directory as a target.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::{
    io::cluster::{carry_out, compare_all},
    model::plan::{Action, Change, Outcome, Plan},
};

fn manifest(kind: Kind, namespace: &str, name: &str, value: &str) -> Manifest {
    let id = ObjectId { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    let object = json!({
        "apiVersion": kind.api_version(), "kind": kind.as_str(), "data": {"version": value},
        "metadata": {
            "name": name, "namespace": namespace, "labels": {INSTANCE_LABEL: "default"},
            "annotations": {OBJECT_ANNOTATION: id.to_string(), OWNER_ANNOTATION: "team/env", MANIFEST_ANNOTATION: value},
        },
    });
    Manifest { id, owner: Owner::parse("team/env").unwrap(), object: object.into(), impersonate: None }
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in list(&next).unwrap() {
            found.insert(path.strip_prefix(folder).unwrap().display().to_string());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.into_iter().collect()
}

async fn pass(directory: &Directory, manifests: Vec<Manifest>) -> (Plan, Vec<Outcome>) {
    let inventory = directory.inventory().await.unwrap();
    // What is planned is no business of this module; these are the simplest decisions that will do.
    let all: Vec<&Manifest> = manifests.iter().collect();
    let verdicts = compare_all(directory, &all, |manifest, found| match &found.live {
        None => Action::Create,
        Some(live) if *live == *manifest.object => Action::Unchanged,
        Some(_) => Action::Configure,
    })
    .await;
    let change = |id: &ObjectId, action, manifest: Option<&Manifest>| Change {
        id: id.clone(),
        owner: Owner::parse("team/env").unwrap(),
        action,
        diff: String::new(),
        manifest: manifest.cloned(),
        uid: String::new(),
    };
    let mut plan = Plan::default();
    for manifest in &all {
        if let Ok(action) = verdicts[&manifest.id] {
            plan.changes.push(change(&manifest.id, action, Some(manifest)));
        }
    }
    let gone = inventory.keys().rev().filter(|id| !all.iter().any(|manifest| manifest.id == **id));
    plan.changes.extend(gone.map(|id| change(id, Action::Delete, None)));
    let applied = carry_out(directory, &plan, &tokio_util::sync::CancellationToken::new()).await;
    (plan, applied.outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

#[tokio::test]
async fn a_folder_is_kept_like_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("not/there/yet");
    let directory = Directory::new(&root, "default");
    assert!(directory.inventory().await.unwrap().is_empty());
    let wanted = || {
        vec![
            manifest(Kind::Namespace, "", "a", "1"),
            manifest(Kind::ConfigMap, "a", "records", "1"),
            manifest(Kind::DaemonSet, "b", "puller", "1"),
        ]
    };
    pass(&directory, wanted()).await;
    let expected = ["a", "a/configmap-records.yaml", "b", "b/daemonset-puller.yaml", "namespace-a.yaml"];
    assert_eq!(files(&root), expected);
    assert_eq!(directory.inventory().await.unwrap().len(), 3);

    let modified = |name: &str| fs::metadata(root.join(name)).unwrap().modified().unwrap();
    let before = modified("a/configmap-records.yaml");
    let (plan, outcomes) = pass(&directory, wanted()).await;
    assert!(plan.is_empty() && outcomes.iter().all(|outcome| *outcome == Outcome::Unchanged), "{plan:?}");
    assert_eq!(modified("a/configmap-records.yaml"), before, "nothing was written");

    // Empty directories go with their last object, others stay.
    fs::write(root.join("a/README"), "mine").unwrap();
    pass(&directory, vec![manifest(Kind::Namespace, "", "a", "1")]).await;
    assert_eq!(files(&root), ["a", "a/README", "namespace-a.yaml"]);
}

#[tokio::test]
async fn what_somebody_edited_is_put_right() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Directory::new(folder.path(), "default");
    let wanted = || vec![manifest(Kind::ConfigMap, "a", "records", "1")];
    pass(&directory, wanted()).await;
    let path = folder.path().join("a/configmap-records.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("version: \"1\"", "version: edited")).unwrap();
    let (plan, _) = pass(&directory, wanted()).await;
    assert_eq!(plan.count(Action::Configure), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    // Only the text differs: comments and order are nobody's business.
    fs::write(&path, format!("# looked at\n{text}")).unwrap();
    assert!(pass(&directory, wanted()).await.0.is_empty());
}

#[tokio::test]
async fn files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let directory = Directory::new(root, "default");
    let ours = manifest(Kind::ConfigMap, "a", "ours", "1");
    directory.apply(&ours).await.unwrap();
    let text = to_yaml(&ours.object);
    let foreign = [
        ("a/configmap-plain.yaml", "kind: ConfigMap\n".to_owned()),
        ("a/configmap-broken.yaml", "{".to_owned()),
        ("a/configmap-copy.yaml", text.clone()),
        ("configmap-ours.yaml", text.clone()),
        (
            "a/configmap-other.yaml",
            to_yaml(&manifest(Kind::ConfigMap, "a", "other", "1").object).replace("default", "blue"),
        ),
        ("a/kustomization.yaml", "resources: []\n".to_owned()),
        ("a/deep/configmap-ours.yaml", text),
        ("README.md", "mine".to_owned()),
    ];
    for (name, text) in &foreign {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let inventory = directory.inventory().await.unwrap();
    assert_eq!(inventory.into_keys().collect::<Vec<_>>(), vec![ours.id.clone()]);
    for name in ["plain", "broken", "copy", "other"] {
        let wanted = manifest(Kind::ConfigMap, "a", name, "1");
        let refused = [
            directory.compare(&wanted).await.map(drop),
            directory.apply(&wanted).await,
            directory.delete(&wanted.id, "").await,
        ];
        for result in refused {
            let problem = result.unwrap_err();
            assert_eq!(problem.category, Category::Conflict);
            assert!(problem.message.contains(&format!("configmap-{name}.yaml")), "{problem}");
        }
    }
    for (name, text) in &foreign {
        assert_eq!(fs::read_to_string(root.join(name)).unwrap(), *text, "{name}");
    }
}

#[tokio::test]
async fn what_is_no_readable_file_stops_nothing() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let directory = Directory::new(root, "default");
    let ours = manifest(Kind::ConfigMap, "a", "ours", "1");
    directory.apply(&ours).await.unwrap();
    symlink("nothing", root.join("a/configmap-dangling.yaml")).unwrap();
    symlink("nothing", root.join("namespace-dangling.yaml")).unwrap();
    symlink("configmap-ours.yaml", root.join("a/configmap-link.yaml")).unwrap();
    fs::create_dir(root.join("a/configmap-folder.yaml")).unwrap();
    for name in ["a/configmap-closed.yaml", "namespace-closed.yaml"] {
        fs::write(root.join(name), "kind: ConfigMap").unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    fs::write(root.join("a/configmap-bytes.yaml"), b"\xff\xfe").unwrap();
    let inventory = directory.inventory().await.unwrap();
    assert_eq!(inventory.into_keys().collect::<Vec<_>>(), vec![ours.id.clone()]);
    for name in ["dangling", "link", "folder", "bytes"] {
        let problem = directory.apply(&manifest(Kind::ConfigMap, "a", name, "1")).await.unwrap_err();
        assert_eq!(problem.category, Category::Conflict, "{problem}");
    }
}

#[tokio::test]
async fn nothing_is_written_or_deleted_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("target"), folder.path().join("outside"));
    let directory = Directory::new(&root, "default");
    let (ours, other) = (manifest(Kind::ConfigMap, "a", "ours", "1"), manifest(Kind::ConfigMap, "b", "ours", "1"));
    pass(&directory, vec![ours.clone(), other.clone()]).await;
    fs::rename(root.join("b"), &outside).unwrap();
    std::os::unix::fs::symlink("../outside", root.join("b")).unwrap();
    let before = fs::read_to_string(outside.join("configmap-ours.yaml")).unwrap();
    for wanted in [vec![ours.clone(), manifest(Kind::ConfigMap, "b", "ours", "2")], vec![ours.clone()]] {
        pass(&directory, wanted).await;
        assert_eq!(directory.inventory().await.unwrap().into_keys().collect::<Vec<_>>(), vec![ours.id.clone()]);
    }
    for result in [directory.apply(&other).await, directory.delete(&other.id, "").await] {
        let problem = result.unwrap_err();
        assert_eq!(problem.category, Category::Conflict);
        assert!(problem.message.contains("target/b is a symbolic link"), "{problem}");
    }
    assert_eq!(files(&outside), ["configmap-ours.yaml"]);
    assert_eq!(fs::read_to_string(outside.join("configmap-ours.yaml")).unwrap(), before);
}

#[tokio::test]
async fn names_do_not_lead_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Directory::new(folder.path().join("target"), "default");
    for (namespace, name) in [("..", "a"), ("a/../..", "a"), ("a", "/../../b"), ("a", ""), ("a", "x\0y")] {
        let wanted = manifest(Kind::ConfigMap, namespace, name, "1");
        assert_eq!(directory.apply(&wanted).await.unwrap_err().category, Category::Name);
        assert_eq!(directory.delete(&wanted.id, "").await.unwrap_err().category, Category::Name);
    }
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_is_not_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let problem = Directory::new(&path, "default").inventory().await.unwrap_err();
    assert_eq!(problem.category, Category::Io);
}
