//! Templates of the repository: what they may do, and how errors read.

use super::fixture::world;
use crate::model::{failure::Category, manifest::Kind};

// Each template and what its failure says.
#[test]
fn broken_templates_fail_with_their_line() {
    let deep = format!("{}x{}", "{% if true %}".repeat(1000), "{% endif %}".repeat(1000));
    let parens = format!("\n\n{{{{ {}1{} }}}}", "(".repeat(1000), ")".repeat(1000));
    let cases: [(&str, &str); 29] = [
        // Undefined values.
        (
            "\nkind: {{ environment.imgae }}",
            "puller.yaml.j2:2: the template does not render: `environment.imgae` is undefined",
        ),
        ("\n\n{{ imgae }}", "puller.yaml.j2:3: the template does not render: `imgae` is undefined"),
        ("{% if imgae %}x{% endif %}", "puller.yaml.j2:1: the template does not render: `imgae` is undefined"),
        ("{% for i in imgae %}x{% endfor %}", "puller.yaml.j2:1: the template does not render: `imgae` is undefined"),
        ("{{ imgae.name }}", "puller.yaml.j2:1: the template does not render: `imgae` is undefined"),
        ("{{ 'a' ~ imgae }}", "puller.yaml.j2:1: the template does not render"),
        // No way out of the snapshot.
        ("{% include '../../etc/hostname' %}", "leads out of the directory templates"),
        ("{% include '/etc/hostname' %}", "leads out of the directory templates"),
        ("{% include '..\\\\x' %}", "leads out of the directory templates"),
        ("{% include 'a/../../x' %}", "leads out of the directory templates"),
        ("{% include './puller.yaml.j2' %}", "leads out of the directory templates"),
        ("{% include 'x\\u0000' %}", "leads out of the directory templates"),
        ("{% include '' %}", "leads out of the directory templates"),
        ("{% import '../x' as x %}", "leads out of the directory templates"),
        ("{% extends '/x' %}", "leads out of the directory templates"),
        (
            "a: 1\n{% include 'other.j2' %}",
            "puller.yaml.j2:2: the template does not render: tried to include non-existing template 'other.j2'",
        ),
        // Loops without an end.
        ("{% include 'puller.yaml.j2' %}", "puller.yaml.j2:1: the template does not render"),
        ("{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}", "puller.yaml.j2:1: the template does not render"),
        ("{% for i in range(1000000000) %}x{% endfor %}", "puller.yaml.j2:1: the template does not render"),
        ("{% for i in range(90000) %}{% for j in range(90000) %}x{% endfor %}{% endfor %}", "may not loop this often"),
        (
            "{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
            "may not loop this often",
        ),
        ("{{ 'x' * 90000000 }}", "may not loop this often"),
        // Syntax.
        ("\n{{ '\\u12' }}", "puller.yaml.j2:2: the template does not render"),
        ("\n{% if %}", "puller.yaml.j2:2: the template does not render: unexpected end of block"),
        (&deep, "puller.yaml.j2:1: the template does not render"),
        (&parens, "puller.yaml.j2:3: the template does not render"),
        // Output.
        ("", "puller.yaml.j2: the template renders 0 objects, not one"),
        ("a: [", "puller.yaml.j2: the template renders no YAML"),
        ("- a", "puller.yaml.j2: the template renders a YAML document that is not an object"),
    ];
    for (template, message) in cases {
        let mut world = world();
        world.template("puller.yaml.j2", template);
        let failure = world.failure("research/geo");
        assert_eq!(failure.category(), Category::Template);
        assert!(failure.to_string().contains(message), "{template:.100}\n  {failure}\n  {message}");
        assert!(failure.to_string().starts_with("templates/puller.yaml.j2"), "{failure}");
        assert!(world.manifests("research").is_ok(), "the records do not use it");
    }
}

#[test]
fn an_included_template_is_blamed_itself() {
    let mut world = world();
    world.edited_puller("enableServiceLinks: false", "{% include 'extra.j2' %}");
    world.template("extra.j2", "priorityClassName: low\n\n{{ nothing }}");
    let failure = world.failure("research/geo").to_string();
    assert!(failure.starts_with("templates/extra.j2:3: "), "{failure}");
}

// `default` still works; two includes of one base are no cycle.
#[test]
fn templates_of_the_repository_are_used() {
    let mut world = world();
    world.edited_puller(
        "      enableServiceLinks: false",
        "{% include 'a.j2' %}\n{% include 'b.j2' %}\n{% import 'macros.j2' as macros %}{{ macros.seconds(7) }}",
    );
    world.template("base.j2", "      {% block b %}{% endblock %}\n");
    world.template(
        "a.j2",
        "{% extends 'base.j2' %}{% block b %}priorityClassName: {{ nothing | default('low') }}{% endblock %}",
    );
    world.template("b.j2", "{% extends 'base.j2' %}{% block b %}hostUsers: false{% endblock %}");
    world.template(
        "macros.j2",
        "{% macro seconds(n) %}      dnsPolicy: {{ 'Default' if n == 7 else 'None' }}\n{% endmacro %}",
    );
    let pod = &world.puller()["spec"]["template"]["spec"];
    assert_eq!((&pod["priorityClassName"], &pod["dnsPolicy"]), (&"low".into(), &"Default".into()));
    assert_eq!(pod["hostUsers"], false);
}

// An unknown escape stays as it is, as in Jinja2.
#[test]
fn unknown_escapes_in_strings_stay() {
    for (written, read) in [("'\\s'", "\\s"), ("'\\d+'", "\\d+"), ("'\\n'", "\n"), ("'a\\\\b'", "a\\b")] {
        let mut world = world();
        world.edited_puller("  labels:", &format!("  annotations: {{x: {{{{ {written} }}}} }}\n  labels:"));
        assert_eq!(world.puller()["metadata"]["annotations"]["x"], read, "{written}");
    }
}

#[test]
fn several_documents_are_fine_if_one_is_an_object() {
    let mut world = world();
    world.edited_puller("apiVersion: apps/v1", "# a comment\n---\n\n---\napiVersion: apps/v1");
    world.puller();
    world.edited_puller("apiVersion: apps/v1", "kind: Secret\n---\napiVersion: apps/v1");
    assert!(world.failure("research/geo").to_string().contains("renders 2 objects, not one"));
}

// Exactly the expected kind, and no field beyond those that are known.
#[test]
fn privileged_fields_are_refused_with_their_path_and_line() {
    let pod = "      enableServiceLinks: false";
    let container = "          imagePullPolicy: IfNotPresent\n          command: [/larder";
    let context = "            runAsNonRoot: true";
    let volume = "emptyDir: {sizeLimit: 32Mi}";
    let with = |old: &str, new: &str| format!("{new}\n{old}");
    let cases = [
        (pod, with(pod, "      hostNetwork: true"), "`spec.template.spec.hostNetwork` is not allowed"),
        (pod, with(pod, "      hostPID: true"), "`spec.template.spec.hostPID` is not allowed"),
        (pod, with(pod, "      hostIPC: true"), "`spec.template.spec.hostIPC` is not allowed"),
        (pod, with(pod, "      nodeName: n1"), "`spec.template.spec.nodeName` is not allowed"),
        (pod, with(pod, "      ephemeralContainers: []"), "`spec.template.spec.ephemeralContainers` is not allowed"),
        (pod, with(pod, "      hostUsers: true"), "`spec.template.spec.hostUsers` is true"),
        (
            pod,
            with(pod, "      shareProcessNamespace: true"),
            "`spec.template.spec.shareProcessNamespace` is not allowed",
        ),
        (
            pod,
            with(pod, "      securityContext: {sysctls: []}"),
            "`spec.template.spec.securityContext.sysctls` is not allowed",
        ),
        (
            pod,
            with(pod, "      securityContext: {seccompProfile: {type: Unconfined}}"),
            "seccompProfile.type` is \"Unconfined\"",
        ),
        (
            "automountServiceAccountToken: false",
            "automountServiceAccountToken: true".into(),
            "automountServiceAccountToken` is true",
        ),
        ("{{ serviceAccount }}", "admin".into(), "`spec.template.spec.serviceAccountName` is \"admin\""),
        (container, with(container, "          ports: [{hostPort: 80}]"), "containers[0].ports` is not allowed"),
        (container, with(container, "          lifecycle: {}"), "containers[0].lifecycle` is not allowed"),
        (
            container,
            with(container, "          env: [{name: A, valueFrom: {}}]"),
            "containers[0].env[0].valueFrom` is not allowed",
        ),
        (container, with(container, "          envFrom: []"), "containers[0].envFrom` is not allowed"),
        (context, with(context, "            privileged: true"), "securityContext.privileged` is true"),
        (context, with(context, "            procMount: Unmasked"), "securityContext.procMount` is not allowed"),
        ("{drop: [ALL]}", "{drop: [ALL], add: [SYS_ADMIN]}".into(), "securityContext.capabilities.add` is not allowed"),
        (
            "allowPrivilegeEscalation: false",
            "allowPrivilegeEscalation: true".into(),
            "allowPrivilegeEscalation` is true",
        ),
        (volume, "hostPath: {path: /}".into(), "`spec.template.spec.volumes[0].hostPath` is not allowed"),
        (volume, "secret: {secretName: x}".into(), "`spec.template.spec.volumes[0].secret` is not allowed"),
        (volume, "image: {reference: x}".into(), "is x, which is neither a locked image"),
        ("{{ image.pinned }}", "{{ image.reference }}".into(), "which is neither a locked image"),
        (
            "for image in images",
            "for image in images if false".into(),
            "no container or volume with the locked image quay.io",
        ),
        (
            "{{ \"image-\" ~ image.slug }}",
            "larder-hold".into(),
            "is \"larder-hold\" in what the template renders, but must be unlike",
        ),
        ("kind: DaemonSet", "kind: Secret".into(), "`kind` is \"Secret\""),
        ("apiVersion: apps/v1", "apiVersion: v1".into(), "`apiVersion` is \"v1\""),
        (
            "namespace: {{ tenant.namespace }}",
            "namespace: kube-system".into(),
            "`metadata.namespace` is \"kube-system\"",
        ),
        ("  namespace: {{ tenant.namespace }}", String::new(), "`metadata.namespace` is missing"),
        ("name: {{ puller.name }}", "name: other".into(), "`metadata.name` is \"other\""),
        (
            "name: {{ puller.name }}",
            "name: {{ puller.name }}\n  finalizers: [x]".into(),
            "`metadata.finalizers` is not allowed",
        ),
        (
            "  labels:",
            "  labels:\n    a: true".into(),
            "`metadata.labels.a` is true in what the template renders, but must be a text",
        ),
        // What may change never gets into the selector.
        ("    matchLabels:", "    matchLabels:\n      version: x".into(), "`spec.selector` is {"),
        ("    matchLabels:", "    matchExpressions: []\n    matchLabels:".into(), "`spec.selector` is {"),
        ("spec:\n  revision", "status: {}\nspec:\n  revision".into(), "`status` is not allowed"),
    ];
    for (old, new, message) in cases {
        let mut world = world();
        world.edited_puller(old, &new);
        let failure = world.failure("research/geo");
        assert_eq!(failure.category(), Category::Template);
        assert!(failure.to_string().contains(message), "{new}\n  {failure}\n  {message}");
        assert!(failure.problems()[0].hint.is_some());
    }
    let mut world = world();
    world.edited_puller(pod, &with(pod, "      hostNetwork: true"));
    let location = world.failure("research/geo").problems()[0].location.clone().unwrap();
    let line = world.templates["puller.yaml.j2"].lines().nth(location.line - 1).unwrap();
    assert!(line.contains("hostNetwork"), "{line}");
}

#[test]
fn other_kinds_are_checked_too() {
    let mut world = world();
    world.template("service-account.yaml.j2", "apiVersion: v1\nkind: ServiceAccount\nsecrets: []\nmetadata: {name: {{ serviceAccount }}, namespace: {{ tenant.namespace }} }");
    assert!(world.failure("research/geo").to_string().contains("`secrets` is not allowed"));
    world.template("namespace.yaml.j2", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}");
    assert!(world.failure("research").to_string().contains("`metadata.name` is \"kube-system\""));
    world.templates.remove("namespace.yaml.j2");
    world.template("records.yaml.j2", "apiVersion: v1\nkind: ConfigMap\ndata: {n: 1}\nmetadata: {name: {{ records.name }}, namespace: {{ tenant.namespace }} }");
    assert!(world.failure("research").to_string().contains("`data.n` is 1"));
}

// What larder puts on is not for templates to change.
#[test]
fn reserved_labels_and_annotations_win() {
    let mut world = world();
    world.edited_puller(
        "  labels:",
        "  annotations: {larder.dev/owner: x, mine: mine}\n  labels:\n    larder.dev/instance: x",
    );
    let metadata = &world.object("research/geo", Kind::DaemonSet)["metadata"];
    assert_eq!(metadata["labels"]["larder.dev/instance"], "default");
    assert_eq!(metadata["annotations"]["larder.dev/owner"], "research/geo");
    assert_eq!(metadata["annotations"]["mine"], "mine");
}
