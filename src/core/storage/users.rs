//! Users: an id and a name for each.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::limits::NAME_TIME_STEP_SECONDS;
use crate::domain::user::User;
use crate::storage::statement::sql;
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

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
    if stored == name { newer_by > NAME_TIME_STEP_SECONDS * 1_000 } else { newer_by >= 0 }
}

impl Storage {
    /// Stores a user's name as a token from `issued_at` carries it. A token older than that of the
    /// stored name changes nothing: it may still be valid after a rename. The cost: a read if the
    /// name is unchanged, and a write if the token is more than a minute newer.
    pub fn save_user<'a>(
        &'a self,
        user: &'a User,
        issued_at: DateTime<Utc>,
    ) -> StorageFuture<'a, ()> {
        Box::pin(async move {
            if !self.is_name_new(user, issued_at).await? {
                return Ok(());
            }
            let write = run!(self, One, tx => {
                sql!(
                    "INSERT INTO users (id, name, updated_at) \
                     VALUES ({user.id}, {user.name}, {issued_at}) ON CONFLICT (id) DO UPDATE \
                     SET name = excluded.name, updated_at = excluded.updated_at \
                     WHERE users.updated_at <= excluded.updated_at"
                )
                .run(tx)
                .await
            });
            write.await.map(drop)
        })
    }

    fn is_name_new<'a>(
        &'a self,
        user: &'a User,
        issued_at: DateTime<Utc>,
    ) -> StorageFuture<'a, bool> {
        run!(self, Read, tx => {
            let row =
                sql!("SELECT name, updated_at FROM users WHERE id = {user.id}").row(tx).await?;
            let Some(row) = row else { return Ok(true) };
            let (stored, since) = (row.get::<String>("name")?, row.get("updated_at")?);
            Ok(changes(Some((&stored, since)), &user.name, issued_at))
        })
    }

    /// Stores the name that a guest chose at `now`, also over a stored name with a later time.
    pub fn rename_user<'a>(&'a self, user: &'a User, now: DateTime<Utc>) -> StorageFuture<'a, ()> {
        run!(self, One, tx => {
            // The stored time may be that of a server whose clock is ahead.
            sql!(
                "INSERT INTO users AS u (id, name, updated_at) \
                 VALUES ({user.id}, {user.name}, {now}) \
                 ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = CASE \
                   WHEN u.updated_at < excluded.updated_at THEN excluded.updated_at \
                   ELSE u.updated_at END"
            )
            .run(tx)
            .await
            .map(drop)
        })
    }

    /// Sets whether the user takes requests of guests.
    pub fn set_guest_requests<'a>(&'a self, user: &'a User, takes: bool) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            // Older than every token, so that the next one may rename a user of a host application.
            put_user(tx, user, DateTime::UNIX_EPOCH).await?;
            sql!("UPDATE users SET guest_requests = {takes} WHERE id = {user.id}").run(tx).await?;
            Ok(())
        })
    }

    /// The stored name of a user, and whether the user takes requests of guests. `None`: no row refers to
    /// the user yet.
    pub fn profile_of<'a>(&'a self, id: &'a UserId) -> StorageFuture<'a, Option<(String, bool)>> {
        run!(self, Read, tx => {
            let row = sql!("SELECT name, guest_requests FROM users WHERE id = {id}").row(tx).await?;
            row.map(|row| Ok((row.get("name")?, row.get("guest_requests")?))).transpose()
        })
    }
}

/// Inserts a missing user, so that other rows can refer to it. Only `save_user` and `rename_user` rename. It
/// locks no existing row; callers hold no lock, or that of a document.
pub async fn put_user(tx: &mut Tx, user: &User, now: DateTime<Utc>) -> Result<(), TxError> {
    sql!(
        "INSERT INTO users (id, name, updated_at) SELECT {user.id}, {user.name}, {now} \
         WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = {user.id}) ON CONFLICT (id) DO NOTHING"
    )
    .run(tx)
    .await?;
    Ok(())
}
