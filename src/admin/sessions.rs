//! Who sits where, for pages and for administrators, and how to end it.

use std::num::NonZeroUsize;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, SessionId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::locks::{Holder, LockName};
use crate::pubsub::{Message, Topic};
use crate::seats::{SeatError, Sessions};
use crate::sessions::session::{Holding, Phase};

/// How much of the cluster to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every held seat, from the lock service's point of view.
    Cluster,
    /// What this process holds.
    ThisNode,
}

/// A held seat, as `GET /api/admin/sessions` shows it. What nobody can tell of a key that was set by
/// hand is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct SessionInfo {
    /// The key in Redis.
    pub lock_key: String,
    /// The share link.
    pub share_link_id: ShareLinkId,
    /// Which seat.
    pub role: Role,
    /// The session in it; `null` if it is held by what is no session's id, which is not shown.
    pub session_id: Option<SessionId>,
    /// The person.
    pub user: Option<User>,
    /// The server that has the socket.
    pub node: Option<NodeId>,
    /// When the seat was granted.
    pub since: Option<DateTime<Utc>>,
    /// The number of the grant.
    pub fence: Option<Fence>,
    /// What is left of the lease, in ms; `null` if it has no end.
    pub ttl_ms: Option<u64>,
    /// The client's last sign of life. For a session of another server: its last renewal, which
    /// that server grants only to clients heard from within `client_timeout`.
    pub last_seen: DateTime<Utc>,
    /// Where it is in its life. Of another server only `held` and `uncertain` can be told.
    pub state: Phase,
}

/// A server that holds seats, or that answers.
#[derive(Clone, Debug, Serialize)]
pub struct NodeInfo {
    /// Its name for this run.
    pub id: NodeId,
    /// Seats it holds.
    pub sessions: usize,
    /// Whether it is the one that answers.
    #[serde(rename = "self")]
    pub is_self: bool,
}

/// The answer of `GET /api/admin/sessions`.
#[derive(Clone, Debug, Serialize)]
pub struct SessionList {
    /// Held seats, oldest first.
    pub sessions: Vec<SessionInfo>,
    /// The servers that hold them, and the one that answers.
    pub nodes: Vec<NodeInfo>,
}

/// Who sits in one seat.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SeatView {
    /// Whether anybody does.
    pub taken: bool,
    /// Who.
    pub user: Option<User>,
    /// Since when.
    pub since: Option<DateTime<Utc>>,
    /// How many stand in line for it, if any do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<NonZeroUsize>,
}

/// Both seats of a share link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SeatsView {
    /// The writer's.
    pub writer: SeatView,
    /// The reviewer's.
    pub reviewer: SeatView,
}

impl Sessions {
    /// Who sits on each of these links, in their order. One round trip.
    ///
    /// # Errors
    ///
    /// [`SeatError::Locks`] when the lock service cannot be asked.
    pub async fn seats_of(&self, links: &[ShareLinkId]) -> Result<Vec<SeatsView>, SeatError> {
        let names: Vec<_> = links
            .iter()
            .flat_map(|link| Role::ALL.map(|role| LockName::seat(Seat::new(*link, role))))
            .collect();
        let mut holders = self.shared.locks.holders(&names).await?.into_iter();
        let mut next = || SeatView::from(holders.next().flatten());
        Ok(links.iter().map(|_| SeatsView { writer: next(), reviewer: next() }).collect())
    }

    /// The held seats.
    ///
    /// # Errors
    ///
    /// [`SeatError::Locks`] when the cluster is asked for and the lock service does not answer.
    pub async fn list(&self, scope: Scope) -> Result<SessionList, SeatError> {
        let mut sessions = match scope {
            Scope::ThisNode => self.sessions_here(),
            Scope::Cluster => {
                let held = self.shared.locks.seats().await?;
                held.into_iter().map(|(seat, holder)| self.info(seat, &holder)).collect()
            }
        };
        sessions.sort_by_key(|session| (session.since, session.fence));
        let here = self.shared.relay.node();
        let mut nodes = vec![NodeInfo { id: here, sessions: 0, is_self: true }];
        for id in sessions.iter().filter_map(|session| session.node) {
            match nodes.iter_mut().find(|node| node.id == id) {
                Some(node) => node.sessions += 1,
                None => nodes.push(NodeInfo { id, sessions: 1, is_self: false }),
            }
        }
        Ok(SessionList { sessions, nodes })
    }

    /// Ends a session on whatever server it is: who sat where. None when there is none of that id.
    ///
    /// # Errors
    ///
    /// [`SeatError`] when the lock service or the database does not answer.
    pub async fn evict(&self, session: SessionId) -> Result<Option<(Seat, UserId)>, SeatError> {
        let Some((seat, holder)) = self.held_by(session).await? else { return Ok(None) };
        // First what makes it true: from here on no write of that session is stored.
        self.shared.storage.vacate(seat, holder.fence).await?;
        self.evict_here(session);
        let message = Message::Evicted(session);
        if let Err(error) = self.shared.relay.publish(Topic::Cluster, &message).await {
            tracing::warn!(%error, "the session's server learns of it at its next renewal");
        }
        self.shared.locks.release(&LockName::seat(seat), &holder.value).await?;
        Ok(Some((seat, holder.owner.user.id)))
    }

    fn sessions_here(&self) -> Vec<SessionInfo> {
        let seated = self.shared.registry.seated();
        seated.iter().filter_map(|holding| self.info_here(holding)).collect()
    }

    pub(crate) fn info_here(&self, holding: &Holding) -> Option<SessionInfo> {
        let sitter = &holding.sitter;
        let now = Instant::now();
        let margin = self.shared.terms.lease.margin();
        let left = (holding.trust_stamp().0 + margin).saturating_duration_since(now);
        Some(SessionInfo {
            lock_key: self.shared.locks.key_of(&LockName::seat(sitter.seat)),
            share_link_id: sitter.seat.link,
            role: sitter.seat.role,
            session_id: Some(sitter.session),
            user: Some(sitter.user.clone()),
            node: Some(self.shared.relay.node()),
            since: Some(holding.since()?),
            fence: Some(holding.fence()),
            ttl_ms: u64::try_from(left.as_millis()).ok(),
            last_seen: before_now(holding.silent_for(now)),
            state: holding.phase(),
        })
    }

    pub(crate) fn info(&self, seat: Seat, holder: &Holder) -> SessionInfo {
        let lease = self.shared.terms.lease;
        let session = holder.value.parse().ok();
        let here = session.and_then(|id| self.shared.registry.session(id));
        let is_known = holder.is_known();
        let since_renewal = lease.ttl.saturating_sub(holder.ttl);
        // Two renewals overdue: its server no longer trusts it either.
        let is_overdue = lease.ttl - lease.margin() <= since_renewal;
        let (last_seen, state) = match here {
            Some(holding) => (before_now(holding.silent_for(Instant::now())), holding.phase()),
            None if is_overdue => (before_now(since_renewal), Phase::Uncertain),
            None => (before_now(since_renewal), Phase::Held),
        };
        SessionInfo {
            lock_key: self.shared.locks.key_of(&LockName::seat(seat)),
            share_link_id: seat.link,
            role: seat.role,
            session_id: session,
            user: is_known.then(|| holder.owner.user.clone()),
            node: is_known.then_some(holder.owner.node),
            since: is_known.then_some(holder.since),
            fence: is_known.then_some(holder.fence),
            ttl_ms: u64::try_from(holder.ttl.as_millis()).ok(),
            last_seen,
            state,
        }
    }
}

impl From<Option<Holder>> for SeatView {
    fn from(holder: Option<Holder>) -> Self {
        holder.map_or_else(Self::default, |holder| Self {
            taken: true,
            since: holder.is_known().then_some(holder.since),
            waiting: NonZeroUsize::new(holder.waiting),
            user: holder.is_known().then_some(holder.owner.user),
        })
    }
}

fn before_now(ago: std::time::Duration) -> DateTime<Utc> {
    Utc::now() - TimeDelta::from_std(ago).unwrap_or_default()
}
