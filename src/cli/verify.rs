//! `larder verify`: whether each change of the lock is a trusted controller's, and leads to what it records.

use std::path::PathBuf;

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat},
    output::table,
    revisions::Range,
};
use crate::{
    config::SourceOptions,
    io::git::Trust,
    model::{
        text::{one_line, plural},
        verification::{Verification, VerifiedCommit},
    },
    pipeline::verify::{Options, verify},
};

/// Verify that every lock change is signed by a trusted controller and reproduces its recorded manifests
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder verify --controllers controllers          the whole history
  larder verify v1.1..main --controllers controllers --people people
  larder verify --repo URL --controllers controllers --output json

The files hold public SSH keys in OpenSSH's allowed signers format: `NAME ssh-ed25519 AAAA…`.
Exit code: 0 when every commit is verified, 1 otherwise.")]
pub struct Verify {
    /// Which commits, along first parents: those after the first revision or time up to the second one; `A` alone is
    /// short for `A..`. Without it all, from the first that records its manifests.
    #[arg(value_name = "REV..REV")]
    range: Option<Range>,
    /// The controllers' public keys.
    #[arg(long, value_name = "FILE")]
    controllers: PathBuf,
    /// Public keys of people who may change the lock as well (reverts, holds); by default none.
    #[arg(long, value_name = "FILE")]
    people: Option<PathBuf>,
    /// The same with OpenPGP public keys. Requires the program gpg.
    #[arg(long, value_name = "FILE")]
    people_keyring: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: AnswerFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl Verify {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let whole = self.range.is_some();
        let (from, to) = self.range.map_or((None, None), |range| (range.from, range.to));
        let has_start = from.is_some();
        let options = Options {
            from,
            to,
            whole,
            controllers: Trust { signers: Some(self.controllers), keyring: None },
            people: Trust { signers: self.people, keyring: self.people_keyring },
        };
        let (repository, _cache) = audit::repository(&self.source)?;
        let answer = verify(&repository, options).await?;
        write(printer, &answer, self.output, has_start);
        Ok(if answer.sound { Exit::Success } else { Exit::Failure })
    }
}

const CSV: [&str; 8] = ["commit", "time", "author", "outcome", "signer", "key", "detail", "subject"];

fn write(printer: &mut Printer, answer: &Verification, output: AnswerFormat, has_start: bool) {
    match output {
        AnswerFormat::Json => return printer.json(answer),
        AnswerFormat::Csv => audit::csv(printer, &CSV, answer.commits.iter().map(csv_row)),
        AnswerFormat::Text => {
            let rows: Vec<_> = answer.commits.iter().map(text_row).collect();
            printer.text(&table(&["COMMIT", "TIME", "OUTCOME", "SIGNED BY", "SUBJECT"], &rows));
        }
    }
    for commit in answer.commits.iter().filter(|commit| !commit.outcome.is_sound()) {
        let detail = one_line(commit.detail.as_deref().unwrap_or_default());
        printer.note(&format!("{}: {}: {detail}", commit.commit.short(), commit.outcome.as_str()));
    }
    let sound = answer.commits.iter().filter(|commit| commit.outcome.is_sound()).count();
    printer.note(&format!("{sound} of {} verified", plural(answer.commits.len(), "lock commit")));
    match (answer.older, answer.commits.is_empty()) {
        (0, true) if has_start => printer.note("no commit in this range changes the lock"),
        (0, true) => printer.note("no lock commits found; give the branch or another range"),
        (0, false) => {}
        (older, true) => {
            let older = plural(older, "lock commit");
            printer.note(&format!("{older} without recorded manifests: created by an earlier larder"));
        }
        (older, false) => {
            let older = plural(older, "older commit");
            printer.note(&format!("{older} from before manifests were recorded; `..HEAD` checks them too"));
        }
    }
    if !answer.complete {
        printer.note("this is a shallow clone: older commits were not checked");
    }
}

fn csv_row(verified: &VerifiedCommit) -> Vec<String> {
    let (name, key) = signer(verified);
    let commit = &verified.commit;
    let detail = verified.detail.clone().unwrap_or_default();
    let outcome = verified.outcome.as_str().to_owned();
    let (id, time, author, subject) =
        (commit.id.clone(), audit::utc_time(commit.time), commit.author.clone(), commit.subject.clone());
    vec![id, time, author, outcome, name, key, detail, subject]
}

fn text_row(verified: &VerifiedCommit) -> Vec<String> {
    let commit = &verified.commit;
    let name = match signer(verified) {
        (name, _) if name.is_empty() => "-".to_owned(),
        (name, _) => one_line(&name).into_owned(),
    };
    vec![
        commit.short().to_owned(),
        audit::local_time(commit.time),
        verified.outcome.as_str().to_owned(),
        name,
        one_line(&commit.subject).into_owned(),
    ]
}

fn signer(verified: &VerifiedCommit) -> (String, String) {
    verified.signed_by.as_ref().map(|signer| (signer.name.clone(), signer.key.clone())).unwrap_or_default()
}
