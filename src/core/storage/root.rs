//! The root secret under which the installation makes its invites. The database has an HMAC under it.

use crate::domain::ids::{InviteId, PersonalLinkId, ShareLinkId};

/// The mark of a root: an HMAC under it.
pub type RootMark = [u8; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootFound {
    /// The database has the mark, as from this call on if it had none.
    Same,
    Other,
}

/// The secrets in force that a root makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootedLinks {
    /// The share links, with the id of the invite in force.
    pub share_links: Vec<(ShareLinkId, Option<InviteId>)>,
    pub personal_links: Vec<PersonalLinkId>,
}

/// The hashes of those secrets under another root, in hexadecimal digits.
#[derive(Clone, Debug, Default)]
pub struct RootedHashes {
    pub share_links: Vec<(ShareLinkId, String)>,
    pub personal_links: Vec<(PersonalLinkId, String)>,
}
