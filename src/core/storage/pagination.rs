//! Pages of lists, sorted by time.
//!
//! A page ends at a cursor and not after a count. So a row that is added or deleted between two pages
//! neither repeats another row nor skips one.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

/// Rows of one page of a list, at most.
pub const PAGE_ROWS_MAX: u32 = 256;

/// A position in a list. Clients treat its text as opaque: see `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor<Id> {
    /// The time of the row at that position; the list is sorted by it.
    pub at: DateTime<Utc>,
    /// The id of that row. It orders rows of the same time.
    pub id: Id,
}

/// The text is not a cursor of Galley's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid cursor")]
pub struct InvalidCursor;

impl<Id: fmt::Display> fmt::Display for Cursor<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at.timestamp_millis(), self.id)
    }
}

impl<Id: FromStr> FromStr for Cursor<Id> {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, id) = text.split_once('-').ok_or(InvalidCursor)?;
        let at = at.parse().map_err(|_| InvalidCursor)?;
        let at = DateTime::from_timestamp_millis(at).ok_or(InvalidCursor)?;
        Ok(Self { at, id: id.parse().map_err(|_| InvalidCursor)? })
    }
}

/// The part of a list to read.
#[derive(Clone, Copy, Debug)]
pub struct Page<Id> {
    /// The maximum of rows. A greater value than [`PAGE_ROWS_MAX`] is read as that.
    pub limit: u32,
    /// The end of the previous page.
    pub before: Option<Cursor<Id>>,
}

/// The arguments of a statement that reads the page.
impl<Id> Page<Id> {
    pub fn rows(&self) -> u32 {
        self.limit.min(PAGE_ROWS_MAX)
    }

    pub fn before_at(&self) -> Option<DateTime<Utc>> {
        self.before.as_ref().map(|before| before.at)
    }

    pub fn before_id(&self) -> Option<&Id> {
        self.before.as_ref().map(|before| &before.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::DocumentId;

    #[test]
    fn a_cursor_survives_the_trip_through_text() {
        let at = DateTime::from_timestamp_millis(1_790_000_000_123).unwrap();
        let cursor = Cursor { at, id: DocumentId::generate() };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }

    #[test]
    fn a_cursor_that_galley_did_not_issue_is_refused() {
        for text in ["", "-", "12", "12-", "x-doc_0", "9223372036854775807-doc_0"] {
            assert_eq!(text.parse::<Cursor<DocumentId>>(), Err(InvalidCursor), "{text}");
        }
    }
}
