//! Decisions on a review.
//!
//! The server decides on a review as it was read, and another request may change the review in
//! between. If the client names no version, the server reads the review again and repeats the
//! decision. The result is the same as for two requests in sequence.

use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::review::{Decision, Review};
use crate::domain::user::User;
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::server_edit::TRIES;
use crate::storage::links::ShareLink;
use crate::storage::reviews::{ReviewChange, StoredReview};
use crate::storage::seats::FenceGuard;

impl Reviews {
    /// Decides on a review. Needs the writer's seat.
    ///
    /// # Errors
    ///
    /// [`ReviewError::AnchorMoved`] if the text no longer contains a suggestion's quote, and
    /// others.
    pub async fn decide(
        &self,
        user: &User,
        (link, id): (ShareLinkId, ReviewId),
        decision: Decision,
        expected: Option<i64>,
    ) -> Result<Review, ReviewError> {
        let link = self.link_of(user, link).await?;
        let guard = self.guard(user, link.id, decision.needs_seat_of()).await?;
        for _ in 0..TRIES {
            let stored = self.find(&link, id).await?;
            self.charge(user, stored.bytes())?;
            let failed = match self.try_decide(&link, &stored, decision, expected, guard).await {
                Ok(review) => return Ok(review),
                Err(failed) => failed,
            };
            // Another request changed the review in between. That may show in the text only.
            let is_of_what_was_read = match failed {
                ReviewError::VersionMismatch { .. } => false,
                ReviewError::AnchorMoved | ReviewError::TooLarge => {
                    self.find(&link, id).await?.version == stored.version
                }
                _ => true,
            };
            if expected.is_some() || is_of_what_was_read {
                return Err(failed);
            }
        }
        Err(ReviewError::Contended)
    }

    /// Decides on a review as it was read.
    async fn try_decide(
        &self,
        link: &ShareLink,
        stored: &StoredReview,
        decision: Decision,
        expected: Option<i64>,
        guard: FenceGuard,
    ) -> Result<Review, ReviewError> {
        let status = decision.apply(stored.status, stored.suggestion.is_some())?;
        let expected = expected.unwrap_or(stored.version);
        if decision == Decision::Accept {
            return self.accept(link, stored, expected, guard).await;
        }
        let change = ReviewChange { body: None, suggestion: None, status: Some(status) };
        let keeps_text = decision == Decision::Reject && stored.suggestion.is_some();
        let (this, link, stored) = (self.clone(), link.clone(), stored.clone());
        let deciding = async move {
            let review = this.change(&link, stored.id, change, Some(expected), guard).await?;
            if keeps_text {
                this.keep_rejection(&link, &stored).await;
            }
            Ok(review)
        };
        self.sessions.complete(deciding).await
    }
}
