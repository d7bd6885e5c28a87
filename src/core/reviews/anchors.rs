//! Anchors: the current places of reviews in the text.
//!
//! A review stores its original place for ever. Each request resolves the current place again, in
//! one build of the text for all its reviews.

use std::sync::Arc;

use tokio::time::timeout;

use crate::bounds::permits::Requester;
use crate::domain::anchor::{Anchor, AnchorOrigin, AnchorState, RelativeRange};
use crate::domain::ids::DocumentId;
use crate::domain::limits::ANCHOR_TIMEOUT;
use crate::domain::review::{Review, ReviewStatus};
use crate::reviews::member::MemberLink;
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::RoomError;
use crate::storage::reviews::StoredReview;
use crate::yjs::text::{Effort, Resolved, Text};

impl Reviews {
    pub(crate) async fn resolve_one(
        &self,
        link: &MemberLink,
        stored: StoredReview,
    ) -> Result<Review, ReviewError> {
        let mut placed = self.resolve(link.document, &link.requester, vec![stored]).await?;
        placed.pop().ok_or(ReviewError::NotFound("review"))
    }

    /// Resolves the current place of a review whose change is committed.
    ///
    /// The client repeats a request that failed, so the answer to a committed change is a success.
    /// If [`ANCHOR_TIMEOUT`] passes first, the answer contains the review without its place.
    pub(crate) async fn resolve_committed(
        &self,
        link: &MemberLink,
        stored: StoredReview,
    ) -> Review {
        let mut placed = self.resolve_all_committed(link, vec![stored.clone()]).await;
        placed.pop().unwrap_or_else(|| unplaced(stored))
    }

    /// As [`resolve_committed`](Self::resolve_committed), for reviews whose change is one commit.
    pub(crate) async fn resolve_all_committed(
        &self,
        link: &MemberLink,
        stored: Vec<StoredReview>,
    ) -> Vec<Review> {
        let document = link.document;
        let resolving = self.resolve(document, &link.requester, stored.clone());
        match timeout(ANCHOR_TIMEOUT, resolving).await {
            Ok(Ok(placed)) => return placed,
            Ok(Err(error)) => {
                tracing::warn!(%document, %error, "changed reviews are sent without their places");
            }
            Err(_elapsed) => {
                tracing::warn!(%document, "the text takes too long; changed reviews are sent without their places");
            }
        }
        Self::unplaced(stored)
    }

    /// Resolves the current place of each review, and stores the place of each review that was lost
    /// and is found again. In a damaged document every review is orphaned.
    pub(crate) async fn resolve(
        &self,
        document: DocumentId,
        requester: &Requester,
        stored: Vec<StoredReview>,
    ) -> Result<Vec<Review>, ReviewError> {
        // A remark on the whole text needs no text.
        if stored.iter().all(|review| review.is_summary) {
            return Ok(Self::unplaced(stored));
        }
        let stored = Arc::new(stored);
        let resolved = match self.find_all(document, requester, &stored).await {
            // The words of the reviews stay readable.
            Err(RoomError::Unreadable) => {
                stored.iter().map(|review| nowhere(&review.origin)).collect()
            }
            found => found?,
        };
        let mut reviews = Vec::with_capacity(stored.len());
        for (stored, resolved) in stored.iter().zip(resolved) {
            if let Some(current) = &resolved.relocated {
                self.store_anchor(stored, current).await;
            }
            reviews.push(served(stored.clone(), resolved.anchor));
        }
        Ok(reviews)
    }

    /// Stores the new place of a review. After a failure the next request resolves it again.
    async fn store_anchor(&self, stored: &StoredReview, current: &RelativeRange) {
        let storage = &self.storage;
        if let Err(error) = storage.relocate(stored.id, current).await {
            tracing::debug!(%error, review = %stored.id, "a found place cannot be stored");
        }
    }

    /// The reviews, all orphaned, without a search of the text.
    pub(crate) fn unplaced(stored: Vec<StoredReview>) -> Vec<Review> {
        stored.into_iter().map(unplaced).collect()
    }

    async fn find_all(
        &self,
        document: DocumentId,
        requester: &Requester,
        stored: &Arc<Vec<StoredReview>>,
    ) -> Result<Vec<Resolved>, RoomError> {
        let rooms = &self.rooms;
        let snapshot = rooms.snapshot(document, requester).await?;
        let stored = Arc::clone(stored);
        let find = move |text: &Text| {
            let mut effort = Effort::default();
            stored.iter().map(|review| stands(text, review, &mut effort)).collect()
        };
        rooms.read_text(document, snapshot, find).await
    }
}

/// The reviews with their places in `text`, which the caller has built.
pub fn placed_in(text: &Text, stored: Vec<StoredReview>) -> Vec<Review> {
    let mut effort = Effort::default();
    let placed = stored.into_iter().map(|review| {
        let anchor = stands(text, &review, &mut effort).anchor;
        served(review, anchor)
    });
    placed.collect()
}

/// The place of a review in the text. An accepted suggestion has replaced the quote of its review,
/// so the search uses the suggestion instead.
fn stands(text: &Text, review: &StoredReview, effort: &mut Effort) -> Resolved {
    if review.is_summary {
        return nowhere(&review.origin);
    }
    let put_in = review.suggestion.as_ref().filter(|put_in| !put_in.is_empty());
    if review.status == ReviewStatus::Accepted
        && let Some(put_in) = put_in
    {
        let origin = AnchorOrigin { quote: put_in.clone(), ..review.origin.clone() };
        let Resolved { anchor, relocated } = text.resolve_within(&origin, &review.current, effort);
        if anchor.state != AnchorState::Orphaned {
            let (state, quote) = (AnchorState::Edited, review.origin.quote.clone());
            return Resolved { anchor: Anchor { state, quote, ..anchor }, relocated };
        }
    }
    text.resolve_within(&review.origin, &review.current, effort)
}

fn nowhere(origin: &AnchorOrigin) -> Resolved {
    let AnchorOrigin { quote, prefix, suffix, .. } = origin.clone();
    let anchor = Anchor { state: AnchorState::Orphaned, start: 0, end: 0, quote, prefix, suffix };
    Resolved { anchor, relocated: None }
}

fn unplaced(review: StoredReview) -> Review {
    let anchor = nowhere(&review.origin).anchor;
    served(review, anchor)
}

fn served(stored: StoredReview, anchor: Anchor) -> Review {
    Review {
        id: stored.id,
        share_link_id: stored.link,
        kind: stored.kind(),
        anchor: (!stored.is_summary).then_some(anchor),
        author: stored.author,
        body: stored.body,
        suggestion: stored.suggestion,
        status: stored.status,
        decision: stored.decided,
        version: stored.version,
        change: stored.changes.1,
        changed_by: stored.changed_by,
        replies: stored.replies,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    }
}
