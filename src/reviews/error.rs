//! Failures of reviews.

use std::time::Duration;

use crate::domain::ids::ReviewId;
use crate::domain::review::DecisionRefused;
use crate::domain::seat::Role;
use crate::rooms::RoomError;
use crate::seats::SeatError;
use crate::storage::error::StorageError;
use crate::storage::seats::{FenceGuard, Guarded};

/// Failures of reviews.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The link or review does not exist, or the caller may not know of it.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The caller does not hold the required seat.
    #[error("this needs the {0}'s seat; acquire the seat first")]
    SeatNotHeld(Role),
    /// The caller is not the author of the review.
    #[error("only the author of a review or a reply may change it")]
    NotAuthor,
    /// The text at the anchor differs from the quote.
    #[error("the text at the anchor differs from the quote; read it again and retry")]
    AnchorMismatch,
    /// The text no longer contains the quote.
    #[error("the quoted text is no longer there; edit the text by hand or reject the suggestion")]
    AnchorMoved,
    /// Another request changed the review first.
    #[error("the review has changed; its version is now {current}")]
    VersionMismatch {
        /// The current version.
        current: i64,
    },
    /// The status of the review does not permit the decision.
    #[error(transparent)]
    Refused(#[from] DecisionRefused),
    /// The review or reply has no content.
    #[error("{0}")]
    Empty(&'static str),
    /// The review is a remark on the whole text, which has no quote to replace.
    #[error("a remark on the whole text has no suggestion")]
    NothingToReplace,
    /// A text exceeds its limit.
    #[error("{0} is too long")]
    TooLong(&'static str),
    /// A text contains a control character.
    #[error("{0} may not contain control characters other than line breaks and tabs")]
    Control(&'static str),
    /// The link or the review is at its limit.
    #[error("there are too many {0} already, or they are as long as they may become")]
    Full(&'static str),
    /// The user's events about reviews exceed their rate.
    #[error("too much about reviews at once; try again later")]
    TooFast(Duration),
    /// With the text of the decision the document would exceed its limit by so many bytes.
    #[error("the document would be {0} bytes larger than it may become; take some text out first")]
    TooLarge(usize),
    /// A request about many reviews names none, too many, or one of them twice.
    #[error("{0}")]
    Selection(&'static str),
    /// The text of these reviews of a decision has changed since, or they have.
    #[error("the text there has changed since; this decision cannot be undone")]
    UndoConflict(Vec<ReviewId>),
    /// The time for an undo is over.
    #[error("this decision was made too long ago to be undone")]
    UndoExpired,
    /// The decision is undone.
    #[error("this decision is undone already")]
    AlreadyUndone,
    /// The text changes too fast for the edit of a suggestion.
    #[error("the text is changing; try again")]
    Contended,
    /// A seat, a room, the locks or storage failed.
    #[error(transparent)]
    Session(#[from] SeatError),
}

impl From<StorageError> for ReviewError {
    fn from(error: StorageError) -> Self {
        Self::Session(error.into())
    }
}

impl From<RoomError> for ReviewError {
    fn from(error: RoomError) -> Self {
        Self::Session(error.into())
    }
}

/// The result of a guarded write.
pub(crate) fn done<T>(guarded: Guarded<T>, guard: FenceGuard) -> Result<T, ReviewError> {
    match guarded {
        Guarded::Done(value) => Ok(value),
        Guarded::Fenced => Err(ReviewError::SeatNotHeld(guard.seat.role)),
        Guarded::NotFound => Err(ReviewError::NotFound("review")),
        Guarded::VersionMismatch { current } => Err(ReviewError::VersionMismatch { current }),
        Guarded::Stale => Err(ReviewError::Contended),
        Guarded::Full => Err(ReviewError::Full("reviews or replies")),
    }
}
