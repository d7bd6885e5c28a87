//! Users, on `SQLite`.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::write_cache::Invalidate;
use crate::storage::users::changes;

impl Sqlite {
    pub(in crate::storage) async fn save_user(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        let select = "SELECT name, updated_at FROM users WHERE id = $1";
        let stored: Option<(String, DateTime<Utc>)> = sqlx::query_as::<_, (String, i64)>(select)
            .bind(user.id.as_str())
            .fetch_optional(&self.readers)
            .await?
            .map(|(name, since)| {
                (name, DateTime::from_timestamp_millis(since).unwrap_or_default())
            });
        let stored = stored.as_ref().map(|(name, since)| (name.as_str(), *since));
        if !changes(stored, &user.name, issued_at) {
            return Ok(());
        }
        let mut tx = self.write(Invalidate::Nothing).await?;
        sqlx::query(
            "INSERT INTO users (id, name, updated_at) VALUES ($1, $2, $3) \
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = excluded.updated_at \
             WHERE users.updated_at <= excluded.updated_at",
        )
        .bind(user.id.as_str())
        .bind(user.name.as_str())
        .bind(issued_at.timestamp_millis())
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }
}

/// Inserts a missing user, so that other rows can refer to it. Only `save_user` renames.
pub(super) async fn put_user(
    connection: &mut SqliteConnection,
    user: &User,
    now: DateTime<Utc>,
) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO users (id, name, updated_at) VALUES ($1, $2, $3) \
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(user.id.as_str())
    .bind(user.name.as_str())
    .bind(now.timestamp_millis())
    .execute(connection)
    .await?;
    Ok(())
}
