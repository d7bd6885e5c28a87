//! The progress of a share link for one of its members.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::seat::Role;
use crate::user::User;

/// The role whose turn it is to work on the text. It permits and prevents nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReviewTurn {
    /// The role.
    pub role: Role,
    /// When the turn was passed.
    pub since: DateTime<Utc>,
    /// The user who passed it.
    pub by: User,
}

/// The numbers of a link's reviews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReviewCounts {
    /// Open reviews.
    pub open: i64,
    /// Reviews whose last change another user made, and the member has not seen.
    pub unread: i64,
    /// All reviews.
    pub total: i64,
}

/// The progress of a link for one of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// The number of the last change that the member has seen.
    pub seen: i64,
    /// The numbers of reviews.
    pub reviews: ReviewCounts,
    /// The turn, once it was passed.
    pub turn: Option<ReviewTurn>,
}
