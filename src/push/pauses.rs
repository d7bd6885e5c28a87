//! Push services that ask for a pause.
//!
//! The refusal of one push delays that push. Only refusals for three users in a row, without a success
//! between them, delay the pushes of all users to that service: one user's endpoint delays no other user's.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::UserId;

/// Users whose pushes a service must refuse before all wait.
const USERS: usize = 3;
/// Services with a refusal. There are about ten push services; an attacker may name more.
const HOSTS_MAX: usize = 1_024;
/// A refusal of so long ago counts no more.
const FORGET_AFTER: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Pauses(Mutex<HashMap<String, Refusals>>);

struct Refusals {
    users: Vec<UserId>,
    last: Instant,
    until: Option<Instant>,
}

impl Pauses {
    pub(super) fn rest(&self, host: &str) -> Option<Duration> {
        let until = self.lock().get(host)?.until?;
        until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
    }

    pub(super) fn refused(&self, host: &str, user: &UserId, delay: Duration) {
        let now = Instant::now();
        let mut hosts = self.lock();
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(host) {
            hosts.retain(|_, it| {
                now < it.last + FORGET_AFTER || it.until.is_some_and(|until| now < until)
            });
            if hosts.len() >= HOSTS_MAX {
                return;
            }
        }
        let found = hosts.entry(host.to_owned()).or_insert_with(|| Refusals {
            users: Vec::new(),
            last: now,
            until: None,
        });
        if found.last + FORGET_AFTER < now {
            found.users.clear();
        }
        found.last = now;
        if found.users.len() < USERS && !found.users.contains(user) {
            found.users.push(user.clone());
        }
        if found.users.len() == USERS {
            let until = now + delay;
            found.until = Some(found.until.map_or(until, |earlier| earlier.max(until)));
        }
    }

    pub(super) fn accepted(&self, host: &str) {
        self.lock().remove(host);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Refusals>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const HOST: &str = "push.example";
    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn g17_one_user_pauses_no_service_for_others() {
        let (pauses, kim) = (Pauses::default(), UserId::generate());
        for _ in 0..100 {
            pauses.refused(HOST, &kim, MINUTE);
        }
        assert_eq!(pauses.rest(HOST), None);
        pauses.refused(HOST, &UserId::generate(), MINUTE);
        assert_eq!(pauses.rest(HOST), None);
        pauses.refused(HOST, &UserId::generate(), MINUTE);
        assert_eq!(pauses.rest(HOST), Some(MINUTE));
        assert_eq!(pauses.rest("other.example"), None);
        advance(MINUTE).await;
        assert_eq!(pauses.rest(HOST), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_ends_the_pause_and_an_old_refusal_counts_no_more() {
        let pauses = Pauses::default();
        let refuse = || pauses.refused(HOST, &UserId::generate(), MINUTE);
        (0..3).for_each(|_| refuse());
        pauses.accepted(HOST);
        assert_eq!(pauses.rest(HOST), None);
        refuse();
        refuse();
        advance(2 * FORGET_AFTER).await;
        refuse();
        assert_eq!(pauses.rest(HOST), None);
    }

    #[tokio::test(start_paused = true)]
    async fn g13_services_with_a_refusal_are_bounded() {
        let (pauses, kim) = (Pauses::default(), UserId::generate());
        for number in 0..2 * HOSTS_MAX {
            pauses.refused(&format!("{number}.example"), &kim, MINUTE);
        }
        assert_eq!(pauses.lock().len(), HOSTS_MAX);
        advance(2 * FORGET_AFTER).await;
        pauses.refused(HOST, &kim, MINUTE);
        assert_eq!(pauses.lock().len(), 1);
    }
}
