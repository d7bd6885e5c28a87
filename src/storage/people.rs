//! How users find each other: by an exact handle, by a personal link, by id. There is no search.
//!
//! A handle belongs to one user, and a user has one handle at most. One that a user gave up stays
//! reserved for them for [`HANDLE_RESERVED_FOR`]. A personal link is a secret, like
//! an invite: the database stores its id, from which a server computes it, and its hash.

use crate::domain::handle::Handle;
use crate::domain::ids::{PersonalLinkId, UserId};
#[cfg(doc)]
use crate::domain::limits::HANDLE_RESERVED_FOR;

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
