//! The reviewer of a link: its owner renews the invite, removes the reviewer, or lets a refused user or
//! a partner in.
//!
//! Every other user receives `NotFound`, the reviewer as well.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, InviteId, ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::sharing::invite::{Invite, opens};
use crate::sharing::links::NO_LINK;
use crate::sharing::{Sharing, SharingError};
use crate::storage::invites::{Invitation, NewInvite, Removed, Replaced};
use crate::storage::links::ShareLink;

/// The facts that a valid invite shows to a visitor before the sign-in.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The link.
    pub link: ShareLink,
    /// Whether the caller is its writer or its reviewer.
    pub is_yours: bool,
}

/// The reviewer of a link has changed.
#[derive(Clone, Debug)]
pub struct ReviewerChanged {
    /// The document of the link.
    pub document: DocumentId,
    /// The former reviewer, whose sessions end.
    pub former: Option<UserId>,
}

impl Sharing {
    /// The part of a link that only its owner sees; `None` for its reviewer.
    ///
    /// # Errors
    ///
    /// [`SharingError`] if the database cannot be read, or the link has just been revoked.
    pub async fn invitation(
        &self,
        link: ShareLinkId,
        role: Role,
    ) -> Result<Option<Invitation>, SharingError> {
        match role {
            Role::Writer => Ok(Some(self.storage.invitation(link).await?.ok_or(NO_LINK)?)),
            Role::Reviewer => Ok(None),
        }
    }

    /// The invite in force.
    #[must_use]
    pub fn invite_of(&self, link: ShareLinkId, invitation: &Invitation) -> Invite {
        self.invites.in_force(link, invitation.invite)
    }

    /// Looks at a link with its invite, as a visitor or as a user.
    ///
    /// # Errors
    ///
    /// [`SharingError::NotFound`] if the invite is wrong or void, or the link revoked.
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

    /// Replaces the invite, for the owner. The reviewer stays.
    ///
    /// # Errors
    ///
    /// [`SharingError::NotFound`] for every other user.
    pub async fn renew_invite(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<ShareLink, SharingError> {
        let link = self.owned(caller, id).await?;
        let renewed = self.storage.renew_invite(id, &self.new_invite(id, now)).await?;
        renewed.then_some(link).ok_or(NO_LINK)
    }

    /// Removes the reviewer and replaces the invite, for the owner.
    ///
    /// # Errors
    ///
    /// [`SharingError::NotFound`] for every other user, [`SharingError::NoReviewer`] without one.
    pub async fn remove_reviewer(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<ReviewerChanged, SharingError> {
        let link = self.owned(caller, id).await?;
        let document = link.document_id;
        match self.storage.remove_reviewer(id, &self.new_invite(id, now)).await? {
            Removed::Done(former) => Ok(ReviewerChanged { document, former: Some(former) }),
            Removed::NoReviewer => Err(SharingError::NoReviewer),
            Removed::Gone => Err(NO_LINK),
        }
    }

    /// Makes a user whom the link refused its reviewer, for the owner. So does a partner of the owner, if
    /// the link has no reviewer.
    ///
    /// # Errors
    ///
    /// [`SharingError::NotFound`] for every other caller, [`SharingError::NotAPartner`] for a user who
    /// is neither, [`SharingError::ReviewerExists`] for a partner if another user is the reviewer.
    pub async fn replace_reviewer(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<ReviewerChanged, SharingError> {
        let link = self.owned(caller, id).await?;
        match self.storage.replace_reviewer(id, user, now).await? {
            Replaced::Done(former) => Ok(ReviewerChanged { document: link.document_id, former }),
            Replaced::NotAPartner => Err(SharingError::NotAPartner),
            Replaced::ReviewerExists => Err(SharingError::ReviewerExists),
            Replaced::Gone => Err(NO_LINK),
        }
    }

    async fn owned(&self, caller: &UserId, id: ShareLinkId) -> Result<ShareLink, SharingError> {
        let link = self.active(caller, id).await?;
        if link.writer.id == *caller { Ok(link) } else { Err(NO_LINK) }
    }

    fn new_invite(&self, link: ShareLinkId, now: DateTime<Utc>) -> NewInvite {
        let id = InviteId::generate();
        NewInvite { id, hash: self.invites.in_force(link, Some(id)).hash(), now }
    }
}
