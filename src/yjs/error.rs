//! Errors of frames, updates, stored documents and anchors.

use galley_domain::limits::{NESTING_MAX, QUOTE_UTF16_MAX};

/// A frame that is no valid y-websocket message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It ends early, is too long, or contains an invalid value.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
    /// A message type that clients do not send.
    #[error("unknown message type")]
    UnknownType,
    /// Presence exceeds a limit.
    #[error("presence is too large: {0}")]
    TooLarge(&'static str),
}

/// Why the validator rejects an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Not an update, or none that a client could have made.
    #[error("malformed update: {0}")]
    Malformed(&'static str),
    /// It refers to units that the log lacks. After a sync step 1 from the server, the client sends
    /// them.
    #[error("the update builds on updates that are missing here; sync again")]
    Gap,
    /// Well-formed, but a plain text cannot contain it.
    #[error("the update may not {0}")]
    Unsupported(&'static str),
    /// Well-formed, but the sender has no right to write it.
    #[error("the update may not {0}")]
    Forbidden(&'static str),
    /// A value nested deeper than [`NESTING_MAX`].
    #[error("a value is nested deeper than {NESTING_MAX} levels")]
    TooDeep,
}

/// Reading or changing the log or the text failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// The stored bytes are no whole document.
    #[error("the stored document is damaged: {0}")]
    Corrupt(&'static str),
    /// The validator rejects one of the stored updates.
    #[error("the stored document is damaged: {0}")]
    Refused(#[from] Rejected),
    /// Ordering the structs takes more steps than a document may take.
    #[error("the document takes too long to build")]
    TooCostly,
    /// The client's state vector is malformed.
    #[error("malformed state vector: {0}")]
    StateVector(&'static str),
    /// A range that ends before it starts, exceeds the text or splits a character.
    #[error("the range does not lie on whole characters of the text")]
    Range,
}

/// Why the server cannot anchor a review: the caller's text differs from the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnchorMismatch {
    /// The quote is empty.
    #[error("the quoted range is empty")]
    Empty,
    /// The quote is longer than a review's quote may be.
    #[error("the quoted range is longer than {QUOTE_UTF16_MAX} UTF-16 units")]
    TooLong,
    /// The range ends after the end of the text.
    #[error("the quoted range reaches beyond the text")]
    Outside,
    /// The range starts or ends inside a surrogate pair.
    #[error("the quoted range splits a character")]
    SplitsCharacter,
    /// The text of the range is not the quote.
    #[error("the quote differs from the text of that range")]
    OtherText,
}
