//! The end of grants in the outbox of webhooks.
//!
//! Redis holds the seats, so no transaction of the database releases one. The server of a session writes
//! the end after the session left the registry. If it dies before, the next grant of the seat writes it,
//! or the search of any server: each round compares the grants whose end is missing with the
//! ratified fences and with the locks. A lock must be missing for a whole lease, with Redis in reach: a
//! Redis that lost its keys gets them back from their holders within that time.

use std::collections::HashMap;
use std::time::Duration;

use chrono::Utc;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::limits::WEBHOOK_SEATS_AT_ONCE;
use crate::domain::seat::Seat;
use crate::locks::LockName;
use crate::seats::Seats;
use crate::sessions::session::Session;
use crate::storage::webhook_seats::TakenSeat;

/// The period of the search, and the pages of one round: 10,000 grants.
pub const SEARCH_EVERY: Duration = Duration::from_secs(4);
const WEBHOOK_SEAT_PAGES: usize = 40;

/// The state of the search. Its memory is bounded by the seats of one pass over the table.
#[derive(Debug, Default)]
pub struct Search {
    /// The last seat of the previous round. `None`: the next round begins with the first one.
    after: Option<Seat>,
    missing: HashMap<(Seat, Fence), Instant>,
}

impl Seats {
    /// Writes the end of a session's grant to the outbox, in the background and a few at a time.
    pub(super) fn announce_departure(&self, session: &Session) {
        let (seat, fence) = (session.identity.seat, session.fence());
        if fence == Fence::ZERO || !self.shared.storage.wants_seat_events() {
            return;
        }
        let shared = std::sync::Arc::clone(&self.shared);
        #[expect(clippy::disallowed_methods, reason = "one for each ended session")]
        self.shared.tasks.tracker.spawn(async move {
            let _permit = shared.departures.acquire().await;
            if let Err(error) = shared.storage.seat_left(seat, fence, Utc::now()).await {
                tracing::debug!(%seat, %error, "the end of a grant is announced by the search");
            }
        });
    }

    /// Searches for grants whose session ended without its server: one round.
    pub async fn search_departures(&self, search: &mut Search) {
        if !self.shared.storage.wants_seat_events() {
            return;
        }
        for _page in 0..WEBHOOK_SEAT_PAGES {
            let is_first = search.after.is_none();
            let taken =
                match self.shared.storage.taken_seats(search.after, WEBHOOK_SEATS_AT_ONCE).await {
                    Ok(taken) => taken,
                    Err(error) => return tracing::debug!(%error, "the grants cannot be read"),
                };
            if taken.is_empty() && is_first {
                search.missing.clear();
            }
            let is_full = u32::try_from(taken.len()) == Ok(WEBHOOK_SEATS_AT_ONCE);
            search.after = taken.last().filter(|_| is_full).map(|last| last.seat);
            self.compare(taken, &mut search.missing).await;
            if search.after.is_none() {
                return;
            }
        }
    }

    async fn compare(&self, taken: Vec<TakenSeat>, missing: &mut HashMap<(Seat, Fence), Instant>) {
        let names: Vec<_> = taken.iter().map(|it| LockName::seat(it.seat)).collect();
        let Ok(holders) = self.shared.locks.holders(&names).await else {
            // The time of a missing lock counts only with Redis in reach.
            return missing.clear();
        };
        let (now, lease) = (Instant::now(), self.shared.terms.lease.ttl);
        for (TakenSeat { seat, fence, is_ratified }, holder) in taken.into_iter().zip(holders) {
            let is_held = is_ratified && holder.is_some_and(|holder| holder.fence == fence);
            if is_held {
                missing.remove(&(seat, fence));
                continue;
            }
            let since = *missing.entry((seat, fence)).or_insert(now);
            if is_ratified && now.duration_since(since) < lease {
                continue;
            }
            missing.remove(&(seat, fence));
            if let Err(error) = self.shared.storage.seat_left(seat, fence, Utc::now()).await {
                tracing::debug!(%seat, %error, "the end of a grant was not announced");
            }
        }
        // Grants of earlier passes that another server has announced.
        missing.retain(|_, since| now.duration_since(*since) < lease * 100);
    }
}
