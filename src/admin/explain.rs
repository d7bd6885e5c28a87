//! "Why is this seat held?": what is known of one session, and by whom.
//!
//! Most of it is known only to the server that has the session's socket. So that server is asked,
//! over the relay, and has a second to answer. If it does not (it is stopped, or cut off, which may
//! be the very reason for the question), Redis still tells when the lease was renewed last, and the
//! answer says that this is all that can be told.
//!
//! Between servers times travel as "so long ago", since their clocks need not agree.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::admin::sentence;
use crate::admin::sessions::SessionInfo;
use crate::domain::ids::{NodeId, SessionId};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::locks::{Holder, LockName};
use crate::seats::local_facts::{Known, as_ms};
use crate::seats::{SeatError, Sessions};
use crate::sessions::session::Phase;

/// How many of those who wait are named.
const LINE_SHOWN: usize = 20;

/// Who could tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToldBy {
    /// This server, which has the session's socket.
    ThisServer,
    /// The server that has the session's socket, asked over the relay.
    ItsServer,
    /// Redis alone: the session's server did not answer in time.
    Redis,
}

/// The answer of `GET /api/admin/sessions/{session_id}`. Times that nobody could tell are `null`.
#[derive(Clone, Debug, Serialize)]
pub struct SessionDetails {
    /// As in the list.
    #[serde(flatten)]
    pub session: SessionInfo,
    /// In one sentence, for people.
    pub why: String,
    /// Who could tell.
    pub told_by: ToldBy,
    /// When this was so.
    pub as_of: DateTime<Utc>,
    /// Anything at all arrived from the client: a message, a ping, a pong.
    pub last_heard: Option<DateTime<Utc>>,
    /// The person typed, moved or reviewed.
    pub last_active: Option<DateTime<Utc>>,
    /// The person changed the text, or reviewed; `null` also if they never did.
    pub last_edit: Option<DateTime<Utc>>,
    /// The last good renewal of the lease, or its grant.
    pub last_renewal: Option<DateTime<Utc>>,
    /// Until when its server trusts the lease, if it is not renewed.
    pub trusted_until: Option<DateTime<Utc>>,
    /// Until when Redis keeps the seat, if it is not renewed; `null` if Redis has no such key now.
    pub kept_until: Option<DateTime<Utc>>,
    /// For somebody who is away: until when they may come back.
    pub grace_until: Option<DateTime<Utc>>,
    /// When the seat is given back if the person does nothing; `null` if it never is.
    pub idle_release_at: Option<DateTime<Utc>>,
    /// How many wait for the seat.
    pub waiting: usize,
    /// The first of them.
    pub line: Vec<InLineInfo>,
}

/// Somebody who waits.
#[derive(Clone, Debug, Serialize)]
pub struct InLineInfo {
    /// 1 is next.
    pub position: usize,
    /// Who.
    pub user: User,
    /// Since when.
    pub since: DateTime<Utc>,
    /// On which server.
    pub node: NodeId,
}

impl Sessions {
    /// Why a session holds its seat, on whatever server it is. None when there is none of that id.
    ///
    /// # Errors
    ///
    /// [`SeatError::Locks`] when the session is not here and the lock service does not answer.
    pub async fn why(&self, session: SessionId) -> Result<Option<SessionDetails>, SeatError> {
        let here = self.shared.registry.session(session);
        let here = here.filter(|holding| !matches!(holding.phase(), Phase::Ended));
        let Some(holding) = here else {
            let Some((seat, holder)) = self.held_by(session).await? else { return Ok(None) };
            let known = self.ask_for(session, holder.owner.node).await;
            let told_by = if known.is_some() { ToldBy::ItsServer } else { ToldBy::Redis };
            let info = self.info(seat, &holder);
            return Ok(Some(self.details(info, Some(&holder), known.as_ref(), told_by).await));
        };
        // Without Redis this server still knows its own, and is asked just then.
        let name = LockName::seat(holding.sitter.seat);
        let holder = self.shared.locks.holder(&name).await.ok().flatten();
        let holder = holder.filter(|holder| holder.value == session.to_string());
        let info = match &holder {
            Some(holder) => Some(self.info(holding.sitter.seat, holder)),
            None => self.info_here(&holding),
        };
        // Neither granted nor in Redis: it only waits.
        let Some(info) = info else { return Ok(None) };
        let known = self.known_of(&holding);
        Ok(Some(self.details(info, holder.as_ref(), Some(&known), ToldBy::ThisServer).await))
    }

    /// The seat of a session, by what Redis says.
    pub(crate) async fn held_by(
        &self,
        session: SessionId,
    ) -> Result<Option<(Seat, Holder)>, SeatError> {
        let value = session.to_string();
        let held = self.shared.locks.seats().await?;
        Ok(held.into_iter().find(|(_, holder)| holder.value == value))
    }

    async fn details(
        &self,
        mut session: SessionInfo,
        holder: Option<&Holder>,
        known: Option<&Known>,
        told_by: ToldBy,
    ) -> SessionDetails {
        let now = Utc::now();
        let name = LockName::seat(Seat::new(session.share_link_id, session.role));
        let line = self.shared.locks.behind(&name, LINE_SHOWN).await.unwrap_or_default();
        let line = line.into_iter().zip(1_usize..).map(|(it, position)| InLineInfo {
            position,
            user: it.user,
            since: it.since,
            node: it.node,
        });
        let ago = |ms: u64| now - milliseconds(ms);
        let from_now = |ms: u64| now + milliseconds(ms);
        if let Some(known) = known {
            (session.state, session.last_seen) = (known.state, ago(known.heard_ago));
        }
        let lease = self.shared.terms.lease;
        // A key that was set by hand may have no end.
        let ttl = holder.map(|holder| holder.ttl).filter(|ttl| *ttl <= lease.ttl);
        let by_ttl = || ttl.map(|ttl| ago(as_ms(lease.ttl.saturating_sub(ttl))));
        let trusted = |known: &Known| (0 < known.trusted_for).then(|| from_now(known.trusted_for));
        let mut details = SessionDetails {
            why: String::new(),
            told_by,
            as_of: now,
            last_heard: known.map(|known| ago(known.heard_ago)),
            last_active: known.map(|known| ago(known.active_ago)),
            last_edit: known.and_then(|known| known.edited_ago).map(ago),
            last_renewal: known.and_then(|known| known.renewed_ago).map(ago).or_else(by_ttl),
            trusted_until: known.and_then(trusted),
            kept_until: ttl.map(|ttl| from_now(as_ms(ttl))),
            grace_until: known.and_then(|known| known.grace_left).map(from_now),
            idle_release_at: known.and_then(|known| known.idle_left).map(from_now),
            waiting: holder.map_or(0, |holder| holder.waiting),
            line: line.collect(),
            session,
        };
        details.why = sentence::why(&details, &self.shared.terms);
        details
    }
}

fn milliseconds(ms: u64) -> TimeDelta {
    i64::try_from(ms).ok().and_then(TimeDelta::try_milliseconds).unwrap_or_default()
}
