//! Reviews, on either engine.

use std::slice;

use chrono::{DateTime, Utc};

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::limits::{
    REPLIES_PER_REVIEW_MAX, REVIEWS_PER_LINK_MAX, SUMMARIES_PER_AUTHOR_MAX,
};
use crate::domain::review::ReviewStatus;
use crate::domain::seat::Seat;
use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};
use crate::storage::pagination::Cursor;
use crate::storage::reviews::{
    NewReply, NewReview, ReviewChange, ReviewPage, StoredReview, is_too_large,
};
use crate::storage::seats::{FenceGuard, Guarded};

use super::dialect::{
    Connection, Engine, Moment, TxError, append_in, encoded, guarded, snapshot, transact,
};
use super::review_changes::{note_change, note_deletion};
use super::review_rows::{SUMMARY, fetch_one, fetch_page, status};
use super::review_webhooks::{put_created, put_replied, put_status};
use super::seats::require_seat;
use super::users::put_user;
use super::webhook_seats::count_review;

/// The columns of a review that decide whether a change is allowed.
pub(super) struct ReviewRow {
    version: i64,
    status: ReviewStatus,
    pub(super) bytes: i64,
}

impl Engine {
    pub(in crate::storage) async fn create_review(
        &self,
        new: &NewReview,
        guard: FenceGuard,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        guarded!(self, tx => {
            admit(tx, new.link, guard).await?;
            insert(tx, new).await?;
            let review = the_review(tx, guard.seat, new.id).await?;
            put_created(tx, &self.hooks, &review).await?;
            count_review(tx, &self.hooks, guard).await?;
            Ok(review)
        })
    }

    pub(in crate::storage) async fn reviews(
        &self,
        link: ShareLinkId,
        after: Option<Cursor<ReviewId>>,
        rows: u32,
    ) -> Result<ReviewPage, StorageError> {
        snapshot!(self, tx => { fetch_page(tx, link, after, rows).await })
    }

    pub(in crate::storage) async fn review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
    ) -> Result<Option<StoredReview>, StorageError> {
        snapshot!(self, tx => { fetch_one(tx, link, id).await })
    }

    pub(in crate::storage) async fn change_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        change: &ReviewChange,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        guarded!(self, tx => {
            admit(tx, link, guard).await?;
            let row = lock_for_update(tx, link, id, expected_version).await?;
            if !change.fits(row.status) {
                let current = row.version;
                return Err(TxError::Refused(Guarded::VersionMismatch { current }));
            }
            update(tx, id, change, now).await?;
            weigh(tx, link, id, row.bytes).await?;
            let review = the_review(tx, guard.seat, id).await?;
            if change.status.is_some() {
                put_status(tx, &self.hooks, &review).await?;
            }
            Ok(review)
        })
    }

    pub(in crate::storage) async fn delete_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        expected_version: Option<i64>,
        guard: FenceGuard,
    ) -> Result<Guarded<i64>, StorageError> {
        guarded!(self, tx => {
            admit(tx, link, guard).await?;
            lock_for_update(tx, link, id, expected_version).await?;
            sqlx::query("DELETE FROM reviews WHERE id = $1")
                .bind(id.to_string())
                .execute(&mut *tx)
                .await?;
            note_deletion(tx, link, id).await
        })
    }

    pub(in crate::storage) async fn add_reply(
        &self,
        link: ShareLinkId,
        review: ReviewId,
        reply: &NewReply,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        guarded!(self, tx => {
            admit(tx, link, guard).await?;
            let row = lock_for_update(tx, link, review, None).await?;
            insert_reply(tx, review, row.version + 1, reply, now).await?;
            update(tx, review, &ReviewChange::default(), now).await?;
            weigh(tx, link, review, row.bytes).await?;
            put_replied(tx, &self.hooks, (link, review), reply, now).await?;
            count_review(tx, &self.hooks, guard).await?;
            the_review(tx, guard.seat, review).await
        })
    }

    pub(in crate::storage) async fn relocate(
        &self,
        review: ReviewId,
        current: &RelativeRange,
    ) -> Result<(), StorageError> {
        transact!(self, tx => {
            sqlx::query("UPDATE reviews SET current_start = $2, current_end = $3 WHERE id = $1")
                .bind(review.to_string())
                .bind(current.start.as_slice())
                .bind(current.end.as_slice())
                .execute(tx)
                .await?;
            Ok(())
        })
    }
}

/// Stores a review, unless its link has the maximum number.
async fn insert(connection: &mut Connection, new: &NewReview) -> Result<(), TxError> {
    let reviews: i64 = sqlx::query_scalar("SELECT count(*) FROM reviews WHERE link_id = $1")
        .bind(new.link.to_string())
        .fetch_one(&mut *connection)
        .await?;
    if REVIEWS_PER_LINK_MAX <= reviews {
        return Err(TxError::Refused(Guarded::Full));
    }
    if new.is_summary {
        limit_summaries(connection, new).await?;
    }
    put_user(connection, &new.author, new.now).await?;
    sqlx::query(
        "INSERT INTO reviews (id, link_id, author_id, anchor_start, anchor_end, quote, \
         prefix, suffix, current_start, current_end, body, suggestion, status, version, \
         created_at, updated_at, bytes, kind) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14, $14, $15, $16)",
    )
    .bind(new.id.to_string())
    .bind(new.link.to_string())
    .bind(new.author.id.as_str())
    .bind(i64::from(new.origin.range.start))
    .bind(i64::from(new.origin.range.end))
    .bind(encoded(&new.origin.quote))
    .bind(encoded(&new.origin.prefix))
    .bind(encoded(&new.origin.suffix))
    .bind(new.current.start.as_slice())
    .bind(new.current.end.as_slice())
    .bind(encoded(&new.body))
    .bind(new.suggestion.as_deref().map(encoded))
    .bind(ReviewStatus::Open.as_str())
    .bind(Moment(new.now))
    .bind(new.bytes())
    .bind(new.is_summary.then_some(SUMMARY))
    .execute(&mut *connection)
    .await?;
    weigh(connection, new.link, new.id, 0).await
}

/// Refuses if the author has the maximum of remarks on the whole text.
async fn limit_summaries(connection: &mut Connection, new: &NewReview) -> Result<(), TxError> {
    let summaries: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM reviews WHERE link_id = $1 AND kind = 'summary' AND author_id = $2",
    )
    .bind(new.link.to_string())
    .bind(new.author.id.as_str())
    .fetch_one(connection)
    .await?;
    if SUMMARIES_PER_AUTHOR_MAX <= summaries {
        return Err(TxError::Refused(Guarded::Full));
    }
    Ok(())
}

/// Refuses unless the guard is of that link, and holds.
pub(super) async fn admit(
    connection: &mut Connection,
    link: ShareLinkId,
    guard: FenceGuard,
) -> Result<(), TxError> {
    if guard.seat.link != link {
        return Err(TxError::Refused(Guarded::Fenced));
    }
    require_seat(connection, guard).await
}

/// Refuses unless the review exists in the version that the caller has read.
pub(super) async fn lock_for_update(
    connection: &mut Connection,
    link: ShareLinkId,
    id: ReviewId,
    expected: Option<i64>,
) -> Result<ReviewRow, TxError> {
    let row: Option<(i64, String, i64)> =
        sqlx::query_as("SELECT version, status, bytes FROM reviews WHERE id = $1 AND link_id = $2")
            .bind(id.to_string())
            .bind(link.to_string())
            .fetch_optional(connection)
            .await?;
    let (current, name, bytes) = row.ok_or(TxError::Refused(Guarded::NotFound))?;
    if expected.is_some_and(|expected| expected != current) {
        return Err(TxError::Refused(Guarded::VersionMismatch { current }));
    }
    Ok(ReviewRow { version: current, status: status(&name)?, bytes })
}

/// Changes a review, and increments its version.
pub(super) async fn update(
    connection: &mut Connection,
    id: ReviewId,
    change: &ReviewChange,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let suggestion = change.suggestion.as_ref();
    sqlx::query(
        "UPDATE reviews SET body = COALESCE($2, body), \
         suggestion = CASE WHEN $3 THEN $4 ELSE suggestion END, \
         bytes = bytes + COALESCE(octet_length($2) - octet_length(body), 0) + CASE WHEN $3 \
         THEN COALESCE(octet_length($4), 0) - COALESCE(octet_length(suggestion), 0) ELSE 0 END, \
         status = COALESCE($5, status), version = version + 1, updated_at = $6, \
         decision_id = CASE WHEN $5 IS NULL THEN decision_id END, \
         decided_by = CASE WHEN $5 IS NULL THEN decided_by END, \
         decided_at = CASE WHEN $5 IS NULL THEN decided_at END WHERE id = $1",
    )
    .bind(id.to_string())
    .bind(change.body.as_deref().map(encoded))
    .bind(suggestion.is_some())
    .bind(suggestion.and_then(|suggestion| suggestion.as_deref()).map(encoded))
    .bind(change.status.map(ReviewStatus::as_str))
    .bind(Moment(now))
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_reply(
    connection: &mut Connection,
    review: ReviewId,
    version: i64,
    reply: &NewReply,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let replies: i64 = sqlx::query_scalar("SELECT count(*) FROM replies WHERE review_id = $1")
        .bind(review.to_string())
        .fetch_one(&mut *connection)
        .await?;
    if REPLIES_PER_REVIEW_MAX <= replies {
        return Err(TxError::Refused(Guarded::Full));
    }
    put_user(connection, &reply.author, now).await?;
    sqlx::query(
        "INSERT INTO replies (id, review_id, version, author_id, body, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(reply.id.to_string())
    .bind(review.to_string())
    .bind(version)
    .bind(reply.author.id.as_str())
    .bind(encoded(&reply.body))
    .bind(Moment(now))
    .execute(&mut *connection)
    .await?;
    sqlx::query("UPDATE reviews SET bytes = bytes + octet_length($2) WHERE id = $1")
        .bind(review.to_string())
        .bind(encoded(&reply.body))
        .execute(connection)
        .await?;
    Ok(())
}

/// Refuses if the review has grown, and it or all reviews of its link exceed their bound.
pub(super) async fn weigh(
    connection: &mut Connection,
    link: ShareLinkId,
    id: ReviewId,
    before: i64,
) -> Result<(), TxError> {
    let (after, all): (i64, i64) = sqlx::query_as(
        "SELECT r.bytes, (SELECT CAST(SUM(bytes) AS bigint) FROM reviews WHERE link_id = $2) \
         FROM reviews r WHERE r.id = $1",
    )
    .bind(id.to_string())
    .bind(link.to_string())
    .fetch_one(connection)
    .await?;
    if is_too_large(before, after, all) {
        return Err(TxError::Refused(Guarded::Full));
    }
    Ok(())
}

/// Stores an edit of the server, or refuses.
pub(super) async fn store_edit(connection: &mut Connection, edit: &Append) -> Result<i64, TxError> {
    let refused = match append_in(connection, slice::from_ref(edit)).await?.pop() {
        Some(Appended::Stored { seq }) => return Ok(seq),
        Some(Appended::Fenced) => Guarded::Fenced,
        Some(
            Appended::Stale
            | Appended::ForeignClient { .. }
            | Appended::Orphaned
            | Appended::SetBack { .. }
            | Appended::Busy,
        ) => Guarded::Stale,
        Some(Appended::Damaged) => {
            return Err(TxError::Failed(corrupt("a seat or an owner does not parse")));
        }
        Some(Appended::Gone) | None => Guarded::NotFound,
    };
    Err(TxError::Refused(refused))
}

/// Reads the review that this transaction has written under the seat, and numbers the change.
pub(super) async fn the_review(
    connection: &mut Connection,
    seat: Seat,
    id: ReviewId,
) -> Result<StoredReview, TxError> {
    note_change(connection, seat, id).await?;
    fetch_one(connection, seat.link, id).await?.ok_or(TxError::Refused(Guarded::NotFound))
}
