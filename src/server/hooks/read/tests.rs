//! Deliveries as the senders write them, cut down to a few of their fields.

use super::{Malformed, Message, Sender, read};
use crate::model::news::{Moved, News};

const COMMIT: &str = "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5";
const ZERO: &str = "0000000000000000000000000000000000000000";

/// What a delivery says, as a short text.
fn said(sender: Sender, event: &str, body: &str) -> String {
    match read(sender, (!event.is_empty()).then_some(event), body.as_bytes()) {
        Err(Malformed) => "malformed".to_owned(),
        Ok(Message::Ping) => "ping".to_owned(),
        Ok(Message::Nothing) => "nothing".to_owned(),
        Ok(Message::News(all)) => {
            let text = |news: &News| match news {
                News::Branch { name, commit } => {
                    let commit = commit.as_deref().map_or("?", |commit| &commit[..7]);
                    format!("{}={commit}", name.as_deref().unwrap_or("?"))
                }
                News::Moved(moved) => moved.to_string(),
            };
            all.iter().map(text).collect::<Vec<_>>().join(" ")
        }
    }
}

fn push(reference: &str, after: &str) -> String {
    format!(
        r#"{{"ref":"{reference}","before":"{ZERO}","after":"{after}","repository":{{"full_name":"team/environments"}},
            "commits":[{{"id":"{COMMIT}","message":"Ünïcode \u0000","added":["a"],"removed":[],"modified":[]}}]}}"#
    )
}

#[test]
fn forges() {
    let main = push("refs/heads/main", COMMIT);
    let deep = push("refs/heads/team/x", COMMIT);
    let tag = push("refs/tags/v1", COMMIT);
    let gone = push("refs/heads/main", ZERO);
    let odd = push("refs/heads/main", "not a commit");
    let gitlab = |kind: &str| format!(r#"{{"object_kind":"{kind}","event_name":"{kind}",{}"#, &main[1..]);
    let package = |key: &str, action: &str, kind: &str, url: &str, tag: &str| {
        format!(
            r#"{{"action":"{action}","{key}":{{"id":1,"name":"Hello","namespace":"Octo-Org","ecosystem":"CONTAINER",
                "package_type":"{kind}","package_version":{{"id":2,"version":"sha256:00","package_url":"{url}",
                "container_metadata":{{"tag":{{"name":"{tag}","digest":"sha256:00"}},"labels":{{}}}}}}}}}}"#
        )
    };
    let gitea_package = |kind: &str, action: &str, version: &str| {
        format!(
            r#"{{"action":"{action}","repository":null,"package":{{"id":1,"type":"{kind}","name":"notebook",
                "version":"{version}","owner":{{"id":1,"login":"Bot","username":"Bot"}}}}}}"#
        )
    };
    let url = "ghcr.io/octo-org/hello:v1";
    for (sender, event, body, expected) in [
        (Sender::GitHub, "push", main.clone(), "main=59b20b8"),
        (Sender::GitHub, "push", deep.clone(), "team/x=59b20b8"),
        (Sender::GitHub, "push", tag.clone(), "nothing"),
        (Sender::GitHub, "push", gone.clone(), "main=?"),
        (Sender::GitHub, "push", odd, "main=?"),
        (Sender::GitHub, "push", r#"{"after":"x"}"#.to_owned(), "malformed"),
        (Sender::GitHub, "push", "{".to_owned(), "malformed"),
        (Sender::GitHub, "push", String::new(), "malformed"),
        (Sender::GitHub, "ping", r#"{"zen":"Design for failure.","hook_id":1}"#.to_owned(), "ping"),
        (Sender::GitHub, "issues", "{}".to_owned(), "nothing"),
        (Sender::GitHub, "", main.clone(), "malformed"),
        (
            Sender::GitHub,
            "registry_package",
            package("registry_package", "published", "CONTAINER", url, "v1"),
            "ghcr.io/octo-org/hello:v1",
        ),
        (Sender::Ghcr, "package", package("package", "updated", "CONTAINER", url, "v1"), "ghcr.io/octo-org/hello:v1"),
        (
            Sender::Ghcr,
            "package",
            package("package", "published", "container", "ghcr.io/octo-org/other:v2", ""),
            "ghcr.io/octo-org/other:v2",
        ),
        (
            Sender::Ghcr,
            "package",
            package("package", "published", "CONTAINER", "ghcr.io/octo-org/hello:", ""),
            "nothing",
        ),
        (Sender::Ghcr, "package", package("package", "published", "npm", url, "v1"), "nothing"),
        (Sender::Ghcr, "package", package("package", "deleted", "CONTAINER", url, "v1"), "nothing"),
        (Sender::Ghcr, "push", main.clone(), "main=59b20b8"),
        (Sender::Gitea, "push", main.clone(), "main=59b20b8"),
        (Sender::Gitea, "push", gone, "main=?"),
        (Sender::Gitea, "create", "{}".to_owned(), "nothing"),
        (Sender::Gitea, "package", gitea_package("container", "created", "v1"), "bot/notebook:v1"),
        (Sender::Gitea, "package", gitea_package("container", "created", "sha256:00"), "nothing"),
        (Sender::Gitea, "package", gitea_package("container", "deleted", "v1"), "nothing"),
        (Sender::Gitea, "package", gitea_package("npm", "created", "v1"), "nothing"),
        (Sender::Gitea, "", main.clone(), "malformed"),
        (Sender::GitLab, "Push Hook", gitlab("push"), "main=59b20b8"),
        (Sender::GitLab, "System Hook", gitlab("push"), "main=59b20b8"),
        (Sender::GitLab, "Tag Push Hook", gitlab("tag_push"), "nothing"),
        (Sender::GitLab, "Push Hook", main, "malformed"),
        (Sender::GitLab, "Pipeline Hook", r#"{"object_kind":"pipeline"}"#.to_owned(), "nothing"),
    ] {
        assert_eq!(said(sender, event, &body), expected, "{sender:?} {event} {body}");
    }
}

#[test]
fn registries() {
    let event = |action: &str, repository: &str, tag: &str| {
        format!(
            r#"{{"id":"1","timestamp":"2026-11-30T10:00:00Z","action":"{action}","target":{{"mediaType":"application/vnd.oci.image.index.v1+json",
                "digest":"sha256:00","size":7,"length":7,"repository":"{repository}","url":"http://127.0.0.1:5000/v2/x"{tag}}},
                "request":{{"id":"2","addr":"127.0.0.1:1","host":"127.0.0.1:5000","method":"PUT"}},"actor":{{}},"source":{{}}}}"#
        )
    };
    let envelope = |events: &[String]| format!(r#"{{"events":[{}]}}"#, events.join(","));
    let one = r#","tag":"1""#;
    let harbor = |kind: &str, key: &str, tag: &str| {
        format!(
            r#"{{"type":"{kind}","occur_at":1680501893,"operator":"admin","specversion":"1.0","{key}":{{"resources":[{{"digest":"sha256:00",
                "tag":"{tag}","resource_url":"hub.example.com/library/alpine:{tag}"}}],"repository":{{"name":"alpine","namespace":"library",
                "repo_full_name":"library/alpine","repo_type":"public"}}}}}}"#
        )
    };
    let quay = |url: &str, tags: &str| {
        format!(
            r#"{{"name":"repository","repository":"team/notebook","namespace":"team","docker_url":"{url}",
                "homepage":"https://quay.io/repository/team/notebook","updated_tags":{tags}}}"#
        )
    };
    let hub = |name: &str| {
        format!(
            r#"{{"callback_url":"https://registry.hub.docker.com/u/x/hook/y/","push_data":{{"pushed_at":1417566161,"pusher":"x",
                "tag":"latest"}},"repository":{{"name":"x","namespace":"y","repo_name":"{name}","status":"Active"}}}}"#
        )
    };
    for (sender, body, expected) in [
        (Sender::Registry, envelope(&[event("push", "quay.io/a/b", one)]), "quay.io/a/b:1"),
        (
            Sender::Registry,
            envelope(&[
                event("push", "a/b", one),
                event("pull", "a/c", one),
                event("push", "a/d", ""),
                event("push", "a/e", one),
            ]),
            "a/b:1 a/e:1",
        ),
        (Sender::Registry, envelope(&[event("push", "a/b", "")]), "nothing"),
        (Sender::Registry, envelope(&[event("delete", "a/b", one)]), "nothing"),
        (Sender::Registry, envelope(&[event("push", "../../etc", one)]), "nothing"),
        (Sender::Registry, envelope(&[]), "nothing"),
        (Sender::Registry, "{}".to_owned(), "malformed"),
        (Sender::Harbor, harbor("PUSH_ARTIFACT", "event_data", "3"), "library/alpine:3"),
        (Sender::Harbor, harbor("harbor.artifact.pushed", "data", "3"), "library/alpine:3"),
        (Sender::Harbor, harbor("PUSH_ARTIFACT", "event_data", "sha256:00"), "nothing"),
        (Sender::Harbor, harbor("PULL_ARTIFACT", "event_data", "3"), "nothing"),
        (Sender::Harbor, r#"{"type":"QUOTA_EXCEED","event_data":{"custom_attributes":{}}}"#.to_owned(), "nothing"),
        (Sender::Harbor, r#"{"type":"PUSH_ARTIFACT"}"#.to_owned(), "malformed"),
        (
            Sender::Quay,
            quay("quay.io/team/notebook", r#"["latest","v1"]"#),
            "quay.io/team/notebook:latest quay.io/team/notebook:v1",
        ),
        (Sender::Quay, quay("quay.io/team/notebook", r#"{"v1":"fc03"}"#), "quay.io/team/notebook:v1"),
        (Sender::Quay, quay("quay.io/team/notebook", "[]"), "nothing"),
        (Sender::Quay, r#"{"build_id":"x","docker_url":"quay.io/a/b"}"#.to_owned(), "nothing"),
        (Sender::Quay, quay("", r#"["v1"]"#), "malformed"),
        (Sender::DockerHub, hub("svendowideit/testhook"), "docker.io/svendowideit/testhook:latest"),
        (Sender::DockerHub, hub("debian"), "docker.io/library/debian:latest"),
        (Sender::DockerHub, "{}".to_owned(), "malformed"),
        (Sender::DockerHub, "[]".to_owned(), "malformed"),
    ] {
        assert_eq!(said(sender, "", &body), expected, "{sender:?} {body}");
    }
}

#[test]
fn a_claimed_commit_is_only_a_hint() {
    let body = push("refs/heads/main", &COMMIT.to_uppercase());
    let commit = Some(COMMIT.to_owned());
    let expected = Message::News(vec![News::Branch { name: Some("main".to_owned()), commit }]);
    assert_eq!(read(Sender::GitHub, Some("push"), body.as_bytes()), Ok(expected));
    let moved = Moved::new(None, "a/b", "1").unwrap();
    assert_eq!(
        read(Sender::Registry, None, br#"{"events":[{"action":"push","target":{"repository":"a/b","tag":"1"}}]}"#),
        Ok(Message::News(vec![News::Moved(moved)]))
    );
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_sent_is_a_panic(body: Vec<u8>, text in "[{}\\[\\]\":,a-z0-9/]{0,60}", event in "push|package|ping|x") {
        for sender in Sender::ALL {
            let _ = read(sender, Some(&event), &body);
            let _ = read(sender, Some(&event), text.as_bytes());
            let nested = format!(r#"{{"ref":{text:?},"events":[{{"action":"push","target":{{"repository":{text:?},"tag":{text:?}}}}}],
                "object_kind":"push","docker_url":{text:?},"updated_tags":[{text:?}],"push_data":{{"tag":{text:?}}},
                "repository":{{"repo_name":{text:?}}}}}"#);
            let _ = read(sender, Some(&event), nested.as_bytes());
        }
    }
}
