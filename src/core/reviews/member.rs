//! Membership: the check before each call on the reviews of a link.
//!
//! A session of this server proves the membership of its user in O(1), without IO: its claim authorized the
//! user, and the database ratified its fence. For any other user the server reads the link. Either proof
//! may be old, because another server may replace the reviewer or revoke the link meanwhile. So the
//! statement of a read names its reader, and the transaction of a write its fence (D2, G14).

use tokio::time::Instant;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::reviews::{ReviewError, Reviews};
use crate::storage::guard::FenceGuard;

/// An active link and its writer or its reviewer. Only the check makes one, and each call on reviews
/// takes one.
#[derive(Clone, Debug)]
pub struct MemberLink {
    pub id: ShareLinkId,
    pub(crate) document: DocumentId,
    pub(crate) role: Role,
    pub(crate) user: User,
    /// The guard of a session of this server.
    guard: Option<FenceGuard>,
    /// Builds of the text queue under this requester.
    pub(crate) requester: Requester,
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
        let (document, role, guard) = match registry.held_on(id, &user.id, Instant::now()) {
            Some(session) => {
                let seat = session.identity.seat;
                let guard = FenceGuard { seat, fence: session.fence() };
                (session.identity.document, seat.role, Some(guard))
            }
            None => {
                let (document, role) = self.stored_membership(&user.id, id).await?;
                (document, role, None)
            }
        };
        Ok(MemberLink { id, document, role, user: user.clone(), guard, requester })
    }

    /// Reads the membership from the database, without the registry.
    pub(crate) async fn stored_membership(
        &self,
        user: &UserId,
        id: ShareLinkId,
    ) -> Result<(DocumentId, Role), ReviewError> {
        let link = self.storage.link(id).await?;
        let link = link.filter(|link| link.revoked_at.is_none());
        let role = link.as_ref().and_then(|link| link.role_of(user));
        let (link, role) = link.zip(role).ok_or(ReviewError::NotFound("share link"))?;
        Ok((link.document_id, role))
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
