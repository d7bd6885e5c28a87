//! How users find each other: by an exact handle, by a personal link, by id. There is no search.
//!
//! A handle belongs to one user, and a user has one handle at most. One that a user gave up stays
//! reserved for them for [`HANDLE_RESERVED_FOR`]. A personal link is a secret, like
//! an invite: the database stores its id, from which a server computes it, and its hash.

use chrono::{DateTime, Utc};

use crate::domain::handle::Handle;
use crate::domain::ids::{PersonalLinkId, UserId};
#[cfg(doc)]
use crate::domain::limits::HANDLE_RESERVED_FOR;
use crate::domain::user::User;
use crate::storage::{Storage, StorageFuture, boxed_on_engine};

/// A personal link to store.
#[derive(Clone, Debug)]
pub struct NewPersonalLink {
    /// Its id, from which the server computes it.
    pub id: PersonalLinkId,
    /// SHA-256 of its token.
    pub hash: [u8; 32],
}

/// How other users reach a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The handle, if the user chose one.
    pub handle: Option<Handle>,
    /// The personal link in force.
    pub link: PersonalLinkId,
}

/// The outcome of choosing a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandleSet {
    /// The user has this address.
    Done(Address),
    /// Another user has the handle.
    Taken,
}

/// The key by which a caller names another user.
#[derive(Clone, Debug)]
pub enum UserKey {
    /// The id.
    Id(UserId),
    /// The handle.
    Handle(Handle),
    /// SHA-256 of the token of the personal link.
    Link([u8; 32]),
}

impl Storage {
    /// Reads the address of a user, and stores `link` if there is none.
    pub fn find_or_create_address<'a>(
        &'a self,
        user: &'a User,
        link: &'a NewPersonalLink,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Address> {
        boxed_on_engine!(self, find_or_create_address(user, link, now))
    }

    /// Replaces the personal link of a user: the older token is unknown from the commit on.
    pub fn renew_personal_link<'a>(
        &'a self,
        user: &'a User,
        link: &'a NewPersonalLink,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Address> {
        boxed_on_engine!(self, renew_personal_link(user, link, now))
    }

    /// Replaces the handle of a user, or removes it; the former one is reserved for the user for
    /// [`HANDLE_RESERVED_FOR`]. `link` is stored if the user has no personal link. Of two users who choose one handle at the same time, one gets it.
    pub fn set_handle<'a>(
        &'a self,
        user: &'a User,
        handle: Option<&'a Handle>,
        link: &'a NewPersonalLink,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, HandleSet> {
        boxed_on_engine!(self, set_handle(user, handle, link, now))
    }

    /// The user whom a caller knows by this.
    pub fn find_user<'a>(&'a self, key: &'a UserKey) -> StorageFuture<'a, Option<User>> {
        boxed_on_engine!(self, find_user(key))
    }
}
