//! The statements that change replies.

use chrono::{DateTime, Utc};

use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::replies::OwnReply;
use crate::storage::reviews::{ReviewChange, StoredReview};
use crate::storage::statement::sql;
use crate::storage::tx::{Tx, guarded};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

use crate::storage::sql::reviews::{admit, lock_for_update, the_review, update, weigh};

impl Storage {
    /// Changes the text of a reply. `Full` when the review would exceed [`REVIEW_BYTES_MAX`].
    ///
    /// [`REVIEW_BYTES_MAX`]: crate::domain::limits::REVIEW_BYTES_MAX
    pub fn edit_reply<'a>(
        &'a self,
        reply: &'a OwnReply,
        body: &'a str,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<StoredReview>> {
        guarded!(self, tx => {
            admit(tx, reply.link, guard).await?;
            let row = lock_for_update(tx, reply.link, reply.review, expected_version).await?;
            let before = length(tx, reply).await?;
            sql!("UPDATE replies SET body = $2, edited_at = $3 WHERE id = $1", reply.id, body, now)
                .run(tx)
                .await?;
            sql!(
                "UPDATE reviews SET bytes = bytes + octet_length($2) - $3 WHERE id = $1",
                reply.review,
                body,
                before
            )
            .run(tx)
            .await?;
            update(tx, reply.review, &ReviewChange::default(), now).await?;
            weigh(tx, reply.link, reply.review, row.bytes).await?;
            the_review(tx, guard.seat, reply.review).await
        })
    }

    pub fn delete_reply<'a>(
        &'a self,
        reply: &'a OwnReply,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<StoredReview>> {
        guarded!(self, tx => {
            admit(tx, reply.link, guard).await?;
            lock_for_update(tx, reply.link, reply.review, expected_version).await?;
            let before = length(tx, reply).await?;
            sql!("DELETE FROM replies WHERE id = $1", reply.id).run(tx).await?;
            sql!("UPDATE reviews SET bytes = bytes - $2 WHERE id = $1", reply.review, before)
                .run(tx)
                .await?;
            update(tx, reply.review, &ReviewChange::default(), now).await?;
            the_review(tx, guard.seat, reply.review).await
        })
    }
}

/// The bytes of a reply. Refuses one of another review or another author.
async fn length(tx: &mut Tx, reply: &OwnReply) -> Result<i64, TxError> {
    let length = sql!(
        "SELECT CAST(octet_length(body) AS bigint) FROM replies \
         WHERE id = $1 AND review_id = $2 AND author_id = $3",
        reply.id,
        reply.review,
        reply.author
    );
    length.value(tx).await?.ok_or(TxError::Refused(Guarded::NotFound))
}
