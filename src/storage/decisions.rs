//! Decisions of the writer about suggestions, and their undo.
//!
//! One transaction stores the edit of a decision, the new status of each review and the decision
//! itself, with the places of the texts that it put in. An undo reads these places. Each write names
//! the seat that authorizes it (G14) and the version of each review that the caller has read.

use chrono::{DateTime, Utc};

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{DecisionId, DocumentId, ReviewId, ShareLinkId};
use crate::domain::review::Verdict;
use crate::domain::user::User;
use crate::storage::reviews::StoredReview;

/// A review of a decision, or of its undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionPart {
    /// The review.
    pub review: ReviewId,
    /// Its version, as the caller has read it.
    pub version: i64,
    /// The position of the review's range from now on. `None`: it stays.
    pub current: Option<RelativeRange>,
    /// The place of the accepted text. `None`: the decision puts nothing into the text.
    pub position: Option<RelativeRange>,
}

/// A decision to store.
#[derive(Clone, Debug)]
pub struct NewDecision {
    /// Its id; never used before.
    pub id: DecisionId,
    /// The document.
    pub document: DocumentId,
    /// The share link of its reviews.
    pub link: ShareLinkId,
    /// Accepted or rejected.
    pub verdict: Verdict,
    /// The writer.
    pub by: User,
    /// The time of the decision.
    pub at: DateTime<Utc>,
    /// Its reviews in the order of the text; at least one, each once.
    pub parts: Vec<DecisionPart>,
}

/// The undo of a decision.
#[derive(Clone, Debug)]
pub struct UndoneDecision {
    /// The decision.
    pub id: DecisionId,
    /// The document.
    pub document: DocumentId,
    /// Its share link.
    pub link: ShareLinkId,
    /// The writer.
    pub by: User,
    /// The time of the undo.
    pub at: DateTime<Utc>,
    /// All reviews of the decision. An undo stores no place.
    pub parts: Vec<DecisionPart>,
}

/// A decision or an undo that is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The number of the edit, if there is one.
    pub seq: Option<i64>,
    /// The number of its last change among the document's review changes.
    pub change: i64,
    /// Its reviews, in the order of its parts; none of a decision that is announced as one.
    pub reviews: Vec<StoredReview>,
}

/// A decision as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    /// Accepted or rejected.
    pub verdict: Verdict,
    /// The time of the decision.
    pub at: DateTime<Utc>,
    /// Whether it is undone. An undone decision has no parts any more.
    pub is_undone: bool,
    /// Its reviews in the order of the text, each with the place of its accepted text.
    pub parts: Vec<(ReviewId, Option<RelativeRange>)>,
}

/// A change of many reviews at once, announced as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManyChanged {
    /// Its number among the document's review changes.
    pub change: i64,
    /// The decision.
    pub id: DecisionId,
    /// The verdict and the writer of a decision; `None` for its undo.
    pub made: Option<(Verdict, User)>,
    /// The reviews with their versions.
    pub reviews: Vec<(ReviewId, i64)>,
}
