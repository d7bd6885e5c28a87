//! The sessions of this process, in two maps: seat → session id, and session id → session.
//!
//! "Does this user hold that seat now, and under which fence" ([`Registry::holds`]) takes two look-ups
//! in two `DashMap`s: nanoseconds and no IO. [`Registry::held_on`] asks it of both seats of a link, for
//! the calls on reviews. No method returns a map guard. Each copies the `Arc` out, so no shard stays
//! locked while the server calls Redis.
//!
//! # Invariants
//!
//! - **R1** The registry contains a session from before the claim of its key until before its
//!   release is sent. So every key that a renewal covers belongs to a registered session.
//! - **R2** A seat maps to a session that acquired it and has not ended. Of two sessions the
//!   registry selects the later grant, in any order of registration.

use std::sync::Arc;

use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};

use super::session::{Session, SessionState};
use super::shuttle_shim::{DashMap, Entry};

/// A handle on the sessions of this process. Cloning is shallow.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    seats: Arc<DashMap<Seat, SessionId>>,
    sessions: Arc<DashMap<SessionId, Arc<Session>>>,
}

impl Registry {
    /// Registers a session before it claims its seat (R1).
    pub fn enter(&self, session: Arc<Session>) {
        self.sessions.insert(session.identity.session, session);
    }

    /// Maps the seat to this session. Removes and returns the session that loses the seat: the
    /// former one, or this one if a session with a later grant is registered already (R2).
    pub fn insert_seat(&self, session: &Session) -> Option<Arc<Session>> {
        let mine = session.identity.session;
        let loser = match self.seats.entry(session.identity.seat) {
            Entry::Vacant(seat) => {
                seat.insert(mine);
                return None;
            }
            Entry::Occupied(seat) if *seat.get() == mine => return None,
            Entry::Occupied(seat) if self.is_later(*seat.get(), session) => mine,
            Entry::Occupied(mut seat) => seat.insert(mine),
        };
        self.sessions.remove(&loser).map(|(_, loser)| loser)
    }

    fn is_later(&self, session: SessionId, than: &Session) -> bool {
        let is_later =
            |it: &Session| than.fence() < it.fence() && it.state() != SessionState::Ended;
        self.sessions.get(&session).is_some_and(|entry| is_later(entry.value()))
    }

    /// Removes a session (R1), and its seat's entry if that still maps to it (R2).
    pub fn leave(&self, session: &Session) -> Option<Arc<Session>> {
        let identity = &session.identity;
        self.seats.remove_if(&identity.seat, |_, session_id| *session_id == identity.session);
        self.sessions.remove(&identity.session).map(|(_, session)| session)
    }

    /// The session with that id.
    #[must_use]
    pub fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.sessions.get(&id).map(|entry| Arc::clone(entry.value()))
    }

    /// The session that holds that seat.
    #[must_use]
    pub fn seated_in(&self, seat: Seat) -> Option<Arc<Session>> {
        let session_id = self.seats.get(&seat).map(|entry| *entry.value())?;
        self.session(session_id)
    }

    /// Whether `user` holds `seat` at `now`, and under which fence. No IO.
    #[must_use]
    pub fn holds(&self, user: &UserId, seat: Seat, now: Instant) -> Option<Fence> {
        let session_id = self.seats.get(&seat).map(|entry| *entry.value())?;
        let entry = self.sessions.get(&session_id)?;
        let session = entry.value();
        (session.identity.user.id == *user && session.may_write(now)).then(|| session.fence())
    }

    /// The session by which `user` holds a seat of `link` at `now`. No IO.
    #[must_use]
    pub fn held_on(&self, link: ShareLinkId, user: &UserId, now: Instant) -> Option<Arc<Session>> {
        let mut both =
            Role::ALL.into_iter().filter_map(|role| self.seated_in(Seat::new(link, role)));
        both.find(|session| session.identity.user.id == *user && session.may_write(now))
    }

    /// A copy of every session that holds a seat.
    #[must_use]
    pub fn seated(&self) -> Vec<Arc<Session>> {
        let mut seated = self.all();
        seated.retain(|session| session.is_seated());
        seated
    }

    /// A copy of every session.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Session>> {
        let mut sessions = Vec::with_capacity(self.sessions.len());
        sessions.extend(self.sessions.iter().map(|entry| Arc::clone(entry.value())));
        sessions
    }

    /// A copy of every session on one share link.
    #[must_use]
    pub fn on_link(&self, link: ShareLinkId) -> Vec<Arc<Session>> {
        let mut sessions = self.all();
        sessions.retain(|session| session.identity.seat.link == link);
        sessions
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}
