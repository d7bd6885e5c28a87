//! Reviews: their states and the allowed transitions.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::anchor::Anchor;
use crate::ids::{DecisionId, ReplyId, ReviewId, ShareLinkId, UserId};
use crate::limits::DECISION_UNDO_WINDOW;
use crate::seat::Role;
use crate::user::User;

/// The state of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ReviewStatus {
    /// The writer has not decided yet.
    Open,
    /// The writer accepted its suggestion, and the server applied it to the text.
    Accepted,
    /// The writer rejected its suggestion.
    Rejected,
    /// The writer closed it without applying a suggestion.
    Resolved,
}

impl ReviewStatus {
    /// The status in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The subject of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub enum ReviewKind {
    /// A comment on a range of the text.
    Comment,
    /// A range of the text with its replacement.
    Suggestion,
    /// A remark on the whole text, without an anchor.
    Summary,
}

/// How a review was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ReviewOrigin {
    /// By a form: one review by one request.
    Form,
    /// By typing in the text: a batch of suggestions by one request.
    Typed,
}

impl ReviewOrigin {
    /// The origin in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a suggestion is closed without a decision of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ReviewOutcome {
    /// Its author withdrew it. It stays because it has replies.
    Withdrawn,
    /// Its author withdrew it after the writer had typed its text.
    Fulfilled,
}

impl ReviewOutcome {
    /// The outcome in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A place of a suggestion. At a gap, where it inserts, the quote is empty and `start` is `end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Part"))]
pub struct ReviewPart {
    /// Its current position. The quote of an insertion is empty.
    pub anchor: Anchor,
    /// The text that replaces the quote; an empty string deletes it.
    pub text: String,
}

/// A writer's decision about a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Apply the suggestion to the text.
    Accept,
    /// Reject the suggestion.
    Reject,
    /// Close the review without a change of the text.
    Resolve,
    /// Undo a rejection or resolution.
    Reopen,
}

/// A decision about a suggestion, which the writer can undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// Apply the suggestion to the text.
    Accept,
    /// Reject the suggestion.
    Reject,
}

impl Verdict {
    /// The verdict in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The decision that it is.
    #[must_use]
    pub fn decision(self) -> Decision {
        match self {
            Self::Accept => Decision::Accept,
            Self::Reject => Decision::Reject,
        }
    }

    /// The status of a review under it.
    #[must_use]
    pub fn status(self) -> ReviewStatus {
        match self {
            Self::Accept => ReviewStatus::Accepted,
            Self::Reject => ReviewStatus::Rejected,
        }
    }
}

/// The decision under which a review is accepted or rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Decided {
    /// The decision; several reviews may share it.
    pub id: DecisionId,
    /// The writer who made it.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::schemas::Author"))]
    pub by: User,
    /// When it was made.
    pub at: DateTime<Utc>,
    /// Until when the writer can undo it.
    pub undo_until: DateTime<Utc>,
}

impl Decided {
    /// A decision made at `at`.
    #[must_use]
    pub fn new(id: DecisionId, by: User, at: DateTime<Utc>) -> Self {
        Self { id, by, at, undo_until: at + DECISION_UNDO_WINDOW }
    }
}

/// The decision does not fit the state of the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionRefused {
    /// Only a suggestion can be accepted or rejected.
    #[error("this review has no suggestion; resolve it instead")]
    NoSuggestion,
    /// The writer has decided already.
    #[error("this review is not open; reopen it first")]
    NotOpen,
    /// It is open, so there is no decision to undo.
    #[error("this review is open already")]
    AlreadyOpen,
    /// The server has applied the suggestion; undoing that is an edit of the text.
    #[error("an accepted suggestion cannot be reopened; edit the text instead")]
    Accepted,
}

impl Decision {
    /// The role whose seat the decision requires.
    #[must_use]
    pub fn needs_seat_of(self) -> Role {
        Role::Writer
    }

    /// The next status.
    ///
    /// # Errors
    ///
    /// [`DecisionRefused`] when the review's state does not allow the decision.
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

/// A reply to a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Reply {
    /// Opaque.
    pub id: ReplyId,
    /// The writer or the reviewer.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::schemas::Author"))]
    pub author: User,
    /// Plain text.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When its author last changed it.
    pub edited_at: Option<DateTime<Utc>>,
}

/// A review as the server sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Review {
    /// Opaque. The client of a typed suggestion chooses it.
    pub id: ReviewId,
    /// Its share link.
    pub share_link_id: ShareLinkId,
    /// The reviewer, or the writer of a comment.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::schemas::Author"))]
    pub author: User,
    /// `summary`: a remark on the whole text.
    pub kind: ReviewKind,
    /// `typed`: by `POST …/suggestions`.
    pub origin: ReviewOrigin,
    /// Of a suggestion that of its first part; `null` for a remark on the whole text.
    pub anchor: Option<Anchor>,
    /// The comment.
    pub body: String,
    /// The text of the first part of a suggestion.
    pub suggestion: Option<String>,
    /// The parts of a suggestion, which are decided together; none of another review.
    pub parts: Vec<ReviewPart>,
    /// `open`: no decision yet. `resolved`: closed without one.
    pub status: ReviewStatus,
    /// Of a `resolved` suggestion with replies: `withdrawn` by its author, `fulfilled` if the text had its
    /// words already.
    pub outcome: Option<ReviewOutcome>,
    /// Null for an open or resolved review.
    pub decision: Option<Decided>,
    /// Rises with each change; the `ETag`.
    pub version: i64,
    /// The number of its last change among the changes of all reviews of the document; it rises. Unread: above
    /// the caller's `seen`, and `changed_by` is another user.
    pub change: i64,
    /// The id of the user of the last change, if known.
    pub changed_by: Option<UserId>,
    /// Oldest first.
    pub replies: Vec<Reply>,
    /// When it was created.
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
    fn a_decision_stands_until_the_review_is_reopened() {
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
