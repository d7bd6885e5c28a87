//! Partners: pairs of users of whom one accepted a request or a claim of the other.
//!
//! A pair has one row, also when several servers make it at once (G11): its key is the lower id and the
//! higher id. A transaction that adds a row has locked both users, so that the bound of each is exact.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::storage::pagination::{Cursor, Page};
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

/// A partner of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The partner.
    pub user: User,
    /// When both became partners.
    pub since: DateTime<Utc>,
}

impl Partner {
    /// The cursor of the next page, if this partner is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<UserId> {
        Cursor { at: self.since, id: self.user.id.clone() }
    }
}

/// The outcome of making two users partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partnership {
    /// They are partners as of this call.
    Made,
    /// They were partners before it.
    Existing,
    /// One of them has as many partners as a user may have.
    Full,
}

/// The two users of a pair, the lower id first.
pub(super) fn sorted<'u>(one: &'u UserId, other: &'u UserId) -> (&'u UserId, &'u UserId) {
    if one <= other { (one, other) } else { (other, one) }
}

impl Storage {
    /// Makes two users partners. Idempotent. Both must have a row, and `one` must not be `other`.
    pub fn make_partners<'a>(
        &'a self,
        one: &'a UserId,
        other: &'a UserId,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Partnership> {
        boxed_on_engine!(self, make_partners(one, other, now))
    }

    /// Ends a partnership, for `one` of the two. In the same transaction their accepted claims end, which
    /// frees the places, and a pending request of the pair is withdrawn or declined. False: they are no
    /// partners, and nothing changes.
    pub fn remove_partners<'a>(
        &'a self,
        one: &'a UserId,
        other: &'a UserId,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, bool> {
        boxed_on_engine!(self, remove_partners(one, other, now))
    }

    /// Whether two users are partners.
    pub fn are_partners<'a>(
        &'a self,
        one: &'a UserId,
        other: &'a UserId,
    ) -> StorageFuture<'a, bool> {
        boxed_on_engine!(self, are_partners(one, other))
    }

    /// Reads a page of a user's partners, newest first.
    pub fn partners_of<'a>(
        &'a self,
        user: &'a UserId,
        page: &'a Page<UserId>,
    ) -> StorageFuture<'a, Vec<Partner>> {
        boxed_on_engine!(self, partners_of(user, page))
    }
}
