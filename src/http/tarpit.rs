//! Slowing down clients that knock at a taken seat again and again.
//!
//! `y-websocket` up to 3.0.0 ignores close codes and comes back every 105 ms without backing off,
//! because a socket that opens resets its counter. Whoever is refused often is refused slowly:
//! the close is held back a little longer each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::UserId;
use crate::domain::seat::Seat;

/// A refusal is forgotten after this long without another.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// The first delay; it doubles each time.
const DELAY_FIRST: Duration = Duration::from_millis(250);
/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(4);
/// Refusals remembered; beyond it the forgotten ones are swept out.
const REMEMBERED_MAX: usize = 4_096;

/// Remembers refusals. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tarpit(Arc<Mutex<HashMap<(UserId, Seat), Refusals>>>);

struct Refusals {
    count: u32,
    last: Instant,
}

impl Tarpit {
    /// Books a refusal and says how long to hold it back: not at all the first time.
    pub(crate) fn delay(&self, user: &UserId, seat: Seat, now: Instant) -> Duration {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if REMEMBERED_MAX <= refusals.len() {
            refusals.retain(|_, refusals| now.duration_since(refusals.last) < FORGET_AFTER);
        }
        if REMEMBERED_MAX <= refusals.len() {
            return DELAY_MAX;
        }
        let known =
            refusals.entry((user.clone(), seat)).or_insert(Refusals { count: 0, last: now });
        if FORGET_AFTER <= now.duration_since(known.last) {
            known.count = 0;
        }
        let earlier = known.count;
        known.count = earlier.saturating_add(1);
        known.last = now;
        match earlier.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                DELAY_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(DELAY_MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ShareLinkId;
    use crate::domain::seat::Role;

    #[tokio::test(start_paused = true)]
    async fn who_knocks_often_is_refused_slowly_and_forgiven_after_a_while() {
        let (tarpit, user) = (Tarpit::default(), UserId::generate());
        let seat = Seat::new(ShareLinkId::generate(), Role::Writer);
        let now = Instant::now();
        assert_eq!(tarpit.delay(&user, seat, now), Duration::ZERO);
        assert_eq!(tarpit.delay(&user, seat, now), DELAY_FIRST);
        for _ in 0..100 {
            assert!(tarpit.delay(&user, seat, now) <= DELAY_MAX);
        }
        assert_eq!(tarpit.delay(&user, seat, now), DELAY_MAX);
        assert_eq!(tarpit.delay(&user, seat, now + FORGET_AFTER), Duration::ZERO);
    }
}
