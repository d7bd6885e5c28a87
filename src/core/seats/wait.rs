//! The wait for a taken seat.
//!
//! The rejected client stays connected. The socket task keeps the connection alive; this module
//! holds the position in the wait queue and sends each change of it. A waiter that leaves passes
//! the hand-over on.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use tokio::time::Instant;

#[cfg(doc)]
use crate::domain::limits::ABSENT_WAITERS_QUEUED_MAX;
use crate::locks::{Claim, Grant, LockError, QueuePosition, WaitOutcome};
use crate::outbox::close::Close;
use crate::outbox::event::Event;
use crate::seats::Seats;
use crate::seats::claim::{SeatRequest, taken};
use crate::sessions::session::{Session, SessionState};
use crate::telemetry::counted::Counted;

impl Seats {
    /// Waits until the grant arrives, the time limit passes, or the client disconnects.
    pub(crate) async fn wait_in_queue(
        &self,
        session: &Session,
        claim: &Claim,
        request: &SeatRequest,
    ) -> Result<Grant, Close> {
        // Dropping the waiter removes it from the queue on every return path.
        let mut waiting = self.shared.locks.wait(claim, request.waits);
        let role = session.identity.seat.role.as_str();
        let _counted = Counted::new(metrics::gauge!("galley_seats_waited_for", "role" => role));
        loop {
            let waited = tokio::select! {
                waited = waiting.next() => waited,
                () = request.gone.cancelled() => {
                    self.store_absent_waiter(session, request.arriving.has_left());
                    return Err(Close::Left);
                }
                () = self.shared.stop.cancelled() => {
                    session.notify(&Event::ServerDraining { reconnect_after_ms: 0 });
                    return Err(Close::Restart("draining"));
                }
            };
            match waited {
                Ok(WaitOutcome::Granted(grant)) => {
                    // The release itself makes the grant. The difference is the duration of the
                    // hand-over.
                    let now = Utc::now() + self.shared.locks.clock_ahead();
                    let took = (now - grant.since).to_std().unwrap_or_default();
                    metrics::histogram!("galley_seat_handover_seconds").record(took);
                    session.record_wait();
                    return Ok(grant);
                }
                // Revoked or evicted: the socket has its close already.
                Ok(WaitOutcome::Position(_)) if session.state() == SessionState::Ended => {
                    return Err(Close::Left);
                }
                Ok(WaitOutcome::Position(position)) => notify_position(session, &position),
                Err(LockError::WaitTimeout(_)) => return Err(Close::WaitedInVain),
                Err(LockError::Busy(position)) => {
                    return Err(taken(&position.holder, &request.user));
                }
                Err(LockError::Lost(_) | LockError::Unavailable(_)) => {
                    return Err(Close::Unavailable("locks"));
                }
            }
        }
    }
}

impl Seats {
    /// Stores in the background that the user left the queue by a disconnect, so that a reminder follows
    /// when the seat is free. With `has_left` the user left on purpose, and is not remembered. The server
    /// stores absent waiters one at a time, so that they delay no edit, and drops those beyond
    /// [`ABSENT_WAITERS_QUEUED_MAX`]: a reminder is an addition.
    pub(crate) fn store_absent_waiter(&self, session: &Session, has_left: bool) {
        let (shared, seat) = (Arc::clone(&self.shared), session.identity.seat);
        let (user, left_at) = (session.identity.user.id.clone(), Utc::now());
        let Ok(queued) = Arc::clone(&shared.absent_waiters).try_acquire_owned() else { return };
        #[expect(clippy::disallowed_methods, reason = "under the permit")]
        self.shared.tasks.tracker.spawn(async move {
            let _queued = queued;
            let _permit = shared.background_commits.acquire().await.ok();
            let stored = if has_left {
                shared.storage.delete_absent_waiter(seat, &user).await
            } else if shared.storage.has_room() {
                shared.storage.put_absent_waiter(seat, &user, left_at).await
            } else {
                Ok(())
            };
            if let Err(error) = stored {
                tracing::warn!(%error, %seat, "an absent waiter is not stored");
            }
        });
    }
}

fn notify_position(session: &Session, position: &QueuePosition) {
    let left = position.retry_at.saturating_duration_since(Instant::now());
    session.notify(&Event::SeatWaiting {
        position: position.position,
        holder: &position.holder.owner.name,
        own: position.holder.owner.id == session.identity.user.id,
        since: position.holder.has_grant().then_some(position.holder.since),
        retry_at: Utc::now() + TimeDelta::from_std(left).unwrap_or_default(),
    });
}
