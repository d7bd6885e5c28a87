//! The progress of a share link: seen marks, counts of its reviews, and the turn.
//!
//! A change of a review counts as unread for a member if its number is above the member's mark and
//! another user made it. The turn takes a number among the review changes of its document, so a server
//! that missed its message reads it (G15).

use crate::domain::progress::ReviewTurn;

/// The turn of a link, and the number of the change that set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTurn {
    pub turn: ReviewTurn,
    pub change: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    Changed(StoredTurn),
    /// It was that role's turn already.
    Same(ReviewTurn),
}
