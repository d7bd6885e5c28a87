//! The sessions in their seats, for administrators, and their eviction.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use tokio::time::Instant;

use crate::admin::Console;
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, SessionId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::locks::{Holder, LockName};
use crate::seats::SeatError;
use crate::sessions::session::{Session, SessionState};
use crate::storage::pagination::Cursor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScope {
    /// Every held seat, as the lock service stores it.
    Cluster,
    /// The seats that this process holds.
    ThisNode,
}

/// A part of the list. Without a user or document: of all.
#[derive(Clone, Debug)]
pub struct SessionPage {
    pub scope: SessionScope,
    pub user: Option<UserId>,
    pub document: Option<DocumentId>,
    pub limit: usize,
    /// Only sessions after this position: the grant time and the key of a lock.
    pub after: Option<Cursor<String>>,
}

/// A field is `null` if it is unknown: an operator set the key by hand.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "HeldSeat"))]
pub struct SessionInfo {
    /// The key in Redis.
    pub lock_key: String,
    pub share_link_id: ShareLinkId,
    /// The title of the link's document.
    pub title: Option<String>,
    pub role: Role,
    /// The session; `null` if the value is no session's id. Such a value is not listed.
    pub session_id: Option<SessionId>,
    pub user: Option<User>,
    /// The server that has the socket.
    pub node: Option<NodeId>,
    /// When the seat was granted.
    pub since: Option<DateTime<Utc>>,
    /// The fence of the grant.
    pub fence: Option<Fence>,
    /// The rest of the lease; `null` if it does not expire.
    pub ttl_ms: Option<u64>,
    /// The client's last sign of life; of another server's session, its last renewal.
    pub last_seen: DateTime<Utc>,
    /// The state of the session. The list has only `held` and `uncertain` for sessions of other servers.
    pub state: SessionState,
}

/// A server that holds seats, or the one that answers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct NodeInfo {
    pub id: NodeId,
    /// `server.name`; `null` while this server does not know it.
    pub name: Option<String>,
    pub sessions: usize,
    /// Whether it is the one that answers.
    #[serde(rename = "self")]
    pub is_self: bool,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionList {
    /// Held seats, oldest first.
    pub sessions: Vec<SessionInfo>,
    /// The servers that hold them, with the seats of all pages, and the one that answers.
    pub nodes: Vec<NodeInfo>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
}

impl SessionInfo {
    fn cursor(&self) -> Cursor<String> {
        Cursor { at: self.since.unwrap_or_default(), id: self.lock_key.clone() }
    }
}

/// A cursor has whole milliseconds.
fn order_of(cursor: &Cursor<String>) -> (i64, String) {
    (cursor.at.timestamp_millis(), cursor.id.clone())
}

impl Console {
    /// [`SeatError::Locks`] for the scope `Cluster` if the lock service does not answer.
    pub async fn list(&self, page: &SessionPage) -> Result<SessionList, SeatError> {
        let mut sessions: Vec<_> = match page.scope {
            SessionScope::ThisNode => self.sessions_here(),
            SessionScope::Cluster => {
                let held = self.locks.seats().await?;
                held.into_iter().map(|(seat, holder)| self.info(seat, &holder)).collect()
            }
        };
        if let Some(wanted) = &page.user {
            sessions.retain(|session| session.user.as_ref().is_some_and(|user| user.id == *wanted));
        }
        if let Some(document) = page.document {
            let links = self.storage.links_to(document).await?;
            sessions.retain(|session| links.contains(&session.share_link_id));
        }
        sessions.sort_by_cached_key(|session| order_of(&session.cursor()));
        let mut counts = vec![(self.peers.node(), 0)];
        for id in sessions.iter().filter_map(|session| session.node) {
            match counts.iter_mut().find(|(node, _)| *node == id) {
                Some((_, count)) => *count += 1,
                None => counts.push((id, 1)),
            }
        }
        let name = |id| self.peers.name_of(id);
        let nodes = counts.into_iter().enumerate().map(|(at, (id, sessions))| NodeInfo {
            id,
            name: name(id),
            sessions,
            is_self: at == 0,
        });
        let nodes = nodes.collect();
        if let Some(after) = page.after.as_ref().map(order_of) {
            let begins = sessions.partition_point(|it| order_of(&it.cursor()) <= after);
            sessions.drain(..begins);
        }
        let has_more = page.limit < sessions.len();
        sessions.truncate(page.limit);
        let last = sessions.last().filter(|_| has_more);
        let next_cursor = last.map(|last| last.cursor().to_string());
        self.find_titles(&mut sessions).await;
        Ok(SessionList { sessions, nodes, next_cursor })
    }

    /// On any server. None without a session of that id.
    pub async fn evict(&self, session: SessionId) -> Result<Option<(Seat, UserId)>, SeatError> {
        let Some((seat, holder)) = self.held_by(session).await? else { return Ok(None) };
        // The database first: from here on it rejects every write of that session.
        self.storage.vacate(seat, holder.fence).await?;
        self.seats.evict(session).await;
        // A background task retries the release, or the lease ends.
        if let Err(error) = self.locks.release(&LockName::seat(seat), &holder.value).await {
            tracing::warn!(%error, %seat, "the release of an evicted session is pending");
        }
        Ok(Some((seat, holder.owner.id.into())))
    }

    /// Reads the titles of the sessions' documents. A list without titles is better than none.
    pub(crate) async fn find_titles(&self, sessions: &mut [SessionInfo]) {
        let links: HashSet<_> = sessions.iter().map(|session| session.share_link_id).collect();
        let titles = self.storage.titles_of(&Vec::from_iter(links)).await;
        let titles = titles.inspect_err(|error| {
            tracing::warn!(%error, "the titles of documents cannot be read");
        });
        let titles = titles.unwrap_or_default();
        for session in sessions {
            session.title = titles.get(&session.share_link_id).cloned();
        }
    }

    fn sessions_here(&self) -> Vec<SessionInfo> {
        let seated = self.seats.registry().seated();
        seated.iter().filter_map(|session| self.info_here(session)).collect()
    }

    pub(crate) fn info_here(&self, session: &Session) -> Option<SessionInfo> {
        let identity = &session.identity;
        let now = Instant::now();
        let margin = self.seats.terms().lease.margin();
        let left = (session.trust_stamp().0 + margin).saturating_duration_since(now);
        Some(SessionInfo {
            lock_key: self.locks.key_of(&LockName::seat(identity.seat)),
            share_link_id: identity.seat.link,
            title: None,
            role: identity.seat.role,
            session_id: Some(identity.session),
            user: Some(identity.user.clone()),
            node: Some(self.peers.node()),
            since: Some(session.since()?),
            fence: Some(session.fence()),
            ttl_ms: u64::try_from(left.as_millis()).ok(),
            last_seen: before_now(session.silent_for(now)),
            state: session.state(),
        })
    }

    pub(crate) fn info(&self, seat: Seat, holder: &Holder) -> SessionInfo {
        let lease = self.seats.terms().lease;
        let session_id = holder.value.parse().ok();
        let here = session_id.and_then(|id| self.seats.registry().session(id));
        let has_grant = holder.has_grant();
        let since_renewal = lease.ttl.saturating_sub(holder.ttl);
        // Two renewals are overdue: the session's server counts the lease as uncertain, too.
        let is_overdue = lease.ttl - lease.margin() <= since_renewal;
        let (last_seen, state) = match here {
            Some(session) => (before_now(session.silent_for(Instant::now())), session.state()),
            None if is_overdue => (before_now(since_renewal), SessionState::Uncertain),
            None => (before_now(since_renewal), SessionState::Held),
        };
        SessionInfo {
            lock_key: self.locks.key_of(&LockName::seat(seat)),
            share_link_id: seat.link,
            title: None,
            role: seat.role,
            session_id,
            user: has_grant.then(|| holder.owner.clone().into()),
            node: has_grant.then_some(holder.owner.node),
            since: has_grant.then_some(holder.since),
            fence: has_grant.then_some(holder.fence),
            ttl_ms: u64::try_from(holder.ttl.as_millis()).ok(),
            last_seen,
            state,
        }
    }
}

fn before_now(ago: std::time::Duration) -> DateTime<Utc> {
    Utc::now() - TimeDelta::from_std(ago).unwrap_or_default()
}
