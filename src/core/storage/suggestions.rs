//! Batches of typed suggestions, anchored to the text.

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{ReviewId, UserId};
use crate::domain::review::{ReviewOutcome, ReviewStatus};
use crate::domain::suggestion::Refusal;
use crate::storage::reviews::{StoredPart, StoredReview};

/// A new suggestion, or a new version of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchoredSuggestion {
    pub id: ReviewId,
    /// The version that its author has read. `None`: it is new.
    pub version: Option<i64>,
    /// `None`: it stays.
    pub body: Option<String>,
    pub parts: Vec<StoredPart>,
}

impl AnchoredSuggestion {
    /// Whether a review has these words at these positions already.
    pub(crate) fn equals(&self, stored: &StoredReview) -> bool {
        let is_same_body = self.body.as_ref().is_none_or(|body| *body == stored.body);
        is_same_body
            && self.parts.len() == stored.parts().count()
            && self.parts.iter().zip(stored.parts()).all(|(part, stored)| {
                part.text == stored.text
                    && part.origin.quote == stored.origin.quote
                    && part.current == *stored.current
            })
    }

    pub(crate) fn bytes(&self) -> usize {
        let body = self.body.as_ref().map_or(0, String::len);
        self.parts.iter().map(StoredPart::bytes).sum::<usize>() + body
    }
}

/// Why an author may not put a suggestion in place of a stored one, whatever its parts are.
pub(crate) fn refusal(
    stored: Option<&StoredReview>,
    author: &UserId,
    version: Option<i64>,
) -> Option<Refusal> {
    match stored {
        // Its author has read a version, so it was withdrawn or deleted since.
        None => version.map(|_| Refusal::Version),
        Some(stored) if stored.author.id != *author || stored.suggestion.is_none() => {
            Some(Refusal::NotYours)
        }
        Some(stored) => (stored.status != ReviewStatus::Open).then_some(Refusal::Decided),
    }
}

/// The parts of an author's open suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenParts {
    /// `true` marks a gap.
    pub positions: Vec<(ReviewId, RelativeRange, bool)>,
    /// The number of the last change of these suggestions.
    pub last_change: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchoredItem {
    Put(AnchoredSuggestion),
    Withdraw {
        id: ReviewId,
        version: i64,
        /// Of a suggestion that stays because it has replies.
        outcome: ReviewOutcome,
    },
    /// Refused before the transaction.
    Refused(Refusal),
}

/// The outcome of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// Stored now.
    Stored(Box<StoredReview>),
    /// Stored before, in this version.
    StoredBefore(i64),
    /// Closed, because it has replies.
    Closed(Box<StoredReview>),
    /// Deleted, with the number of this change.
    Deleted(Box<StoredReview>, i64),
    /// Withdrawn before.
    WithdrawnBefore,
    /// The server's version of it, if it has one.
    Refused(Refusal, Option<i64>),
}
