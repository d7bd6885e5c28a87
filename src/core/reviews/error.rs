//! Failures of reviews.

use std::time::Duration;

use crate::domain::ids::ReviewId;
use crate::domain::review::DecisionRefused;
use crate::domain::seat::Role;
use crate::rooms::RoomError;
use crate::seats::SeatError;
use crate::storage::error::StorageError;
use crate::storage::guard::{FenceGuard, Guarded};

#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("this needs the {0}'s seat; acquire the seat first")]
    SeatNotHeld(Role),
    #[error("only the author of a review or a reply may change it")]
    NotAuthor,
    #[error("the text at the anchor differs from the quote; read it again and retry")]
    AnchorMismatch,
    #[error("the quoted text is no longer there; edit the text by hand or reject the suggestion")]
    AnchorMoved,
    #[error(
        "the quoted text may have moved; show the place to a person, and accept it by a decision that names it"
    )]
    Moved,
    #[error("the review has changed; its version is now {current}")]
    VersionMismatch { current: i64 },
    #[error(transparent)]
    Refused(#[from] DecisionRefused),
    #[error("{0}")]
    Empty(&'static str),
    #[error("a remark on the whole text has no suggestion")]
    NothingToReplace,
    #[error(
        "an insertion, or a suggestion with several parts, changes by `POST …/suggestions` alone"
    )]
    TypedParts,
    #[error("a batch has at most 200 suggestions; divide it")]
    Batch,
    #[error("{0} is too long")]
    TooLong(&'static str),
    #[error("there are too many {0} already, or they are as long as they may become")]
    Full(&'static str),
    #[error("too much about reviews at once; try again later")]
    TooFast(Duration),
    #[error("the document would be {0} bytes larger than it may become; take some text out first")]
    TooLarge(usize),
    #[error("{0}")]
    Selection(&'static str),
    #[error("the text there has changed since; this decision cannot be undone")]
    UndoConflict(Vec<ReviewId>),
    #[error("this decision was made too long ago to be undone")]
    UndoExpired,
    #[error("this decision is undone already")]
    AlreadyUndone,
    #[error("the text is changing; try again")]
    Contended,
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
