//! Identities from paths. In code, since not every file system can hold these names.

use larder::model::snapshot::Entry;

use super::{ENVIRONMENT, load_entries, load_with};

/// What became of each environment: `ok`, or its problems.
fn identities(paths: &[&str]) -> Vec<(String, String)> {
    let environments = load_with(paths.iter().map(|path| (format!("environments/{path}"), ENVIRONMENT)));
    let text = |id: &_| match &environments.environments[id] {
        Ok(environment) => format!("ok {}", environment.path),
        Err(failure) => failure.to_string(),
    };
    let strays = environments.strays.iter().map(|stray| ("stray".to_owned(), stray.to_string()));
    environments.environments.keys().map(|id| (id.to_string(), text(id))).chain(strays).collect()
}

#[track_caller]
fn check(paths: &[&str], expected: &[(&str, &str)]) {
    let found = identities(paths);
    assert_eq!(found.len(), expected.len(), "{paths:?}: {found:#?}");
    for ((id, text), (expected_id, part)) in found.iter().zip(expected) {
        assert!(id == expected_id && text.contains(part), "{paths:?}: {id} {text}, not {expected_id} {part}");
    }
}

#[test]
fn the_path_is_the_identity() {
    check(&["t/good.yaml"], &[("t/good", "ok environments/t/good.yaml")]);
    // A file that moves between these two stays the same environment.
    check(&["top.yaml"], &[("default/top", "ok environments/top.yaml")]);
    check(&["default/top.yaml"], &[("default/top", "ok environments/default/top.yaml")]);
    check(&["README.md", "t/README.md", "t/.gitkeep", "t/data.jsonl", "t/yaml", ".gitkeep"], &[]);
}

#[test]
fn names_may_be_odd() {
    let long = "a".repeat(64);
    for name in ["A_x", "a-x", "a.x", "-a-", "ünï", "ser--73506260", "üser", "123", "con", "a b", long.as_str()] {
        check(&[&format!("t/{name}.yaml")], &[(&format!("t/{name}"), "ok")]);
    }
    check(&["t/a-x.yaml", "t/a.x.yaml", "t/a_x.yaml"], &[("t/a-x", "ok"), ("t/a.x", "ok"), ("t/a_x", "ok")]);
}

#[test]
fn names_that_cannot_be_are_strays() {
    let long = "b".repeat(210);
    for (name, message) in [
        (" a", "holds ' '"),
        ("a\n", "holds '\\n'"),
        ("a\\b", "holds '\\\\'"),
        ("a\u{fffd}", "holds '\u{fffd}'"),
        ("x\u{202e}gnp", "holds '\\u{202e}'"),
        ("a\u{200b}b", "holds '\\u{200b}'"),
        ("a\u{2028}b", "holds '\\u{2028}'"),
        ("a\u{61c}b", "holds '\\u{61c}'"),
        ("a\u{e0041}b", "holds '\\u{e0041}'"),
        (long.as_str(), "at most 200"),
    ] {
        check(&["t/b.yaml", &format!("t/{name}.yaml")], &[("t/b", "ok"), ("stray", message)]);
    }
    check(&[" t/b.yaml"], &[("stray", "holds ' '")]);
}

#[test]
fn dot_files_are_no_environments() {
    for name in ["t/.yaml", "t/..yaml", "t/.hidden.yaml", "t/.#b.yaml", ".t/a.yaml", ".a.yaml"] {
        check(&["t/b.yaml", name], &[("t/b", "ok")]);
    }
}

#[test]
fn files_at_the_wrong_place_are_broken_and_not_removed() {
    check(&["t/a.yml"], &[("t/a", "git mv environments/t/a.yml environments/t/a.yaml")]);
    check(&["t/A.YAML"], &[("t/A", "ends in .yaml")]);
    check(&["t/A.JSON"], &[("t/A", "or in .json")]);
    check(&["t/a.json", "t/a.yaml"], &[("t/a", "is also claimed by")]);
    check(&["t/b/c/a.yaml"], &[("t/a", "directly in its tenant's directory")]);
    check(&["u/a.yaml"], &[("u/a", "the tenant `u` is not in larder.yaml (hint: add `u: {namespace: …}`")]);
    check(&["t2/a.yaml"], &[("t2/a", "did you mean the directory `T2`?")]);
}

#[test]
fn one_identity_has_one_file() {
    check(&["t/a.yaml", "t/a.yml"], &[("t/a", "also claimed by environments/t/a.yml")]);
    check(&["a.yaml", "default/a.yaml"], &[("default/a", "also claimed by environments/a.yaml")]);
    check(&["t/x/a.yaml", "t/y/a.yaml"], &[("t/a", "also claimed by environments/t/y/a.yaml")]);
    // The file at the right place is not harmed by one that is not.
    check(&["t/a.yaml", "t/x/a.yaml"], &[("t/a", "ok"), ("stray", "directly in its tenant's directory")]);
}

#[test]
fn case_alone_does_not_tell_environments_apart() {
    let expected =
        [("t/A", "differs from environments/t/a.yaml by case"), ("t/a", "differs from environments/t/A.yaml")];
    check(&["t/a.yaml", "t/A.yaml"], &expected);
    check(&["t/É.yaml", "t/é.yaml"], &[("t/É", "by case only"), ("t/é", "by case only")]);
}

#[test]
fn links_and_submodules_are_broken_and_not_removed() {
    let environments = load_entries([
        ("environments/t/a.yaml".to_owned(), Entry::Link("../../../etc/hostname".to_owned())),
        ("environments/t/b.yaml".to_owned(), Entry::Submodule),
        ("environments/t/c.yaml".to_owned(), Entry::TooLarge(1 << 40)),
        ("environments/t/d.yaml".to_owned(), Entry::File(ENVIRONMENT.as_bytes().into())),
        ("environments/u".to_owned(), Entry::Link("/srv/u".to_owned())),
        ("environments/v".to_owned(), Entry::Submodule),
    ]);
    let failed: Vec<String> = environments.environments.iter().map(|(id, e)| format!("{id} {}", e.is_err())).collect();
    assert_eq!(failed, ["t/a true", "t/b true", "t/c true", "t/d false"]);
    let strays: Vec<String> = environments.strays.iter().map(ToString::to_string).collect();
    assert!(strays.len() == 2 && strays[0].contains("`/srv/u`") && strays[1].contains("submodule"), "{strays:?}");
}

#[test]
fn a_directory_that_is_not_read_breaks_what_its_tenant_has_locked() {
    let lockfile = "lock/t/a.yaml";
    for (path, entry) in [
        ("environments/t", Entry::Unread("it holds more than 32 MiB".to_owned())),
        ("environments/t", Entry::Submodule),
        ("lock/t", Entry::Link("../u".to_owned())),
    ] {
        let mut entries = vec![
            (path.to_owned(), entry),
            ("environments/default/a.yaml".to_owned(), Entry::File(ENVIRONMENT.as_bytes().into())),
        ];
        if path == "lock/t" {
            entries.push(("environments/t/a.yaml".to_owned(), Entry::File(ENVIRONMENT.as_bytes().into())));
        } else {
            entries.push((lockfile.to_owned(), Entry::File(b"".as_slice().into())));
        }
        let environments = load_entries(entries);
        let failed: Vec<_> = environments.environments.iter().map(|(id, e)| format!("{id} {}", e.is_err())).collect();
        assert_eq!(failed, ["default/a false", "t/a true"], "{path}");
        assert!(environments.unread.iter().map(ToString::to_string).eq(["t"]), "{path}");
        assert!(environments.strays.iter().any(|problem| problem.to_string().starts_with(path)), "{path}");
    }
}
