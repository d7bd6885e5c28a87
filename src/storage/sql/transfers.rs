//! Codes for another device, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::transfers::PURGED_AT_ONCE;

use super::dialect::{Engine, Moment, transact, user};
use super::users::put_user;

impl Engine {
    pub(in crate::storage) async fn put_transfer(
        &self,
        user: &User,
        code_hash: [u8; 32],
        now: DateTime<Utc>,
        expires_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        transact!(self, tx => {
            put_user(tx, user, now).await?;
            sqlx::query(
                "DELETE FROM transfer_codes WHERE user_id IN ( \
                   SELECT user_id FROM transfer_codes WHERE expires_at <= $1 LIMIT $2)",
            )
            .bind(Moment(now))
            .bind(PURGED_AT_ONCE)
            .execute(&mut *tx)
            .await?;
            sqlx::query(
                "INSERT INTO transfer_codes (user_id, code_hash, expires_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (user_id) DO UPDATE \
                 SET code_hash = excluded.code_hash, expires_at = excluded.expires_at",
            )
            .bind(user.id.as_str())
            .bind(code_hash.as_slice())
            .bind(Moment(expires_at))
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn take_transfer(
        &self,
        code_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<Option<User>, StorageError> {
        transact!(self, tx => {
            let taken: Option<(String, Moment)> = sqlx::query_as(
                "DELETE FROM transfer_codes WHERE code_hash = $1 RETURNING user_id, expires_at",
            )
            .bind(code_hash.as_slice())
            .fetch_optional(&mut *tx)
            .await?;
            let Some((id, _)) = taken.filter(|(_, Moment(until))| now < *until) else {
                return Ok(None);
            };
            let name: String = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
                .bind(&id)
                .fetch_one(tx)
                .await?;
            Ok(Some(user(&id, name)?))
        })
    }
}
