//! Invites of a share link: renewed ones, the users whom the link refused, and its reviewer's end.
//!
//! A link has one invite at a time. A renewal replaces its hash, so every older invite is void. The
//! removal or replacement of the reviewer also raises the fence of the reviewer's seat in the same
//! transaction: from its commit on, the database rejects every guarded write of the former reviewer.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::{InviteId, UserId};
use crate::domain::user::User;

/// An invite that replaces every older one of its link.
#[derive(Clone, Debug)]
pub struct NewInvite {
    /// Its id, from which the server computes it.
    pub id: InviteId,
    /// SHA-256 of the invite.
    pub hash: [u8; 32],
    pub now: DateTime<Utc>,
}

/// A user whom a link refused because it had a reviewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    pub user: User,
    pub at: DateTime<Utc>,
}

/// The part of a link that only its owner sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InviteState {
    /// The id of the invite in force. `None`: the link's first invite.
    #[serde(skip)]
    pub invite: Option<InviteId>,
    pub invited_at: DateTime<Utc>,
    pub reviewer_since: Option<DateTime<Utc>>,
    /// The refused users, the last first.
    pub attempts: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// This user was the reviewer.
    Done(UserId),
    NoReviewer,
    /// There is no such link, or it is revoked.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The user is the reviewer. The former reviewer, if another user was.
    Done(Option<UserId>),
    /// The user is neither among the refused ones nor a partner of the owner.
    NotAPartner,
    /// The user is a partner whom the link did not refuse, and it has another reviewer.
    ReviewerExists,
    /// There is no such link, or it is revoked.
    Gone,
}
