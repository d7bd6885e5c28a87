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
use crate::domain::review::{Review, ReviewPart, ReviewStatus};
use crate::reviews::member::MemberLink;
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::RoomError;
use crate::storage::review_rows::{PartRef, StoredReview};
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

    /// Resolves the current place of each review, and stores the place of each review that came back in its
    /// own place. The server stores no guess. In a damaged document every review is orphaned.
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
        let searched = Arc::clone(&stored);
        let find = move |text: &Text| -> Vec<_> {
            let mut effort = Effort::default();
            searched.iter().map(|review| resolve_in(text, review, &mut effort)).collect()
        };
        let resolved = match self.texts.read(document, requester, find).await {
            // The words of the reviews stay readable.
            Err(RoomError::Unreadable) => return Ok(Self::unplaced(stored.to_vec())),
            found => found?,
        };
        let mut reviews = Vec::with_capacity(stored.len());
        for (stored, resolved) in stored.iter().zip(resolved) {
            let moved = resolved.iter().map(|resolved| resolved.relocated.as_ref());
            for (part, current) in moved.enumerate().filter_map(|(part, it)| Some((part, it?))) {
                self.store_anchor(stored, part, current).await;
            }
            let anchors = resolved.into_iter().map(|resolved| resolved.anchor).collect();
            reviews.push(to_review(stored.clone(), anchors));
        }
        Ok(reviews)
    }

    /// Stores the new place of a part. After a failure the next request resolves it again.
    async fn store_anchor(&self, stored: &StoredReview, part: usize, current: &RelativeRange) {
        let read = match part.checked_sub(1) {
            None => Some(&stored.current),
            Some(more) => stored.more.get(more).map(|part| &part.current),
        };
        let Some(read) = read else { return };
        if let Err(error) = self.storage.relocate(stored.id, part, read, current).await {
            tracing::debug!(%error, review = %stored.id, "a found place cannot be stored");
        }
    }

    /// The reviews, all orphaned, without a search of the text.
    pub(crate) fn unplaced(stored: Vec<StoredReview>) -> Vec<Review> {
        stored.into_iter().map(unplaced).collect()
    }
}

/// The reviews with their places in `text`, which the caller has built.
pub fn placed_in(text: &Text, stored: Vec<StoredReview>) -> Vec<Review> {
    let mut effort = Effort::default();
    let placed = stored.into_iter().map(|review| {
        let resolved = resolve_in(text, &review, &mut effort);
        to_review(review, resolved.into_iter().map(|resolved| resolved.anchor).collect())
    });
    placed.collect()
}

/// The places of a review in the text: one of a comment, one for each part of a suggestion.
fn resolve_in(text: &Text, review: &StoredReview, effort: &mut Effort) -> Vec<Resolved> {
    if review.is_summary {
        return Vec::new();
    }
    if review.suggestion.is_none() {
        return vec![text.resolve_within(&review.origin, &review.current, effort)];
    }
    let is_accepted = review.status == ReviewStatus::Accepted;
    review.parts().map(|part| resolve_part(text, part, is_accepted, effort)).collect()
}

/// An accepted text has replaced the quote of its part, so the search uses the text instead.
fn resolve_part(
    text: &Text,
    part: PartRef<'_>,
    is_accepted: bool,
    effort: &mut Effort,
) -> Resolved {
    if is_accepted && !part.text.is_empty() {
        let origin = AnchorOrigin { quote: part.text.to_owned(), ..part.origin.clone() };
        let Resolved { anchor, relocated } = text.resolve_within(&origin, part.current, effort);
        if anchor.state != AnchorState::Orphaned {
            let (state, quote) = (AnchorState::Edited, part.origin.quote.clone());
            return Resolved { anchor: Anchor { state, quote, ..anchor }, relocated };
        }
    }
    text.resolve_within(part.origin, part.current, effort)
}

fn orphaned(origin: &AnchorOrigin) -> Anchor {
    let AnchorOrigin { quote, prefix, suffix, .. } = origin.clone();
    let (start, end) = (0, 0);
    Anchor { state: AnchorState::Orphaned, start, end, quote, prefix, suffix, relative: None }
}

fn unplaced(review: StoredReview) -> Review {
    let anchors = match review.suggestion {
        Some(_) => review.parts().map(|part| orphaned(part.origin)).collect(),
        None => vec![orphaned(&review.origin)],
    };
    to_review(review, anchors)
}

pub(super) fn to_review(stored: StoredReview, anchors: Vec<Anchor>) -> Review {
    let texts: Vec<_> = stored.parts().map(|part| part.text.to_owned()).collect();
    let first = anchors.first().cloned();
    let parts = anchors.into_iter().zip(texts);
    Review {
        id: stored.id,
        share_link_id: stored.link,
        kind: stored.kind(),
        origin: stored.source,
        anchor: first.filter(|_| !stored.is_summary),
        author: stored.author,
        body: stored.body,
        suggestion: stored.suggestion,
        parts: parts.map(|(anchor, text)| ReviewPart { anchor, text }).collect(),
        status: stored.status,
        outcome: stored.outcome,
        decision: stored.decided,
        version: stored.version,
        change: stored.changes.1,
        changed_by: stored.changed_by,
        replies: stored.replies,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    }
}
