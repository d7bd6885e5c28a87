//! Partners: pairs of users of whom one accepted a request or a claim of the other.
//!
//! A pair has one row, also when several servers make it at once (G11): its key is the lower id and the
//! higher id. A transaction that adds a row has locked both users, so that the bound of each is exact.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partner {
    pub user: User,
    pub since: DateTime<Utc>,
}

impl Partner {
    /// The cursor of the next page, if this partner is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<UserId> {
        Cursor { at: self.since, id: self.user.id.clone() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partnership {
    /// They are partners as of this call.
    Made,
    /// They were partners before it.
    Existing,
    Full,
}

/// The two users of a pair, the lower id first.
pub fn sorted<'u>(one: &'u UserId, other: &'u UserId) -> (&'u UserId, &'u UserId) {
    if one <= other { (one, other) } else { (other, one) }
}
