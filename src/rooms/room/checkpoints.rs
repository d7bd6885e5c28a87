//! At which points the text of a room is worth keeping as a version.
//!
//! A point falls due when the writing rests, when it has gone on for long, and when the writer
//! leaves. Only what is written *here* counts, so of several servers with the document the one
//! with its writer keeps the versions. What is kept is always stored (G7): a point waits until the
//! database is owed nothing.

use tokio::time::Instant;

use crate::domain::ids::{DocumentId, SessionId};
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::rooms::room::{Room, Snapshot, State};
use crate::sessions::options::HistoryTerms;
use crate::sessions::session::{Session, SessionIdentity};

/// Points of one room that may wait to be kept; a writer who comes and goes more often than they
/// are kept is seen less closely.
const READY_MAX: usize = 4;

/// A point of a document that is to be kept as a version.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Of which document.
    pub document: DocumentId,
    /// Why.
    pub kind: VersionKind,
    /// Whose doing it is.
    pub authors: Vec<User>,
    /// The document then, all of it stored.
    pub snapshot: Snapshot,
}

/// What has been written in a room since its last point.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Who wrote last, and in which session.
    writer: Option<(SessionId, User)>,
    /// The first and the last edit since the last point.
    span: Option<(Instant, Instant)>,
    /// The database number of the last point.
    seq: i64,
    ready: Vec<Checkpoint>,
}

impl Room {
    /// The points that are due. Asked again, they are not.
    #[must_use]
    pub fn due_points(&self, terms: &HistoryTerms, now: Instant) -> Vec<Checkpoint> {
        let mut state = self.lock();
        let is_due = state.points.span.is_some_and(|(first, last)| {
            let rests = terms.pause <= now.saturating_duration_since(last);
            rests || terms.longest <= now.saturating_duration_since(first)
        });
        if is_due {
            state.make_point(self.document, VersionKind::Pause);
        }
        std::mem::take(&mut state.points.ready)
    }

    /// The writer has left: what they wrote is a point, however short the rest. True if one
    /// waits to be kept.
    pub fn writer_left(&self, holding: &Session) -> bool {
        let mut state = self.lock();
        let session = holding.identity.session;
        if state.points.writer.as_ref().is_some_and(|(wrote, _)| *wrote == session) {
            state.make_point(self.document, VersionKind::Seat);
        }
        !state.points.ready.is_empty()
    }

    /// The text at number `seq` has been kept; nothing is due before the next edit.
    pub fn point_kept(&self, seq: i64) {
        let mut state = self.lock();
        if state.seq == seq && state.unsaved_bytes == 0 {
            state.points.span = None;
            state.points.seq = seq;
        }
    }
}

impl State {
    /// Called before an edit is taken. The first one of a sitting finds the text as the former
    /// writer left it, on whatever server, and whatever became of that.
    pub(super) fn before_edit(&mut self, identity: &SessionIdentity, now: Instant) {
        let session = identity.session;
        if self.points.writer.as_ref().is_none_or(|(wrote, _)| *wrote != session) {
            self.points.writer = Some((session, identity.user.clone()));
            self.make_point(identity.document, VersionKind::Seat);
        }
        match &mut self.points.span {
            Some((_, last)) => *last = now,
            None => self.points.span = Some((now, now)),
        }
    }

    fn make_point(&mut self, document: DocumentId, kind: VersionKind) {
        if self.takes_no_more() || self.unsaved_bytes != 0 {
            return;
        }
        self.points.span = None;
        if self.seq == self.points.seq || READY_MAX <= self.points.ready.len() {
            return;
        }
        self.points.seq = self.seq;
        let authors = self.points.writer.iter().map(|(_, user)| user.clone()).collect();
        let snapshot = self.snapshot();
        self.points.ready.push(Checkpoint { document, kind, authors, snapshot });
    }
}
