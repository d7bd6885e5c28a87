//! Where reviews stand now.
//!
//! A review keeps its original place for ever; its current one is found anew for whoever asks,
//! in one build of the text for all reviews together.

use std::sync::Arc;

use crate::domain::anchor::{Anchor, AnchorOrigin, AnchorState};
use crate::domain::ids::DocumentId;
use crate::domain::review::{Review, ReviewStatus};
use crate::session::reviews::{ReviewError, Reviews};
use crate::storage::reviews::StoredReview;
use crate::sync::text::{Resolved, Text};

impl Reviews {
    pub(super) async fn place_one(
        &self,
        document: DocumentId,
        stored: StoredReview,
    ) -> Result<Review, ReviewError> {
        let mut placed = self.place(document, vec![stored]).await?;
        placed.pop().ok_or(ReviewError::NotFound("review"))
    }

    /// Finds the current place of each; remembers where a lost one was found again.
    pub(super) async fn place(
        &self,
        document: DocumentId,
        stored: Vec<StoredReview>,
    ) -> Result<Vec<Review>, ReviewError> {
        if stored.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = self.sessions.shared.rooms.snapshot(document).await?;
        let stored = Arc::new(stored);
        let looked_at = Arc::clone(&stored);
        let resolve = move |text: &Text| -> Vec<_> {
            looked_at.iter().map(|review| stands(text, review)).collect()
        };
        let resolved = self.sessions.shared.rooms.read_text(snapshot, resolve).await?;
        let mut reviews = Vec::with_capacity(stored.len());
        for (stored, resolved) in stored.iter().zip(resolved) {
            if let Some(current) = &resolved.relocated {
                self.sessions.shared.storage.relocate(stored.id, current).await?;
            }
            reviews.push(served(stored.clone(), resolved.anchor));
        }
        Ok(reviews)
    }
}

/// Where a review stands in the text. Of one that was accepted the quote is gone, by the writer's
/// own will; what stands in its place is what it is about now.
fn stands(text: &Text, review: &StoredReview) -> Resolved {
    let put_in = review.suggestion.as_ref().filter(|put_in| !put_in.is_empty());
    if review.status == ReviewStatus::Accepted
        && let Some(put_in) = put_in
    {
        let origin = AnchorOrigin { quote: put_in.clone(), ..review.origin.clone() };
        let Resolved { anchor, relocated } = text.resolve(&origin, &review.current);
        if anchor.state != AnchorState::Orphaned {
            let (state, quote) = (AnchorState::Edited, review.origin.quote.clone());
            return Resolved { anchor: Anchor { state, quote, ..anchor }, relocated };
        }
    }
    text.resolve(&review.origin, &review.current)
}

/// A stored review as it is served.
fn served(stored: StoredReview, anchor: Anchor) -> Review {
    Review {
        id: stored.id,
        share_link_id: stored.link,
        author: stored.author,
        anchor,
        body: stored.body,
        suggestion: stored.suggestion,
        status: stored.status,
        version: stored.version,
        replies: stored.replies,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    }
}
