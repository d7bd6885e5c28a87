//! Roles and seats.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::ShareLinkId;

/// The role of a user on a share link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Edits the text.
    Writer,
    /// Comments and suggests.
    Reviewer,
}

/// The text is neither `writer` nor `reviewer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a role is `writer` or `reviewer`")]
pub struct InvalidRole;

impl Role {
    /// Both, writer first.
    pub const ALL: [Self; 2] = [Self::Writer, Self::Reviewer];

    /// The role in URLs, JSON and keys.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Reviewer => "reviewer",
        }
    }

    /// Whether the server accepts updates to the text from this role.
    #[must_use]
    pub fn may_edit_text(self) -> bool {
        match self {
            Self::Writer => true,
            Self::Reviewer => false,
        }
    }
}

/// The roles of the other seats of a link. This function alone assumes how many there are.
#[must_use]
pub fn peers_of(role: Role) -> &'static [Role] {
    match role {
        Role::Writer => &[Role::Reviewer],
        Role::Reviewer => &[Role::Writer],
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        match text {
            "writer" => Ok(Self::Writer),
            "reviewer" => Ok(Self::Reviewer),
            _ => Err(InvalidRole),
        }
    }
}

/// One of the two seats of a share link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seat {
    /// The share link.
    pub link: ShareLinkId,
    /// Which of its two seats.
    pub role: Role,
}

impl Seat {
    /// The seat of `role` on `link`.
    #[must_use]
    pub fn new(link: ShareLinkId, role: Role) -> Self {
        Self { link, role }
    }

    /// Whether `other` is another seat of the same link.
    #[must_use]
    pub fn is_beside(self, other: Self) -> bool {
        self.link == other.link && peers_of(self.role).contains(&other.role)
    }
}

/// `share-link:lock:<id>:<role>`: the name of the seat's lock in Redis.
impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "share-link:lock:{}:{}", self.link, self.role)
    }
}
