//! The progress of a share link for one of its members.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::seat::Role;
use crate::user::User;

/// The role whose turn it is to work on the text. It permits and prevents nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Turn"))]
pub struct ReviewTurn {
    /// The role.
    pub role: Role,
    /// When it was passed.
    pub since: DateTime<Utc>,
    /// The user who passed it.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::schemas::Author"))]
    pub by: User,
}

/// Numbers of the link's reviews, for the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReviewCounts {
    /// Open reviews.
    pub open: i64,
    /// Their last change is above `seen`, and another user made it.
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
