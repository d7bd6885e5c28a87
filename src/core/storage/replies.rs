//! Changes of replies by their authors. Each counts as a change of the review.

use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId, UserId};

/// A reply of one author to a review of a link. The transaction checks all four.
#[derive(Clone, Debug)]
pub struct OwnReply {
    pub link: ShareLinkId,
    pub review: ReviewId,
    pub id: ReplyId,
    pub author: UserId,
}
