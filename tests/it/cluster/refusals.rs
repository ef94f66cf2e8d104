//! What is refused, by larder or by the API server, and in which words.

use larder::{
    io::cluster::Cluster as _,
    model::{
        manifest::{INSTANCE_LABEL, Kind, OBJECT_ANNOTATION},
        plan::{Action, Outcome},
    },
};
use serde_json::json;

use super::world::{World, manifests};

#[tokio::test]
async fn foreign_objects_are_left_alone() {
    // A merge would go through without a conflict, since no field is the same.
    let world = World::new("foreign").await;
    world.kubectl(&["create", "configmap", "records", "--from-literal=theirs=1"]);
    world.kubectl(&["create", "configmap", "equal", "--from-literal=images.list=a"]);
    world.kubectl(&["create", "configmap", "other", "--from-literal=images.list=theirs"]);
    world.kubectl(&["label", "configmap", "other", &format!("{INSTANCE_LABEL}=blue")]);
    let cases = [
        ("records", "was not made by larder"),
        ("equal", "was not made by larder"),
        ("other", "larder instance `blue`"),
    ];
    for (name, expected) in cases {
        let version = world.version(&format!("configmap/{name}"));
        let text = world.problem(&manifests(vec![world.config_map("team", name, "a")])).await;
        assert!(text.contains(&format!("ConfigMap/{}/{name}", world.id)) && text.contains(expected), "{text}");
        assert!(text.contains("kubectl") && text.contains(OBJECT_ANNOTATION), "{text}");
        assert_eq!(world.version(&format!("configmap/{name}")), version);
    }
    assert_eq!(world.field("configmap/other", ".data"), r#"{"images.list":"theirs"}"#);
}

#[tokio::test]
async fn a_field_that_somebody_else_applies_is_a_conflict() {
    let world = World::new("conflict").await;
    let wanted = manifests(vec![
        world.daemon_set("team/env", "puller", "hold", "busybox:1"),
        world.config_map("team/other", "fine", "a\n"),
    ]);
    world.good_pass(&wanted).await;
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "puller"},
        "spec": {"template": {"spec": {"containers": [{"name": "image-a", "image": "busybox:theirs"}]}}},
    });
    world.kubectl_with(&["apply", "--server-side", "--field-manager=alice", "--force-conflicts"], &theirs);
    world.kubectl(&["set", "image", "daemonset/puller", "image-b=busybox:written"]);
    let generation = || world.field("daemonset/puller", ".metadata.generation");
    let before = generation();
    let text = world.problem(&wanted).await;
    assert!(text.contains("`alice`"), "{text}");
    assert!(text.contains(".spec.template.spec.containers[name=\"image-a\"].image"), "{text}");
    assert!(!text.contains("image-b"), "what was only written is not a conflict: {text}");
    assert_eq!(generation(), before, "nothing was written");
}

#[tokio::test]
async fn another_selector_is_a_problem_with_a_way_out() {
    let world = World::new("selector").await;
    let wanted = world.daemon_set("team/env", "puller", "hold", "busybox:1");
    let mut live = serde_json::Value::clone(&wanted.object);
    live["spec"]["selector"]["matchLabels"]["larder.dev/puller"] = "another".into();
    live["spec"]["template"]["metadata"]["labels"]["larder.dev/puller"] = "another".into();
    world.kubectl_with(&["create"], &live);
    let text = world.problem(&manifests(vec![wanted.clone()])).await;
    assert!(text.contains("selector"), "{text}");
    let command = format!("kubectl --namespace {} delete daemonset puller", world.id);
    assert!(text.contains(&command), "{text}");
    // The way out leads out.
    world.kubectl(&["delete", "daemonset", "puller"]);
    world.good_pass(&manifests(vec![wanted])).await;
}

#[tokio::test]
async fn a_missing_namespace_fails_its_owner_alone() {
    let world = World::without_namespace("missing").await;
    let text = world.problem(&manifests(vec![world.config_map("team", "records", "a\n")])).await;
    assert!(text.contains(&format!("the namespace {} does not exist", world.id)), "{text}");
    assert!(text.contains("createNamespace: true") && text.contains("kubectl create namespace"), "{text}");
}

#[tokio::test]
async fn what_is_being_deleted_is_waited_for() {
    let world = World::new("terminating").await;
    let wanted = manifests(vec![world.config_map("team", "records", "a\n")]);
    world.good_pass(&wanted).await;
    let finalizers = |value: &str| {
        json!({"metadata": {"finalizers": serde_json::from_str::<serde_json::Value>(value).unwrap()}}).to_string()
    };
    world.kubectl(&["patch", "configmap", "records", "--type=merge", "-p", &finalizers("[\"example.com/wait\"]")]);
    world.kubectl(&["delete", "configmap", "records", "--wait=false"]);
    let text = world.problem(&wanted).await;
    assert!(text.contains(&format!("ConfigMap/{}/records is being deleted", world.id)), "{text}");

    world.kubectl(&["delete", "namespace", &world.id, "--wait=false"]);
    let text = world.problem(&manifests(vec![world.config_map("team", "more", "a\n")])).await;
    assert!(text.contains("is being deleted"), "{text}");
    world.kubectl(&["patch", "configmap", "records", "--type=merge", "-p", &finalizers("null")]);
}

#[tokio::test]
async fn only_the_object_that_was_seen_is_deleted() {
    let world = World::new("uid").await;
    let manifest = world.config_map("team/env", "one", "a\n");
    world.good_pass(&manifests(vec![manifest.clone()])).await;
    let stale = world.cluster.inventory().await.unwrap()[&manifest.id].uid.clone();
    world.kubectl(&["delete", "configmap", "one"]);
    world.good_pass(&manifests(vec![manifest.clone()])).await;
    let text = world.cluster.delete(&manifest.id, &stale).await.unwrap_err().to_string();
    assert!(text.contains("is not the object that was to be deleted"), "{text}");
    world.kubectl(&["get", "configmap", "one"]);
    // One that is gone is done.
    world.kubectl(&["delete", "configmap", "one"]);
    world.cluster.delete(&manifest.id, &stale).await.unwrap();
}

#[tokio::test]
async fn a_policys_words_are_passed_on() {
    // What could not be deleted stays in the inventory and is tried again.
    let world = World::new("policy").await;
    let wanted = manifests(vec![world.config_map("team/a", "one", "a\n"), world.config_map("team/b", "two", "a\n")]);
    world.good_pass(&wanted).await;
    let policy = Policy::deny(&world, "two", "the image police says no");

    let version = |value: &str| {
        manifests(vec![world.config_map("team/a", "one", value), world.config_map("team/b", "two", value)])
    };
    // A policy takes a moment to be in force.
    let mut values = ["b\n", "c\n"].iter().cycle();
    let (text, value) = loop {
        let value = values.next().unwrap();
        let (plan, _) = world.pass(&version(value)).await;
        if let Some((owner, failure)) = plan.failures.iter().next() {
            assert_eq!(owner.to_string(), "team/b");
            break (failure.to_string(), *value);
        }
    };
    assert!(text.contains("the image police says no"), "{text}");
    assert!(text.contains("ask who runs the policy"), "{text}");
    assert_eq!(world.field("configmap/one", ".data.images\\.list"), value, "others continue");

    let fewer = manifests(vec![world.config_map("team/a", "one", value)]);
    for _ in 0..2 {
        let (plan, applied) = world.pass(&fewer).await;
        assert_eq!(plan.count(Action::Delete), 1);
        let refused =
            |outcome: &Outcome| matches!(outcome, Outcome::Failed(problem) if problem.message.contains("image police"));
        assert!(applied.outcomes.iter().any(|(_, outcome)| refused(outcome)), "{applied:?}");
    }
    drop(policy);
    while world.pass(&fewer).await.0.count(Action::Delete) > 0 {}
    assert!(!world.try_kubectl(&["get", "configmap", "two"]).status.success());
}

/// A ValidatingAdmissionPolicy, removed when dropped.
struct Policy<'a>(&'a World);

impl<'a> Policy<'a> {
    fn deny(world: &'a World, name: &str, message: &str) -> Self {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["UPDATE", "DELETE"]}]);
        let expression = format!("(object == null ? oldObject : object).metadata.name != '{name}'");
        let meta = json!({"name": world.id});
        world.kubectl_with(
            &["create"],
            &json!({"apiVersion": "v1", "kind": "List", "items": [
                {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta,
                 "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression, "message": message}]}},
                {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta,
                 "spec": {"policyName": world.id, "validationActions": ["Deny"], "matchResources": {"namespaceSelector":
                    {"matchLabels": {"kubernetes.io/metadata.name": world.id}}}}},
            ]}),
        );
        Self(world)
    }
}

impl Drop for Policy<'_> {
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
            self.0.try_kubectl(&["delete", kind, &self.0.id, "--ignore-not-found"]);
        }
    }
}

#[tokio::test]
async fn a_namespace_is_never_deleted() {
    let world = World::new("never").await;
    let id = world.manifest("team", Kind::Namespace, &world.id, json!({})).id;
    let text = world.cluster.delete(&id, "").await.unwrap_err().to_string();
    assert!(text.contains("never deletes a Namespace"), "{text}");
}
