//! A branch of larder's own beside the tracked one: one commit on the tracked tip, rebuilt when that moves.
//!
//! It is the only branch that is ever forced, and only from the very commit that was seen there (force-with-lease), and
//! only while that commit is larder's own.

use gix::{
    ObjectId,
    refs::{
        Target,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};
use gix_transport::Service;

use super::{
    CommitId, Draft, GitError, PushError, Repository, Tip,
    address::Address,
    commit::{self, Made, Signed},
    fetch,
    history::{self, Reach},
    local, pack, push, refs,
    report::Outcome,
    session::{Session, once_more},
    signature,
};

/// The trailer that every commit of larder has.
const OURS: &str = "Larder-Version: ";

/// How far back a side branch's commit is looked for in the tracked branch.
const MERGED: Reach = ("latest", 512);

/// What became of a side branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// It is at this new commit.
    Commit(CommitId),
    /// It was like that already, at this commit.
    Unchanged(CommitId),
    /// The tracked branch has these files already, so there is nothing to propose; the side branch is untouched.
    Nothing,
}

/// What is on a side branch.
struct Existing {
    /// When it was committed, in seconds since 1970.
    seconds: i64,
    /// What its identity would be without a signature.
    unsigned: CommitId,
    /// The key that signed it, if one did.
    key: Option<String>,
}

impl Repository {
    /// Makes `branch` one commit on top of `draft.parent`.
    ///
    /// # Errors
    /// [`PushError::Raced`] when someone else moved it meanwhile; [`PushError::Refused`] when the remote does not want
    /// it, or when it holds a commit that is not larder's.
    pub fn rebuild(&mut self, branch: &str, draft: &Draft<'_>) -> Result<Rebuilt, PushError> {
        let name = self.side(branch)?;
        let old = self.side_tip(&name)?;
        let existing = old.map(|old| self.read_side(&name, old, draft.parent)).transpose()?;
        let make = |repository: &gix::Repository| commit::make(&self.options, repository, &self.path, draft);
        // Some signatures differ each time that they are made.
        let same = |repository: &gix::Repository| -> Result<bool, GitError> {
            let Some(existing) = &existing else { return Ok(false) };
            let draft = Draft { seconds: existing.seconds, ..*draft };
            let made = commit::make_unsigned(&self.options, repository, &self.path, &draft)?;
            Ok(made.is_some_and(|made| made.id == existing.unsigned) && existing.key == self.own_key()?)
        };
        let (made, cache) = match &self.address {
            Address::Local(folder) => {
                let repository = local::open(&self.options, folder)?;
                if let Some(old) = old
                    && same(&repository)?
                {
                    return Ok(Rebuilt::Unchanged(old));
                }
                (make(&repository)?, None)
            }
            _ => {
                let work = |repository: &gix::Repository, _| Ok((same(repository)?, make(repository)?));
                let (cache, (same, made)) = fetch::with_tree(&self.options, &self.address, draft.parent, work)?;
                if let (true, Some(old)) = (same, old) {
                    return Ok(Rebuilt::Unchanged(old));
                }
                (made, Some(cache))
            }
        };
        let Some(made) = made else { return Ok(Rebuilt::Nothing) };
        let pack = self.move_side(&name, old, &made, draft)?;
        if let (Some(cache), Some(pack)) = (cache, pack)
            && pack::store(&cache.repository, &mut pack.as_slice()).is_ok()
        {
            // Only saves the next fetch.
            let _ = cache.add(made.id);
        }
        Ok(Rebuilt::Commit(made.id))
    }

    /// Removes `branch`; whether it was there.
    ///
    /// # Errors
    /// As [`Repository::rebuild`].
    pub fn remove_side(&mut self, branch: &str) -> Result<bool, PushError> {
        let name = self.side(branch)?;
        let Some(old) = self.side_tip(&name)? else { return Ok(false) };
        let Tip::Commit(tracked) = self.tip()? else { return Ok(false) };
        self.read_side(&name, old, tracked)?;
        if let Address::Local(folder) = &self.address {
            let repository = local::open(&self.options, folder)?;
            if !local::needs_git(&repository) {
                let change = Change::Delete {
                    expected: PreviousValue::MustExistAndMatch(Target::Object(old.0)),
                    log: RefLog::AndReference,
                };
                self.edit(&repository, &name, change, None)?;
                return Ok(true);
            }
        }
        self.send_side(&name, Some(old), None, &[])?;
        Ok(true)
    }

    /// The branch in full; never the tracked one.
    fn side(&mut self, branch: &str) -> Result<String, GitError> {
        let name = refs::full_name(branch)?;
        if self.branch.is_none() {
            self.tip()?;
        }
        if self.branch.as_deref() == Some(name.as_str()) {
            return Err(GitError::Branch {
                branch: format!("{branch} (the tracked branch) for the lock to be proposed on"),
            });
        }
        Ok(name)
    }

    fn side_tip(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        Ok(match refs::find(&self.options, &self.address, Some(name))?.tip {
            Tip::Commit(commit) => Some(commit),
            Tip::Empty | Tip::Gone { .. } => None,
        })
    }

    /// The key that signs now, if there is one.
    fn own_key(&self) -> Result<Option<String>, GitError> {
        self.options.signing_key.as_deref().map(signature::own_key).transpose()
    }

    /// A side branch's commit; `tracked` is the tracked branch's.
    ///
    /// # Errors
    /// [`PushError::Refused`] when it is neither larder's nor in the tracked branch: it would be lost.
    fn read_side(&self, name: &str, tip: CommitId, tracked: CommitId) -> Result<Existing, PushError> {
        let read = |repository: &gix::Repository| {
            let corrupt = |error: gix::Error| local::corrupt(&self.options, &error);
            let commit = repository.find_commit(tip.0).map_err(corrupt)?;
            let message = commit.message_raw().map_err(corrupt)?.to_string();
            let ours = message.lines().any(|line| line.starts_with(OURS));
            let (unsigned, key) = signature::without(&commit.data).unwrap_or((commit.id, None));
            let seconds = commit.time().map_err(corrupt)?.seconds;
            Ok((ours, Existing { seconds, unsigned: CommitId(unsigned), key }))
        };
        let (ours, existing) = match &self.address {
            Address::Local(folder) => read(&local::open(&self.options, folder)?)?,
            _ => fetch::with_tree(&self.options, &self.address, tip, |repository, _| read(repository))?.1,
        };
        // What was merged is in the tracked branch: nothing is lost.
        if ours || history::contains(&self.options, &self.address, tracked, tip, MERGED)? {
            return Ok(existing);
        }
        Err(PushError::Refused {
            branch: refs::short(name),
            message: format!(
                "its tip {tip} was not made by larder, and would be lost; remove the branch or name another"
            ),
        })
    }

    /// Moves the branch; the pack that was sent, if one was.
    fn move_side(
        &self,
        name: &str,
        old: Option<CommitId>,
        made: &Made,
        draft: &Draft<'_>,
    ) -> Result<Option<Vec<u8>>, PushError> {
        if let Address::Local(folder) = &self.address {
            let repository = local::open(&self.options, folder)?;
            if !local::needs_git(&repository) {
                local::write(&repository, &made.objects)?;
                let expected = old
                    .map_or(PreviousValue::MustNotExist, |old| PreviousValue::MustExistAndMatch(Target::Object(old.0)));
                let log = LogChange { mode: RefLog::AndReference, force_create_reflog: false, message: "push".into() };
                let change = Change::Update { log, expected, new: Target::Object(made.id.0) };
                self.edit(&repository, name, change, Some(&Signed::new(&self.options.committer, draft)))?;
                return Ok(None);
            }
        }
        let pack = pack::encode(&made.objects)?;
        once_more(&self.options, &self.address, || self.send_side(name, old, Some(made.id), &pack))?;
        Ok(Some(pack))
    }

    fn edit(
        &self,
        repository: &gix::Repository,
        name: &str,
        change: Change,
        committer: Option<&Signed>,
    ) -> Result<(), PushError> {
        let full = gix::refs::FullName::try_from(name).map_err(|_| GitError::Branch { branch: name.to_owned() })?;
        let edit = RefEdit { change, name: full, deref: false };
        let nobody = super::Identity { name: "larder".into(), email: "larder@localhost".into() };
        let fallback = Signed::at(&nobody, 0);
        repository
            .edit_references_as([edit], Some(committer.unwrap_or(&fallback).as_ref()))
            .map(drop)
            .map_err(|error| PushError::Raced { branch: refs::short(name), detail: local::text(&error) })
    }

    /// One command `old new name` and its pack (none for a removal), and the remote's report.
    fn send_side(
        &self,
        name: &str,
        old: Option<CommitId>,
        new: Option<CommitId>,
        pack: &[u8],
    ) -> Result<(), PushError> {
        let zero = CommitId(ObjectId::null(gix_hash::Kind::Sha1));
        let mut session = Session::open(&self.options, &self.address, Service::ReceivePack)?;
        let advertised = session.advertised().unwrap_or_default().iter().find(|one| one.unpack().0 == name);
        let at = advertised.and_then(|one| one.unpack().1).map(|id| CommitId(id.to_owned()));
        let raced = |detail: String| PushError::Raced { branch: refs::short(name), detail };
        if at != old {
            return Err(raced("someone else moved it".to_owned()));
        }
        match push::talk(&mut session, name, (old.unwrap_or(zero), new.unwrap_or(zero)), pack) {
            Ok((Outcome::Rejected(reason), words)) => {
                let (reason, words) = (session.clean(&reason), session.clean(&words));
                session.close();
                let text = if words.is_empty() { reason.clone() } else { format!("{words}\n({reason})") };
                if super::report::is_race(&text) {
                    return Err(raced(reason));
                }
                Err(PushError::Refused { branch: refs::short(name), message: text })
            }
            // Only the branch itself tells.
            Ok((Outcome::Moved | Outcome::Unknown, _)) => {
                session.close();
                if self.side_tip(name)? == new { Ok(()) } else { Err(raced("it did not move".to_owned())) }
            }
            Err(error) => Err(session.fail(&error).into()),
        }
    }
}
