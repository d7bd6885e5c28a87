//! Replies to reviews, and their changes by their authors. Each counts as a change of the review.

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId, UserId};
use crate::domain::limits::REPLIES_PER_REVIEW_MAX;
use crate::domain::user::User;
use crate::domain::webhook::WebhookEvent;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::locks::require_seat;
use crate::storage::review_rows::StoredReview;
use crate::storage::reviews::{ReviewChange, lock_for_update, the_review, update, weigh};
use crate::storage::statement::sql;
use crate::storage::tx::{Tx, guarded};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::webhook_seats::count_review;
use crate::storage::webhooks::{Subject, put};
use crate::storage::{Storage, StorageFuture};

/// A reply of one author to a review of a link. The transaction checks all four.
#[derive(Clone, Debug)]
pub struct OwnReply {
    pub link: ShareLinkId,
    pub review: ReviewId,
    pub id: ReplyId,
    pub author: UserId,
}

#[derive(Clone, Debug)]
pub struct NewReply {
    /// Its id; never used before.
    pub id: ReplyId,
    pub author: User,
    pub body: String,
}

impl Storage {
    /// Adds a reply, which counts as a change of the review. `Full` at [`REPLIES_PER_REVIEW_MAX`], or
    /// at [`REVIEW_BYTES_MAX`]; an error `Refused` when the id is in use.
    ///
    /// [`REVIEW_BYTES_MAX`]: crate::domain::limits::REVIEW_BYTES_MAX
    pub fn add_reply<'a>(
        &'a self,
        link: ShareLinkId,
        review: ReviewId,
        reply: &'a NewReply,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<StoredReview>> {
        guarded!(self, tx => {
            let locked = require_seat(tx, link, guard).await?;
            let row = lock_for_update(tx, link, review, None).await?;
            insert_reply(tx, review, row.version + 1, reply, now).await?;
            update(tx, review, &ReviewChange::default(), now).await?;
            weigh(tx, link, review, row.bytes).await?;
            let author = reply.author.id.as_str();
            let data = || json!({ "review_id": review, "reply_id": reply.id, "author_id": author });
            let about = (Subject::link(locked, link), now);
            put(tx, WebhookEvent::ReviewReplied, about, data).await?;
            count_review(tx, guard).await?;
            the_review(tx, guard.seat, review).await
        })
    }

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
            require_seat(tx, reply.link, guard).await?;
            let row = lock_for_update(tx, reply.link, reply.review, expected_version).await?;
            let before = length(tx, reply).await?;
            sql!("UPDATE replies SET body = {body}, edited_at = {now} WHERE id = {reply.id}")
                .run(tx)
                .await?;
            sql!(
                "UPDATE reviews SET bytes = bytes + octet_length({body}) - {before} \
                 WHERE id = {reply.review}"
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
            require_seat(tx, reply.link, guard).await?;
            lock_for_update(tx, reply.link, reply.review, expected_version).await?;
            let before = length(tx, reply).await?;
            sql!("DELETE FROM replies WHERE id = {reply.id}").run(tx).await?;
            sql!("UPDATE reviews SET bytes = bytes - {before} WHERE id = {reply.review}")
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
         WHERE id = {reply.id} AND review_id = {reply.review} AND author_id = {reply.author}"
    );
    length.value(tx).await?.ok_or(TxError::Refused(Guarded::NotFound))
}

async fn insert_reply(
    tx: &mut Tx,
    review: ReviewId,
    version: i64,
    reply: &NewReply,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let replies = sql!("SELECT count(*) FROM replies WHERE review_id = {review}");
    if replies.one(tx).await?.get::<i64>(0)? >= REPLIES_PER_REVIEW_MAX {
        return Err(TxError::Refused(Guarded::Full));
    }
    put_user(tx, &reply.author, now).await?;
    sql!(
        "INSERT INTO replies (id, review_id, version, author_id, body, created_at) \
         VALUES ({reply.id}, {review}, {version}, {reply.author.id}, {reply.body}, {now})"
    )
    .run(tx)
    .await?;
    sql!("UPDATE reviews SET bytes = bytes + octet_length({reply.body}) WHERE id = {review}")
        .run(tx)
        .await?;
    Ok(())
}
