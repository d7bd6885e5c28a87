//! Where a review stands in the text.
//!
//! The original is kept for ever: quote, context and offsets as they were when the review was
//! made. The current place is found anew whenever the text has changed. All offsets count UTF-16
//! code units, as the browser and Yjs do.

use serde::{Deserialize, Serialize};

/// How surely the current place is the one that was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnchorState {
    /// The text there is the quote (G9).
    Exact,
    /// The range stands, its text has changed a little.
    Edited,
    /// The range collapsed; the quote was found elsewhere by its context.
    Moved,
    /// The quote is nowhere to be found. The review is shown with its quote, never dropped.
    Orphaned,
}

/// A range of the text, `start ≤ end`, in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TextRange {
    /// First unit of the range.
    pub start: u32,
    /// First unit after it.
    pub end: u32,
}

/// A range of the text and what the caller believes to stand there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AnchorRequest {
    /// First unit of the range.
    pub start: u32,
    /// First unit after it.
    pub end: u32,
    /// The text there, as the caller sees it.
    pub quote: String,
}

/// What a review was made on. Never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorOrigin {
    /// The range when the review was made.
    pub range: TextRange,
    /// The text that stood there.
    pub quote: String,
    /// Up to 32 characters before it.
    pub prefix: String,
    /// Up to 32 characters after it.
    pub suffix: String,
}

/// Where a review was last found: Yjs relative positions, opaque outside of `sync`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelativeRange {
    /// Encoded relative position of the start, association 0 (sticks to what follows).
    pub start: Vec<u8>,
    /// Encoded relative position of the end, association −1 (sticks to what precedes).
    pub end: Vec<u8>,
}

/// The anchor of a review, as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// How sure the range is.
    pub state: AnchorState,
    /// Current start; for an orphan, where it last stood.
    pub start: u32,
    /// Current end; equals `start` for an orphan.
    pub end: u32,
    /// The original quote.
    pub quote: String,
    /// What stood before the quote when the review was made.
    pub prefix: String,
    /// What stood after it.
    pub suffix: String,
}
