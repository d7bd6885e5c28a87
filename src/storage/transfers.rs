//! Codes that sign a guest in on another device.
//!
//! A code is a row of its user, stored as a keyed hash. The statement that compares a code deletes its
//! row: of two callers with one code, one is signed in.

use chrono::{DateTime, Utc};

use crate::domain::user::User;
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

/// Expired codes that the creation of one code deletes, at most. It is more than one, so the table
/// shrinks to the codes that are valid.
pub(super) const PURGED_AT_ONCE: i64 = 100;

impl Storage {
    /// Stores the code of a user in place of an earlier one, and deletes some expired ones.
    pub fn put_transfer<'a>(
        &'a self,
        user: &'a User,
        code_hash: [u8; 32],
        now: DateTime<Utc>,
        expires_at: DateTime<Utc>,
    ) -> StorageFuture<'a, ()> {
        boxed_on_engine!(self, put_transfer(user, code_hash, now, expires_at))
    }

    /// Takes the code with this hash, and returns its user. `None`: the code is wrong, used or expired.
    pub fn take_transfer(
        &self,
        code_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> StorageFuture<'_, Option<User>> {
        boxed_on_engine!(self, take_transfer(code_hash, now))
    }
}
