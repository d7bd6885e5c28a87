//! Fair bounds of the pushes beside requests: in all, and for the user or address that causes them.
//!
//! A push to a slow host takes seconds, and guests name the hosts of their browsers. A bound for all
//! alone would let the guests of one address drop the pushes of every other user.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::ids::UserId;
use crate::domain::limits::{PUSHES_BESIDE_MAX, PUSHES_BESIDE_PER_CAUSE_MAX};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    User(UserId),
    /// The address of a guest: guests are free.
    Address(IpAddr),
}

#[derive(Clone, Default)]
pub(super) struct Beside(Arc<Mutex<Running>>);

#[derive(Default)]
struct Running {
    all: usize,
    by_cause: HashMap<Cause, usize>,
}

pub(super) struct Permit {
    beside: Beside,
    cause: Cause,
}

impl Beside {
    /// Counts a push. `None`: too many run, in all or for this cause.
    pub(super) fn take(&self, cause: Cause) -> Option<Permit> {
        let mut running = self.lock();
        let own = running.by_cause.get(&cause).copied().unwrap_or_default();
        if PUSHES_BESIDE_MAX <= running.all || PUSHES_BESIDE_PER_CAUSE_MAX <= own {
            return None;
        }
        running.all += 1;
        running.by_cause.insert(cause.clone(), own + 1);
        drop(running);
        Some(Permit { beside: self.clone(), cause })
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut running = self.beside.lock();
        running.all = running.all.saturating_sub(1);
        let Some(own) = running.by_cause.get_mut(&self.cause) else { return };
        *own = own.saturating_sub(1);
        if *own == 0 {
            running.by_cause.remove(&self.cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn g17_the_guests_of_one_address_leave_most_of_the_pushes_to_others() {
        let (beside, guest) = (Beside::default(), Cause::Address(Ipv4Addr::LOCALHOST.into()));
        let held: Vec<_> =
            (0..PUSHES_BESIDE_MAX).map_while(|_| beside.take(guest.clone())).collect();
        assert_eq!(held.len(), PUSHES_BESIDE_PER_CAUSE_MAX);
        assert!(beside.take(Cause::User(UserId::generate())).is_some());
        drop(held);
        assert!(beside.take(guest).is_some());
        assert!(beside.lock().by_cause.is_empty());
    }

    #[test]
    fn g13_pushes_beside_requests_are_bounded_in_all() {
        let beside = Beside::default();
        let take = |_| beside.take(Cause::User(UserId::generate()));
        let held: Vec<_> = (0..2 * PUSHES_BESIDE_MAX).map_while(take).collect();
        assert_eq!(held.len(), PUSHES_BESIDE_MAX);
        drop(held);
        assert_eq!(beside.lock().all, 0);
    }
}
