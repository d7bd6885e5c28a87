//! Handles and personal links: how a user is found.

use chrono::{DateTime, Utc};

use crate::domain::handle::Handle;
use crate::domain::ids::{PersonalLinkId, UserId};
use crate::domain::user::User;
use crate::partners::store;
use crate::partners::store::people::{Address, HandleSet, NewPersonalLink, UserKey};
use crate::partners::{Partners, PartnersError};
use crate::sharing::invite::{Invite, hash};

/// Characters of the token of a personal link: 256 bits in base 64.
const TOKEN_CHARS: usize = 43;

#[derive(Clone, Debug)]
pub struct Reachable {
    pub handle: Option<Handle>,
    pub token: Invite,
}

impl Partners {
    /// The first call creates the link.
    pub async fn address(
        &self,
        caller: &User,
        now: DateTime<Utc>,
    ) -> Result<Reachable, PartnersError> {
        let link = self.new_link();
        let address =
            store::people::find_or_create_address(&self.storage, caller, &link, now).await?;
        Ok(self.reachable(address))
    }

    /// `None` removes the handle.
    pub async fn set_handle(
        &self,
        caller: &User,
        handle: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Reachable, PartnersError> {
        let handle = handle.map(str::parse::<Handle>).transpose()?;
        if handle.as_ref().is_some_and(|handle| self.reserved.contains(handle)) {
            return Err(PartnersError::HandleTaken);
        }
        let link = self.new_link();
        match store::people::set_handle(&self.storage, caller, handle.as_ref(), &link, now).await? {
            HandleSet::Done(address) => Ok(self.reachable(address)),
            HandleSet::Taken => Err(PartnersError::HandleTaken),
        }
    }

    /// The older token is unknown from then on.
    pub async fn renew_link(
        &self,
        caller: &User,
        now: DateTime<Utc>,
    ) -> Result<Reachable, PartnersError> {
        let link = self.new_link();
        let address = store::people::renew_personal_link(&self.storage, caller, &link, now).await?;
        Ok(self.reachable(address))
    }

    /// A handle begins with `@`.
    pub async fn find(&self, to: &str) -> Result<User, PartnersError> {
        let key = by_handle(to).or_else(|| by_link(to));
        self.lookup(key).await?.ok_or(PartnersError::UnknownUser)
    }

    /// As [`Partners::find`], and also by id.
    pub(super) async fn resolve(&self, to: &str) -> Result<User, PartnersError> {
        if let Some(user) = self.lookup(by_handle(to).or_else(|| by_link(to))).await? {
            return Ok(user);
        }
        let id = to.parse().ok().filter(|id: &UserId| !id.is_deleted());
        let user = self.lookup(id.map(UserKey::Id)).await?;
        user.ok_or(PartnersError::UnknownUser)
    }

    async fn lookup(&self, key: Option<UserKey>) -> Result<Option<User>, PartnersError> {
        match key {
            Some(key) => Ok(store::people::find_user(&self.storage, &key).await?),
            None => Ok(None),
        }
    }

    fn new_link(&self) -> NewPersonalLink {
        let id = PersonalLinkId::generate();
        NewPersonalLink { id, hash: self.invites.personal(id).hash() }
    }

    fn reachable(&self, address: Address) -> Reachable {
        Reachable { handle: address.handle, token: self.invites.personal(address.link) }
    }
}

fn by_handle(to: &str) -> Option<UserKey> {
    to.strip_prefix('@')?.parse().ok().map(UserKey::Handle)
}

fn by_link(to: &str) -> Option<UserKey> {
    (to.len() == TOKEN_CHARS).then(|| UserKey::Link(hash(to)))
}
