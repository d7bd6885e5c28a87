//! Lists come page by page, the newest first.
//!
//! A page ends at a place and not after a count, so that what comes or goes meanwhile neither shows
//! anything twice nor leaves anything out.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

/// Rows of one page of a list, at most.
pub const PAGE_ROWS_MAX: u32 = 256;

/// A place in a list. Opaque text outside: see `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor<Id> {
    /// The moment by which the list is sorted, of what is at that place.
    pub at: DateTime<Utc>,
    /// Its name, which decides between two of the same moment.
    pub id: Id,
}

/// The text is not a cursor that Galley handed out.
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

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Page<Id> {
    /// Rows at most; more than [`PAGE_ROWS_MAX`] is read as that.
    pub limit: u32,
    /// Where the page before ended.
    pub before: Option<Cursor<Id>>,
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
    fn a_cursor_that_nobody_handed_out_is_refused() {
        for text in ["", "-", "12", "12-", "x-doc_0", "9223372036854775807-doc_0"] {
            assert_eq!(text.parse::<Cursor<DocumentId>>(), Err(InvalidCursor), "{text}");
        }
    }
}
