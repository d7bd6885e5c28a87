//! Changes of replies by their authors. Each counts as a change of the review.

use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId, UserId};

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
