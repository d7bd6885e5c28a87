//! The audit: each act with its actor, user, target and time, and without any text.
//!
//! Rows are appended, and the database refuses every change of them; the retention deletes the old ones. The
//! row stands in the transaction of its act, or is committed before the act begins: without its row no act
//! happens. A call that fails then has a second row with its status.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

/// Rows that one transaction of the retention deletes, at most.
pub const AUDIT_PURGED_AT_ONCE: u32 = 1_000;

/// The cause of an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// `admin`: the admin token, without an `id`. `server`: a server token, by its `sub`.
    pub by: Actor,
    /// The user in whose name the server acted.
    pub user: Option<UserId>,
    /// Method and route, such as `DELETE /api/users/{id}`.
    pub action: String,
    /// The ids in the address, separated by a slash.
    pub target: String,
    /// `null`: the act. Else the status of a call that failed after its row.
    pub status: Option<u32>,
    pub request_id: String,
    /// The address of the client.
    pub peer: String,
}

/// An act of an administrator or of a server, or of a user on the own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Act"))]
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

/// Appends a row in the transaction of its act.
pub async fn append(tx: &mut Tx, entry: &AuditEntry) -> Result<(), TxError> {
    let (kind, actor) = entry.by.columns();
    sql!(
        "INSERT INTO audit (at, actor_kind, actor, user_id, action, target, status, request_id, peer) \
         VALUES ({@now}, {kind}, {actor}, {entry.user}, {entry.action}, {entry.target}, \
         {entry.status}, {entry.request_id}, {entry.peer})"
    )
    .run(tx)
    .await
    .map(drop)
}

impl Storage {
    /// Appends a row before an act that has no transaction of its own, and inserts its user.
    pub fn append_audit<'a>(
        &'a self,
        entry: &'a AuditEntry,
        new: Option<&'a User>,
    ) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            if let Some(user) = new {
                // Older than every token, so that the first one may rename the user.
                put_user(tx, user, DateTime::UNIX_EPOCH).await?;
            }
            append(tx, entry).await
        })
    }

    pub fn audit<'a>(&'a self, query: &'a AuditQuery) -> StorageFuture<'a, Vec<AuditRow>> {
        let user = query.user.as_ref().map_or("", UserId::as_str);
        let since = query.since.unwrap_or(DateTime::UNIX_EPOCH);
        run!(self, Read, tx => {
            let rows = sql!(
                "SELECT seq, at, actor_kind, actor, user_id, action, target, status, request_id, peer \
                 FROM audit WHERE ({user} = '' OR actor = {user} OR user_id = {user} \
                 OR target = {user}) \
                 AND substr(action, 1, length({query.action})) = {query.action} AND at >= {since} \
                 AND seq < {query.before.unwrap_or(u64::MAX)} ORDER BY seq DESC LIMIT {query.limit}"
            );
            rows.rows(tx).await?.iter().map(row_from).collect()
        })
    }

    /// Deletes some rows from before that time, and returns their number. Only here a row is deleted.
    pub fn purge_audit(&self, before: DateTime<Utc>) -> StorageFuture<'_, u64> {
        run!(self, Write, tx => {
            sql!("UPDATE audit_retention SET before = {before} WHERE before < {before}")
                .run(tx)
                .await?;
            sql!(
                "DELETE FROM audit WHERE seq IN \
                 (SELECT seq FROM audit WHERE at < {before} \
                 ORDER BY at LIMIT {AUDIT_PURGED_AT_ONCE})"
            )
            .run(tx)
            .await
        })
    }
}

fn row_from(row: &Row) -> Result<AuditRow, TxError> {
    Ok(AuditRow {
        id: row.get("seq")?,
        at: row.get("at")?,
        entry: AuditEntry {
            by: Actor::of(&row.get::<String>("actor_kind")?, row.get("actor")?),
            user: row.get("user_id")?,
            action: row.get("action")?,
            target: row.get("target")?,
            status: row.get("status")?,
            request_id: row.get("request_id")?,
            peer: row.get("peer")?,
        },
    })
}
