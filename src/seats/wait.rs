//! The wait for a taken seat.
//!
//! The rejected client stays connected. The socket task keeps the connection alive; this module
//! holds the position in the wait queue and sends each change of it. A waiter that leaves passes
//! the hand-over on.

use chrono::{TimeDelta, Utc};
use tokio::time::Instant;

use crate::locks::{Claim, Grant, LockError, QueuePosition, WaitOutcome};
use crate::outbox::close::Close;
use crate::outbox::event::Event;
use crate::seats::SeatService;
use crate::seats::claim::{SeatRequest, taken};
use crate::sessions::session::{Session, SessionState};

impl SeatService {
    /// Waits until the grant arrives, the time limit passes, or the client disconnects.
    ///
    /// # Errors
    ///
    /// The [`Close`] for the socket.
    pub(crate) async fn stand_in_line(
        &self,
        session: &Session,
        claim: &Claim,
        ask: &SeatRequest,
    ) -> Result<Grant, Close> {
        // Dropping the waiter removes it from the queue on every return path.
        let mut waiting = self.shared.locks.wait(claim, ask.waits);
        loop {
            let waited = tokio::select! {
                waited = waiting.next() => waited,
                () = ask.gone.cancelled() => return Err(Close::Left),
                () = self.shared.stop.cancelled() => {
                    session.tell(&Event::ServerDraining { reconnect_after_ms: 0 });
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
                    return Ok(grant);
                }
                // Revoked or evicted: the socket has its close already.
                Ok(WaitOutcome::Position(_)) if session.phase() == SessionState::Ended => {
                    return Err(Close::Left);
                }
                Ok(WaitOutcome::Position(place)) => tell(session, &place),
                Err(LockError::WaitTimeout(_)) => return Err(Close::WaitedInVain),
                Err(LockError::Busy(place)) => return Err(taken(&place.holder, &ask.user)),
                Err(LockError::Lost(_) | LockError::Unavailable(_)) => {
                    return Err(Close::Unavailable("locks"));
                }
            }
        }
    }
}

fn tell(session: &Session, place: &QueuePosition) {
    let left = place.retry_at.saturating_duration_since(Instant::now());
    session.tell(&Event::SeatWaiting {
        position: place.position,
        holder: &place.holder.owner.name,
        own: place.holder.owner.id == session.identity.user.id,
        since: place.holder.is_known().then_some(place.holder.since),
        retry_at: Utc::now() + TimeDelta::from_std(left).unwrap_or_default(),
    });
}
