//! Numbered changes of reviews: a server that missed a message reads them (G15).
//!
//! Each write of a review takes the next number of its document, in its own transaction. A server
//! delivers changes to its sockets in the order of these numbers, each once. It ignores a number
//! that it has delivered, and reads the database when one is missing.

use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::section::StoredSection;
use crate::storage::decisions::ManyChanged;
use crate::storage::progress::StoredTurn;
use crate::storage::reviews::StoredReview;

/// A room reads at most this many missed changes, and their deletions. It reconciles at each tick, and the
/// rate limit allows far fewer changes between two ticks.
pub const MISSED_MAX: i64 = 1_000;

/// The database stores a deletion for this many further changes of the document's reviews: some 4 MB. The
/// id of a deleted review is spent meanwhile. Afterwards a review begins above each version of it
/// (`insert` in `sql/reviews.rs`), so a version that a client has read never names other words.
pub const DELETIONS_MAX: i64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedReview {
    pub id: ReviewId,
    pub link: ShareLinkId,
    pub change: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewChanges {
    pub upto: i64,
    /// Reviews of active links that changed, in the order of their last changes.
    pub changed: Vec<StoredReview>,
    /// Decisions and undos that changed many reviews at once, in the order of their numbers. The
    /// reviews are not among [`changed`](Self::changed).
    pub decided: Vec<ManyChanged>,
    /// Reviews that were deleted, in the order of the deletions.
    pub deleted: Vec<DeletedReview>,
    /// The turn of the active link, if it changed.
    pub turn: Option<StoredTurn>,
    /// The number of the change that set the sections, and the sections, if it is among the changes.
    pub sections: Option<(i64, Vec<StoredSection>)>,
}

impl ReviewChanges {
    /// Whether a room may deliver it; otherwise the members read all reviews again.
    #[must_use]
    pub fn is_whole(&self, after: i64) -> bool {
        self.upto - after <= MISSED_MAX
    }
}
