//! The tarpit: delays repeated refusals of clients that claim a held seat again and again.
//!
//! `y-websocket` up to 3.0.0 ignores close codes and reconnects every 105 ms without back-off, because a
//! socket that opens resets its counter. The server delays the close of a repeated refusal, a little
//! longer each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::UserId;
use crate::domain::seat::Seat;

/// A refusal counts for this long without another one.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// Refusals in a row without a delay.
const FREE_REFUSALS: u32 = 3;
/// The first delay; each further refusal doubles it.
const DELAY_FIRST: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(4);
/// Maximum number of entries. At it the server removes expired ones; if none is expired, every refusal
/// has the longest delay.
const REMEMBERED_MAX: usize = 4_096;

#[derive(Clone, Default)]
pub struct Tarpit(Arc<Mutex<HashMap<(UserId, Seat), Refusals>>>);

struct Refusals {
    count: u32,
    last: Instant,
}

impl Tarpit {
    /// Records the refusal of a claim that arrived at `claimed_at`, and returns the delay of its close.
    ///
    /// Only successive claims count. A claim that arrived before the last refusal was sent, as when many
    /// tabs open at once, is no retry.
    pub(crate) fn delay(&self, user: &UserId, seat: Seat, claimed_at: Instant) -> Duration {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if refusals.len() >= REMEMBERED_MAX {
            refusals.retain(|_, refusals| now.duration_since(refusals.last) < FORGET_AFTER);
        }
        if refusals.len() >= REMEMBERED_MAX {
            return DELAY_MAX;
        }
        let fresh = Refusals { count: 0, last: now };
        let entry = refusals.entry((user.clone(), seat)).or_insert(fresh);
        if now.duration_since(entry.last) >= FORGET_AFTER {
            entry.count = 0;
        }
        if entry.last < claimed_at {
            entry.count = entry.count.saturating_add(1);
        }
        let delay = match entry.count.checked_sub(FREE_REFUSALS) {
            None => Duration::ZERO,
            Some(doublings) => {
                DELAY_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(DELAY_MAX)
            }
        };
        entry.last = now + delay;
        delay
    }

    pub(crate) fn forgive(&self, user: &UserId, seat: Seat) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.remove(&(user.clone(), seat));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::domain::ids::ShareLinkId;
    use crate::domain::seat::Role;

    #[tokio::test(start_paused = true)]
    async fn repeated_claims_are_refused_slowly_until_one_succeeds() {
        let (tarpit, user) = (Tarpit::default(), UserId::generate());
        let seat = Seat::new(ShareLinkId::generate(), Role::Writer);
        let mut delays = Vec::new();
        for _ in 0..12 {
            let delay = tarpit.delay(&user, seat, Instant::now());
            delays.push(delay);
            advance(delay + Duration::from_millis(105)).await;
        }
        assert_eq!(delays[..3], [Duration::ZERO; 3]);
        assert_eq!(delays[11], DELAY_MAX);
        tarpit.forgive(&user, seat);
        assert_eq!(tarpit.delay(&user, seat, Instant::now()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_tabs_at_once_are_not_delayed() {
        let (tarpit, user) = (Tarpit::default(), UserId::generate());
        let seat = Seat::new(ShareLinkId::generate(), Role::Writer);
        let claimed_at = Instant::now();
        advance(Duration::from_millis(5)).await;
        for _ in 0..100 {
            assert_eq!(tarpit.delay(&user, seat, claimed_at), Duration::ZERO);
        }
    }
}
