//! Membership: the check before each call on the reviews of a link.
//!
//! A session of this server proves the membership of its user in O(1), without IO: its claim authorized the
//! user, and the database ratified its fence. For any other user the server reads the link. Either proof
//! may be old, because another server may replace the reviewer or revoke the link meanwhile. So the
//! statement of a read names its reader, and the transaction of a write its fence (D2, G14).

use std::ops::Deref;

use tokio::time::Instant;

use crate::bounds::permits::Requester;
use crate::domain::ids::ShareLinkId;
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::reviews::{ReviewError, Reviews};
use crate::storage::guard::FenceGuard;
use crate::storage::links::Membership;

/// An active link and its writer or its reviewer. Only the check makes one, and each call on reviews
/// takes one, as each statement that reads them takes the membership in it.
#[derive(Clone, Debug)]
pub struct MemberLink {
    membership: Membership,
    /// The guard of a session of this server.
    guard: Option<FenceGuard>,
    /// Builds of the text queue under this requester.
    pub(crate) requester: Requester,
}

impl Deref for MemberLink {
    type Target = Membership;

    fn deref(&self) -> &Membership {
        &self.membership
    }
}

impl MemberLink {
    /// The own seat, whose fence each write names.
    pub(crate) fn seat(&self) -> Seat {
        Seat::new(self.id, self.role)
    }

    /// The role whose seat the words of a review require. Only the reviewer suggests.
    pub(crate) fn role_for(&self, suggestion: Option<&String>) -> Role {
        suggestion.map_or(self.role, |_| Role::Reviewer)
    }
}

impl Reviews {
    /// For the writer and the reviewer of an active link.
    pub async fn member(
        &self,
        user: &User,
        requester: Requester,
        id: ShareLinkId,
    ) -> Result<MemberLink, ReviewError> {
        let registry = self.seats.registry();
        let (membership, guard) = match registry.held_on(id, &user.id, Instant::now()) {
            Some(session) => {
                let identity = &session.identity;
                let guard = FenceGuard { seat: identity.seat, fence: session.fence() };
                (Membership::of_session(guard, identity.document, user), Some(guard))
            }
            None => (self.stored_membership(user, id).await?, None),
        };
        Ok(MemberLink { membership, guard, requester })
    }

    /// Reads the membership from the database, without the registry.
    pub(crate) async fn stored_membership(
        &self,
        user: &User,
        id: ShareLinkId,
    ) -> Result<Membership, ReviewError> {
        self.storage.member(user, id).await?.ok_or(ReviewError::NotFound("share link"))
    }

    /// The write guard of the own seat, which the member holds at this moment, on any server.
    pub(crate) async fn guard(
        &self,
        link: &MemberLink,
        needed: Role,
    ) -> Result<FenceGuard, ReviewError> {
        let seat = link.seat();
        let fence = match link.guard {
            _ if needed != link.role => None,
            Some(guard) => return Ok(guard),
            None => self.seats.holds(&link.user.id, seat).await?,
        };
        fence.map(|fence| FenceGuard { seat, fence }).ok_or(ReviewError::SeatNotHeld(needed))
    }
}
