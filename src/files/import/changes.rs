//! Content of a Word document that its text lacks, as the answer of an import counts it.

use std::collections::{BTreeMap, BTreeSet};

/// Content of a Word document that its text shows in another way, or not at all. All 0 or absent for other files.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ImportChanges {
    /// Tables, whose cells are separated by tabs.
    pub tables: usize,
    /// Footnotes and endnotes, which stand behind the text.
    pub footnotes: usize,
    /// Comments, which are left out.
    pub comments_left: usize,
    /// Tracked changes, which are taken as accepted.
    pub changes_applied: usize,
    /// Equations, which are lines of text. Absent: none.
    #[serde(skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schemas", schemars(range(min = 1)))]
    pub equations: usize,
    /// Passages that Word hides, which are text. Absent: none.
    #[serde(skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schemas", schemars(range(min = 1)))]
    pub hidden_passages: usize,
    /// Number formats of lists whose numbers are digits, by their names in the file. Absent: none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub number_formats: BTreeSet<String>,
    /// Content that is left out, by its kind: `pictures`; `objects` (embedded files, charts, diagrams,
    /// controls, ink, content of other files); `fields` whose value the file does not have; `headers` and
    /// footers with words; `symbols` that Unicode lacks. Absent: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(extend("additionalProperties" = {"type": "integer", "minimum": 1})))]
    pub left_out: BTreeMap<&'static str, usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}
