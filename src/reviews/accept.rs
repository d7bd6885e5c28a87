//! Acceptance of a suggestion: the server edits the text.
//!
//! The server makes the edit under a Yjs client id of its own. One transaction commits the edit and
//! the new status, if the text of the edit is still the last stored one. Otherwise the server makes
//! the edit again for the new text.

use bytes::Bytes;
use chrono::Utc;

use crate::domain::anchor::{AnchorState, TextRange};
use crate::domain::ids::ReviewId;
use crate::domain::review::Review;
use crate::domain::seat::Role;
use crate::domain::version_policy::VersionKind;
use crate::reviews::error::done;
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::RoomError;
use crate::rooms::room::{Checkpoint, Snapshot};
use crate::rooms::server_edit::{TRIES, is_too_large};
use crate::seats::SeatError;
use crate::storage::links::ShareLink;
use crate::storage::log::Append;
use crate::storage::reviews::StoredReview;
use crate::storage::seats::{FenceGuard, Guarded};
use crate::yjs::log::{UpdateLog, server_client_id};
use crate::yjs::text::Text;

impl Reviews {
    /// Accepts `stored`: replaces its quote by its suggestion, if the text still contains the
    /// quote.
    pub(crate) async fn accept(
        &self,
        link: &ShareLink,
        stored: &StoredReview,
        expected: i64,
        guard: FenceGuard,
    ) -> Result<Review, ReviewError> {
        let shared = &self.sessions.shared;
        for _ in 0..TRIES {
            let document = link.document_id;
            let Some(snapshot) = self.sessions.shared.rooms.durable_snapshot(document).await?
            else {
                continue;
            };
            let review = stored.clone();
            let before = snapshot.clone();
            let (merged, seq) = (snapshot.merged.clone(), snapshot.seq);
            let limit = shared.limits.document_bytes;
            let look = move |text: &Text| replacement(text, merged, &review, limit);
            let edit = shared.rooms.read_text(document, snapshot, look).await??;
            let append = Append {
                document: link.document_id,
                guard: Some(guard),
                update: edit.update.clone(),
                clients: vec![edit.client],
                user: None,
                expected_seq: Some(seq),
                after: 0,
                now: Utc::now(),
            };
            let id = stored.id;
            let accepting = self.clone().commit(link.clone(), (id, expected), append, before);
            match self.sessions.complete(accepting).await? {
                Some(accepted) => return Ok(accepted),
                None => self.sessions.shared.rooms.read_on(document).await,
            }
        }
        Err(ReviewError::Contended)
    }

    /// Commits the edit with the new status, and delivers both. `None`: the text has changed since
    /// the server made the edit.
    async fn commit(
        self,
        link: ShareLink,
        (id, expected): (ReviewId, i64),
        edit: Append,
        before: Snapshot,
    ) -> Result<Option<Review>, ReviewError> {
        let guard = edit.guard.ok_or(ReviewError::SeatNotHeld(Role::Writer))?;
        let storage = &self.sessions.shared.storage;
        let accepted =
            storage.accept_review(link.id, id, Some(expected), &edit, Utc::now()).await?;
        if matches!(accepted, Guarded::Stale) {
            return Ok(None);
        }
        let (accepted, seq) = done(accepted, guard)?;
        let (document, update) = (link.document_id, edit.update);
        self.sessions.shared.rooms.show_edit(document, guard.fence, seq, update.clone()).await;
        self.keep_decision(&link, &accepted, before, Some((seq, update))).await;
        Ok(Some(self.updated(&link, guard.seat, accepted).await))
    }

    /// Stores a version of the text in which the writer rejected a suggestion.
    pub(crate) async fn keep_rejection(&self, link: &ShareLink, rejected: &StoredReview) {
        // During an edit there is no settled text; the version of the next pause contains it.
        if let Ok(Some(text)) = self.sessions.shared.rooms.durable_snapshot(link.document_id).await
        {
            self.keep_decision(link, rejected, text, None).await;
        }
    }

    /// Stores a version of the text before a decision and of the text after it. A failure costs the
    /// versions and not the edit.
    pub(crate) async fn keep_decision(
        &self,
        link: &ShareLink,
        decided: &StoredReview,
        before: Snapshot,
        edit: Option<(i64, Bytes)>,
    ) {
        let document = link.document_id;
        let writer = link.writer.clone();
        let both = vec![writer.clone(), decided.author.clone()];
        let point = |kind, authors, snapshot| Checkpoint { document, kind, authors, snapshot };
        // The task that builds the texts acquires a permit for each. The permit of this snapshot is
        // released first, so that the task never waits for it.
        let mut before = before;
        before.permit = None;
        let Some((seq, update)) = edit else {
            self.sessions
                .shared
                .history
                .record(vec![point(VersionKind::Decision, both, before)])
                .await;
            return;
        };
        let parts = vec![before.merged.clone(), update];
        let mut points = vec![point(VersionKind::Pause, vec![writer], before.clone())];
        if let Ok(mut log) = UpdateLog::open(parts) {
            let after = Snapshot { merged: log.merged(), seq, ..before };
            points.push(point(VersionKind::Decision, both, after));
        }
        self.sessions.shared.history.record(points).await;
        self.sessions.shared.rooms.version_stored(document, seq);
    }
}

struct Replacement {
    client: u64,
    update: Bytes,
}

/// The edit that replaces the quote by the suggestion.
fn replacement(
    text: &Text,
    merged: Bytes,
    review: &StoredReview,
    limit: usize,
) -> Result<Replacement, ReviewError> {
    let anchor = text.resolve(&review.origin, &review.current).anchor;
    match anchor.state {
        AnchorState::Exact | AnchorState::Moved => {}
        AnchorState::Edited | AnchorState::Orphaned => return Err(ReviewError::AnchorMoved),
    }
    let range = TextRange { start: anchor.start, end: anchor.end };
    let mut log =
        UpdateLog::open(vec![merged]).map_err(|_| SeatError::Room(RoomError::Unreadable))?;
    let client = server_client_id(&log);
    let with = review.suggestion.as_deref().unwrap_or_default();
    let update = text.replace(range, with, client).map_err(|error| {
        tracing::error!(?error, review = %review.id, "a suggestion cannot be put into the text");
        ReviewError::AnchorMoved
    })?;
    if is_too_large(&mut log, &update, limit) {
        return Err(ReviewError::TooLarge);
    }
    Ok(Replacement { client, update })
}
