//! Decisions on one review.
//!
//! The server decides on a review as it was read, and another request may change the review in
//! between. If the client names no version, the server reads the review again and repeats the
//! decision. The result is the same as for two requests in sequence.

use crate::domain::ids::ReviewId;
use crate::domain::review::{Decision, Review, Verdict};
use crate::reviews::member::MemberLink;
use crate::reviews::plan::Selection;
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::server_edit::TRIES;
use crate::storage::guard::FenceGuard;
use crate::storage::review_rows::StoredReview;
use crate::storage::reviews::ReviewChange;

impl Reviews {
    /// Needs the writer's seat. To accept or to reject is a decision of one.
    /// [`ReviewError::AnchorMoved`]: the text no longer contains a suggestion's quote. [`ReviewError::Moved`]:
    /// the server guesses where it is.
    pub async fn decide(
        &self,
        link: &MemberLink,
        id: ReviewId,
        decision: Decision,
        expected: Option<i64>,
    ) -> Result<Review, ReviewError> {
        match decision {
            Decision::Accept => self.decide_one(link, id, Verdict::Accept, expected).await,
            Decision::Reject => self.decide_one(link, id, Verdict::Reject, expected).await,
            Decision::Resolve | Decision::Reopen => {
                self.close_or_reopen(link, id, decision, expected).await
            }
        }
    }

    async fn decide_one(
        &self,
        link: &MemberLink,
        id: ReviewId,
        verdict: Verdict,
        version: Option<i64>,
    ) -> Result<Review, ReviewError> {
        let selection = Selection { id, version, moved: Vec::new() };
        let mut made = self.decide_many(link, verdict, vec![selection]).await?;
        if let Some((_, reason)) = made.skipped.first() {
            return Err(reason.failure());
        }
        made.reviews.pop().ok_or(ReviewError::NotFound("review"))
    }

    async fn close_or_reopen(
        &self,
        link: &MemberLink,
        id: ReviewId,
        decision: Decision,
        expected: Option<i64>,
    ) -> Result<Review, ReviewError> {
        let guard = self.guard(link, decision.needs_seat_of()).await?;
        for _ in 0..TRIES {
            let stored = self.find(link, id).await?;
            self.charge(&link.user, stored.bytes())?;
            match self.try_change(link, &stored, decision, expected, guard).await {
                // Another request changed the review in between.
                Err(ReviewError::VersionMismatch { .. }) if expected.is_none() => {}
                decided => return decided,
            }
        }
        Err(ReviewError::Contended)
    }

    /// Decides on a review as it was read.
    async fn try_change(
        &self,
        link: &MemberLink,
        stored: &StoredReview,
        decision: Decision,
        expected: Option<i64>,
        guard: FenceGuard,
    ) -> Result<Review, ReviewError> {
        let status = decision.apply(stored.status, stored.suggestion.is_some())?;
        let expected = expected.unwrap_or(stored.version);
        let change = ReviewChange { body: None, suggestion: None, status: Some(status) };
        self.change(link, stored.id, change, Some(expected), guard).await
    }
}
