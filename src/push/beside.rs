//! Fair bounds of the pushes beside requests: in all, and for the user or address that causes them.
//!
//! A push to a slow host takes seconds, and guests name the hosts of their browsers. A bound for all
//! alone would let the guests of one address drop the pushes of every other user.

use std::net::IpAddr;

use crate::bounds::shares::{Share, Shares};
use crate::domain::ids::UserId;

/// Pushes that run beside the requests that cause them. Beyond it the server drops a push.
const PUSHES_BESIDE_MAX: u64 = 256;
/// Pushes beside requests of one user, or of one address of guests: a push to a slow host takes seconds.
const PUSHES_BESIDE_PER_CAUSE_MAX: u64 = 16;
const _: () = assert!(PUSHES_BESIDE_PER_CAUSE_MAX * 4 < PUSHES_BESIDE_MAX);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    User(UserId),
    /// The address of a guest: guests are free.
    Address(IpAddr),
}

/// Counts a push. `None`: too many run, in all or for this cause.
pub(super) fn take(running: &Shares<Cause>, cause: Cause) -> Option<Share<Cause>> {
    let is_free = |all, own| all < PUSHES_BESIDE_MAX && own < PUSHES_BESIDE_PER_CAUSE_MAX;
    running.take(Some(cause), |all, own| is_free(all, own).then_some(()).ok_or(())).ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn g17_the_guests_of_one_address_leave_most_of_the_pushes_to_others() {
        let (beside, guest) = (Shares::default(), Cause::Address(Ipv4Addr::LOCALHOST.into()));
        let held: Vec<_> =
            (0..PUSHES_BESIDE_MAX).map_while(|_| take(&beside, guest.clone())).collect();
        assert_eq!(held.len() as u64, PUSHES_BESIDE_PER_CAUSE_MAX);
        assert!(take(&beside, Cause::User(UserId::generate())).is_some());
        drop(held);
        assert!(take(&beside, guest).is_some());
        assert!(beside.is_empty());
    }

    #[test]
    fn g13_pushes_beside_requests_are_bounded_in_all() {
        let beside = Shares::default();
        let one = |_| take(&beside, Cause::User(UserId::generate()));
        let held: Vec<_> = (0..2 * PUSHES_BESIDE_MAX).map_while(one).collect();
        assert_eq!(held.len() as u64, PUSHES_BESIDE_MAX);
        drop(held);
        assert!(beside.is_empty());
    }
}
