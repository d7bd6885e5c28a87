//! Decisions of the writer about suggestions, and their undo.
//!
//! One transaction stores the edit of a decision, the new status of each review and the decision
//! itself, with the places of the texts that it put in. An undo reads these places. Each write names
//! the seat that authorizes it (G14) and the version of each review that the caller has read.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{DecisionId, DocumentId, ReviewId, ShareLinkId};
use crate::domain::review::Verdict;
use crate::domain::user::User;
use crate::storage::reviews::StoredReview;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionPart {
    pub review: ReviewId,
    /// The version of the review, as the caller has read it.
    pub version: i64,
    /// The number of the part in the review.
    pub part: usize,
    /// The position of its range from now on. `None`: it stays.
    pub current: Option<RelativeRange>,
    /// The place of the accepted text. `None`: the decision puts nothing into the text.
    pub position: Option<RelativeRange>,
}

#[derive(Clone, Debug)]
pub struct NewDecision {
    /// Its id; never used before.
    pub id: DecisionId,
    pub document: DocumentId,
    pub link: ShareLinkId,
    pub verdict: Verdict,
    pub by: User,
    pub at: DateTime<Utc>,
    /// The parts of its reviews in the order of the text; at least one, each once. A rejection has the first
    /// part of each review.
    pub parts: Vec<DecisionPart>,
}

#[derive(Clone, Debug)]
pub struct UndoneDecision {
    pub id: DecisionId,
    pub document: DocumentId,
    pub link: ShareLinkId,
    pub by: User,
    pub at: DateTime<Utc>,
    /// The parts of the decision. An undo stores no place.
    pub parts: Vec<DecisionPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub seq: Option<i64>,
    /// The number of its last change among the document's review changes.
    pub change: i64,
    /// Its reviews, in the order of their first places; none of a decision that is announced as one.
    pub reviews: Vec<StoredReview>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    pub verdict: Verdict,
    pub at: DateTime<Utc>,
    /// Whether it is undone. An undone decision has no parts any more.
    pub is_undone: bool,
    /// Its parts in the order of the text: the review, the number in it, and the place of the accepted text.
    pub parts: Vec<(ReviewId, usize, Option<RelativeRange>)>,
}

/// The reviews of these parts with their versions, each once.
pub(crate) fn reviews_of(parts: &[DecisionPart]) -> Vec<(ReviewId, i64)> {
    let mut seen = HashSet::new();
    let first = parts.iter().filter(|part| seen.insert(part.review));
    first.map(|part| (part.review, part.version)).collect()
}

/// A change of many reviews at once, announced as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManyChanged {
    /// Its number among the document's review changes.
    pub change: i64,
    pub id: DecisionId,
    /// The verdict and the writer of a decision; `None` for its undo.
    pub made: Option<(Verdict, User)>,
    pub reviews: Vec<(ReviewId, i64)>,
}
