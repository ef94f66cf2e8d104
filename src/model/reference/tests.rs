//! The A cases of image references.

use super::{ImageReference, ReferenceError, ReferenceLint};

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn canonical(text: &str) -> String {
    text.parse::<ImageReference>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

fn error(text: &str) -> ReferenceError {
    text.parse::<ImageReference>().expect_err(text)
}

#[test]
fn canonical_forms() {
    let cases = [
        // one key for one image
        ("debian", "docker.io/library/debian:latest"),
        ("library/debian", "docker.io/library/debian:latest"),
        ("docker.io/debian", "docker.io/library/debian:latest"),
        ("index.docker.io/debian", "docker.io/library/debian:latest"),
        ("index.docker.io/library/debian:latest", "docker.io/library/debian:latest"),
        // host with a port; a single part with a dot is a repository
        ("test:5000/repo", "test:5000/repo:latest"),
        ("test:5000/repo:v1", "test:5000/repo:v1"),
        ("test.com:5000", "docker.io/library/test.com:5000"),
        // Hosts are equal whatever their case
        ("QUAY.io/a/b:1", "quay.io/a/b:1"),
        ("Registry.Example.COM:5000/a", "registry.example.com:5000/a:latest"),
        ("LOCALHOST/app", "localhost/app:latest"),
        ("Docker.IO/debian", "docker.io/library/debian:latest"),
        ("INDEX.docker.io/debian", "docker.io/library/debian:latest"),
        ("localhost/app:dev", "localhost/app:dev"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        // upper case makes a host; a tag may have it
        ("Foo/bar", "Foo/bar:latest"),
        ("FOO/bar", "FOO/bar:latest"),
        ("app:RC1", "docker.io/library/app:RC1"),
        ("dock__er/app", "docker.io/dock__er/app:latest"),
        ("docker---rules/app", "docker.io/docker---rules/app:latest"),
        ("test_com/foo", "docker.io/test_com/foo:latest"),
        ("foo_bar.com:8080", "docker.io/library/foo_bar.com:8080"),
        ("xxx.harbor.com/5000/apache/x:tag", "xxx.harbor.com/5000/apache/x:tag"),
        ("harbor.example.com/app:1", "harbor.example.com/app:1"),
        ("xn--n3h.com/app:xn--n3h.com", "xn--n3h.com/app:xn--n3h.com"),
        ("[::1]:5000/app:1", "[::1]:5000/app:1"),
        ("[2001:db8::1]/app:1", "[2001:db8::1]/app:1"),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(text), expected, "{text}");
        assert_eq!(canonical(expected), expected, "canonical forms stay as they are");
    }
}

#[test]
fn digests() {
    // the tag is kept, the digest wins
    let reference: ImageReference = format!("golang:1.4.2@sha256:{HEX}").parse().unwrap();
    assert_eq!(reference.repository(), "docker.io/library/golang");
    assert_eq!(reference.tag(), Some("1.4.2"));
    assert_eq!(reference.digest().unwrap().as_str(), format!("sha256:{HEX}"));
    assert_eq!(reference.to_string(), format!("docker.io/library/golang:1.4.2@sha256:{HEX}"));
    // A digest alone gets no tag
    assert_eq!(canonical(&format!("app@sha256:{HEX}")), format!("docker.io/library/app@sha256:{HEX}"));
    assert_eq!(canonical(&format!("app:1@sha512:{HEX}{HEX}")), format!("docker.io/library/app:1@sha512:{HEX}{HEX}"));
    for text in [
        format!("app@sha256:{}", &HEX[..34]),
        format!("app@invaliddigest:{HEX}"),
        format!("app@sha256:{}", HEX.to_uppercase()),
        format!("app@md5:{HEX}"),
        format!("app@sha256:{HEX}@sha256:{HEX}"),
        "app@".to_owned(),
    ] {
        assert!(matches!(error(&text), ReferenceError::Digest { .. }), "{text}");
    }
    assert_eq!(error(&format!("@sha256:{HEX}")), ReferenceError::NoRepository(format!("@sha256:{HEX}")));
    assert_eq!(error(":justtag"), ReferenceError::NoRepository(":justtag".to_owned()));
    assert_eq!(error(""), ReferenceError::Empty);
    assert!(matches!(error(HEX), ReferenceError::Identifier(_)));
}

#[test]
fn pinned_forms() {
    // a digest follows `@`, never `:`
    let digest = format!("sha256:{HEX}").parse().unwrap();
    for (text, expected) in [
        ("app", "docker.io/library/app:latest@"),
        ("quay.io/a/b:1", "quay.io/a/b:1@"),
        (&format!("quay.io/a/b@sha256:{}", "0".repeat(64)), "quay.io/a/b@"),
    ] {
        let pinned = text.parse::<ImageReference>().unwrap().pinned(&digest);
        assert_eq!(pinned, format!("{expected}sha256:{HEX}"));
        assert_eq!(canonical(&pinned), pinned);
    }
    for text in
        [format!("app:sha256:{HEX}"), format!("app:1:sha256:{HEX}"), format!("quay.io/a/app:sha256:{HEX}@sha256:{HEX}")]
    {
        let error = error(&text);
        assert!(matches!(error, ReferenceError::ColonDigest { .. }), "{text}: {error}");
        assert!(error.hint().contains(&format!("@sha256:{HEX}")), "{}", error.hint());
    }
}

#[test]
fn upper_case() {
    for (text, lower) in [
        ("Uppercase:tag", "uppercase:tag"),
        ("example.com/team/App:1", "example.com/team/app:1"),
        ("docker.pkg.github.com/Org/repo/app:1", "docker.pkg.github.com/org/repo/app:1"),
    ] {
        let error = error(text);
        assert!(error.to_string().contains("must be lowercase"), "{error}");
        assert!(error.hint().contains(lower), "{}", error.hint());
    }
}

#[test]
fn lengths() {
    // the path alone is counted, as current runtimes do
    let path = |parts: usize| "a/".repeat(parts) + "a";
    assert_eq!(path(127).len(), 255);
    canonical(&format!("{}:tag", path(127)));
    canonical(&format!("registry.example.com/{}:tag", path(127)));
    assert_eq!(error(&format!("{}:tag", path(128))), ReferenceError::TooLong(257));
    assert_eq!(error(&format!("registry.example.com/{}b", path(127))), ReferenceError::TooLong(256));
    canonical(&format!("app:{}", "t".repeat(128)));
    assert_eq!(error(&format!("app:{}", "t".repeat(129))), ReferenceError::TagTooLong(129));
}

#[test]
fn refused_forms() {
    let scheme = error("https://example.com/app");
    assert!(scheme.hint().contains("`example.com/app`"), "{}", scheme.hint());
    for text in [
        "docker///docker",
        "docker/",
        "-docker/app",
        "docker-/app",
        "dock..er/app",
        "dock_.er/app",
        "____/____",
        "a//b",
        "/app",
        "app/.",
        "example.com/",
        "example.com/app/",
        "app:",
        "app:-1",
        "app:.1",
        "app:a/b",
        "app:1:2",
        "app:1 2",
        "app?x=1",
        "app%0a",
        "example.com/../app",
        "-example.com/app",
        "example-.com/app",
        "exa..mple.com/app",
        "foo_bar.com/app",
        "example.com:0/app",
        "example.com:99999/app",
        "example.com:/app",
        "example.com:x/app",
        "[::1/app",
        "[zz]/app",
        "[2001:db8:3:4::192.0.2.33]:5000/app",
        "[fe80::1%eth0]:5000/app",
        "☃.example/app",
        " app:1",
        "app:1 ",
        "app:1\n",
        "\tapp",
        "app\u{a0}",
        "\u{feff}app",
        "app:1\r\n",
    ] {
        let error = error(text);
        assert!(!error.hint().is_empty(), "{text}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    assert!(matches!(error("app:1\n"), ReferenceError::Whitespace { character: '\n', .. }));
}

#[test]
fn an_identifier_is_not_a_reference() {
    for text in [HEX.to_owned(), format!("sha256:{HEX}"), format!("sha512:{HEX}{HEX}")] {
        let error = error(&text);
        assert!(matches!(error, ReferenceError::Identifier(_)), "{error}");
        assert!(error.hint().contains("repository@sha"), "{}", error.hint());
    }
    // With fewer digits it is a tag.
    assert_eq!(canonical("sha256:e3b0"), "docker.io/library/sha256:e3b0");
}

#[test]
fn passwords_are_not_repeated() {
    for text in ["user:canary@example.com/app", "https://user:canary@example.com/app", "canary@example.com/app:1"] {
        let error = error(text);
        assert!(!format!("{error} {}", error.hint()).contains("canary"), "{error}");
    }
}

#[test]
fn lints() {
    let lint = |text: &str| {
        text.parse::<ImageReference>().unwrap().lints().iter().map(ToString::to_string).collect::<String>()
    };
    assert!(lint("test.com:5000").contains("did you mean a registry"));
    assert!(lint("foo_bar.com:8080").contains("did you mean a registry"));
    assert!(lint("localhost:5000").contains("did you mean a registry"));
    assert!(lint("test_com/foo").contains("did you mean a registry"));
    assert!(lint("xxx.harbor.com/5000/apache/x:tag").contains("did you mean `xxx.harbor.com:5000`"));
    assert_eq!(
        "h.example.com/5000/x".parse::<ImageReference>().unwrap().lints(),
        [ReferenceLint::NumericPath { host: "h.example.com".to_owned(), part: "5000".to_owned() }]
    );
    for text in [
        "debian",
        "quay.io/jupyter/scipy-notebook:1",
        "localhost/app",
        "team/app_x:1",
        "h.example.com:5000/1/x",
        "nvidia/cuda:12",
    ] {
        assert_eq!(lint(text), "", "{text}");
    }
}

#[test]
fn serde_uses_the_canonical_text() {
    let reference: ImageReference = serde_json::from_str("\"debian:12\"").unwrap();
    assert_eq!(serde_json::to_string(&reference).unwrap(), "\"docker.io/library/debian:12\"");
    serde_json::from_str::<ImageReference>("\"Debian\"").unwrap_err();
}
