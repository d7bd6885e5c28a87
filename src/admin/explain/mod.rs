//! "Why is this seat held?": the facts about one session, and their source.
//!
//! Most facts exist only on the server of the session's socket. This server requests them over
//! pub/sub and waits at most a second. Without a reply, Redis still shows the last renewal of the
//! lease, and the answer names Redis as its only source. The server may have stopped or lost its
//! connection, which may be the reason for the query.
//!
//! Times between servers travel as durations, because clocks of servers differ.

mod sentence;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::admin::Console;
use crate::admin::sessions::SessionInfo;
use crate::domain::ids::{NodeId, SessionId};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::locks::{Holder, LockName};
use crate::seats::SeatError;
use crate::seats::local_facts::{LocalFacts, as_ms};
use crate::sessions::session::SessionState;

const WAITERS_SHOWN: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum FactsSource {
    ThisServer,
    /// The server of the session's socket, over pub/sub.
    ItsServer,
    /// Redis alone: the session's server did not answer in time.
    Redis,
}

/// The answer of `GET /api/admin/sessions/{session_id}`. An unknown time is `null`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionDetails {
    #[serde(flatten)]
    pub session: SessionInfo,
    /// In one sentence, in English.
    pub why: String,
    /// The source of the facts. `redis`: the session's server did not answer within a second.
    pub told_by: FactsSource,
    /// The time of these facts.
    pub as_of: DateTime<Utc>,
    /// The last message, ping or pong of the client.
    pub last_heard: Option<DateTime<Utc>>,
    /// When the user last typed, moved the cursor or reviewed.
    pub last_active: Option<DateTime<Utc>>,
    /// When the user last changed the text, or reviewed; `null` also if never.
    pub last_edit: Option<DateTime<Utc>>,
    /// The last good renewal of the lease, or its grant.
    pub last_renewal: Option<DateTime<Utc>>,
    /// When its server stops accepting edits, unless it renews the lease.
    pub trusted_until: Option<DateTime<Utc>>,
    /// When the key expires in Redis, unless the server renews it.
    pub kept_until: Option<DateTime<Utc>>,
    /// Of a user who is away: when the resume grace ends.
    pub grace_until: Option<DateTime<Utc>>,
    /// When the server releases the seat if the user stays idle.
    pub idle_release_at: Option<DateTime<Utc>>,
    /// The number of waiters.
    pub waiting: usize,
    /// The first 20 waiters.
    pub line: Vec<WaiterInfo>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct WaiterInfo {
    /// 1 is next.
    pub position: usize,
    pub user: User,
    pub since: DateTime<Utc>,
    /// The server that has the socket.
    pub node: NodeId,
}

impl Console {
    /// On any server. [`SeatError::Locks`]: the session is not on this server and the lock service does
    /// not answer.
    pub async fn why(&self, session_id: SessionId) -> Result<Option<SessionDetails>, SeatError> {
        let here = self.seats.registry().session(session_id);
        let here = here.filter(|session| !matches!(session.state(), SessionState::Ended));
        let Some(session) = here else {
            let Some((seat, holder)) = self.held_by(session_id).await? else {
                return Ok(None);
            };
            let facts = self.seats.request_facts(session_id, holder.owner.node).await;
            let told_by = if facts.is_some() { FactsSource::ItsServer } else { FactsSource::Redis };
            let info = self.info(seat, &holder);
            return Ok(Some(self.details(info, Some(&holder), facts.as_ref(), told_by).await));
        };
        // Without Redis this server still has its own facts. An outage of Redis is when
        // administrators query them.
        let name = LockName::seat(session.identity.seat);
        let holder = self.locks.holder(&name).await.ok().flatten();
        let holder = holder.filter(|holder| holder.value == session_id.to_string());
        let info = match &holder {
            Some(holder) => Some(self.info(session.identity.seat, holder)),
            None => self.info_here(&session),
        };
        // Neither granted nor in Redis: the session only waits.
        let Some(info) = info else { return Ok(None) };
        let facts = self.seats.local_facts(&session);
        Ok(Some(self.details(info, holder.as_ref(), Some(&facts), FactsSource::ThisServer).await))
    }

    /// The seat and grant of a session, as Redis stores them.
    pub(crate) async fn held_by(
        &self,
        session: SessionId,
    ) -> Result<Option<(Seat, Holder)>, SeatError> {
        let value = session.to_string();
        let held = self.locks.seats().await?;
        Ok(held.into_iter().find(|(_, holder)| holder.value == value))
    }

    async fn details(
        &self,
        mut session: SessionInfo,
        holder: Option<&Holder>,
        facts: Option<&LocalFacts>,
        told_by: FactsSource,
    ) -> SessionDetails {
        self.find_titles(std::slice::from_mut(&mut session)).await;
        let now = Utc::now();
        let name = LockName::seat(Seat::new(session.share_link_id, session.role));
        let line = self.locks.waiters(&name, WAITERS_SHOWN).await.unwrap_or_default();
        let line = line.into_iter().zip(1_usize..).map(|(it, position)| WaiterInfo {
            position,
            node: it.owner.node,
            user: it.owner.into(),
            since: it.since,
        });
        let ago = |ms: u64| now - milliseconds(ms);
        let from_now = |ms: u64| now + milliseconds(ms);
        if let Some(facts) = facts {
            (session.state, session.last_seen) = (facts.state, ago(facts.heard_ago));
        }
        let lease = self.seats.terms().lease;
        // A key that was set by hand may have no TTL.
        let ttl = holder.map(|holder| holder.ttl).filter(|ttl| *ttl <= lease.ttl);
        let by_ttl = || ttl.map(|ttl| ago(as_ms(lease.ttl.saturating_sub(ttl))));
        let trusted =
            |facts: &LocalFacts| (facts.trusted_for > 0).then(|| from_now(facts.trusted_for));
        let mut details = SessionDetails {
            why: String::new(),
            told_by,
            as_of: now,
            last_heard: facts.map(|facts| ago(facts.heard_ago)),
            last_active: facts.map(|facts| ago(facts.active_ago)),
            last_edit: facts.and_then(|facts| facts.edited_ago).map(ago),
            last_renewal: facts.and_then(|facts| facts.renewed_ago).map(ago).or_else(by_ttl),
            trusted_until: facts.and_then(trusted),
            kept_until: ttl.map(|ttl| from_now(as_ms(ttl))),
            grace_until: facts.and_then(|facts| facts.grace_left).map(from_now),
            idle_release_at: facts.and_then(|facts| facts.idle_left).map(from_now),
            waiting: holder.map_or(0, |holder| holder.waiting),
            line: line.collect(),
            session,
        };
        details.why = sentence::why(&details, self.seats.terms());
        details
    }
}

fn milliseconds(ms: u64) -> TimeDelta {
    i64::try_from(ms).ok().and_then(TimeDelta::try_milliseconds).unwrap_or_default()
}
