//! Progress of a share link: seen marks, counts and the turn.
//!
//! A seen mark needs no seat, because a member also reads without one. The turn is a change that both
//! users receive, in the order of the review changes.

use std::collections::HashMap;

use chrono::Utc;

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::progress::{Progress, ReviewTurn};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::outbox::event::Event;
use crate::reviews::error::done;
use crate::reviews::member::MemberLink;
use crate::reviews::{ReviewError, Reviews};
use crate::storage::progress::Passed;

impl Reviews {
    /// A mark never falls. The statement of the write checks the membership.
    pub async fn mark_seen(
        &self,
        user: &User,
        link: ShareLinkId,
        change: i64,
    ) -> Result<(), ReviewError> {
        if !self.storage.mark_seen(link, &user.id, change).await? {
            self.stored_membership(user, link).await?;
        }
        Ok(())
    }

    pub async fn progress_of(
        &self,
        user: &UserId,
        links: &[ShareLinkId],
    ) -> Result<HashMap<ShareLinkId, Progress>, ReviewError> {
        Ok(self.storage.progress_of(user, links).await?)
    }

    /// Needs the caller's own seat; both users may set both roles.
    pub async fn pass_turn(&self, link: &MemberLink, to: Role) -> Result<ReviewTurn, ReviewError> {
        let guard = self.guard(link, link.role).await?;
        self.charge(&link.user, 0)?;
        let passed = self.storage.pass_turn(link.id, to, &link.user, guard, Utc::now()).await?;
        match done(passed, guard)? {
            Passed::Same(turn) => Ok(turn),
            Passed::Changed(passed) => {
                let event = Event::TurnChanged(&passed.turn);
                self.announce(link, passed.change, &event).await;
                Ok(passed.turn)
            }
        }
    }
}
