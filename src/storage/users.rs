//! Users: an id and a name for each.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::limits::NAME_TIME_STEP_SECONDS;
use crate::domain::user::User;
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

impl Storage {
    /// Stores a user's name as a token from `issued_at` carries it. A token older than that of the
    /// stored name changes nothing: it may still be valid after a rename. The cost: a read if the
    /// name is unchanged, and a write if the token is more than a minute newer.
    pub fn save_user<'a>(
        &'a self,
        user: &'a User,
        issued_at: DateTime<Utc>,
    ) -> StorageFuture<'a, ()> {
        boxed_on_engine!(self, save_user(user, issued_at))
    }

    /// Stores the name that a guest chose at `now`, also over a stored name with a later time.
    pub fn rename_user<'a>(&'a self, user: &'a User, now: DateTime<Utc>) -> StorageFuture<'a, ()> {
        boxed_on_engine!(self, rename_user(user, now))
    }

    /// Sets whether the user takes requests of guests.
    pub fn set_guest_requests<'a>(&'a self, user: &'a User, takes: bool) -> StorageFuture<'a, ()> {
        boxed_on_engine!(self, set_guest_requests(user, takes))
    }

    /// The stored name of a user, and whether the user takes requests of guests. `None`: no row refers to
    /// the user yet.
    pub fn profile_of<'a>(&'a self, id: &'a UserId) -> StorageFuture<'a, Option<(String, bool)>> {
        boxed_on_engine!(self, profile_of(id))
    }
}

/// Whether a token from `issued_at` with this name changes the row. `stored`: the stored name, and
/// the time of its token.
#[must_use]
pub fn changes(
    stored: Option<(&str, DateTime<Utc>)>,
    name: &str,
    issued_at: DateTime<Utc>,
) -> bool {
    let Some((stored, since)) = stored else { return true };
    let newer_by = issued_at.timestamp_millis() - since.timestamp_millis();
    if stored == name { NAME_TIME_STEP_SECONDS * 1_000 < newer_by } else { 0 <= newer_by }
}
