//! Replies to reviews.
//!
//! Either user replies with the own seat. A reply is a change of its review: the version rises, and
//! both users receive the review with all its replies.

use chrono::Utc;

use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId};
use crate::domain::review::Review;
use crate::domain::text::normalize_line_breaks;
use crate::domain::user::User;
use crate::reviews::error::done;
use crate::reviews::{ReviewError, Reviews, check_words, own_role};
use crate::storage::reviews::NewReply;

impl Reviews {
    /// Adds a reply to a review. Needs either seat.
    ///
    /// # Errors
    ///
    /// [`ReviewError::SeatNotHeld`], and others.
    pub async fn reply(
        &self,
        user: &User,
        (link, id): (ShareLinkId, ReviewId),
        body: String,
    ) -> Result<Review, ReviewError> {
        let body = normalize_line_breaks(&body);
        if body.trim().is_empty() {
            return Err(ReviewError::Empty("a reply needs words"));
        }
        check_words(&body, None)?;
        let link = self.link_of(user, link).await?;
        let guard = self.guard(user, link.id, own_role(&link, user)).await?;
        self.demand_room()?;
        let stored = self.find(&link, id).await?;
        self.charge(user, stored.bytes() + body.len())?;
        let now = Utc::now();
        let reply = NewReply { id: ReplyId::generate(), author: user.clone(), body };
        let this = self.clone();
        let replying = async move {
            let storage = &this.sessions.shared.storage;
            let replied = storage.add_reply(link.id, id, &reply, guard, now).await?;
            Ok(this.updated(&link, guard.seat, done(replied, guard)?).await)
        };
        self.sessions.complete(replying).await
    }
}
