//! What another server may have done without a word, because it died before it could say it.
//!
//! A server tells the others what it has stored, and who came and went. If it is killed between the
//! commit and the telling, no later number shows them that they missed one, as long as nobody
//! writes. So with each tick all open rooms are compared with the database, in one question, and
//! those whose people sit on other servers with the locks, in another (G8, G4).

use std::sync::Arc;

use crate::domain::seat::Seat;
use crate::locks::{Holder, LockName};
use crate::session::Sessions;
use crate::session::room::Room;

/// Seats in one question to the locks.
const SEATS_MAX: usize = 250;

impl Sessions {
    /// Looks what the others did. Nothing if there are none, or if the last look still takes.
    pub(super) fn keep_abreast(&self) {
        if self.shared.relay.is_alone() {
            return;
        }
        let Ok(turn) = Arc::clone(&self.shared.looking).try_acquire_owned() else { return };
        let sessions = self.clone();
        self.shared.tasks.spawn(async move {
            let rooms = sessions.shared.rooms.all();
            sessions.look_at_what_is_stored(&rooms).await;
            sessions.look_at_who_sits(&rooms).await;
            drop(turn);
        });
    }

    async fn look_at_what_is_stored(&self, rooms: &[Arc<Room>]) {
        let documents: Vec<_> = rooms.iter().map(|room| room.document).collect();
        match self.shared.storage.last_numbers(&documents).await {
            Ok(numbers) => {
                for room in rooms {
                    room.is_stored_up_to(numbers.get(&room.document).copied().unwrap_or(0));
                }
            }
            // The next tick comes.
            Err(error) => tracing::debug!(%error, "what the others stored cannot be seen"),
        }
    }

    async fn look_at_who_sits(&self, rooms: &[Arc<Room>]) {
        let seats = |room: &Arc<Room>| {
            room.seats_elsewhere()
                .into_iter()
                .map(|seat| (Arc::clone(room), seat))
                .collect::<Vec<_>>()
        };
        let asked: Vec<(Arc<Room>, Seat)> = rooms.iter().flat_map(seats).collect();
        // Whoever holds a seat says so again with the next round.
        let patience = self.shared.terms.lease.renew_every * 2;
        for some in asked.chunks(SEATS_MAX) {
            let names: Vec<_> = some.iter().map(|(_, seat)| LockName::seat(*seat)).collect();
            let Ok(holders) = self.shared.locks.holders(&names).await else {
                // Nobody is said to have left because Redis is away, or was.
                return rooms.iter().for_each(|room| room.seats_cannot_be_seen());
            };
            for ((room, seat), holder) in some.iter().zip(holders) {
                let holder = holder.filter(Holder::is_known).map(|holder| holder.fence);
                room.seat_is_held_by(*seat, holder, patience);
            }
        }
    }
}
