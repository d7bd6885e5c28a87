//! Reviews: their states, and who may bring them there.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::anchor::Anchor;
use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId};
use crate::domain::seat::Role;
use crate::domain::user::User;

/// What has become of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewStatus {
    /// Waits for the writer.
    Open,
    /// Its suggestion was put into the text.
    Accepted,
    /// Its suggestion was turned down.
    Rejected,
    /// Settled without a change of the text by Galley.
    Resolved,
}

impl ReviewStatus {
    /// The status as it stands in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Resolved => "resolved",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Accepted, Self::Rejected, Self::Resolved]
            .into_iter()
            .find(|status| status.as_str() == name)
    }
}

/// What the writer decides about a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Put the suggestion into the text.
    Accept,
    /// Turn the suggestion down.
    Reject,
    /// Call it settled.
    Resolve,
    /// Take a reject or resolve back.
    Reopen,
}

/// The decision does not fit the review as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionRefused {
    /// Only a suggestion can be accepted or rejected.
    #[error("this review has no suggestion; resolve it instead")]
    NoSuggestion,
    /// It was decided already.
    #[error("this review is not open; reopen it first")]
    NotOpen,
    /// It is open, so there is nothing to take back.
    #[error("this review is open already")]
    AlreadyOpen,
    /// The text was changed by it; undoing that is an edit of the text.
    #[error("an accepted suggestion cannot be reopened; edit the text instead")]
    Accepted,
}

impl Decision {
    /// The role whose seat the decision needs.
    #[must_use]
    pub fn needs_seat_of(self) -> Role {
        Role::Writer
    }

    /// The status that follows.
    ///
    /// # Errors
    ///
    /// [`DecisionRefused`] when the review is not in a state for it.
    pub fn apply(
        self,
        status: ReviewStatus,
        has_suggestion: bool,
    ) -> Result<ReviewStatus, DecisionRefused> {
        use ReviewStatus as Is;
        match (self, status) {
            (Self::Accept | Self::Reject, Is::Open) if !has_suggestion => {
                Err(DecisionRefused::NoSuggestion)
            }
            (Self::Accept, Is::Open) => Ok(Is::Accepted),
            (Self::Reject, Is::Open) => Ok(Is::Rejected),
            (Self::Resolve, Is::Open) => Ok(Is::Resolved),
            (Self::Reopen, Is::Rejected | Is::Resolved) => Ok(Is::Open),
            (Self::Reopen, Is::Open) => Err(DecisionRefused::AlreadyOpen),
            (Self::Reopen, Is::Accepted) => Err(DecisionRefused::Accepted),
            (
                Self::Accept | Self::Reject | Self::Resolve,
                Is::Accepted | Is::Rejected | Is::Resolved,
            ) => Err(DecisionRefused::NotOpen),
        }
    }
}

/// An answer to a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// Its name.
    pub id: ReplyId,
    /// Who wrote it.
    pub author: User,
    /// What it says.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
}

/// A review as it is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Review {
    /// Its name.
    pub id: ReviewId,
    /// The share link it belongs to.
    pub share_link_id: ShareLinkId,
    /// Who made it.
    pub author: User,
    /// Where it stands now.
    pub anchor: Anchor,
    /// The comment.
    pub body: String,
    /// What to put in place of the quote; an empty string deletes it.
    pub suggestion: Option<String>,
    /// What has become of it.
    pub status: ReviewStatus,
    /// Rises with each change; the `ETag`.
    pub version: i64,
    /// Answers, oldest first.
    pub replies: Vec<Reply>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it, or one of its replies, last changed.
    pub updated_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_without_a_suggestion_is_resolved_and_never_accepted() {
        let open = ReviewStatus::Open;
        assert_eq!(Decision::Accept.apply(open, false), Err(DecisionRefused::NoSuggestion));
        assert_eq!(Decision::Reject.apply(open, false), Err(DecisionRefused::NoSuggestion));
        assert_eq!(Decision::Resolve.apply(open, false), Ok(ReviewStatus::Resolved));
    }

    #[test]
    fn what_was_decided_is_decided_until_reopened() {
        for decided in [ReviewStatus::Accepted, ReviewStatus::Rejected, ReviewStatus::Resolved] {
            for decision in [Decision::Accept, Decision::Reject, Decision::Resolve] {
                assert_eq!(decision.apply(decided, true), Err(DecisionRefused::NotOpen));
            }
        }
        assert_eq!(Decision::Reopen.apply(ReviewStatus::Rejected, true), Ok(ReviewStatus::Open));
        let refused = Decision::Reopen.apply(ReviewStatus::Accepted, true);
        assert_eq!(refused, Err(DecisionRefused::Accepted));
    }
}
