//! Budgets of users: what all sockets and requests of one user may cost together (G17).
//!
//! Each socket has rate limits of its own, and a user can open a hundred sockets a second. So the
//! server charges each message and each byte twice: to its socket and to its user. It charges
//! events about reviews to the user that causes them, because every socket of the document receives
//! them. Without a bound, a reviewer fills the writer's outbox faster than the writer's connection
//! empties it.
//!
//! A budget is one entry in a concurrent map for each user that sent something in the last minute.
//! The upkeep removes the entries of users whose budgets are full again.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::clock::DefaultClock;
use governor::{
    DefaultDirectRateLimiter, DefaultKeyedRateLimiter, InsufficientCapacity, Quota, RateLimiter,
};

use crate::bounds::allowances::Allowances;
use crate::domain::ids::UserId;
use crate::domain::limits::{
    REVIEW_EVENT_BURST, REVIEW_EVENT_BYTES_PER_SECOND, SESSIONS_OF_A_BUDGET,
    SOCKET_BYTES_PER_SECOND,
};
use crate::sessions::options::RoomLimits;

#[derive(Debug)]
pub struct UserBudgets {
    messages: DefaultKeyedRateLimiter<UserId>,
    bytes: DefaultKeyedRateLimiter<UserId>,
    review_events: Arc<Allowances<UserId>>,
    /// The rates of one socket, for messages and bytes.
    of_socket: [Quota; 2],
    /// Clock of the rate limiters. Created once: creation queries the processor, which is slow
    /// under a hypervisor.
    clock: DefaultClock,
}

/// The rate limits of one socket.
#[derive(Debug)]
pub(crate) struct SocketBudget {
    messages: DefaultDirectRateLimiter,
    bytes: DefaultDirectRateLimiter,
}

impl UserBudgets {
    pub(crate) fn new(limits: &RoomLimits) -> Self {
        let of_socket = [message_quota(limits), byte_quota(limits)];
        let [messages, bytes] = of_socket.map(|quota| RateLimiter::keyed(of_a_user(quota)));
        let review_events = Allowances::rate(REVIEW_EVENT_BYTES_PER_SECOND, REVIEW_EVENT_BURST);
        Self { messages, bytes, review_events, of_socket, clock: DefaultClock::default() }
    }

    pub(crate) fn socket(&self) -> SocketBudget {
        let limiter = |quota| RateLimiter::direct_with_clock(quota, self.clock.clone());
        let [messages, bytes] = self.of_socket.map(limiter);
        SocketBudget { messages, bytes }
    }

    /// Charges a message to a socket and to its user. False above the rate of either.
    pub(crate) fn may_receive(&self, socket: &SocketBudget, user: &UserId) -> bool {
        socket.messages.check().is_ok() && self.may_send(user)
    }

    /// Charges bytes that are received from a socket, or sent at its request, to it and to its user.
    pub(crate) fn may_move(&self, socket: &SocketBudget, user: &UserId, bytes: usize) -> bool {
        is_within(bytes, |bytes| Ok(socket.bytes.check_n(bytes)?.is_ok()))
            && is_within(bytes, |bytes| Ok(self.bytes.check_key_n(user, bytes)?.is_ok()))
    }

    /// Charges a message, a ping or a pong to a user. False above the user's rate.
    #[must_use]
    pub fn may_send(&self, user: &UserId) -> bool {
        self.messages.check_key(user).is_ok()
    }

    /// Charges events about reviews. Those of a batch may exceed the burst, and cost all of it. `Err` is the
    /// wait until the budget has room for them.
    pub(crate) fn announce(&self, user: &UserId, bytes: usize) -> Result<(), Duration> {
        self.review_events.bucket(user.clone()).charge(bytes)
    }

    /// Removes the budgets that are full again. Otherwise each user that ever connected keeps an
    /// entry. The periodic upkeep calls it.
    pub fn forget_idle(&self) {
        for budgets in [&self.messages, &self.bytes] {
            budgets.retain_recent();
        }
        self.review_events.forget_the_quiet(Instant::now());
    }
}

fn message_quota(limits: &RoomLimits) -> Quota {
    let per_second = NonZeroU32::new(limits.messages_per_second).unwrap_or(NonZeroU32::MIN);
    let burst = NonZeroU32::new(limits.message_burst).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(per_second).allow_burst(burst)
}

/// The rate limit for bytes of one socket, in both directions. A client that reconnects receives
/// the whole document, with the reserve for tombstones. It may send as much, and its new edits.
fn byte_quota(limits: &RoomLimits) -> Quota {
    let whole = limits.document_bytes.saturating_mul(3).saturating_add(limits.message_bytes);
    Quota::per_second(SOCKET_BYTES_PER_SECOND).allow_burst(count(whole))
}

/// The rate limit for bytes of all sockets of one user.
fn of_a_user(socket: Quota) -> Quota {
    let burst = socket.burst_size().saturating_mul(SESSIONS_OF_A_BUDGET);
    let every = socket.replenish_interval() / SESSIONS_OF_A_BUDGET.get();
    let quota = Quota::with_period(every.max(Duration::from_nanos(1)));
    quota.unwrap_or(socket).allow_burst(burst)
}

/// Whether a token bucket has so many bytes. More than a full one has cost all of it: a document above its
/// limit, because an operator has lowered the limit, would be unreadable for ever.
fn is_within(
    bytes: usize,
    check: impl Fn(NonZeroU32) -> Result<bool, InsufficientCapacity>,
) -> bool {
    check(count(bytes)).or_else(|InsufficientCapacity(most)| check(at_least(most))) == Ok(true)
}

fn at_least(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

fn count(bytes: usize) -> NonZeroU32 {
    at_least(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(messages_per_second: u32, message_burst: u32) -> UserBudgets {
        let limits = RoomLimits { messages_per_second, message_burst, ..RoomLimits::default() };
        UserBudgets::new(&limits)
    }

    #[test]
    fn g17_a_user_has_one_budget_for_all_sockets_and_others_have_their_own() {
        let (budgets, kim, lee) = (budgets(1, 10), UserId::generate(), UserId::generate());
        let sent = (0..200).filter(|_| budgets.may_send(&kim)).count();
        assert!((80..=90).contains(&sent), "{sent}");
        assert!(budgets.may_send(&lee));
        let whole = 26 * 1_024 * 1_024;
        let moved = (0..20).filter(|_| budgets.may_move(&budgets.socket(), &kim, whole)).count();
        assert!((7..=8).contains(&moved), "{moved}");
        assert!(budgets.may_move(&budgets.socket(), &lee, whole));
    }

    #[test]
    fn g17_review_events_have_a_rate_limit_and_the_largest_event_fits() {
        let (budgets, kim) = (budgets(1, 1), UserId::generate());
        assert_eq!(budgets.announce(&kim, usize::MAX), Ok(()));
        let wait = budgets.announce(&kim, 256 * 1_024).expect_err("the budget is spent");
        assert!(Duration::from_secs(1) < wait && wait < Duration::from_secs(3), "{wait:?}");
        assert_eq!(budgets.announce(&UserId::generate(), 256 * 1_024), Ok(()));
    }

    /// An operator has lowered `limits.document_bytes`: the answer to its clients exceeds a burst.
    #[test]
    fn g17_a_message_above_a_burst_passes_an_idle_budget() {
        let (budgets, kim) = (budgets(1, 1), UserId::generate());
        assert!(budgets.may_move(&budgets.socket(), &kim, usize::MAX));
        assert!(!budgets.may_move(&budgets.socket(), &kim, usize::MAX));
    }

    #[test]
    fn g13_a_budget_that_is_full_again_takes_no_memory() {
        let budgets = budgets(1_000_000, 1);
        for _ in 0..100 {
            assert!(budgets.may_send(&UserId::generate()));
        }
        let is_forgotten = || {
            budgets.forget_idle();
            budgets.messages.is_empty()
        };
        assert!((0..1_000_000).any(|_| is_forgotten()));
    }
}
