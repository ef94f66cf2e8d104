//! Commits and clones of which not all can be read: what Git reads is read, and what is missing is said.

use std::{
    fs,
    io::Write as _,
    process::{Output, Stdio},
};

use super::{
    columns,
    generate::{command, git},
    odd::{PATH, Work, digest, lockfile},
    rows, run,
};

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Puts a commit with these headers, and this after them, onto `main`.
fn commit_raw(work: &Work, word: &str, headers: &[u8]) -> String {
    fs::create_dir_all(work.path().join(PATH).parent().unwrap()).unwrap();
    fs::write(work.path().join(PATH), lockfile(word)).unwrap();
    git(work.path(), &["add", "-A"]);
    let tree = git(work.path(), &["write-tree"]);
    let parent = command(work.path()).args(["rev-parse", "--verify", "--quiet", "HEAD"]).output().unwrap();
    let parent = String::from_utf8(parent.stdout).unwrap();
    let parent = if parent.is_empty() { String::new() } else { format!("parent {}\n", parent.trim()) };
    let mut hash = command(work.path());
    hash.args(["hash-object", "-t", "commit", "-w", "--stdin", "--literally"]);
    let mut child = hash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let data = [format!("tree {}\n{parent}", tree.trim()).as_bytes(), headers].concat();
    child.stdin.take().unwrap().write_all(&data).unwrap();
    let id = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned();
    git(work.path(), &["update-ref", "refs/heads/main", &id]);
    id
}

#[test]
fn a_commit_with_a_broken_person_or_an_early_end_counts_as_in_git() {
    let work = Work::new();
    let broken = commit_raw(
        &work,
        "one",
        b"author Ada <ada\n@example.org> 1700000000 +0000\ncommitter Ada <ada@example.org> 1700000000 +0000\n\none\n",
    );
    let early = commit_raw(
        &work,
        "two",
        b"author Ada <ada@example.org> 1700000001 +0000\ncommitter Ada <ada@example.org> 1700000001 +0000\n",
    );
    let history = rows(work.path(), &["history"]);
    assert_eq!(
        columns(&history, &["commit", "author", "subject", "new_digest"]),
        [format!("{early} Ada <ada@example.org>  {}", digest("two")), format!("{broken}  one {}", digest("one")),]
    );
    let spans = rows(work.path(), &["who-ran", &digest("one")]);
    assert_eq!(columns(&spans, &["from_commit", "to_commit"]), [format!("{broken} {early}")]);
    assert_eq!(columns(&rows(work.path(), &["blame", "research/geo"]), &["commit"]), [early]);
    let text = run(work.path(), &["history"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("(unknown author)"));
}

#[test]
fn names_are_read_in_the_encoding_of_their_commit() {
    let work = Work::new();
    commit_raw(
        &work,
        "one",
        b"author J\xfcrgen <j@x> 1700000000 +0000\ncommitter J\xfcrgen <j@x> 1700000000 +0000\nencoding ISO-8859-1\n\n\xfc\n",
    );
    let person = git(work.path(), &["log", "-1", "--format=%an <%ae> %s"]);
    let found = rows(work.path(), &["history", "--author", "jürgen"]);
    assert_eq!(columns(&found, &["author", "subject"]), [person.trim()]);
    assert_eq!(person.trim(), "Jürgen <j@x> ü");
}

fn clone(work: &Work, arguments: &[&str]) -> (tempfile::TempDir, std::path::PathBuf) {
    git(work.path(), &["config", "uploadpack.allowFilter", "true"]);
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", work.path().display());
    let arguments = [&["clone", "--quiet", "--bare"], arguments, &[&url, "clone.git"]].concat();
    git(clone.path(), &arguments);
    let path = clone.path().join("clone.git");
    (clone, path)
}

#[test]
fn a_partial_clone_says_that_it_is_one_and_how_to_complete_it() {
    let work = Work::new();
    for word in ["one", "two"] {
        work.commit(&lockfile(word), word);
    }
    for filter in ["--filter=blob:none", "--filter=tree:0"] {
        let (_folder, partial) = clone(&work, &[filter]);
        let output = run(&partial, &["history"]);
        let said = error(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("is a partial clone") && said.contains("git fetch --refetch --no-filter"), "{said}");
        git(&partial, &["fetch", "--quiet", "--refetch", "--no-filter", "origin", "main:main"]);
        assert_eq!(rows(&partial, &["history"]).len(), 2);
    }
}

#[test]
fn one_platform_is_found_in_a_history_that_begins_after_it() {
    let work = Work::new();
    work.commit(&lockfile("one"), "one");
    fs::write(work.path().join("larder.yaml"), "x\n").unwrap();
    git(work.path(), &["add", "-A"]);
    git(work.path(), &["commit", "--quiet", "-m", "no lock"]);
    let (_folder, shallow) = clone(&work, &["--depth", "1"]);
    let spans = rows(&shallow, &["who-ran", &digest("one amd64")]);
    assert_eq!(columns(&spans, &["from_commit", "platform", "to_commit"]), [" linux/amd64 "]);
}

#[test]
fn a_lockfile_after_a_broken_one_is_compared_with_the_one_before() {
    let work = Work::new();
    let one = work.commit(&lockfile("one"), "one");
    let broken = work.commit("<<<<<<< ours\n", "broken");
    let two = work.commit(&lockfile("two"), "two");
    for filter in [&[][..], &["--limit", "1"], &["--since", "2001-01-01"], &["--author", "ada"]] {
        let output = run(work.path(), &[&["history", "--output", "csv"], filter].concat());
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with(&two), "{filter:?} {text}");
        assert!(line.contains(&format!("{},quay.io/x/a:1,{}", digest("one"), digest("two"))), "{filter:?} {text}");
        let said = error(&output);
        assert!(said.contains(&broken[..12]) && !said.contains(&two[..12]), "{filter:?} {said}");
        assert!(text.contains(&one) != (filter == ["--limit", "1"]), "{filter:?} {text}");
    }
}

#[test]
fn a_checkout_without_a_branch_is_asked_like_any_other() {
    let work = Work::new();
    let one = work.commit(&lockfile("one"), "one");
    work.commit(&lockfile("two"), "two");
    git(work.path(), &["checkout", "--quiet", "--detach", "HEAD~1"]);
    assert_eq!(columns(&rows(work.path(), &["at", "HEAD"]), &["digest"]), [digest("one")]);
    assert_eq!(columns(&rows(work.path(), &["at", "main"]), &["digest"]), [digest("two")]);
    assert_eq!(columns(&rows(work.path(), &["history"]), &["commit"]), [one]);
    assert_eq!(rows(work.path(), &["history", "--branch", "main"]).len(), 2);
}

#[test]
fn a_name_that_never_was_is_refused_with_the_one_that_was_meant() {
    let work = Work::new();
    work.commit(&lockfile("one"), "one");
    for arguments in [&["history", "research/goe"][..], &["blame", "research/goe"], &["at", "HEAD", "research/goe"]] {
        let output = run(work.path(), arguments);
        let said = error(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?} {said}");
        assert!(said.contains("did you mean research/geo?"), "{arguments:?} {said}");
    }
    assert_eq!(rows(work.path(), &["at", "HEAD", "research/geo"]).len(), 1);
    // What is gone was there, and what is still to be locked is there.
    work.commit("", "gone");
    let file = work.path().join("environments/research/new.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "kind: Environment\n").unwrap();
    git(work.path(), &["add", "-A"]);
    git(work.path(), &["commit", "--quiet", "-m", "new"]);
    assert_eq!(rows(work.path(), &["history", "research/geo"]).len(), 2);
    assert_eq!(rows(work.path(), &["history", "research/new"]), []);
}

#[test]
fn two_revisions_are_written_as_in_git() {
    let work = Work::new();
    for word in ["one", "two", "three"] {
        work.commit(&lockfile(word), word);
    }
    let moved = |arguments: &[&str]| {
        columns(&rows(work.path(), &[&["diff"], arguments].concat()), &["old_digest", "new_digest"])
    };
    let whole = [format!("{} {}", digest("one"), digest("three"))];
    for arguments in [&["HEAD~2", "HEAD"][..], &["HEAD~2..HEAD"], &["HEAD~2"], &["HEAD~2.."], &["main~2..main"]] {
        assert_eq!(moved(arguments), whole, "{arguments:?}");
    }
    for arguments in [&["..HEAD"][..], &["HEAD~2..HEAD", "HEAD"], &["HEAD~2...HEAD"], &["last monday"]] {
        let output = run(work.path(), &[&["diff"], arguments].concat());
        assert!(!output.status.success(), "{arguments:?}");
    }
    let said = error(&run(work.path(), &["at", "nowhere"]));
    assert!(said.contains("`nowhere`") && said.contains("2 days ago"), "{said}");
    git(work.path(), &["commit-graph", "write", "--reachable"]);
    let said = error(&run(work.path(), &["at", "1960-01-01"]));
    assert!(said.contains("does not go back that far"), "{said}");
}
