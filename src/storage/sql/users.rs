//! Users, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::users::changes;

use super::dialect::{Connection, Engine, Moment, TxError, encoded, read, single, text, transact};

impl Engine {
    pub(in crate::storage) async fn save_user(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        let is_new = read!(self, connection => {
            let select = "SELECT name, updated_at FROM users WHERE id = $1";
            let stored: Option<(String, Moment)> =
                sqlx::query_as(select).bind(user.id.as_str()).fetch_optional(connection).await?;
            let stored = stored.as_ref().map(|(name, since)| (name.as_str(), since.0));
            Ok(changes(stored, &encoded(&user.name), issued_at))
        });
        if !is_new? {
            return Ok(());
        }
        single!(self, tx => {
            sqlx::query(
                "INSERT INTO users (id, name, updated_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (id) DO UPDATE \
                 SET name = excluded.name, updated_at = excluded.updated_at \
                 WHERE users.updated_at <= excluded.updated_at",
            )
            .bind(user.id.as_str())
            .bind(encoded(&user.name))
            .bind(Moment(issued_at))
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn rename_user(
        &self,
        user: &User,
        now: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        single!(self, tx => {
            // The stored time may be that of a server whose clock is ahead.
            sqlx::query(
                "INSERT INTO users AS u (id, name, updated_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = CASE \
                   WHEN u.updated_at < excluded.updated_at THEN excluded.updated_at \
                   ELSE u.updated_at END",
            )
            .bind(user.id.as_str())
            .bind(encoded(&user.name))
            .bind(Moment(now))
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn set_guest_requests(
        &self,
        user: &User,
        takes: bool,
    ) -> Result<(), StorageError> {
        transact!(self, tx => {
            // Older than every token, so that the next one may rename a user of a host application.
            put_user(tx, user, DateTime::UNIX_EPOCH).await?;
            let update = "UPDATE users SET guest_requests = $2 WHERE id = $1";
            sqlx::query(update).bind(user.id.as_str()).bind(takes).execute(tx).await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn profile_of(
        &self,
        id: &UserId,
    ) -> Result<Option<(String, bool)>, StorageError> {
        read!(self, connection => {
            let select = "SELECT name, guest_requests FROM users WHERE id = $1";
            let stored: Option<(String, bool)> =
                sqlx::query_as(select).bind(id.as_str()).fetch_optional(connection).await?;
            Ok(stored.map(|(name, takes)| (text(name), takes)))
        })
    }
}

/// Inserts a missing user, so that other rows can refer to it. Only `save_user` and `rename_user` rename. It locks no
/// existing row; callers hold no lock, or that of a document.
pub(super) async fn put_user(
    connection: &mut Connection,
    user: &User,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    sqlx::query(
        "INSERT INTO users (id, name, updated_at) SELECT $1, $2, $3 \
         WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = $1) ON CONFLICT (id) DO NOTHING",
    )
    .bind(user.id.as_str())
    .bind(encoded(&user.name))
    .bind(Moment(now))
    .execute(connection)
    .await?;
    Ok(())
}
