//! Replies to reviews.
//!
//! Either user replies with the own seat. A reply is a change of its review: the version rises, and
//! both users receive the review with all its replies.

use chrono::Utc;

use crate::domain::ids::{ReplyId, ReviewId};
use crate::domain::review::{Reply, Review};
use crate::domain::text::incoming;
use crate::domain::user::User;
use crate::reviews::error::done;
use crate::reviews::member::MemberLink;
use crate::reviews::{ReviewError, Reviews, check_words};
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::replies::{NewReply, OwnReply};
use crate::storage::review_rows::StoredReview;

impl Reviews {
    /// Needs either seat.
    pub async fn reply(
        &self,
        link: &MemberLink,
        id: ReviewId,
        body: String,
    ) -> Result<Review, ReviewError> {
        let body = words_of(&body)?;
        let guard = self.guard(link, link.role).await?;
        self.demand_room()?;
        let stored = self.find(link, id).await?;
        self.charge(&link.user, stored.bytes() + body.len())?;
        let now = Utc::now();
        let reply = NewReply { id: ReplyId::generate(), author: link.user.clone(), body };
        let replied = self.storage.add_reply(link.id, id, &reply, guard, now).await?;
        Ok(self.updated(link, done(replied, guard)?).await)
    }

    /// In a review of any status. Only its author may, with the own seat.
    /// [`ReviewError::VersionMismatch`]: `expected` is no longer the version of the review.
    pub async fn edit_reply(
        &self,
        link: &MemberLink,
        (id, reply): (ReviewId, ReplyId),
        body: String,
        expected: Option<i64>,
    ) -> Result<Review, ReviewError> {
        let body = words_of(&body)?;
        let guard = self.guard(link, link.role).await?;
        let stored = self.find(link, id).await?;
        if own_reply(&stored, reply, &link.user)?.body == body {
            // An equal text changes nothing, so the version stays.
            let is_meant = expected.is_none_or(|expected| expected == stored.version);
            let current = stored.version;
            return match is_meant {
                true => self.resolve_one(link, stored).await,
                false => Err(ReviewError::VersionMismatch { current }),
            };
        }
        self.charge(&link.user, stored.bytes() + body.len())?;
        let own = OwnReply { link: link.id, review: id, id: reply, author: link.user.id.clone() };
        let edited = self.storage.edit_reply(&own, &body, expected, guard, Utc::now()).await?;
        Ok(self.updated(link, done_to_reply(edited, guard)?).await)
    }

    /// As [`edit_reply`](Self::edit_reply).
    pub async fn delete_reply(
        &self,
        link: &MemberLink,
        (id, reply): (ReviewId, ReplyId),
        expected: Option<i64>,
    ) -> Result<Review, ReviewError> {
        let guard = self.guard(link, link.role).await?;
        let stored = self.find(link, id).await?;
        own_reply(&stored, reply, &link.user)?;
        self.charge(&link.user, stored.bytes())?;
        let own = OwnReply { link: link.id, review: id, id: reply, author: link.user.id.clone() };
        let deleted = self.storage.delete_reply(&own, expected, guard, Utc::now()).await?;
        Ok(self.updated(link, done_to_reply(deleted, guard)?).await)
    }
}

/// The clean text of a reply.
fn words_of(body: &str) -> Result<String, ReviewError> {
    let body = incoming(body);
    if body.trim().is_empty() {
        return Err(ReviewError::Empty("a reply needs words"));
    }
    check_words(&body, None)?;
    Ok(body)
}

/// The reply in the review as it was read. The transaction checks its author again.
fn own_reply<'a>(
    stored: &'a StoredReview,
    id: ReplyId,
    user: &User,
) -> Result<&'a Reply, ReviewError> {
    let reply = stored.replies.iter().find(|reply| reply.id == id);
    let reply = reply.ok_or(ReviewError::NotFound("reply"))?;
    if reply.author.id == user.id { Ok(reply) } else { Err(ReviewError::NotAuthor) }
}

/// The result of a guarded write of a reply. A concurrent request has deleted a missing one.
fn done_to_reply<T>(guarded: Guarded<T>, guard: FenceGuard) -> Result<T, ReviewError> {
    match guarded {
        Guarded::NotFound => Err(ReviewError::NotFound("reply")),
        other => done(other, guard),
    }
}
