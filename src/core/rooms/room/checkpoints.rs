//! Checkpoints of a room: the moments at which a version of its text is due.
//!
//! A checkpoint is due after a pause in the edits, after a long span of edits, and when the writer
//! leaves. Only edits of this server's writer count. Of several servers with the document, the one
//! with its writer therefore records the versions. A version holds durable text only (G7), so a
//! checkpoint waits until no update of the room is pending.

use tokio::time::Instant;

use crate::domain::ids::{DocumentId, SessionId};
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::rooms::room::{Room, RoomState};
use crate::rooms::snapshot::Snapshot;
use crate::sessions::options::HistoryTerms;
use crate::sessions::session::{Session, SessionIdentity};

/// Checkpoints of one room that may wait for the version recorder. The room drops further ones. The
/// cost: a writer that reconnects faster than the recorder stores leaves fewer versions.
const READY_MAX: usize = 4;

#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub document: DocumentId,
    pub kind: VersionKind,
    /// The users that edited since the last checkpoint.
    pub authors: Vec<User>,
    /// The document at that moment, all of it durable.
    pub snapshot: Snapshot,
}

#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    writer: Option<(SessionId, User)>,
    /// The times of the first and the last edit since the last checkpoint.
    span: Option<(Instant, Instant)>,
    /// The database number of the last checkpoint.
    seq: i64,
    ready: Vec<Checkpoint>,
}

impl Room {
    /// Drains the checkpoints that are due: a second call returns none of them.
    #[must_use]
    pub fn due_checkpoints(&self, terms: &HistoryTerms, now: Instant) -> Vec<Checkpoint> {
        let mut state = self.lock();
        let is_due = state.checkpoints.span.is_some_and(|(first, last)| {
            let rests = terms.pause <= now.saturating_duration_since(last);
            rests || terms.longest <= now.saturating_duration_since(first)
        });
        if is_due {
            state.make_checkpoint(self.document, VersionKind::Pause);
        }
        std::mem::take(&mut state.checkpoints.ready)
    }

    /// The writer left: its edits make a checkpoint without a pause. True if a checkpoint waits for the
    /// version recorder.
    pub fn writer_left(&self, session: &Session) -> bool {
        let mut state = self.lock();
        let session_id = session.identity.session;
        if state.checkpoints.writer.as_ref().is_some_and(|(wrote, _)| *wrote == session_id) {
            state.make_checkpoint(self.document, VersionKind::Seat);
        }
        !state.checkpoints.ready.is_empty()
    }

    /// The database has a version of the text at number `seq`. The next checkpoint needs an edit.
    pub fn version_stored(&self, seq: i64) {
        let mut state = self.lock();
        if state.seq == seq && state.durability.is_saved() {
            state.checkpoints.span = None;
            state.checkpoints.seq = seq;
        }
    }
}

impl RoomState {
    /// The room calls this before it appends an edit. The first edit of a session makes a checkpoint of
    /// the text that the previous writer left. That writer's server may have recorded none.
    pub(super) fn before_edit(&mut self, identity: &SessionIdentity, now: Instant) {
        let session = identity.session;
        if self.checkpoints.writer.as_ref().is_none_or(|(wrote, _)| *wrote != session) {
            self.checkpoints.writer = Some((session, identity.user.clone()));
            self.make_checkpoint(identity.document, VersionKind::Seat);
        }
        match &mut self.checkpoints.span {
            Some((_, last)) => *last = now,
            None => self.checkpoints.span = Some((now, now)),
        }
    }

    fn make_checkpoint(&mut self, document: DocumentId, kind: VersionKind) {
        if self.integrity.takes_no_more() || !self.durability.is_saved() {
            return;
        }
        self.checkpoints.span = None;
        if self.seq == self.checkpoints.seq || self.checkpoints.ready.len() >= READY_MAX {
            return;
        }
        self.checkpoints.seq = self.seq;
        let authors = self.checkpoints.writer.iter().map(|(_, user)| user.clone()).collect();
        let snapshot = self.snapshot();
        self.checkpoints.ready.push(Checkpoint { document, kind, authors, snapshot });
    }
}
