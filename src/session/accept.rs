//! Putting a suggestion into the text.
//!
//! The edit is made by the server, under a Yjs client id of its own, and stored in the same
//! transaction as the new status, on the condition that the text it was made for is still the
//! last one stored. Otherwise it is made again for the new text.

use bytes::Bytes;
use chrono::Utc;

use crate::domain::anchor::{AnchorState, TextRange};
use crate::domain::limits::SETTLE_PATIENCE;
use crate::relay::{Message, Topic};
use crate::session::SessionError;
use crate::session::reviews::{ReviewError, Reviews, done};
use crate::storage::links::ShareLink;
use crate::storage::log::Append;
use crate::storage::reviews::StoredReview;
use crate::storage::seats::{Guard, Guarded};
use crate::sync::log::{UpdateLog, server_client_id};
use crate::sync::text::Text;

/// Tries before a text that never rests is given up on.
const TRIES: usize = 8;

impl Reviews {
    /// Accepts `stored`: replaces its quote by its suggestion, where the quote still stands.
    pub(super) async fn accept(
        &self,
        link: &ShareLink,
        stored: &StoredReview,
        expected: Option<i64>,
        guard: Guard,
    ) -> Result<StoredReview, ReviewError> {
        let shared = &self.sessions.shared;
        for _ in 0..TRIES {
            let snapshot = self.sessions.shared.rooms.snapshot(link.document_id).await?;
            if !snapshot.is_settled {
                drop(snapshot);
                self.wait_until_stored(link).await;
                continue;
            }
            let review = stored.clone();
            let (merged, seq) = (snapshot.merged.clone(), snapshot.seq);
            let edit = self
                .sessions
                .shared
                .rooms
                .read_text(snapshot, move |text| replacement(text, merged, &review))
                .await??;
            let append = Append {
                document: link.document_id,
                guard: Some(guard),
                update: edit.update.clone(),
                clients: vec![edit.client],
                user: None,
                expected_seq: Some(seq),
                now: Utc::now(),
            };
            let expected = expected.or(Some(stored.version));
            let accepted =
                shared.storage.accept_review(link.id, stored.id, expected, &append, Utc::now());
            match accepted.await? {
                Guarded::Stale => self.read_on(link).await,
                other => {
                    let (accepted, seq) = done(other, guard)?;
                    self.show(link, guard, seq, edit.update).await;
                    return Ok(accepted);
                }
            }
        }
        Err(ReviewError::Contended)
    }

    /// Shows a stored edit to everybody who looks at the document.
    async fn show(&self, link: &ShareLink, guard: Guard, seq: i64, update: Bytes) {
        let shared = &self.sessions.shared;
        if let Some(room) = shared.rooms.find(link.document_id) {
            room.take_stored(seq, &update);
        }
        let message = Message::Update { seq, fence: guard.fence, update };
        if let Err(error) = shared.relay.publish(Topic::Room(link.document_id), &message).await {
            tracing::debug!(%error, "the other servers will read the edit from the database");
        }
    }

    /// Another server stored something that this one has not heard of yet.
    async fn read_on(&self, link: &ShareLink) {
        let shared = &self.sessions.shared;
        if let Some(room) = shared.rooms.find(link.document_id) {
            room.catch_up(&shared.storage).await;
        }
    }

    async fn wait_until_stored(&self, link: &ShareLink) {
        if let Some(room) = self.sessions.shared.rooms.find(link.document_id) {
            // Out of patience: the next look at the room says whether to go on.
            let _settled = room.settled_within(SETTLE_PATIENCE).await;
        }
    }
}

struct Replacement {
    client: u64,
    update: Bytes,
}

/// The edit that puts the suggestion in place of the quote.
fn replacement(
    text: &Text,
    merged: Bytes,
    review: &StoredReview,
) -> Result<Replacement, ReviewError> {
    let anchor = text.resolve(&review.origin, &review.current).anchor;
    match anchor.state {
        AnchorState::Exact | AnchorState::Moved => {}
        AnchorState::Edited | AnchorState::Orphaned => return Err(ReviewError::AnchorMoved),
    }
    let range = TextRange { start: anchor.start, end: anchor.end };
    let log = UpdateLog::open(vec![merged]).map_err(|_| SessionError::Unreadable)?;
    let client = server_client_id(&log);
    let with = review.suggestion.as_deref().unwrap_or_default();
    let update = text.replace(range, with, client).map_err(|error| {
        tracing::error!(?error, review = %review.id, "a suggestion cannot be put into the text");
        ReviewError::AnchorMoved
    })?;
    Ok(Replacement { client, update })
}
