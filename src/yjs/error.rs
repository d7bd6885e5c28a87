//! What can be wrong with what came from outside, and with what was stored.

use crate::domain::limits::{NESTING_MAX, QUOTE_UTF16_MAX};

/// A frame that the y-websocket protocol does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It ends early, goes on too long, or says what it cannot mean.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
    /// A message type that clients do not send.
    #[error("unknown message type")]
    UnknownType,
    /// A bound of presence is exceeded.
    #[error("presence is too large: {0}")]
    TooLarge(&'static str),
}

/// Why an update was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Not an update, or none that a client could have made.
    #[error("malformed update: {0}")]
    Malformed(&'static str),
    /// It builds on something that is not here. Send sync step 1 to be given that too.
    #[error("the update builds on updates that are missing here; sync again")]
    Gap,
    /// Well-formed, but nothing that a plain text can hold.
    #[error("the update may not {0}")]
    Unsupported(&'static str),
    /// Well-formed, but not the sender's to write.
    #[error("the update may not {0}")]
    Forbidden(&'static str),
    /// A value nested deeper than [`NESTING_MAX`].
    #[error("a value is nested deeper than {NESTING_MAX} levels")]
    TooDeep,
}

/// The log or the text could not be read or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// What was stored is not a whole document.
    #[error("the stored document is damaged: {0}")]
    Corrupt(&'static str),
    /// One of the stored updates would have been refused.
    #[error("the stored document is damaged: {0}")]
    Refused(#[from] Rejected),
    /// To settle where everything in it stands would take too long.
    #[error("the document takes too long to build")]
    TooCostly,
    /// A client's state vector that is none.
    #[error("malformed state vector: {0}")]
    StateVector(&'static str),
    /// A range that ends before it starts, leaves the text or splits a character.
    #[error("the range does not lie on whole characters of the text")]
    Range,
}

/// Why no anchor could be made. The caller's text is not the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnchorMismatch {
    /// Nothing is quoted.
    #[error("the quoted range is empty")]
    Empty,
    /// More is quoted than a review can be about.
    #[error("the quoted range is longer than {QUOTE_UTF16_MAX} UTF-16 units")]
    TooLong,
    /// The range ends behind the text.
    #[error("the quoted range reaches beyond the text")]
    Outside,
    /// The range starts or ends inside a surrogate pair.
    #[error("the quoted range splits a character")]
    SplitsCharacter,
    /// Something else stands there.
    #[error("the quote is not what stands at that range")]
    OtherText,
}
