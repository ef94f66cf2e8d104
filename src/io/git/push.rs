//! Pushing a lock commit: one command `old new refs/heads/<branch>`, a pack, and the remote's report.

use std::{
    cell::RefCell,
    io::{Read as _, Write as _},
    ops::ControlFlow,
    rc::Rc,
};

use gix_transport::{
    Service,
    client::{MessageKind, WriteMode},
    packetline::blocking_io::encode,
};

use super::{
    CommitId, Draft, GitError, Options, PushError, Pushed, Tip,
    address::Address,
    commit,
    commit::{Made, Signed},
    fetch, local, pack, refs,
    report::{self, Outcome},
    session::{AGENT, Session, once_more},
    signature,
};

/// Makes the commit and moves the branch.
pub(super) fn commit_and_push(
    options: &Options,
    address: &Address,
    path: &[String],
    branch: &str,
    draft: &Draft<'_>,
) -> Result<Pushed, PushError> {
    signature::own(options, draft.seconds)?;
    let Address::Local(folder) = address else {
        let make = |repository: &gix::Repository, _| commit::make(options, repository, path, draft);
        let (cache, made) = fetch::with_tree(options, address, draft.parent, make)?;
        let Some(made) = made else {
            return Ok(Pushed::Nothing);
        };
        let pack = pack::encode(&made.objects)?;
        once_more(options, address, || send(options, address, branch, draft.parent, &made, &pack))?;
        // The commit is the branch's tip now; that it is in the cache too only saves the next fetch.
        if pack::store(&cache.repository, &mut pack.as_slice()).is_ok() {
            let _ = cache.add(made.id);
        }
        return Ok(Pushed::Commit(made.id));
    };
    let repository = local::open(options, folder)?;
    if !repository.has_object(draft.parent.0) {
        return Err(GitError::CommitGone { remote: options.remote(), commit: draft.parent }.into());
    }
    let Some(made) = commit::make(options, &repository, path, draft)? else {
        return Ok(Pushed::Nothing);
    };
    if local::needs_git(&repository) {
        let pack = pack::encode(&made.objects)?;
        send(options, address, branch, draft.parent, &made, &pack)?;
    } else {
        local::write(&repository, &made.objects)?;
        let committer = Signed::new(&options.committer, draft);
        local::swap(options, &repository, branch, (draft.parent, made.id), committer.as_ref())?;
    }
    Ok(Pushed::Commit(made.id))
}

/// Sends the commit and makes sure that the branch took it.
fn send(
    options: &Options,
    address: &Address,
    branch: &str,
    parent: CommitId,
    made: &Made,
    pack: &[u8],
) -> Result<(), PushError> {
    let mut session = Session::open(options, address, Service::ReceivePack)?;
    let advertised = session.advertised().unwrap_or_default().iter().find(|one| one.unpack().0 == branch);
    let at = advertised.and_then(|one| one.unpack().1).map(|id| CommitId(id.to_owned()));
    if at != Some(parent) {
        return Err(raced(branch, parent, at));
    }
    let answer = talk(&mut session, branch, (parent, made.id), pack);
    let (reason, words) = match answer {
        Ok((Outcome::Moved, words)) => {
            session.close();
            return confirm(options, address, branch, (parent, made.id), &words);
        }
        Ok((Outcome::Rejected(reason), words)) => (session.clean(&reason), session.clean(&words)),
        // The line went dead, or the remote said nothing of the branch: only the branch itself tells.
        Ok((Outcome::Unknown, words)) => {
            session.close();
            return confirm(options, address, branch, (parent, made.id), &words);
        }
        Err(error) => {
            let error = session.fail(&error);
            return match refs::find(options, address, Some(branch)) {
                Ok(found) if found.tip == Tip::Commit(made.id) => Ok(()),
                _ => Err(error.into()),
            };
        }
    };
    session.close();
    let text = if words.is_empty() { reason.clone() } else { format!("{words}\n({reason})") };
    if report::is_race(&text) {
        return Err(PushError::Raced { branch: refs::short(branch), detail: reason });
    }
    if !report::is_declined(&text)
        && let Ok(found) = refs::find(options, address, Some(branch))
        && found.tip != Tip::Commit(parent)
    {
        return Err(PushError::Raced { branch: refs::short(branch), detail: reason });
    }
    let (branch, place) = (refs::short(branch), options.remote());
    Err(match () {
        () if reason.contains("branch is currently checked out") => PushError::CheckedOut { branch, place },
        () if reason.contains("Working directory has") => PushError::Uncommitted { branch, place, detail: reason },
        () => PushError::Refused { branch, message: text },
    })
}

fn raced(branch: &str, parent: CommitId, at: Option<CommitId>) -> PushError {
    let now = at.map_or_else(|| "is not there any more".to_owned(), |id| format!("is at {id}"));
    PushError::Raced { branch: refs::short(branch), detail: format!("it {now}, not at {parent}") }
}

/// Sends command and pack, and reads the report and what the remote says beside it.
pub(super) fn talk(
    session: &mut Session,
    branch: &str,
    (old, new): (CommitId, CommitId),
    pack: &[u8],
) -> Result<(Outcome, String), gix_transport::client::Error> {
    let can = |name: &str| session.handshake.capabilities.contains(name);
    let mut capabilities = String::new();
    for name in ["report-status", "side-band-64k", "object-format"] {
        if can(name) {
            capabilities.push(' ');
            capabilities.push_str(if name == "object-format" { "object-format=sha1" } else { name });
        }
    }
    if can("agent") {
        capabilities.push_str(" agent=");
        capabilities.push_str(AGENT);
    }
    let (reports, sideband) = (can("report-status"), can("side-band-64k"));
    let mut request = Vec::new();
    let command = format!("{old} {new} {branch}\0{capabilities}");
    encode::data_to_write(command.as_bytes(), &mut request)?;
    encode::flush_to_write(&mut request)?;
    request.extend_from_slice(pack);
    // Text mode lets HTTP send a length instead of chunks, which not every server takes; all is encoded here already.
    let writer = session.transport.request(WriteMode::OneLfTerminatedLinePerWriteCall, MessageKind::Flush, false)?;
    let (mut raw, mut reader) = writer.into_parts();
    raw.write_all(&request)?;
    raw.flush()?;
    drop(raw);
    if !reports {
        return Ok((Outcome::Unknown, String::new()));
    }
    let words = Rc::new(RefCell::new(Vec::new()));
    let outcome = if sideband {
        let mut data = Vec::new();
        let said = Rc::clone(&words);
        reader.set_progress_handler(Some(Box::new(move |_, text: &[u8]| {
            let mut said = said.borrow_mut();
            let room = MAX_WORDS.saturating_sub(said.len());
            said.extend_from_slice(&text[..text.len().min(room)]);
            // The line end was taken off each packet.
            if !text.ends_with(b"\n") {
                said.push(b'\n');
            }
            ControlFlow::Continue(())
        })));
        let read = reader.by_ref().take(MAX_REPORT).read_to_end(&mut data);
        drop(reader);
        let outcome = report::parse(&report::lines(&data), branch);
        // A report that has come is worth more than how the line ended.
        if outcome == Outcome::Unknown {
            read?;
        }
        outcome
    } else {
        let mut lines = Vec::new();
        let mut line = String::new();
        while reader.readline_str(&mut line)? > 0 && lines.len() < 16 {
            lines.push(std::mem::take(&mut line));
        }
        report::parse(&lines, branch)
    };
    let words = String::from_utf8_lossy(&words.borrow()).into_owned();
    Ok((outcome, words))
}

/// The most bytes of a report and of the words beside it.
const MAX_REPORT: u64 = 64 * 1024;
const MAX_WORDS: usize = 16 * 1024;

/// Looks whether the branch really is where the report says.
fn confirm(
    options: &Options,
    address: &Address,
    branch: &str,
    (parent, commit): (CommitId, CommitId),
    words: &str,
) -> Result<(), PushError> {
    let refused = |message: String| PushError::Refused { branch: refs::short(branch), message };
    match refs::find(options, address, Some(branch))?.tip {
        Tip::Commit(tip) if tip == commit => Ok(()),
        Tip::Commit(tip) if tip == parent => {
            let words = super::redact::Redactor::default().clean(words);
            Err(refused(format!("the remote took the commit, but the branch is still at {parent} {words}")))
        }
        Tip::Commit(tip) => descends(options, address, branch, tip, commit),
        Tip::Empty | Tip::Gone { .. } => Err(refused("the branch vanished right after the push".into())),
    }
}

/// Whether a newer tip has our commit among its latest ancestors.
fn descends(
    options: &Options,
    address: &Address,
    branch: &str,
    tip: CommitId,
    commit: CommitId,
) -> Result<(), PushError> {
    if super::history::contains(options, address, tip, commit, super::history::LATEST)? {
        return Ok(());
    }
    Err(raced(branch, commit, Some(tip)))
}
