//! The position of a review in the text.
//!
//! The origin of an anchor never changes: quote, context and offsets from the moment of the review.
//! The server computes the current range again after each change of the text. All offsets count
//! UTF-16 code units, as the browser and Yjs do.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};

/// Confidence in the current range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub enum AnchorState {
    /// The text of the range equals the quote (G9). An empty range is beside a word that it was made beside.
    Exact,
    /// The range exists; its text has changed slightly.
    Edited,
    /// The range collapsed, and the quote came elsewhere in letters that are newer than the anchor. A guess: a
    /// person decides whether it is the passage.
    Moved,
    /// The server does not find the quote. The review is shown with its quote and never dropped.
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

/// A range of the text with the quote that the client sees in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
pub struct AnchorRequest {
    /// UTF-16 offset.
    #[cfg_attr(feature = "schemas", schemars(with = "i64", range(min = 0)))]
    pub start: u32,
    /// UTF-16 offset, after `start`.
    #[cfg_attr(feature = "schemas", schemars(with = "i64", range(min = 0)))]
    pub end: u32,
    /// The text there, as the caller sees it.
    pub quote: String,
}

/// A position in the text as a client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// A UTF-16 offset.
    Offset(u32),
    /// A Yjs relative position.
    Relative(Vec<u8>),
}

/// The place of a part: the range that it replaces, or the gap at which it inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartRequest {
    /// A range, and the text of the range in the client's document.
    Range {
        /// First unit of the range.
        start: Position,
        /// First unit after it.
        end: Position,
        /// The text of the range.
        quote: String,
    },
    /// The first unit after the gap, or the end of the text.
    Gap(Position),
}

/// Range, quote and context of a review at its creation. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorOrigin {
    /// The range at creation.
    pub range: TextRange,
    /// The text of the range; empty at a gap.
    pub quote: String,
    /// Up to 32 characters before the quote.
    pub prefix: String,
    /// Up to 32 characters after the quote.
    pub suffix: String,
}

impl AnchorOrigin {
    /// The origin of a remark on the whole text, which quotes nothing.
    #[must_use]
    pub fn of_whole_text() -> Self {
        let range = TextRange { start: 0, end: 0 };
        Self { range, quote: String::new(), prefix: String::new(), suffix: String::new() }
    }
}

/// The last resolved range of a review as Yjs relative positions, opaque outside of `yjs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelativeRange {
    /// Encoded relative position of the start, association 0 (follows the next unit). Behind that of a stored
    /// anchor stands the state vector of the text in which it was made.
    pub start: Vec<u8>,
    /// Encoded relative position of the end, association −1 (follows the preceding unit).
    pub end: Vec<u8>,
}

impl RelativeRange {
    /// The range of a remark on the whole text: no position at all.
    #[must_use]
    pub fn of_whole_text() -> Self {
        Self { start: Vec::new(), end: Vec::new() }
    }
}

/// The current anchor of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Anchor {
    /// `exact`: the text there equals the quote. `edited`: it has changed a little; of an accepted review, the
    /// text of the suggestion. `moved`: deleted, and found elsewhere in letters that came later: a guess, which
    /// a person decides. `orphaned`: not found.
    pub state: AnchorState,
    /// UTF-16 offset, now.
    pub start: u32,
    /// UTF-16 offset, now.
    pub end: u32,
    /// The original quote.
    pub quote: String,
    /// Up to 32 characters that stood before it.
    pub prefix: String,
    /// Up to 32 characters that stood after it.
    pub suffix: String,
    /// The range by its letters, which follows edits that one side lacks. Absent for an orphan.
    #[serde(serialize_with = "as_base64", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "crate::schemas::EncodedRange"))]
    pub relative: Option<RelativeRange>,
}

fn as_base64<S: Serializer>(
    range: &Option<RelativeRange>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let encode = |range: &RelativeRange| {
        BTreeMap::from([
            ("start", STANDARD.encode(&range.start)),
            ("end", STANDARD.encode(&range.end)),
        ])
    };
    range.as_ref().map(encode).serialize(serializer)
}
