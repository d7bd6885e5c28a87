//! Peers: the sessions of the same document on other servers.
//!
//! A server publishes `peer.joined` and `peer.left`. A killed server publishes nothing, but its leases
//! expire. The room therefore removes a peer when the locks no longer show its grant.

use std::collections::BTreeSet;
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
use crate::rooms::room::subscribers::Recorded;
use crate::rooms::room::{Room, RoomState};
use crate::sessions::session::SessionIdentity;
use crate::yjs::awareness::encode_awareness;
use crate::yjs::protocol;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    #[serde(rename = "peer.joined")]
    Joined,
    #[serde(rename = "peer.left")]
    Left,
}

/// The message between servers about a join or a leave: the event and the fence of the grant.
#[derive(Serialize, Deserialize)]
struct PeerChange {
    event: Step,
    role: Role,
    user: User,
    link: ShareLinkId,
    fence: Fence,
}

pub(crate) fn peer_message(event: Step, identity: &SessionIdentity, fence: Fence) -> Message {
    message_of(event, identity.seat, fence, &identity.user)
}

fn message_of(event: Step, Seat { link, role }: Seat, fence: Fence, user: &User) -> Message {
    let change = PeerChange { event, role, user: user.clone(), link, fence };
    // Serialization of these fields cannot fail.
    Message::Event { to: None, json: serde_json::to_string(&change).unwrap_or_default() }
}

impl Room {
    /// Applies an event of another server if it is a join or a leave, and returns which. The members
    /// receive it if it changes the occupancy.
    pub(super) fn apply_peer_event(&self, node: NodeId, json: &str) -> Option<Step> {
        let PeerChange { event, role, user, link, fence } = serde_json::from_str(json).ok()?;
        let (mut state, seat) = (self.lock(), Seat::new(link, role));
        match event {
            Step::Joined => state.peer_joined(seat, fence, &user, SeatLocation::There(node)),
            Step::Left => state.peer_left(seat, fence),
        }
        Some(event)
    }

    /// The server of `from` has the document open. Returns what it may have missed: all, if the room has
    /// published nothing (M5).
    pub(super) fn meet(&self, from: NodeId) -> Vec<Message> {
        let mut state = self.lock();
        match state.subscribers.record(from, Instant::now()) {
            Recorded::First => state.introduction(Recorded::First),
            Recorded::Before | Recorded::Further => Vec::new(),
        }
    }

    /// The server of `from` opened the document. Returns what it lacks.
    pub(super) fn greet(&self, from: NodeId) -> Vec<Message> {
        let mut state = self.lock();
        let recorded = state.subscribers.record(from, Instant::now());
        state.introduction(recorded)
    }

    /// The locks show that a session of `node` holds a seat. If the room does not know that server, a
    /// message was lost: both introduce themselves.
    pub fn seat_is_held_at(&self, node: NodeId) {
        let mut state = self.lock();
        let recorded = state.subscribers.record(node, Instant::now());
        if recorded != Recorded::Before {
            let introduction = state.introduction(recorded);
            [Message::Hello].into_iter().chain(introduction).for_each(|it| self.queue_message(it));
        }
    }

    /// The comparison with the locks is complete. See `Subscribers::forget_silent`.
    pub fn forget_silent_subscribers(&self, silent_max: Duration) {
        let mut state = self.lock();
        // No seat was read for a room without members, and its edits are still to be published.
        if !state.members.is_empty() {
            state.subscribers.forget_silent(Instant::now(), silent_max);
        }
    }

    /// The seats that peers hold, as far as this room knows, and after a gap those that they may hold. A
    /// room without members returns none: no client would receive the result.
    #[must_use]
    pub fn seats_elsewhere(&self) -> Vec<Seat> {
        let state = self.lock();
        if state.members.is_empty() {
            return Vec::new();
        }
        let elsewhere = state
            .occupancy
            .taken()
            .filter(|(_, _, occupant)| occupant.location != SeatLocation::Here);
        let mut seats: Vec<_> = elsewhere.map(|(seat, _, _)| seat).collect();
        if state.subscribers.is_unsure(|node| state.occupancy.has(node)) {
            let taken: Vec<_> = state.occupancy.taken().map(|(seat, _, _)| seat).collect();
            let links = state.members.iter().map(|member| member.identity.seat.link);
            let all: BTreeSet<_> =
                links.flat_map(|link| Role::ALL.map(|role| Seat::new(link, role))).collect();
            seats.extend(all.into_iter().filter(|seat| !taken.contains(seat)));
        }
        seats
    }

    /// The locks show `holder` as the grant of a seat. The room removes the peer after `missing_max`
    /// without its grant, because a Redis that restarted empty shows no grants for a moment.
    pub fn observe_holder(&self, seat: Seat, holder: Option<Fence>, missing_max: Duration) {
        let mut state = self.lock();
        if let Some(gone) = state.occupancy.observe(seat, holder, Instant::now(), missing_max) {
            state.announce_departure(seat, &gone);
        }
    }

    /// The query of the locks failed: absences seen before no longer count.
    pub fn observe_failed(&self) {
        let mut state = self.lock();
        state.occupancy.forget_absences();
        state.subscribers.comparison_failed(Instant::now());
    }
}

impl RoomState {
    /// The sessions of this server and their presence, for a server that opened the document. Before them
    /// the last numbers, if the room did not know that server.
    fn introduction(&self, recorded: Recorded) -> Vec<Message> {
        let mut messages = Vec::new();
        if recorded != Recorded::Before {
            let (seq, change) = (self.last_number(), self.reviews.last_number());
            messages.push(Message::Numbers { seq, change });
        }
        let here = self.occupancy.taken().filter(|(.., it)| it.location == SeatLocation::Here);
        messages.extend(
            here.map(|(seat, fence, occupant)| {
                message_of(Step::Joined, seat, fence, &occupant.user)
            }),
        );
        let local = self.presence.local();
        if !local.is_empty() {
            messages.push(Message::Presence(encode_awareness(&local).into()));
        }
        messages
    }

    /// A session holds the seat now. A later grant of the same user sends no `peer.left` first.
    pub(super) fn peer_joined(
        &mut self,
        seat: Seat,
        fence: Fence,
        user: &User,
        location: SeatLocation,
    ) {
        let Some(change) = self.occupancy.join(seat, fence, user, location) else { return };
        if let Some(before) = change.before {
            if before.user.id != user.id {
                self.notify_other_roles(seat, &Event::PeerLeft(seat.role, &before.user));
            }
            self.drop_presence(&before);
        }
        self.notify_other_roles(seat, &Event::PeerJoined(seat.role, user));
    }

    pub(super) fn peer_left(&mut self, seat: Seat, fence: Fence) {
        if let Some(gone) = self.occupancy.left(seat, fence) {
            self.announce_departure(seat, &gone);
        }
    }

    fn announce_departure(&mut self, seat: Seat, gone: &Occupant) {
        self.notify_other_roles(seat, &Event::PeerLeft(seat.role, &gone.user));
        self.drop_presence(gone);
    }

    /// Removes the presence of a server with the last of its peers: a dead server sends no tombstones.
    fn drop_presence(&mut self, gone: &Occupant) {
        let SeatLocation::There(node) = gone.location else { return };
        if self.occupancy.has(node) {
            return;
        }
        let tombstones = self.presence.leave_node(node, Instant::now());
        if !tombstones.is_empty() {
            self.members.send_to_all(&protocol::awareness(&encode_awareness(&tombstones)));
        }
    }

    /// Sends an event to the sessions in the other roles of the link. The holder of the seat and its
    /// predecessor get their state from their own session.
    fn notify_other_roles(&self, seat: Seat, event: &Event<'_>) {
        for member in self.members.iter().filter(|member| seat.is_beside(member.identity.seat)) {
            member.notify(event);
        }
    }
}
