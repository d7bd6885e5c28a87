//! The audit: each act with its actor, user, target and time, and without any text.
//!
//! Rows are appended, and the database refuses every change of them; the retention deletes the old ones. The
//! row stands in the transaction of its act, or is committed before the act begins: without its row no act
//! happens. A call that fails then has a second row with its status.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::UserId;

/// Rows that one transaction of the retention deletes, at most.
pub const AUDIT_PURGED_AT_ONCE: u32 = 1_000;

/// The cause of an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "id", rename_all = "lowercase")]
pub enum Actor {
    /// The admin token, which names no person.
    Admin,
    User(UserId),
    /// A server token, by its `sub`.
    Server(UserId),
}

impl Actor {
    pub(crate) fn columns(&self) -> (&'static str, Option<&UserId>) {
        match self {
            Self::Admin => ("admin", None),
            Self::User(id) => ("user", Some(id)),
            Self::Server(id) => ("server", Some(id)),
        }
    }

    /// A later version may store other kinds: they read as the admin token, or as a user.
    pub(crate) fn of(kind: &str, id: Option<UserId>) -> Self {
        match (kind, id) {
            (_, None) => Self::Admin,
            ("server", Some(id)) => Self::Server(id),
            (_, Some(id)) => Self::User(id),
        }
    }
}

/// A row to append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    pub by: Actor,
    /// The user in whose name a server acts.
    pub user: Option<UserId>,
    /// Method and route, such as `DELETE /api/users/{id}`.
    pub action: String,
    /// The ids in the address, separated by a slash.
    pub target: String,
    /// `None`: the act. Else the status of a call whose act failed after its row.
    pub status: Option<u32>,
    pub request_id: String,
    pub peer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRow {
    pub id: u64,
    pub at: DateTime<Utc>,
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// The rows that a reader selects, the latest first.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// Acts of the user, in the user's name, or on the user.
    pub user: Option<UserId>,
    /// The beginning of the action.
    pub action: String,
    pub since: Option<DateTime<Utc>>,
    /// Rows before this one.
    pub before: Option<u64>,
    pub limit: u32,
}
