//! The deletion of a document by its owner.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::user::User;

/// A deletion, as the members of the document's share link see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// The user who deleted the document.
    pub by: User,
    /// The time of the deletion.
    pub at: DateTime<Utc>,
}
