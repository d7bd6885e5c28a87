//! Changes of replies by their authors. Each counts as a change of the review.

use chrono::{DateTime, Utc};

use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId, UserId};
use crate::storage::reviews::StoredReview;
use crate::storage::seats::{FenceGuard, Guarded};
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

/// A reply of one author to a review of a link. The transaction checks all four.
#[derive(Clone, Debug)]
pub struct OwnReply {
    /// The share link of the review.
    pub link: ShareLinkId,
    /// The review.
    pub review: ReviewId,
    /// The reply.
    pub id: ReplyId,
    /// Its author.
    pub author: UserId,
}

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
        boxed_on_engine!(self, edit_reply(reply, body, expected_version, guard, now))
    }

    /// Deletes a reply.
    pub fn delete_reply<'a>(
        &'a self,
        reply: &'a OwnReply,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<StoredReview>> {
        boxed_on_engine!(self, delete_reply(reply, expected_version, guard, now))
    }
}
