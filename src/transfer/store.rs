//! Codes that sign a guest in on another device.
//!
//! A code is a row of its user, stored as a keyed hash. The statement that compares a code deletes its
//! row: of two callers with one code, one is signed in.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::storage::statement::sql;
use crate::storage::tx::run;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

/// Expired codes that the creation of one code deletes, at most. It is more than one, so the table
/// shrinks to the codes that are valid.
const PURGED_AT_ONCE: i64 = 100;

/// Stores the code of a user in place of an earlier one, and deletes some expired ones.
pub fn put_transfer<'a>(
    storage: &'a Storage,
    user: &'a User,
    code_hash: [u8; 32],
    now: DateTime<Utc>,
    expires_at: DateTime<Utc>,
) -> StorageFuture<'a, ()> {
    run!(storage, Write, tx => {
        put_user(tx, user, now).await?;
        sql!(
            "DELETE FROM transfer_codes WHERE user_id IN ( \
               SELECT user_id FROM transfer_codes WHERE expires_at <= {now} LIMIT {PURGED_AT_ONCE})"
        )
        .run(tx)
        .await?;
        sql!(
            "INSERT INTO transfer_codes (user_id, code_hash, expires_at) \
             VALUES ({user.id}, {code_hash}, {expires_at}) ON CONFLICT (user_id) DO UPDATE \
             SET code_hash = excluded.code_hash, expires_at = excluded.expires_at"
        )
        .run(tx)
        .await
        .map(drop)
    })
}

/// Takes the code with this hash, and returns its user. `None`: the code is wrong, used or expired.
pub fn take_transfer(
    storage: &Storage,
    code_hash: [u8; 32],
    now: DateTime<Utc>,
) -> StorageFuture<'_, Option<User>> {
    run!(storage, Write, tx => {
        let taken = sql!(
            "DELETE FROM transfer_codes WHERE code_hash = {code_hash} RETURNING user_id, expires_at"
        );
        let Some(taken) = taken.row(tx).await? else { return Ok(None) };
        if taken.get::<DateTime<Utc>>("expires_at")? <= now {
            return Ok(None);
        }
        let id: UserId = taken.get("user_id")?;
        let name = sql!("SELECT name FROM users WHERE id = {id}").one(tx).await?.get(0)?;
        Ok(Some(User { id, name }))
    })
}
