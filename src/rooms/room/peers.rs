//! The people of the same document on other servers: who they are, and that they left, also when
//! their server died before it could say so.
//!
//! A server says who came and who went. Of one that is killed nobody hears anything; but its seats
//! come free within their lease, and so whoever has none any more has left.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, ShareLinkId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::outbox::event::Event;
use crate::pubsub::Message;
use crate::rooms::room::occupancy::{Occupant, SeatLocation};
use crate::rooms::room::{Room, State};
use crate::sessions::session::SessionIdentity;
use crate::yjs::awareness::encode_awareness;
use crate::yjs::protocol;

/// Whether somebody came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// They sit there.
    #[serde(rename = "peer.joined")]
    Joined,
    /// They do not any more.
    #[serde(rename = "peer.left")]
    Left,
}

/// What servers tell each other of somebody's coming and going: the event, and by which grant.
#[derive(Serialize, Deserialize)]
struct PeerChange {
    event: Step,
    role: Role,
    user: User,
    link: ShareLinkId,
    fence: Fence,
}

/// Somebody's coming or going, for the other servers.
pub(crate) fn word(event: Step, identity: &SessionIdentity, fence: Fence) -> Message {
    word_of(event, identity.seat, fence, &identity.user)
}

fn word_of(event: Step, Seat { link, role }: Seat, fence: Fence, user: &User) -> Message {
    let word = PeerChange { event, role, user: user.clone(), link, fence };
    // Nothing in it can fail.
    Message::Event { to: None, json: serde_json::to_string(&word).unwrap_or_default() }
}

impl Room {
    /// Another server has something to say to the people here. True if it was who came or went: they
    /// are told if that is news.
    pub(super) fn hear_of_guest(&self, node: NodeId, json: &str) -> bool {
        let Ok(PeerChange { event, role, user, link, fence }) = serde_json::from_str(json) else {
            return false;
        };
        let (mut state, seat) = (self.lock(), Seat::new(link, role));
        match event {
            Step::Joined => state.peer_joined(seat, fence, &user, SeatLocation::There(node)),
            Step::Left => state.peer_left(seat, fence),
        }
        true
    }

    /// Who sits here, for a server that asks.
    pub(super) fn words_of_those_here(&self) -> Vec<Message> {
        let state = self.lock();
        let here =
            state.occupancy.taken().filter(|(_, _, identity)| identity.place == SeatLocation::Here);
        here.map(|(seat, fence, identity)| word_of(Step::Joined, seat, fence, &identity.user))
            .collect()
    }

    /// The seats in which somebody sits on another server, as far as this room knows. None if
    /// nobody is here who would want to know.
    #[must_use]
    pub fn seats_elsewhere(&self) -> Vec<Seat> {
        let state = self.lock();
        if state.members.is_empty() {
            return Vec::new();
        }
        let elsewhere =
            state.occupancy.taken().filter(|(_, _, identity)| identity.place != SeatLocation::Here);
        elsewhere.map(|(seat, _, _)| seat).collect()
    }

    /// Somebody has looked by which grant a seat is held. Whoever was thought to sit there, and is
    /// found not to for as long as `patience`, has left: a Redis that came back empty knows of
    /// nobody for a moment.
    pub fn seat_is_held_by(&self, seat: Seat, holder: Option<Fence>, patience: Duration) {
        let mut state = self.lock();
        if let Some(gone) = state.occupancy.looked(seat, holder, Instant::now(), patience) {
            state.has_gone(seat, &gone);
        }
    }

    /// The locks cannot say who holds what.
    pub fn seats_cannot_be_seen(&self) {
        self.lock().occupancy.could_not_look();
    }
}

impl State {
    /// Somebody sits there now. The same person again, by a later grant, needs no farewell.
    pub(super) fn peer_joined(
        &mut self,
        seat: Seat,
        fence: Fence,
        user: &User,
        place: SeatLocation,
    ) {
        let Some(change) = self.occupancy.came(seat, fence, user, place) else { return };
        if let Some(before) = change.before {
            if before.user.id != user.id {
                self.tell_about(seat, &Event::PeerLeft(seat.role, &before.user));
            }
            self.drop_presence(&before);
        }
        self.tell_about(seat, &Event::PeerJoined(seat.role, user));
    }

    /// Whoever sat there by that grant, or an earlier one, has left.
    pub(super) fn peer_left(&mut self, seat: Seat, fence: Fence) {
        if let Some(gone) = self.occupancy.left(seat, fence) {
            self.has_gone(seat, &gone);
        }
    }

    fn has_gone(&mut self, seat: Seat, gone: &Occupant) {
        self.tell_about(seat, &Event::PeerLeft(seat.role, &gone.user));
        self.drop_presence(gone);
    }

    /// Their cursor goes with them, also when their server cannot say so.
    fn drop_presence(&mut self, gone: &Occupant) {
        let SeatLocation::There(node) = gone.place else { return };
        if self.occupancy.has(node) {
            return;
        }
        let tombstones = self.presence.leave_node(node);
        if !tombstones.is_empty() {
            self.send_to_all(&protocol::awareness(&encode_awareness(&tombstones)));
        }
    }

    /// Tells those who sit beside a seat. Whoever sits in it knows, and whoever did is told another
    /// way.
    fn tell_about(&self, seat: Seat, event: &Event<'_>) {
        let beside = Seat::new(seat.link, seat.role.other());
        for member in self.members.iter().filter(|member| member.identity.seat == beside) {
            member.tell(event);
        }
    }
}
