//! A review as Markdown for a pull request: a summary table, folded diffs, within a forge's limit.
//!
//! Whatever users write goes into code spans or code blocks, where forges see neither markup nor mentions.

mod escape;
#[cfg(test)]
mod tests;

pub use escape::{block, code};
use escape::{html, summary_code};

use super::{EnvironmentChange, Held, ImageChange, Nodes, Pull, Review, text};
use crate::{
    model::{
        lock::LockChange,
        manifest::Owner,
        plan::Action,
        text::{plural, size},
    },
    stages::lock,
};

/// Rows that a table has at most; every row of all environments can be had with `--output text`.
const ROWS: usize = 200;

/// Problems that are shown at most.
const PROBLEMS: usize = 50;

/// The first line of a comment of ours. `key` tells several larders of one repository apart.
pub fn marker(key: &str) -> String {
    let key: String = key.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/')).collect();
    format!("<!-- larder:plan:{key} -->")
}

/// The review, at most `limit` bytes long: sections that do not fit are left out whole, with a note that says so.
pub fn markdown(review: &Review, marker: &str, limit: usize) -> String {
    let title = format!("{marker}\n### larder plan\n\n{}\n", headline(review));
    let mut sections = Vec::new();
    sections.extend(warnings(review));
    sections.extend(environments(review));
    sections.extend(images(review));
    sections.extend(holds(review));
    sections.extend(diffs(review));
    fit(&title, &sections, limit)
}

/// Puts as many sections as fit one after the other. One that is too long does not keep out a shorter one after it.
fn fit(title: &str, sections: &[String], limit: usize) -> String {
    let mut text = title.to_owned();
    let mut left_out = 0;
    let note = |count: usize| {
        let verb = if count == 1 { "section is" } else { "sections are" };
        format!("\n_{count} {verb} left out, because the forge takes no longer comment; `larder plan` shows all._\n")
    };
    let room = limit.saturating_sub(note(sections.len()).len());
    for section in sections {
        if text.len() + section.len() < room {
            text.push('\n');
            text.push_str(section);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        text.push_str(&note(left_out));
    }
    text
}

fn headline(review: &Review) -> String {
    let (from, to) = (code(&review.from), code(&review.to));
    if review.is_empty() && review.is_sound() {
        return format!("{from} → {to}: nothing changes on the nodes.");
    }
    let (environments, images) = (review.environments.len(), review.images.len());
    format!(
        "{from} → {to}: **{}**, **{}**; {}.",
        plural(environments, "environment"),
        plural(images, "image"),
        text::objects(review)
    )
}

fn warnings(review: &Review) -> Vec<String> {
    let mut sections = Vec::new();
    if !review.problems.is_empty() {
        let shown: Vec<String> = review.problems.iter().take(PROBLEMS).map(ToString::to_string).collect();
        let mut text = shown.join("\n");
        if review.problems.len() > PROBLEMS {
            text.push_str(&format!("\nand {} more", review.problems.len() - PROBLEMS));
        }
        let title =
            format!("**{} — what is broken stays as it is on the nodes:**", plural(review.problems.len(), "problem"));
        sections.push(format!("{title}\n\n{}", block("text", &text)));
    }
    if review.former_problems > 0 {
        sections.push(format!("_{}._\n", text::still_there(review.former_problems)));
    }
    if let Some(blocked) = &review.blocked {
        let text = blocked.problem.to_string();
        sections.push(format!(
            "**The removals are not confirmed and would not be carried out:**\n\n{}",
            block("text", &text)
        ));
    }
    if !review.shared.is_empty() {
        let files: Vec<String> = review.shared.iter().map(|file| code(file)).collect();
        sections.push(format!("What concerns all environments changes: {}.\n", files.join(", ")));
    }
    sections
}

fn environments(review: &Review) -> Option<String> {
    let counted = !review.nodes.is_empty();
    let rows = review.environments.iter().map(|change| {
        let mut row = vec![cell(&change.id.to_string()), text::words(change), nodes(change)];
        if counted {
            let count = review.nodes.get(&change.id);
            row.push(count.map_or_else(|| "unknown".to_owned(), ToString::to_string));
        }
        row
    });
    let header = ["Environment", "Change", "For", "Nodes"];
    table(&header[..if counted { 4 } else { 3 }], &rows.collect::<Vec<_>>())
}

fn nodes(change: &EnvironmentChange) -> String {
    match &change.nodes {
        Nodes::Pool(pool) => format!("pool {}", cell(pool)),
        Nodes::All => "all Linux nodes".to_owned(),
        Nodes::Selected => "its own node selection".to_owned(),
        Nodes::Unknown => "unknown".to_owned(),
    }
}

fn holds(review: &Review) -> Option<String> {
    let lines: Vec<String> =
        review.holds.iter().take(ROWS).map(|hold| format!("- {}\n", code(&lock::describe_hold(hold)))).collect();
    (!lines.is_empty()).then(|| format!("**Holds**\n\n{}", lines.concat()))
}

fn images(review: &Review) -> Option<String> {
    let rows = review.images.iter().map(|change| {
        let ImageChange { environment, image, old, new, pull } = change;
        vec![
            cell(&format!("{environment}")),
            cell(image.as_str()),
            held(old.as_ref(), text::NOT_LOCKED),
            held(new.as_ref(), text::unknown_digest(review)),
            pulled(new.as_ref(), pull),
        ]
    });
    table(&["Environment", "Image", "Old", "New", "To pull on each node"], &rows.collect::<Vec<_>>())
}

fn diffs(review: &Review) -> Vec<String> {
    let own = review.objects.iter().map(|object| (&object.owner, object.id.to_string(), object.action, &object.diff));
    let mut sections: Vec<String> = own.map(|(owner, id, action, diff)| folded(owner, &id, action, diff)).collect();
    if let Some(plan) = &review.server {
        let changes: Vec<_> = plan.changes.iter().filter(|change| change.action != Action::Unchanged).collect();
        sections.push(format!(
            "#### The cluster's own dry run\n\n{} differ from the cluster.\n",
            plural(changes.len(), "object")
        ));
        for failure in plan.failures.values() {
            sections.push(block("text", &failure.to_string()));
        }
        sections.extend(
            changes.iter().map(|change| folded(&change.owner, &change.id.to_string(), change.action, &change.diff)),
        );
    }
    sections
}

fn folded(owner: &Owner, id: &str, action: Action, diff: &str) -> String {
    let summary = format!("{}: {} {}", html(&owner.to_string()), verb(action), summary_code(id));
    format!("<details><summary>{summary}</summary>\n\n{}\n</details>\n", block("diff", diff))
}

/// A table, cut after some rows; none without rows.
fn table(header: &[&str], rows: &[Vec<String>]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("| {} |\n| {} |\n", header.join(" | "), vec!["---"; header.len()].join(" | "));
    rows.iter().take(ROWS).for_each(|row| text.push_str(&line(row)));
    if rows.len() > ROWS {
        text.push_str(&format!("\n_and {} more_\n", rows.len() - ROWS));
    }
    Some(text)
}

/// A code span inside a table, where `|` would end the cell even in code.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// `unlocked` is what stands in place of a digest that is not known.
fn held(held: Option<&Held>, unlocked: &str) -> String {
    let Some(Held { reference, digest }) = held else { return "—".to_owned() };
    let digest = digest.as_ref().map_or_else(|| unlocked.to_owned(), |digest| cell(digest.short()));
    format!("{} {digest}", cell(&reference.to_string()))
}

fn pulled(new: Option<&Held>, pull: &[Pull]) -> String {
    match (new, pull) {
        (None, _) => "nothing".to_owned(),
        (Some(Held { digest: None, .. }), _) => "not known yet".to_owned(),
        (Some(_), []) => "nothing".to_owned(),
        (Some(_), [one]) => format!("up to {}", size(one.bytes)),
        (Some(_), many) => {
            let all: Vec<String> =
                many.iter().map(|one| format!("{} {}", cell(&one.platform.to_string()), size(one.bytes))).collect();
            format!("up to {}", all.join(", "))
        }
    }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Configure => "change",
        Action::Delete => "delete",
        Action::Unchanged => "keep",
    }
}

/// The description of a pull request that proposes lock changes. `fingerprint` is part of it, hidden.
pub fn proposal(change: &LockChange, fingerprint: &str, limit: usize) -> String {
    let side = |side: &Option<crate::model::lock::Previous>| {
        side.as_ref().map_or_else(
            || "—".to_owned(),
            |entry| format!("{} {}", cell(&entry.reference.to_string()), cell(entry.digest.short())),
        )
    };
    let rows = lock::images(&change.moves, &change.holds).into_iter().map(|(moved, hold)| {
        let reason = hold.and_then(|hold| hold.reason());
        let held = reason.map_or_else(String::new, |reason| format!(", held: {}", cell(reason)));
        let new = side(&moved.new) + &held;
        vec![cell(&moved.environment.to_string()), cell(moved.image.as_str()), side(&moved.old), new]
    });
    let table = table(&["Environment", "Image", "Old", "New"], &rows.collect::<Vec<_>>());
    let title = format!(
        "{fingerprint}\nlarder proposes these lock changes. Merge to let the nodes pull them; close to leave them out until \
         they change again. larder keeps this branch up to date, so changes of others on it are refused.\n"
    );
    fit(&title, &table.into_iter().collect::<Vec<_>>(), limit)
}
