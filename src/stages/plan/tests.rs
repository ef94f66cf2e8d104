//! Plans from hand-made manifests and inventories.

use serde_json::{Value, json};

use super::*;
use crate::model::{
    digest::Digest,
    fields::Fields,
    lock::{Lock, LockedImage, Lockfile},
    manifest::{Comparison, InventoryEntry, Kind, MANIFEST_ANNOTATION},
    name::EnvironmentId,
    settings::Confirmed,
};

fn id(kind: Kind, name: &str) -> ObjectId {
    let namespace = if kind == Kind::Namespace { String::new() } else { "ns".to_owned() };
    ObjectId { kind, namespace, name: name.to_owned() }
}

fn owner(text: &str) -> Owner {
    Owner::parse(text).unwrap()
}

fn manifest(owner_text: &str, kind: Kind, name: &str) -> Manifest {
    let object = json!({"metadata": {"annotations": {MANIFEST_ANNOTATION: "d1"}}, "data": {"a": "1"}});
    Manifest { id: id(kind, name), owner: owner(owner_text), object: object.into(), impersonate: None }
}

fn entry(owner_text: &str) -> InventoryEntry {
    let fields =
        json!({"f:metadata": {"f:annotations": {format!("f:{MANIFEST_ANNOTATION}"): {}}}, "f:data": {"f:a": {}}});
    InventoryEntry {
        owner: owner(owner_text),
        uid: "u".to_owned(),
        manifest: "d1".to_owned(),
        fields: Some(Fields::new(fields.to_string().into())),
        terminating: false,
    }
}

fn wanted(list: &[Manifest]) -> Manifests {
    let mut manifests = Manifests::new();
    for manifest in list {
        let of_owner = manifests.entry(manifest.owner.clone()).or_insert_with(|| Ok(Vec::new()));
        of_owner.as_mut().unwrap().push(manifest.clone());
    }
    manifests
}

fn inventory(list: &[(Kind, &str, &str)]) -> Inventory {
    list.iter().map(|(kind, name, owner)| (id(*kind, name), entry(owner))).collect()
}

fn verdict(action: Action) -> Result<Verdict, Problem> {
    Ok(Verdict { action, diff: String::new() })
}

fn generous() -> Prune {
    Prune {
        budget: 100,
        confirmed: vec![Confirmed::Tenant("a".parse().unwrap()), Confirmed::Tenant("b".parse().unwrap())],
    }
}

fn strict() -> Prune {
    Prune { budget: 30, confirmed: Vec::new() }
}

fn lines(plan: &Plan) -> Vec<String> {
    plan.changes.iter().map(|change| format!("{:?} {}", change.action, change.id)).collect()
}

fn no_one() -> BTreeSet<Owner> {
    BTreeSet::new()
}

#[test]
fn only_what_may_differ_is_asked_about() {
    let manifests = wanted(&[manifest("a/e", Kind::ConfigMap, "one")]);
    let asked = |change: fn(&mut InventoryEntry)| {
        let mut entry = entry("a/e");
        change(&mut entry);
        let inventory = Inventory::from([(id(Kind::ConfigMap, "one"), entry)]);
        !suspects(&manifests, &inventory, &no_one()).is_empty()
    };
    assert!(!asked(|_| {}));
    assert!(asked(|entry| entry.manifest = "d0".to_owned()));
    assert!(asked(|entry| entry.owner = owner("a/f")));
    assert!(asked(|entry| entry.fields = None));
    assert!(asked(|entry| entry.fields = Some(Fields::new("{\"f:data\":{\"f:a\":{}}}".into()))));
    assert!(!asked(|entry| entry.terminating = true), "nothing can be asked of it now");
    assert_eq!(suspects(&manifests, &Inventory::new(), &no_one()).len(), 1);
    assert!(suspects(&manifests, &Inventory::new(), &BTreeSet::from([owner("a/e")])).is_empty());
}

#[test]
fn changes_are_in_order_and_deletes_in_reverse() {
    let manifests = wanted(&[
        manifest("a/e", Kind::DaemonSet, "new"),
        manifest("a/e", Kind::ServiceAccount, "kept"),
        manifest("a", Kind::Namespace, "ns"),
        manifest("a", Kind::ConfigMap, "changed"),
    ]);
    let inventory = inventory(&[
        (Kind::ServiceAccount, "kept", "a/e"),
        (Kind::ConfigMap, "changed", "a"),
        (Kind::ServiceAccount, "old", "a/e"),
        (Kind::DaemonSet, "old", "a/e"),
        (Kind::Namespace, "old", "a"),
    ]);
    let verdicts = BTreeMap::from([
        (id(Kind::Namespace, "ns"), verdict(Action::Create)),
        (id(Kind::ConfigMap, "changed"), verdict(Action::Configure)),
        (id(Kind::DaemonSet, "new"), verdict(Action::Create)),
    ]);
    let plan = plan(&manifests, &inventory, verdicts, &no_one(), &strict());
    assert_eq!(
        lines(&plan),
        [
            "Create Namespace/ns",
            "Unchanged ServiceAccount/ns/kept",
            "Configure ConfigMap/ns/changed",
            "Create DaemonSet/ns/new",
            "Delete DaemonSet/ns/old",
            "Delete ServiceAccount/ns/old",
        ],
        "a Namespace is never deleted"
    );
    assert!(
        plan.changes
            .iter()
            .all(|change| change.manifest.is_some() == matches!(change.action, Action::Create | Action::Configure))
    );
    assert!(plan.failures.is_empty() && plan.blocked.is_none() && !plan.is_empty());
}

#[test]
fn a_failed_owner_keeps_all_it_has_and_others_go_on() {
    let manifests = wanted(&[
        manifest("a/bad", Kind::ConfigMap, "refused"),
        manifest("a/bad", Kind::DaemonSet, "fine"),
        manifest("a/good", Kind::ConfigMap, "one"),
    ]);
    let mut broken = manifests.clone();
    broken.insert(owner("a/broken"), Err(Problem::new(Category::Template, "does not render").into()));
    let inventory = inventory(&[
        (Kind::ConfigMap, "surplus-of-bad", "a/bad"),
        (Kind::ConfigMap, "surplus-of-good", "a/good"),
        (Kind::ConfigMap, "of-broken", "a/broken"),
        (Kind::ConfigMap, "of-held", "a/held"),
    ]);
    let verdicts = BTreeMap::from([
        (id(Kind::ConfigMap, "refused"), Err(Problem::new(Category::Conflict, "no"))),
        (id(Kind::DaemonSet, "fine"), verdict(Action::Create)),
        (id(Kind::ConfigMap, "one"), verdict(Action::Create)),
    ]);
    let held = BTreeSet::from([owner("a/held")]);
    let plan = plan(&broken, &inventory, verdicts, &held, &generous());
    assert_eq!(lines(&plan), ["Create ConfigMap/ns/one", "Delete ConfigMap/ns/surplus-of-good"]);
    let failed: Vec<String> = plan.failures.iter().map(|(owner, failure)| format!("{owner}: {failure}")).collect();
    assert_eq!(failed, ["a/bad: no", "a/broken: does not render"]);
}

#[test]
fn environments_that_are_gone_are_budgeted_and_tenants_go_with_their_last() {
    let all = [
        (Kind::ConfigMap, "e", "a/e"),
        (Kind::ConfigMap, "f", "a/f"),
        (Kind::ConfigMap, "g", "b/g"),
        (Kind::ConfigMap, "records-a", "a"),
        (Kind::ConfigMap, "records-b", "b"),
    ];
    let run = |manifests: &Manifests, held: &[&str], prune: &Prune| {
        let held = held.iter().map(|text| owner(text)).collect();
        let verdicts = BTreeMap::new();
        let plan = plan(manifests, &inventory(&all), verdicts, &held, prune);
        let blocked = plan
            .blocked
            .as_ref()
            .map(|blocked| blocked.environments.iter().map(ToString::to_string).collect::<Vec<_>>());
        let deletes: Vec<String> = lines(&plan).into_iter().filter(|line| line.starts_with("Delete")).collect();
        (deletes, blocked)
    };
    let list = |names: &[&str]| names.iter().map(|name| format!("Delete ConfigMap/ns/{name}")).collect::<Vec<_>>();
    let blocked = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
    let none = Manifests::new();
    // Nothing at all in Git.
    assert_eq!(run(&none, &[], &strict()), (vec![], blocked(&["a/e", "a/f", "b/g"])));
    // Confirmed: all goes, the tenants' records with it.
    assert_eq!(run(&none, &[], &generous()), (list(&["records-b", "records-a", "g", "f", "e"]), None));
    // One of three is always within the budget, and the tenant keeps another.
    let kept = wanted(&[
        manifest("a/e", Kind::ConfigMap, "e"),
        manifest("b/g", Kind::ConfigMap, "g"),
        manifest("a", Kind::ConfigMap, "records-a"),
        manifest("b", Kind::ConfigMap, "records-b"),
    ]);
    assert_eq!(run(&kept, &[], &strict()), (list(&["f"]), None));
    // The records stay as long as one environment is held.
    assert_eq!(run(&none, &["b/g"], &generous()), (list(&["records-a", "f", "e"]), None));
    // A tenant that loses its last environment asks first, and keeps its records.
    let without_b = wanted(&[manifest("a/e", Kind::ConfigMap, "e"), manifest("a/f", Kind::ConfigMap, "f")]);
    assert_eq!(run(&without_b, &[], &strict()), (vec![], blocked(&["b/g"])));
}

#[test]
fn a_renamed_environment_is_made_before_the_old_one_goes() {
    // The object that both want stays, only its owner changes.
    let manifests = wanted(&[manifest("a/new", Kind::ConfigMap, "shared"), manifest("a/new", Kind::ConfigMap, "own")]);
    let inventory = inventory(&[(Kind::ConfigMap, "shared", "a/old"), (Kind::ConfigMap, "old", "a/old")]);
    let verdicts = BTreeMap::from([
        (id(Kind::ConfigMap, "shared"), verdict(Action::Configure)),
        (id(Kind::ConfigMap, "own"), verdict(Action::Create)),
    ]);
    let plan = plan(&manifests, &inventory, verdicts, &no_one(), &strict());
    assert_eq!(lines(&plan), ["Create ConfigMap/ns/own", "Configure ConfigMap/ns/shared", "Delete ConfigMap/ns/old"]);
    assert_eq!(plan.changes[2].owner, Owner::Environment("a/old".parse::<EnvironmentId>().unwrap()));
}

#[test]
fn what_is_being_deleted_is_neither_changed_nor_deleted_again() {
    let manifests = wanted(&[manifest("a/e", Kind::ConfigMap, "one")]);
    let mut inventory = inventory(&[(Kind::ConfigMap, "one", "a/e"), (Kind::ConfigMap, "old", "a/f")]);
    inventory.values_mut().for_each(|entry| entry.terminating = true);
    let plan = plan(&manifests, &inventory, BTreeMap::new(), &no_one(), &generous());
    assert!(plan.changes.is_empty());
    assert!(plan.failures[&owner("a/e")].to_string().contains("ConfigMap/ns/one is being deleted"));
    let lingering = plan.failures[&owner("a/f")].to_string();
    assert!(lingering.starts_with("ConfigMap/ns/old is being deleted and waits for its finalizers"), "{lingering}");
    assert_eq!(plan.failures.len(), 2);
}

#[test]
fn what_hangs_on_a_finalizer_is_said_until_it_is_gone_and_keeps_nothing_else() {
    // An environment that is gone from Git and one that is well: one object of each hangs.
    let manifests = wanted(&[manifest("a/e", Kind::ServiceAccount, "e")]);
    let mut inventory = inventory(&[
        (Kind::ServiceAccount, "e", "a/e"),
        (Kind::DaemonSet, "surplus", "a/e"),
        (Kind::DaemonSet, "f", "a/f"),
        (Kind::ServiceAccount, "f", "a/f"),
        (Kind::Namespace, "ns", "a"),
    ]);
    for id in [id(Kind::DaemonSet, "surplus"), id(Kind::DaemonSet, "f"), id(Kind::Namespace, "ns")] {
        inventory.get_mut(&id).unwrap().terminating = true;
    }
    let plan = plan(&manifests, &inventory, BTreeMap::new(), &no_one(), &generous());
    assert_eq!(lines(&plan), ["Unchanged ServiceAccount/ns/e", "Delete ServiceAccount/ns/f"]);
    let failed: Vec<String> = plan.failures.keys().map(ToString::to_string).collect();
    assert_eq!(failed, ["a/e", "a/f"]);
    let problem = &plan.failures[&owner("a/f")].problems()[0];
    assert_eq!(problem.category, Category::Cluster, "so that it is looked at again");
    assert!(problem.hint.as_ref().unwrap().contains("kubectl get daemonset f -n ns"));
}

#[test]
fn what_is_being_deleted_already_is_no_removal_of_this_pass() {
    // Of four, two hang and the third goes; one is always within the budget.
    let manifests = wanted(&[manifest("a/e", Kind::DaemonSet, "e")]);
    let mut inventory = inventory(&[
        (Kind::DaemonSet, "e", "a/e"),
        (Kind::DaemonSet, "f", "a/f"),
        (Kind::DaemonSet, "g", "a/g"),
        (Kind::DaemonSet, "h", "a/h"),
    ]);
    for name in ["g", "h"] {
        inventory.get_mut(&id(Kind::DaemonSet, name)).unwrap().terminating = true;
    }
    let plan = plan(&manifests, &inventory, BTreeMap::new(), &no_one(), &strict());
    assert_eq!(lines(&plan), ["Unchanged DaemonSet/ns/e", "Delete DaemonSet/ns/f"]);
    assert!(plan.blocked.is_none());
}

/// A lock with the lockfiles of these environments; that of `a/x!` is there and empty, that of `a/x?` cannot be read.
fn lock(environments: &[&str]) -> Lock {
    let image = LockedImage {
        reference: "quay.io/t/a:1".parse().unwrap(),
        digest: Digest::sha256(b"a"),
        media_type: String::new(),
        platforms: vec![],
        previous: vec![],
        hold: None,
    };
    let entry = |text: &&str| {
        let name = text.trim_end_matches(['!', '?']);
        let lockfile = match text.chars().last() {
            Some('!') => Ok(Lockfile::default()),
            Some('?') => Err(Problem::new(Category::Lock, "no YAML").into()),
            _ => Ok(Lockfile { images: [("n".parse().unwrap(), image.clone())].into() }),
        };
        (name.parse().unwrap(), lockfile)
    };
    environments.iter().map(entry).collect()
}

// Invariant 2: a lock that is gone, unreadable or empty deletes no records and takes no line out of them.
#[test]
fn records_stay_while_a_puller_stays_that_the_lock_does_not_know() {
    let live = inventory(&[
        (Kind::ConfigMap, "records", "a"),
        (Kind::DaemonSet, "e", "a/e"),
        (Kind::DaemonSet, "f", "a/f"),
        (Kind::ConfigMap, "records-b", "b"),
        (Kind::DaemonSet, "g", "b/g"),
    ]);
    let unlocked = || Err(Problem::new(Category::Lock, "none of the environment's images is locked yet").into());
    // the lock, environments whose manifests fail, those that are held, gone ones, whether the records are written
    type Names = &'static [&'static str];
    let cases: [(Names, Names, Names, Names, bool); 9] = [
        (&["a/e", "a/f"], &[], &[], &[], true),
        (&["a/e", "a/f"], &["a/e"], &[], &[], true),
        (&["a/e"], &["a/f"], &[], &[], false),
        (&["a/e", "a/f!"], &["a/f"], &[], &[], false),
        (&["a/e"], &[], &["a/f"], &[], false),
        // New, and nothing of it in the cluster.
        (&["a/e", "a/f"], &["a/new"], &[], &[], true),
        // Gone, and within the budget.
        (&["a/e"], &[], &[], &["a/f"], true),
        // Gone, and blocked.
        (&[], &[], &[], &["a/e", "a/f"], false),
        // Its failure is that of the tenant's manifests.
        (&["a/e", "a/f?"], &[], &["a/f"], &[], true),
    ];
    for (locked, failing, held, gone, written) in cases {
        let case = format!("{locked:?} {failing:?} {held:?} {gone:?}");
        let mut manifests = wanted(&[
            manifest("a", Kind::Namespace, "ns"),
            manifest("a", Kind::ConfigMap, "records"),
            manifest("b", Kind::ConfigMap, "records-b"),
            manifest("a/e", Kind::DaemonSet, "e"),
            manifest("a/f", Kind::DaemonSet, "f"),
            manifest("b/g", Kind::DaemonSet, "g"),
        ]);
        manifests.retain(|of, _| gone.iter().chain(held).all(|id| *of != owner(id)));
        manifests.extend(failing.iter().map(|id| (owner(id), unlocked())));
        let held: BTreeSet<Owner> = held.iter().map(|id| owner(id)).collect();
        let lock = lock(&[locked, &["b/g"]].concat());
        let manifests = hold_records(manifests, &live, &lock, &held, &strict());
        let kinds: Vec<Kind> =
            manifests[&owner("a")].as_ref().unwrap().iter().map(|manifest| manifest.id.kind).collect();
        let expected = if written { vec![Kind::Namespace, Kind::ConfigMap] } else { vec![Kind::Namespace] };
        assert_eq!(kinds, expected, "{case}");
        assert_eq!(manifests[&owner("b")].as_ref().unwrap().len(), 1, "{case}: other tenants continue");

        let verdicts = BTreeMap::from([(id(Kind::Namespace, "ns"), verdict(Action::Unchanged))]);
        let plan = plan(&manifests, &live, verdicts, &held, &strict());
        assert!(!lines(&plan).iter().any(|line| line.contains("Delete ConfigMap")), "{case}: {:?}", lines(&plan));
    }
}

#[test]
fn records_are_deleted_only_for_others_or_with_the_last_environment() {
    let live = inventory(&[(Kind::ConfigMap, "records", "a"), (Kind::DaemonSet, "e", "a/e")]);
    let run = |manifests: &Manifests, prune: &Prune| {
        let verdicts =
            manifests.values().flatten().flatten().map(|manifest| (manifest.id.clone(), verdict(Action::Create)));
        lines(&plan(manifests, &live, verdicts.collect(), &no_one(), prune))
    };
    let namespace = manifest("a", Kind::Namespace, "ns");
    // Nothing is locked any more, so that only the namespace is rendered.
    let mut nothing_locked = wanted(std::slice::from_ref(&namespace));
    nothing_locked.insert(owner("a/e"), Err(Problem::new(Category::Lock, "not locked").into()));
    assert_eq!(run(&nothing_locked, &generous()), ["Create Namespace/ns"]);
    // Under another name.
    let renamed = wanted(&[namespace, manifest("a", Kind::ConfigMap, "other"), manifest("a/e", Kind::DaemonSet, "e")]);
    assert_eq!(
        run(&renamed, &strict()),
        ["Create Namespace/ns", "Create ConfigMap/ns/other", "Create DaemonSet/ns/e", "Delete ConfigMap/ns/records"]
    );
    assert_eq!(run(&Manifests::new(), &generous()), ["Delete DaemonSet/ns/e", "Delete ConfigMap/ns/records"]);
}

/// An object as the server keeps it.
fn live(data: &Value, digest: &str, owned: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {
            "name": "one", "annotations": {MANIFEST_ANNOTATION: digest}, "uid": "u", "resourceVersion": "1",
            "managedFields": [
                {"manager": "larder", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": owned},
                {"manager": "x", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            ],
        },
    })
}

#[test]
fn the_dry_run_is_compared_with_what_is_live() {
    // Never the text that was sent.
    let manifest = manifest("a/e", Kind::ConfigMap, "one");
    let (data, other, owned) = (json!({"a": "1"}), json!({"a": "2"}), json!({"f:data": {"f:a": {}}}));
    let verdict = |before: Value, mut after: Value| {
        after["metadata"]["resourceVersion"] = "2".into();
        after["metadata"]["managedFields"][0]["time"] = "2026-02-02T00:00:00Z".into();
        after["metadata"]["managedFields"][1]["fieldsV1"] = json!({});
        judge(&manifest, &Comparison { live: Some(before), applied: after }, "commit 1234567")
    };
    let equal = verdict(live(&data, "d1", &owned), live(&data, "d1", &owned));
    assert_eq!(equal, Verdict { action: Action::Unchanged, diff: String::new() });

    let changed = verdict(live(&other, "d0", &owned), live(&data, "d1", &owned));
    assert_eq!(changed.action, Action::Configure);
    insta::assert_snapshot!(changed.diff, @r#"
    --- live ConfigMap/ns/one
    +++ commit 1234567 ConfigMap/ns/one
    @@ -1,6 +1,6 @@
     apiVersion: v1
     data:
    -  a: "2"
    +  a: "1"
     kind: ConfigMap
     metadata:
       name: one
    "#);

    let rewritten = verdict(live(&data, "d0", &owned), live(&data, "d1", &owned));
    assert_eq!(rewritten.action, Action::Configure);
    assert!(rewritten.diff.contains("means the same"), "{}", rewritten.diff);
    let taken = verdict(live(&data, "d1", &json!({})), live(&data, "d1", &owned));
    assert_eq!(taken.action, Action::Configure);
    assert!(taken.diff.contains("become larder's again"), "{}", taken.diff);
}

#[test]
fn a_new_object_is_shown_as_it_is_sent() {
    let manifest = manifest("a/e", Kind::ConfigMap, "one");
    let verdict = judge(&manifest, &Comparison { live: None, applied: Value::Null }, "commit 1234567");
    assert_eq!(verdict.action, Action::Create);
    insta::assert_snapshot!(verdict.diff, @r#"
    --- /dev/null
    +++ commit 1234567 ConfigMap/ns/one
    @@ -0,0 +1,3 @@
    +data:
    +  a: "1"
    +metadata: {}
    "#);
}

#[test]
fn values_of_secrets_are_never_shown() {
    // Masked after the dry run, and yet a change is seen.
    let secret = |value: &str| json!({"kind": "Secret", "data": {"k": value, "same": "cGFzc3dvcmQ="}, "stringData": {"k": value}});
    let manifest = Manifest { object: secret("canary-3").into(), ..manifest("a/e", Kind::ConfigMap, "one") };
    let changed = Comparison { live: Some(secret("canary-1")), applied: secret("canary-2") };
    let new = Comparison { live: None, applied: Value::Null };
    for comparison in [&changed, &new] {
        let diff = judge(&manifest, comparison, "commit 1").diff;
        assert!(!diff.contains("canary") && !diff.contains("cGFzc3dvcmQ=") && diff.contains("hidden"), "{diff}");
    }
    assert_eq!(judge(&manifest, &changed, "commit 1").action, Action::Configure);
}
