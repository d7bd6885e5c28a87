//! Facts about a session that only its own server knows, and the request for them to another server.
//!
//! Times between servers travel as durations, because clocks of servers differ.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::domain::ids::{NodeId, SessionId};
use crate::pubsub::{Reply, Request};
use crate::seats::Seats;
use crate::sessions::session::{Session, SessionState};

const FACTS_TIMEOUT: Duration = Duration::from_secs(1);

/// Facts that a server has about a session whose socket it serves. Durations in ms.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LocalFacts {
    pub state: SessionState,
    pub heard_ago: u64,
    pub active_ago: u64,
    pub edited_ago: Option<u64>,
    pub renewed_ago: Option<u64>,
    pub trusted_for: u64,
    pub grace_left: Option<u64>,
    pub idle_left: Option<u64>,
}

impl Seats {
    pub fn local_facts(&self, session: &Session) -> LocalFacts {
        let (now, terms) = (Instant::now(), &self.shared.terms);
        let (heard_ago, active_ago) = (session.silent_for(now), session.idle_for(now));
        let state = session.state();
        let until = session.trust_stamp().0;
        let trusts = terms.lease.ttl - terms.lease.margin();
        let renewed_at = until.checked_sub(trusts).filter(|_| session.since().is_some());
        let grace_left = terms.resume_grace.saturating_sub(heard_ago);
        let idle_left = terms.idle_release.saturating_sub(active_ago);
        let is_released_when_idle = !terms.idle_release.is_zero() && state != SessionState::Away;
        LocalFacts {
            state,
            heard_ago: as_ms(heard_ago),
            active_ago: as_ms(active_ago),
            edited_ago: session.unedited_for(now).map(as_ms),
            renewed_ago: renewed_at.map(|at| as_ms(now.saturating_duration_since(at))),
            trusted_for: as_ms(until.saturating_duration_since(now)),
            grace_left: (state == SessionState::Away).then(|| as_ms(grace_left)),
            idle_left: is_released_when_idle.then(|| as_ms(idle_left)),
        }
    }

    /// None without a reply in time.
    pub async fn request_facts(&self, session_id: SessionId, node: NodeId) -> Option<LocalFacts> {
        if node == self.shared.pubsub.node() {
            // The session ended a moment ago: otherwise this server's registry would contain it.
            return None;
        }
        match self.shared.peers.request(node, Request::Facts(session_id), FACTS_TIMEOUT).await {
            Ok(Reply::Facts(json)) => serde_json::from_str(&json).ok(),
            Ok(_) | Err(_) => None,
        }
    }

    pub(super) fn facts_reply(&self, session_id: SessionId) -> Reply {
        let session = self.shared.registry.session(session_id);
        let json =
            session.and_then(|session| serde_json::to_string(&self.local_facts(&session)).ok());
        json.map_or(Reply::Gone, Reply::Facts)
    }
}

pub fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
