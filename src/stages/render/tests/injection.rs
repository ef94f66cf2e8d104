//! Values stay values, whatever they hold.

use serde_json::{Value, json};

use super::fixture::{World, world};
use crate::model::{failure::Category, manifest::Kind, yaml::to_yaml};

const VALUES: [&str; 27] = [
    "x\n  hostNetwork: true",
    "x\n---\nkind: Secret",
    "a: b",
    "- x",
    "'\"",
    "{{ 7*7 }}",
    "{% raw %}",
    "{# c #}",
    "#c",
    "x #c",
    "&a",
    "*a",
    "!!int 1",
    "%T",
    "1e5",
    "yes",
    "~",
    "null",
    " x ",
    "\u{85}",
    "a\u{2028}b\u{2029}",
    "\u{feff}",
    "\u{0}\u{1b}\u{7f}",
    "\\",
    "\t- x\r\n",
    "ünï 🪐",
    "<&>'",
];

/// The object without what differs between two values in any case.
fn without_texts(world: &World) -> Value {
    let mut object = world.puller();
    object["metadata"]["annotations"] = json!({});
    object
}

// descriptions, names of images, toleration values.
#[test]
fn values_never_become_structure() {
    let mut reference = world();
    reference.environment("research/geo").display_name = Some("x".into());
    let plain = without_texts(&reference);
    for value in VALUES {
        let mut world = world();
        let environment = world.environment("research/geo");
        environment.display_name = Some(value.into());
        environment.description = Some(value.into());
        assert_eq!(without_texts(&world), plain, "{value:?}");

        let object = world.puller();
        assert_eq!(object["metadata"]["annotations"]["larder.dev/display-name"], value);
        assert_eq!(object["metadata"]["annotations"]["larder.dev/description"], value);
        let read: Value = serde_saphyr::from_str(&to_yaml(&object)).unwrap();
        assert_eq!(read, object, "{value:?} survives YAML");
        assert_eq!(world.render(), world.render(), "the same bytes twice");
    }
}

#[test]
fn an_empty_text_is_none() {
    let mut world = world();
    world.environment("research/geo").display_name = Some(String::new());
    assert!(world.puller()["metadata"]["annotations"].get("larder.dev/display-name").is_none());
}

#[test]
fn placements_go_through_as_data() {
    for value in VALUES {
        let mut world = world();
        let placement = &mut world.environment("research/geo").placement;
        placement.node_selector.insert("pool".into(), value.into());
        placement.affinity = Some(json!({"nodeAffinity": {"x": [value, 1, null, 0.5, true]}}));
        placement.tolerations.push(crate::model::environment::Toleration {
            key: Some(value.into()),
            toleration_seconds: Some(3),
            ..Default::default()
        });
        let pod = &world.puller()["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"]["pool"], value);
        assert_eq!(pod["affinity"]["nodeAffinity"]["x"], json!([value, 1, null, 0.5, true]));
        assert_eq!(pod["tolerations"], json!([{"key": value, "tolerationSeconds": 3}]));
    }
}

// A string of 1 MiB; annotations are budgeted together.
#[test]
fn a_text_too_long_for_an_annotation_is_a_failure() {
    let mut world = world();
    world.environment("research/geo").description = Some("x".repeat(1 << 20));
    let failure = world.failure("research/geo");
    assert_eq!(failure.category(), Category::Template);
    assert!(failure.to_string().contains("`metadata.annotations` has 1048"), "{failure}");
    assert!(failure.to_string().contains("at most 262144 are allowed"), "{failure}");
    assert!(world.manifests("research").is_ok(), "the tenant's own objects continue");
}

// Whether values are quoted does not depend on the template's name. references are joined as types.
#[test]
fn values_are_quoted_under_any_template_name() {
    for name in ["part.yaml", "part.txt", "part.yaml.j2", "part", "part.html"] {
        let mut world = world();
        world.environment("research/geo").display_name = Some("yes: <1>".into());
        world.edited_puller("{{ environment.displayName }}", &format!("{{% include {name:?} %}}"));
        world.template(name, "{{ environment.displayName }}");
        assert_eq!(world.puller()["metadata"]["annotations"]["larder.dev/display-name"], "yes: <1>", "{name}");
    }
}

// `image: {{ repo }}:{{ tag }}` is an error that says what to do, never `"r":"t"`.
#[test]
fn texts_joined_outside_are_refused_with_the_remedy() {
    let mut world = world();
    world.edited_puller("image: {{ image.pinned }}", "image: {{ image.reference }}@{{ image.digest }}");
    let failure = world.failure("research/geo").to_string();
    assert!(failure.starts_with("templates/puller.yaml.j2: the template renders no YAML"), "{failure}");
    assert!(failure.contains("hint: write each value as a whole"), "{failure}");
}

// A tag that reads like a number, and one that is hexadecimal, stay as they are.
#[test]
fn tags_that_look_like_numbers_stay_texts() {
    for tag in ["1.10", "0e1234", "2026", "no", "1_000"] {
        let mut world = world();
        world.add("teaching/x", &[("app", &format!("quay.io/team/app:{tag}"))]);
        let object = world.object("teaching/x", Kind::DaemonSet);
        let image = object["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        assert!(image.starts_with(&format!("quay.io/team/app:{tag}@sha256:")), "{image}");
    }
}

// Neither a block of the template nor another mode of the engine turns quoting off.
#[test]
fn quoting_cannot_be_turned_off_by_accident() {
    for block in ["{% autoescape false %}", "{% autoescape 'html' %}", "{% autoescape 'none' %}"] {
        let mut world = world();
        world.environment("research/geo").display_name = Some("x\n  hostNetwork: true".into());
        world.edited_puller(
            "{{ environment.displayName }}",
            &format!("{block}{{{{ environment.displayName }}}}{{% endautoescape %}}"),
        );
        let name = &world.puller()["metadata"]["annotations"]["larder.dev/display-name"];
        assert_eq!(name, "x\n  hostNetwork: true", "{block}");
    }
}
