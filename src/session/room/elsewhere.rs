//! The people of the same document on other servers: who they are, and that they left, also when
//! their server died before it could say so.
//!
//! A server says who came and who went. Of one that is killed nobody hears anything; but its seats
//! come free within their lease, and so whoever has none any more has left.

use serde::Deserialize;

use crate::domain::ids::{NodeId, UserId};
use crate::domain::limits::SESSIONS_PER_ROOM_MAX;
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::session::event::Event;
use crate::session::room::{Room, State};
use crate::sync::awareness::encode_awareness;
use crate::sync::frame;

/// Somebody with a socket on another server.
#[derive(Debug)]
pub(in crate::session) struct Guest {
    node: NodeId,
    pub(super) role: Role,
    pub(super) user: User,
    /// Somebody looked, and the seat was not theirs.
    missed: bool,
}

/// A word about somebody, as [`Event`] says it.
#[derive(Deserialize)]
struct Word {
    event: String,
    role: Role,
    user: User,
}

impl Room {
    /// Another server has something to say to the people here: it may be who came or went. False if
    /// it is no news: whoever comes and asks who is there is answered so that all hear it.
    pub(super) fn note_guest(&self, node: NodeId, json: &str) -> bool {
        let Ok(Word { event, role, user }) = serde_json::from_str::<Word>(json) else {
            return true;
        };
        let mut state = self.lock();
        let count = state.elsewhere.len();
        let is_same =
            |guest: &Guest| guest.node == node && guest.role == role && guest.user.id == user.id;
        state.elsewhere.retain(|guest| !is_same(guest));
        let was_here = state.elsewhere.len() < count;
        if event != "peer.joined" {
            return true;
        }
        if state.elsewhere.len() < SESSIONS_PER_ROOM_MAX {
            state.elsewhere.push(Guest { node, role, user, missed: false });
        }
        !was_here
    }

    /// The seats in which somebody sits on another server, as far as this room knows. None if
    /// nobody is here who would want to know.
    #[must_use]
    pub fn seats_elsewhere(&self) -> Vec<Seat> {
        let state = self.lock();
        let Some(link) = state.members.first().map(|member| member.sitter.seat.link) else {
            return Vec::new();
        };
        let roles = [Role::Writer, Role::Reviewer].into_iter();
        let taken = roles.filter(|role| state.elsewhere.iter().any(|guest| guest.role == *role));
        taken.map(|role| Seat::new(link, role)).collect()
    }

    /// Somebody has looked who holds a seat, and on which server. Whoever was thought to, and is
    /// found not to twice, has left: a Redis that came back empty knows of nobody for a moment.
    pub fn seat_is_held_by(&self, role: Role, holder: Option<(&UserId, NodeId)>) {
        let mut state = self.lock();
        let mut gone = Vec::new();
        let mut guests = std::mem::take(&mut state.elsewhere);
        guests.retain_mut(|guest| {
            if guest.role != role {
                return true;
            }
            match holder {
                // On another server now, which has said so: nobody has left.
                Some((user, node)) if *user == guest.user.id => {
                    guest.missed = false;
                    node == guest.node
                }
                _ if guest.missed => {
                    gone.push((guest.node, guest.user.clone()));
                    false
                }
                _ => {
                    guest.missed = true;
                    true
                }
            }
        });
        state.elsewhere = guests;
        for (node, user) in gone {
            state.guest_left(node, role, &user);
        }
    }
}

impl State {
    /// Tells that somebody has left whose server did not say so; their cursor goes with them.
    fn guest_left(&mut self, node: NodeId, role: Role, user: &User) {
        self.tell_all(&Event::PeerLeft(role, user));
        if self.elsewhere.iter().any(|guest| guest.node == node) {
            return;
        }
        let tombstones = self.presence.leave_node(node);
        if !tombstones.is_empty() {
            self.send_to_all(&frame::awareness(&encode_awareness(&tombstones)));
        }
    }
}
