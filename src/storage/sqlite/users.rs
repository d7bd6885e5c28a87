//! Users, on `SQLite`.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::memory::Forget;

impl Sqlite {
    pub(in crate::storage) async fn save_user(
        &self,
        user: &User,
        now: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        let known: Option<String> = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
            .bind(user.id.as_str())
            .fetch_optional(&self.readers)
            .await?;
        if known.as_deref() == Some(user.name.as_str()) {
            return Ok(());
        }
        let mut tx = self.write(Forget::Nothing).await?;
        put_user(&mut tx, user, now).await?;
        Ok(tx.commit().await?)
    }
}

/// Writes a user down, so that others may refer to it.
pub(super) async fn put_user(
    connection: &mut SqliteConnection,
    user: &User,
    now: DateTime<Utc>,
) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO users (id, name, updated_at) VALUES ($1, $2, $3) \
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = excluded.updated_at \
         WHERE users.name <> excluded.name",
    )
    .bind(user.id.as_str())
    .bind(user.name.as_str())
    .bind(now.timestamp_millis())
    .execute(connection)
    .await?;
    Ok(())
}
