//! The reviewer of a link: its owner renews the invite, removes the reviewer, or lets a refused user or
//! a partner in.
//!
//! Every other user receives `NotFound`, the reviewer as well.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::sharing::invite::{Invite, opens};
use crate::sharing::links::NO_LINK;
use crate::sharing::{Sharing, SharingError};
use crate::storage::invites::{InviteState, Removed, ReplacedReviewer};
use crate::storage::links::ShareLink;

#[derive(Clone, Debug)]
pub struct Preview {
    pub link: ShareLink,
    pub is_yours: bool,
}

#[derive(Clone, Debug)]
pub struct ReviewerChanged {
    pub document: DocumentId,
    /// The former reviewer, whose sessions end.
    pub former: Option<UserId>,
}

impl Sharing {
    /// The state of the invite that a member may pass on: the writer has one, the reviewer `None`.
    pub async fn invite_state(
        &self,
        link: ShareLinkId,
        role: Role,
    ) -> Result<Option<InviteState>, SharingError> {
        match role {
            Role::Writer => Ok(Some(self.storage.invite_state(link).await?.ok_or(NO_LINK)?)),
            Role::Reviewer => Ok(None),
        }
    }

    #[must_use]
    pub fn invite_of(&self, link: ShareLinkId, invite_state: &InviteState) -> Invite {
        self.invites.in_force(link, invite_state.invite)
    }

    /// The link as a visitor or a user sees it before joining. [`SharingError::NotFound`]: the invite is wrong
    /// or void, or the link revoked.
    pub async fn preview(
        &self,
        caller: Option<&UserId>,
        id: ShareLinkId,
        invite: &str,
    ) -> Result<Preview, SharingError> {
        let link = self.storage.link(id).await?.filter(|link| link.revoked_at.is_none());
        let link = link.filter(|link| opens(invite, &link.invite_hash)).ok_or(NO_LINK)?;
        let is_yours = caller.is_some_and(|caller| link.role_of(caller).is_some());
        Ok(Preview { link, is_yours })
    }

    /// For the owner. The reviewer stays.
    pub async fn renew_invite(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<ShareLink, SharingError> {
        let link = self.owned(caller, id).await?;
        let renewed = self.storage.renew_invite(id, &self.invites.renewed(id, now)).await?;
        renewed.then_some(link).ok_or(NO_LINK)
    }

    /// The owner removes the reviewer; the call also replaces the invite.
    pub async fn remove_reviewer(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<ReviewerChanged, SharingError> {
        let link = self.owned(caller, id).await?;
        let document = link.document_id;
        match self.storage.remove_reviewer(id, &self.invites.renewed(id, now)).await? {
            Removed::Done(former) => Ok(ReviewerChanged { document, former: Some(former) }),
            Removed::NoReviewer => Err(SharingError::NoReviewer),
            Removed::Gone => Err(NO_LINK),
        }
    }

    /// Makes a user whom the link refused its reviewer; if the link has no reviewer, a partner of the owner
    /// too. Only the owner calls it. [`SharingError::NotAPartner`]: the user is neither.
    pub async fn replace_reviewer(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<ReviewerChanged, SharingError> {
        let link = self.owned(caller, id).await?;
        match self.storage.replace_reviewer(id, user, now).await? {
            ReplacedReviewer::Done(former) => {
                Ok(ReviewerChanged { document: link.document_id, former })
            }
            ReplacedReviewer::NotAPartner => Err(SharingError::NotAPartner),
            ReplacedReviewer::ReviewerExists => Err(SharingError::ReviewerExists),
            ReplacedReviewer::Gone => Err(NO_LINK),
        }
    }

    async fn owned(&self, caller: &UserId, id: ShareLinkId) -> Result<ShareLink, SharingError> {
        let link = self.active(caller, id).await?;
        if link.writer.id == *caller { Ok(link) } else { Err(NO_LINK) }
    }

    /// The reviewer leaves the link; the call also replaces the invite.
    pub async fn leave(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<(), SharingError> {
        let (_, role) = self.link(caller, id).await?;
        match role {
            Role::Reviewer => {}
            Role::Writer => return Err(SharingError::NotTheReviewer),
        }
        let left = self.storage.leave_link(id, caller, &self.invites.renewed(id, now)).await?;
        left.then_some(()).ok_or(NO_LINK)
    }
}
