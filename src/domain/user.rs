//! Users.

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// A user, as other users see them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct User {
    /// Opaque and stable.
    pub id: UserId,
    /// Display name. May contain every printable character.
    pub name: String,
}
