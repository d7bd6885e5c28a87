//! Reconciliation of the live sessions and the open rooms with the database and the locks (G15).
//!
//! A server publishes what it commits. If the server dies between the commit and the message, no
//! later message shows the loss. On a lone server the same happens when the reply to a commit is
//! lost. So each tick, and each gap in the messages, starts one comparison:
//!
//! - Statements find the revoked links of all sessions, and the former reviewers (G14).
//! - Statements read the last numbers of all rooms and of their reviews (G8).
//! - Statements read the ratified fences of all seats of this server.
//! - One script call reads the seats of users on other servers (G4), which shows the servers that have a
//!   document open.
//!
//! The comparison also detects a database that was set back. Rooms are then ahead of its last
//! numbers ([`Room::request_reset`]), or sessions of its fences. A separate task compares the fences
//! ([`set_back`](crate::seats::set_back)).
//!
//! The next tick repeats a comparison that failed.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use crate::domain::ids::{SessionId, ShareLinkId, UserId};
use crate::domain::limits::GRANTS_RATIFIED_AT_ONCE;
use crate::domain::seat::{Role, Seat};
use crate::locks::{Holder, LockName};
use crate::outbox::close::LostReason;
use crate::rooms::room::Room;
use crate::seats::SeatService;
use crate::sessions::session::Session;

/// Seats in one query to the locks, and sessions or rooms in one statement. The allocator retains large
/// buffers, so those of a statement do not grow with the sessions.
pub(super) const COMPARED_AT_ONCE: usize = 250;

impl SeatService {
    /// Starts a comparison, or schedules one more after the running one.
    pub(crate) fn reconcile_soon(&self) {
        self.shared.reconcile_due.notify_one();
    }

    /// Compares whenever a comparison is due, until the sessions have finished.
    pub(crate) async fn reconcile_when_due(self) {
        let finished = self.shared.finished.clone();
        let compare = async {
            loop {
                self.shared.reconcile_due.notified().await;
                self.reconcile().await;
            }
        };
        let _finished: Option<()> = finished.run_until_cancelled(compare).await;
    }

    async fn reconcile(&self) {
        self.end_sessions_of_revoked_links().await;
        self.end_sessions_of_former_reviewers().await;
        let rooms = self.shared.rooms.all();
        if rooms.is_empty() {
            return;
        }
        self.compare_numbers(&rooms).await;
        self.compare_reviews(&rooms).await;
        self.ratify_again_soon();
        if !self.shared.pubsub.is_alone() {
            self.compare_holders(&rooms).await;
        }
    }

    /// Ends every session whose link is revoked or gone: waiting, seated, or in its resume grace.
    async fn end_sessions_of_revoked_links(&self) {
        for sessions in self.shared.registry.all().chunks(COMPARED_AT_ONCE) {
            let links: HashSet<_> = sessions.iter().map(|it| it.identity.seat.link).collect();
            let revoked = match self.shared.storage.revoked_among(&Vec::from_iter(links)).await {
                Ok(revoked) => HashSet::<ShareLinkId>::from_iter(revoked),
                Err(error) => {
                    return tracing::warn!(%error, "share links cannot be read; the next tick repeats it");
                }
            };
            let is_ended = |it: &&Arc<Session>| revoked.contains(&it.identity.seat.link);
            // Each reads the end of its link: one after another, thousands would take seconds.
            stream::iter(sessions.iter().filter(is_ended).cloned())
                .for_each_concurrent(GRANTS_RATIFIED_AT_ONCE, async |session| {
                    tracing::info!(seat = %session.identity.seat, "the tick found a revoked link");
                    self.lose_with_link(&session).await;
                })
                .await;
        }
    }

    async fn end_sessions_of_former_reviewers(&self) {
        for sessions in self.shared.registry.all().chunks(COMPARED_AT_ONCE) {
            let Some(former) = self.former_reviewers_among(sessions).await else { return };
            for session in sessions.iter().filter(|it| former.contains(&it.identity.session)) {
                tracing::info!(seat = %session.identity.seat, "the tick found a former reviewer");
                self.lose(session, LostReason::Removed);
            }
        }
    }

    /// The sessions in the reviewer's seat whose user is not the reviewer of the link. `None`: the
    /// database cannot be read, and the next tick repeats the query.
    pub(super) async fn former_reviewers_among(
        &self,
        sessions: impl IntoIterator<Item = &Arc<Session>>,
    ) -> Option<HashSet<SessionId>> {
        let reviewing = sessions.into_iter().filter(|it| it.identity.seat.role == Role::Reviewer);
        let claims: Vec<_> = reviewing
            .map(|it| (it.identity.session, (it.identity.seat.link, it.identity.user.id.clone())))
            .collect();
        if claims.is_empty() {
            return Some(HashSet::new());
        }
        let reviewers: Vec<_> = claims.iter().map(|(_, claim)| claim.clone()).collect();
        match self.shared.storage.not_reviewing_among(&reviewers).await {
            Ok(former) => {
                let former = HashSet::<(ShareLinkId, UserId)>::from_iter(former);
                let ended = claims.into_iter().filter(|(_, claim)| former.contains(claim));
                Some(ended.map(|(session, _)| session).collect())
            }
            Err(error) => {
                tracing::warn!(%error, "reviewers cannot be read; the next tick repeats it");
                None
            }
        }
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
            for (room, before) in rooms.iter().zip(before) {
                // A deleted document has no number, and no link.
                let last = numbers.get(&room.document).copied();
                last.into_iter().for_each(|last| room.compare_stored(last, before));
            }
        }
    }

    async fn compare_reviews(&self, rooms: &[Arc<Room>]) {
        for rooms in rooms.chunks(COMPARED_AT_ONCE) {
            let documents: Vec<_> = rooms.iter().map(|room| room.document).collect();
            let numbers = match self.shared.storage.review_change_numbers(&documents).await {
                Ok(numbers) => numbers,
                Err(error) => {
                    return tracing::debug!(%error, "the change numbers of reviews cannot be read");
                }
            };
            let changed =
                rooms.iter().filter_map(|room| Some((room, numbers.get(&room.document)?)));
            changed.for_each(|(room, last)| room.reviews_are_changed_up_to(*last));
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
