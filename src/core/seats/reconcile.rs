//! Reconciliation of the live sessions and the open rooms with the database and the locks (G15).
//!
//! A server publishes what it commits. If the server dies between the commit and the message, no
//! later message shows the loss. On a lone server the same happens when the reply to a commit is
//! lost. So each tick, and each gap in the messages, starts one comparison:
//!
//! - A statement for [`COMPARED_AT_ONCE`] sessions reads their rights: it finds revoked links, former reviewers
//!   (G14), and fences that another grant or an eviction raised.
//! - A statement for as many rooms reads the last numbers of their updates and reviews (G8).
//! - One script call reads the seats of users on other servers (G4), which shows the servers that have a
//!   document open.
//!
//! The comparison also detects a database that was set back. Rooms are then ahead of its last
//! numbers ([`Room::request_reset`]), or sessions of its fences ([`rights`](crate::seats::rights)).
//!
//! The next tick repeats a comparison that failed.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use crate::domain::limits::GRANTS_RATIFIED_AT_ONCE;
use crate::domain::seat::Seat;
use crate::locks::{Holder, LockName};
use crate::rooms::room::Room;
use crate::seats::Seats;
use crate::sessions::session::Session;
use crate::storage::seats::SeatRight;

/// Seats in one query to the locks, and sessions or rooms in one statement. The allocator retains large
/// buffers, so those of a statement do not grow with the sessions.
const COMPARED_AT_ONCE: usize = 250;

impl Seats {
    /// Starts a comparison, or schedules one more after the running one.
    pub(crate) fn reconcile_soon(&self) {
        self.shared.reconcile_due.notify_one();
    }

    /// Compares whenever a comparison is due, until the sessions have finished.
    pub(crate) async fn reconcile_when_due(self) {
        let compare = async {
            loop {
                self.shared.reconcile_due.notified().await;
                self.reconcile().await;
            }
        };
        let _finished: Option<()> = self.shared.tasks.finished.run_until_cancelled(compare).await;
    }

    async fn reconcile(&self) {
        self.compare_sessions().await;
        let rooms = self.shared.rooms.all();
        if rooms.is_empty() {
            return;
        }
        self.compare_numbers(&rooms).await;
        if !self.shared.pubsub.is_alone() {
            self.compare_holders(&rooms).await;
        }
    }

    /// Ends every session without a right to its seat: waiting, seated, or in its resume grace.
    async fn compare_sessions(&self) {
        let mut lost_grants = Vec::new();
        for sessions in self.shared.registry.all().chunks(COMPARED_AT_ONCE) {
            // The server reads the states before the query, which does not see a grant that is ratified meanwhile.
            let seated: Vec<_> = sessions.iter().map(|session| session.is_seated()).collect();
            let rights = match self.rights_of(sessions).await {
                Ok(rights) => rights,
                Err(error) => {
                    tracing::warn!(%error, "share links cannot be read; the next tick repeats it");
                    break;
                }
            };
            let known = sessions.iter().cloned().zip(seated).zip(rights);
            let known = known.filter_map(|((session, is_seated), right)| {
                let is_compared = is_seated || !matches!(right?, SeatRight::Ratified(_));
                is_compared.then_some((session, right?))
            });
            let mut compared = Vec::from_iter(known);
            lost_grants.extend(compared.extract_if(.., has_lost_grant).map(|(session, _)| session));
            // A session may wait for a query of its link's end: one after another, thousands would take seconds.
            stream::iter(compared)
                .for_each_concurrent(GRANTS_RATIFIED_AT_ONCE, async |(session, right)| {
                    self.end_without_right(&session, right).await;
                })
                .await;
        }
        // The next tick finds the grants again that a busy task does not take.
        let _busy = self.shared.lost_grants.try_send(lost_grants);
    }

    async fn compare_numbers(&self, rooms: &[Arc<Room>]) {
        for rooms in rooms.chunks(COMPARED_AT_ONCE) {
            let documents: Vec<_> = rooms.iter().map(|room| room.document).collect();
            // Read before the query: a commit during the query must not make the room count as ahead.
            let before: Vec<_> = rooms.iter().map(|room| room.last_number()).collect();
            let numbers = match self.shared.storage.last_numbers(&documents).await {
                Ok(numbers) => numbers,
                // The next tick repeats the query.
                Err(error) => {
                    return tracing::debug!(%error, "the last numbers of documents cannot be read");
                }
            };
            // A deleted document has no number, and no link.
            let known = rooms.iter().zip(before);
            let known = known
                .filter_map(|(room, before)| Some((room, before, numbers.get(&room.document)?)));
            for (room, before, last) in known {
                room.compare_stored(last.update, before);
                room.reviews_are_changed_up_to(last.review_change);
            }
        }
    }

    async fn compare_holders(&self, rooms: &[Arc<Room>]) {
        let seats = |room: &Arc<Room>| {
            room.seats_elsewhere()
                .into_iter()
                .map(|seat| (Arc::clone(room), seat))
                .collect::<Vec<_>>()
        };
        let queried: Vec<(Arc<Room>, Seat)> = rooms.iter().flat_map(seats).collect();
        // Each holder renews its seat in the next round.
        let grace = self.shared.terms.lease.renew_every * 2;
        let here = self.shared.pubsub.node();
        for some in queried.chunks(COMPARED_AT_ONCE) {
            let names: Vec<_> = some.iter().map(|(_, seat)| LockName::seat(*seat)).collect();
            let Ok(holders) = self.shared.locks.holders(&names).await else {
                // An outage of Redis is no evidence that a holder left.
                return rooms.iter().for_each(|room| room.observe_failed());
            };
            for ((room, seat), holder) in some.iter().zip(holders) {
                let holder = holder.filter(Holder::has_grant);
                let elsewhere =
                    holder.as_ref().map(|it| it.owner.node).filter(|node| *node != here);
                elsewhere.into_iter().for_each(|node| room.seat_is_held_at(node));
                room.observe_holder(*seat, holder.map(|holder| holder.fence), grace);
            }
        }
        rooms.iter().for_each(|room| room.forget_silent_subscribers(grace));
    }
}

fn has_lost_grant((session, right): &mut (Arc<Session>, SeatRight)) -> bool {
    matches!(right, SeatRight::Ratified(fence) if *fence < session.fence())
}
