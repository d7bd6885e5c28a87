//! Fair bounds of the pushes in the background of requests: in all, and for the user or address that
//! causes them.
//!
//! A push to a slow host takes seconds, and guests name the hosts of their browsers. A bound for all
//! alone would let the guests of one address drop the pushes of every other user.

use std::net::IpAddr;

use crate::bounds::shares::{Share, Shares};
use crate::domain::ids::UserId;

/// Pushes that run in the background of the requests that cause them. Beyond it the server drops a push.
const BACKGROUND_PUSHES_MAX: u64 = 256;
/// Background pushes of one user, or of one address of guests: a push to a slow host takes seconds.
const BACKGROUND_PUSHES_PER_CAUSE_MAX: u64 = 16;
const _: () = assert!(BACKGROUND_PUSHES_PER_CAUSE_MAX * 4 < BACKGROUND_PUSHES_MAX);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    User(UserId),
    /// The address of a guest: guests are free.
    Address(IpAddr),
}

/// Counts a push. `None`: too many run, in all or for this cause.
pub(super) fn take(running: &Shares<Cause>, cause: Cause) -> Option<Share<Cause>> {
    let is_free = |all, own| all < BACKGROUND_PUSHES_MAX && own < BACKGROUND_PUSHES_PER_CAUSE_MAX;
    running.take(Some(cause), |all, own| is_free(all, own).then_some(()).ok_or(())).ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn g17_the_guests_of_one_address_leave_most_of_the_pushes_to_others() {
        let (running, guest) = (Shares::default(), Cause::Address(Ipv4Addr::LOCALHOST.into()));
        let held: Vec<_> =
            (0..BACKGROUND_PUSHES_MAX).map_while(|_| take(&running, guest.clone())).collect();
        assert_eq!(held.len() as u64, BACKGROUND_PUSHES_PER_CAUSE_MAX);
        assert!(take(&running, Cause::User(UserId::generate())).is_some());
        drop(held);
        assert!(take(&running, guest).is_some());
        assert!(running.is_empty());
    }

    #[test]
    fn g13_background_pushes_are_bounded_in_all() {
        let running = Shares::default();
        let one = |_| take(&running, Cause::User(UserId::generate()));
        let held: Vec<_> = (0..2 * BACKGROUND_PUSHES_MAX).map_while(one).collect();
        assert_eq!(held.len() as u64, BACKGROUND_PUSHES_MAX);
        drop(held);
        assert!(running.is_empty());
    }
}
