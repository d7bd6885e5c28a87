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
        issued_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        let known: Option<String> = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
            .bind(user.id.as_str())
            .fetch_optional(&self.readers)
            .await?;
        if known.as_deref() == Some(user.name.as_str()) {
            return Ok(());
        }
        let mut tx = self.write(Forget::Nothing).await?;
        sqlx::query(
            "INSERT INTO users (id, name, updated_at) VALUES ($1, $2, $3) \
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = excluded.updated_at \
             WHERE users.name <> excluded.name AND users.updated_at <= excluded.updated_at",
        )
        .bind(user.id.as_str())
        .bind(user.name.as_str())
        .bind(issued_at.timestamp_millis())
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }
}

/// Inserts a user that the table lacks, so that other rows may refer to it. `save_user` renames.
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
