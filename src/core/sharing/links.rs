//! Share links: find or create, join, revoke.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::sharing::documents::NO_DOCUMENT;
use crate::sharing::invite::{Invite, opens};
use crate::sharing::{Sharing, SharingError};
use crate::storage::invites::InviteState;
use crate::storage::links::{FindOrCreate, Joined, NewShareLink, ShareLink};
use crate::storage::pagination::Page;

#[derive(Clone, Debug)]
pub struct SharedDocument {
    pub link: ShareLink,
    pub invite: Invite,
    pub found: FindOrCreate,
    pub invite_state: InviteState,
}

#[derive(Clone, Debug)]
pub enum Joining {
    /// The caller is the reviewer, as of this call or before it.
    Reviewer(ShareLink),
    Refused {
        document: DocumentId,
        /// Whether the attempt was stored: it is the user's first within a minute.
        is_noted: bool,
    },
}

impl Sharing {
    /// Creates the link if there is none. Concurrent calls on any number of servers return the same link
    /// (G11).
    pub async fn share(
        &self,
        caller: &UserId,
        document: DocumentId,
        now: DateTime<Utc>,
    ) -> Result<SharedDocument, SharingError> {
        self.document(caller, document).await?;
        let id = ShareLinkId::generate();
        let invite_hash = self.invites.of(id).hash();
        let new = NewShareLink { id, document_id: document, invite_hash, now };
        let (link, found) = self.storage.find_or_create_link(&new).await?.ok_or(NO_DOCUMENT)?;
        let invite_state = self.storage.invite_state(link.id).await?.ok_or(NO_DOCUMENT)?;
        Ok(SharedDocument {
            invite: self.invite_of(link.id, &invite_state),
            link,
            found,
            invite_state,
        })
    }

    /// The caller is their writer or reviewer; newest first.
    pub async fn links_of(
        &self,
        caller: &UserId,
        page: &Page<ShareLinkId>,
    ) -> Result<Vec<ShareLink>, SharingError> {
        Ok(self.storage.links_of(caller, page).await?)
    }

    /// For its writer and its reviewer; [`SharingError::NotFound`] for every other user.
    pub async fn link(
        &self,
        caller: &UserId,
        id: ShareLinkId,
    ) -> Result<(ShareLink, Role), SharingError> {
        let link = self.active(caller, id).await?;
        let role = link.role_of(caller).ok_or(NO_LINK)?;
        Ok((link, role))
    }

    /// Idempotent for the reviewer of the link. If another user joined first, the link stores the attempt
    /// for its owner. A wrong invite hides the rest.
    pub async fn join(
        &self,
        caller: &User,
        id: ShareLinkId,
        invite: &str,
        now: DateTime<Utc>,
    ) -> Result<Joining, SharingError> {
        let link = self.active(&caller.id, id).await?;
        if !opens(invite, &link.invite_hash) {
            return Err(SharingError::WrongInvite);
        }
        if link.role_of(&caller.id) == Some(Role::Writer) {
            return Err(SharingError::AlreadyWriter);
        }
        match self.storage.join_link(id, caller, now).await? {
            Joined::Reviewer(link) => Ok(Joining::Reviewer(link)),
            Joined::ReviewerExists { document, is_noted } => {
                Ok(Joining::Refused { document, is_noted })
            }
            Joined::Gone => Err(self.missing_link(&caller.id, id, NO_LINK).await?),
        }
    }

    /// [`SharingError::NotTheWriter`] for the reviewer, [`SharingError::NotFound`] for other users.
    pub async fn revoke(
        &self,
        caller: &UserId,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<(), SharingError> {
        let (_, role) = self.link(caller, id).await?;
        match role {
            Role::Writer if self.storage.revoke_link(id, now).await? => Ok(()),
            Role::Writer => Err(NO_LINK),
            Role::Reviewer => Err(SharingError::NotTheWriter),
        }
    }

    pub async fn revoke_for_admin(
        &self,
        id: ShareLinkId,
        now: DateTime<Utc>,
    ) -> Result<(), SharingError> {
        self.storage.revoke_link(id, now).await?.then_some(()).ok_or(NO_LINK)
    }

    pub(super) async fn active(
        &self,
        caller: &UserId,
        id: ShareLinkId,
    ) -> Result<ShareLink, SharingError> {
        let link = self.storage.link(id).await?;
        match link.filter(|link| link.revoked_at.is_none()) {
            Some(link) => Ok(link),
            None => Err(self.missing_link(caller, id, NO_LINK).await?),
        }
    }
}

pub(super) const NO_LINK: SharingError = SharingError::NotFound("share link");
