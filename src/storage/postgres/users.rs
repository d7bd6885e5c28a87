//! Users, on PostgreSQL.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::postgres::columns::{Moment, kept};
use crate::storage::postgres::stop::Stop;
use crate::storage::postgres::{Postgres, WRITE, read, transaction};

impl Postgres {
    pub(in crate::storage) async fn save_user(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        let is_known = read!(self.others, connection => {
            let known: Option<String> = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
                .bind(user.id.as_str())
                .fetch_optional(connection)
                .await?;
            Ok(known.as_deref() == Some(&*kept(&user.name)))
        });
        if is_known.map_err(Stop::into_error)? {
            return Ok(());
        }
        let saving = transaction!(self.others, WRITE, tx => {
            sqlx::query(
                "INSERT INTO users AS u (id, name, updated_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (id) DO UPDATE \
                 SET name = excluded.name, updated_at = excluded.updated_at \
                 WHERE u.name <> excluded.name AND u.updated_at <= excluded.updated_at",
            )
            .bind(user.id.as_str())
            .bind(kept(&user.name))
            .bind(Moment(issued_at))
            .execute(tx)
            .await?;
            Ok(())
        });
        saving.map_err(Stop::into_error)
    }
}

/// Inserts a user that the table lacks, so that other rows may refer to it. `save_user` renames. It
/// locks no row that is there; under no lock, or that of a document.
pub(super) async fn put_user(
    connection: &mut PgConnection,
    user: &User,
    now: DateTime<Utc>,
) -> Result<(), Stop> {
    sqlx::query(
        "INSERT INTO users (id, name, updated_at) SELECT $1, $2, $3 \
         WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = $1) ON CONFLICT (id) DO NOTHING",
    )
    .bind(user.id.as_str())
    .bind(kept(&user.name))
    .bind(Moment(now))
    .execute(connection)
    .await?;
    Ok(())
}
