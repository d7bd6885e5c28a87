//! Changes of replies by their authors, on either engine.

use chrono::{DateTime, Utc};

use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;
use crate::storage::replies::OwnReply;
use crate::storage::reviews::{ReviewChange, StoredReview};
use crate::storage::seats::{FenceGuard, Guarded};

use super::dialect::{Connection, Engine, Moment, TxError, encoded, guarded};
use super::reviews::{admit, lock_for_update, the_review, update, weigh};

impl Engine {
    pub(in crate::storage) async fn edit_reply(
        &self,
        reply: &OwnReply,
        body: &str,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        guarded!(self, tx => {
            admit(tx, reply.link, guard).await?;
            let row = lock_for_update(tx, reply.link, reply.review, expected_version).await?;
            let before = length(tx, reply).await?;
            let body = encoded(body);
            let after = i64::try_from(body.len()).map_err(corrupt)?;
            sqlx::query("UPDATE replies SET body = $2, edited_at = $3 WHERE id = $1")
                .bind(reply.id.to_string())
                .bind(body)
                .bind(Moment(now))
                .execute(&mut *tx)
                .await?;
            grow(tx, reply, after - before).await?;
            update(tx, reply.review, &ReviewChange::default(), now).await?;
            weigh(tx, reply.link, reply.review, row.bytes).await?;
            the_review(tx, guard.seat, reply.review).await
        })
    }

    pub(in crate::storage) async fn delete_reply(
        &self,
        reply: &OwnReply,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        guarded!(self, tx => {
            admit(tx, reply.link, guard).await?;
            lock_for_update(tx, reply.link, reply.review, expected_version).await?;
            let before = length(tx, reply).await?;
            sqlx::query("DELETE FROM replies WHERE id = $1")
                .bind(reply.id.to_string())
                .execute(&mut *tx)
                .await?;
            grow(tx, reply, -before).await?;
            update(tx, reply.review, &ReviewChange::default(), now).await?;
            the_review(tx, guard.seat, reply.review).await
        })
    }
}

/// The bytes of a reply. Refuses one of another review or another author.
async fn length(connection: &mut Connection, reply: &OwnReply) -> Result<i64, TxError> {
    let length: Option<i64> = sqlx::query_scalar(
        "SELECT CAST(octet_length(body) AS bigint) FROM replies \
         WHERE id = $1 AND review_id = $2 AND author_id = $3",
    )
    .bind(reply.id.to_string())
    .bind(reply.review.to_string())
    .bind(reply.author.as_str())
    .fetch_optional(connection)
    .await?;
    length.ok_or(TxError::Refused(Guarded::NotFound))
}

/// Adds the bytes of a reply to those of its review.
async fn grow(connection: &mut Connection, reply: &OwnReply, bytes: i64) -> Result<(), TxError> {
    sqlx::query("UPDATE reviews SET bytes = bytes + $2 WHERE id = $1")
        .bind(reply.review.to_string())
        .bind(bytes)
        .execute(connection)
        .await?;
    Ok(())
}
