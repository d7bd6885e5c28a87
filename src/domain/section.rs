//! Sections: the parts of a text below its headings, such as the questions of a form.
//!
//! The page finds the headings of a text and the limits in them. The server stores only the settings that a
//! user made of a section, anchored to the line of its heading.

use serde::{Deserialize, Serialize};

use crate::anchor::{AnchorOrigin, Position, RelativeRange};
use crate::limits::{SECTION_COUNT_MAX, SECTIONS_MAX};
use crate::line::{InvalidLine, Line};

/// Characters with or without white space, bytes of an encoding, or words between spaces. `neis`: UTF-8 with a
/// line break of 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CountUnit {
    /// Characters with white space.
    Spaces,
    /// Characters without white space.
    NoSpaces,
    /// Bytes of UTF-8.
    Utf8,
    /// Bytes of EUC-KR.
    EucKr,
    /// Bytes of the register of Korean schools: UTF-8, a line break of two.
    Neis,
    /// Words between spaces that have a letter or a digit.
    Words,
}

/// The settings of a section. A missing one follows the heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SectionSettings {
    /// The largest count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "u32"))]
    pub limit: Option<u32>,
    /// The smallest count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "u32"))]
    pub floor: Option<u32>,
    /// The unit of `limit` and `floor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "CountUnit"))]
    pub unit: Option<CountUnit>,
    /// The count of a line break, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "i64"))]
    pub line_break: Option<u8>,
    /// False: the line is no heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "bool"))]
    pub question: Option<bool>,
}

/// A section as a user sets it. Without a position its heading is the first line that equals the title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSection {
    /// The name of the section on the page.
    pub title: String,
    /// A unit of the line of its heading.
    pub at: Option<Position>,
    /// The settings of the user.
    pub settings: SectionSettings,
}

/// A stored section: its settings, and the anchor of its heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSection {
    /// The name of the section on the page.
    pub title: String,
    /// The settings of the user.
    pub settings: SectionSettings,
    /// The line of the heading when the user set the section.
    pub origin: AnchorOrigin,
    /// That line as relative positions.
    pub current: RelativeRange,
}

/// A field that the user did not set is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Section {
    /// The name of the section on the page.
    pub title: String,
    /// The UTF-16 offset of its heading. `null`: the heading is deleted.
    pub at: Option<u32>,
    /// The settings of the user.
    #[serde(flatten)]
    pub settings: SectionSettings,
}

/// The cause for which a list of sections is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SectionFault {
    /// The text has no such line.
    #[error("no line of the text is the heading of the section \"{0}\"")]
    NotFound(String),
    /// A line has one section.
    #[error("two sections have their heading in one line: \"{0}\"")]
    Twice(String),
    /// A list is too long.
    #[error("a document has at most {SECTIONS_MAX} sections")]
    TooMany,
    /// A count is out of its range.
    #[error("limit and floor are 1 to {SECTION_COUNT_MAX}, and the floor is not above the limit")]
    Count,
    /// A line break counts 0 to 2.
    #[error("line_break is 0, 1 or 2")]
    LineBreak,
    /// The title is no line.
    #[error(transparent)]
    Title(#[from] InvalidLine),
}

impl NewSection {
    /// Trims the title and checks the section.
    ///
    /// # Errors
    ///
    /// [`SectionFault`] names the first rule that it breaks. `Text::anchor_sections` of `galley-yjs` checks its position.
    pub fn check(self) -> Result<Self, SectionFault> {
        let SectionSettings { limit, floor, line_break, .. } = self.settings;
        let is_count =
            |count: Option<u32>| count.is_none_or(|it| (1..=SECTION_COUNT_MAX).contains(&it));
        let is_ordered = limit.zip(floor).is_none_or(|(limit, floor)| floor <= limit);
        if !is_count(limit) || !is_count(floor) || !is_ordered {
            return Err(SectionFault::Count);
        }
        if line_break.is_some_and(|weight| weight > 2) {
            return Err(SectionFault::LineBreak);
        }
        Ok(Self { title: Line::Heading.parse(&self.title)?, ..self })
    }
}
