//! Templates that would end or stall a program: each is an error of the environments that use it.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

/// A tenant with two environments, whose pullers come from this template.
fn world(template: &str) -> TempDir {
    let world = tempfile::tempdir().unwrap();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/render/templates");
    for path in ["larder.yaml", "lock/research/geo.yaml", "environments/research/geo.yaml"] {
        for to in [path.to_owned(), path.replace("geo", "two")] {
            let to = world.path().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(case.join(path), to).unwrap();
        }
    }
    fs::create_dir_all(world.path().join("templates")).unwrap();
    fs::write(world.path().join("templates/puller.yaml.j2"), template).unwrap();
    world
}

/// Exit code, standard output and standard error.
fn render(world: &TempDir) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let output = command.env_clear().current_dir(world.path()).arg("render").output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn each_is_an_error_of_the_environments_that_use_it() {
    let sum = format!("{{{{ {}1 }}}}", "1+".repeat(10_000));
    let sets = "{% set x = [x, x] %}".repeat(40);
    let calls = format!("{{{{ x{} }}}}", "|upper".repeat(20_000));
    let lists = format!("{}{{{{ x }}}}", "{% set x = [x] %}".repeat(30_000));
    let double = |last: &str| {
        format!(
            "{{% set ns = namespace(s=['x']) %}}{{% for i in range(33) %}}{{% set ns.s = [ns.s, ns.s] %}}{{% endfor %}}{last}"
        )
    };
    let nest = |last: &str| {
        format!(
            "{{% set ns = namespace(s=[]) %}}{{% for i in range(99000) %}}{{% set ns.s = [ns.s] %}}{{% endfor %}}{last}"
        )
    };
    let templates = [
        // Nesting: dropped, written, compared.
        nest(""),
        nest("{{ ns.s }}"),
        nest("{{ ns.s|tojson }}"),
        nest("{{ ns.s == [1] }}"),
        format!("{{% set x = [] %}}{lists}"),
        "{% set ns = namespace() %}{% set ns.s = ns %}{{ ns ~ '' }}".to_owned(),
        // Small values that are large when written.
        double("{{ ns.s }}"),
        double("{{ ns.s ~ '' }}"),
        double("{{ ns.s|string }}"),
        double("{{ ns.s|pprint }}"),
        double("{{ ns.s|tojson }}"),
        double("{% set a = ns.s %}{{ [a] == [[a[0], a[0]]] and a|sort }}{{ a ~ a }}"),
        format!("{{% set x = 'x' %}}{sets}{{{{ x|urlencode }}}}"),
        "{% set ns = namespace(s=[1]) %}{% for i in range(33) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s ~ '' }}"
            .to_owned(),
        "{{ ([1] * 99999999) ~ '' }}".to_owned(),
        "{{ [1]|tojson(indent=2000000000) }}".to_owned(),
        "{{ 'a'|indent(2000000000, true) }}".to_owned(),
        "{{ '%2000000000s'|format('x') }}".to_owned(),
        // Sources.
        sum,
        calls,
    ];
    for template in templates {
        let world = world(&template);
        let (code, out, err) = render(&world);
        let start: String = template.chars().take(160).collect();
        assert_eq!(code, Some(1), "{start}: {err}");
        assert_eq!(err.matches("error[template]").count(), 2, "{start}: {err}");
        assert!(err.contains("templates/puller.yaml.j2") && out.contains("kind: ConfigMap"), "{start}: {err}");
    }
}

/// The same bytes come out of a process of their own.
#[test]
fn usual_ones_render_as_the_built_in_ones_do() {
    let own = world(include_str!("../../../templates/puller.yaml.j2"));
    let built_in = world("");
    fs::remove_dir_all(built_in.path().join("templates")).unwrap();
    let (code, out, err) = render(&own);
    assert_eq!((code, &err[..]), (Some(0), ""), "{out}");
    assert_eq!(out, render(&built_in).1);
}
