//! Pushes that wait for another attempt, in the memory of this server. A restart loses them: a reminder
//! that is late is no reminder.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::domain::ids::{PushSubscriptionId, UserId};
use crate::domain::limits::{PUSH_RETRIES_MAX, PUSH_RETRIES_PER_USER_MAX};
use crate::push::notification::Notification;

#[derive(Clone, Debug)]
pub(super) struct Retry {
    pub(super) user: UserId,
    pub(super) subscription: PushSubscriptionId,
    pub(super) notification: Arc<Notification>,
    pub(super) attempts: u32,
    pub(super) give_up_at: Instant,
    /// The end of the push at its service.
    pub(super) ends_at: Instant,
}

/// Sorted by the time of the next attempt.
#[derive(Default)]
pub(super) struct Retries {
    queue: Mutex<Queue>,
    added: Notify,
}

#[derive(Default)]
struct Queue {
    due: BTreeMap<(Instant, u64), Retry>,
    by_user: HashMap<UserId, usize>,
    /// Orders retries of one time.
    number: u64,
}

impl Retries {
    /// Adds a push. False: the queue is full, for this user or in all.
    pub(super) fn add(&self, retry: Retry, at: Instant) -> bool {
        let mut queue = self.lock();
        let of_user = queue.by_user.get(&retry.user).copied().unwrap_or_default();
        if PUSH_RETRIES_MAX <= queue.due.len() || PUSH_RETRIES_PER_USER_MAX <= of_user {
            return false;
        }
        queue.by_user.insert(retry.user.clone(), of_user + 1);
        queue.number += 1;
        let key = (at, queue.number);
        queue.due.insert(key, retry);
        metrics::gauge!("galley_push_queue").set(count(queue.due.len()));
        drop(queue);
        self.added.notify_one();
        true
    }

    /// Waits for the next push that is due.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future takes no push.
    pub(super) async fn next(&self) -> Retry {
        loop {
            let added = self.added.notified();
            match self.take_due() {
                Ok(retry) => return retry,
                Err(None) => added.await,
                Err(Some(at)) => {
                    tokio::select! {
                        () = added => {}
                        () = sleep_until(at) => {}
                    }
                }
            }
        }
    }

    fn take_due(&self) -> Result<Retry, Option<Instant>> {
        let mut queue = self.lock();
        let Some(first) = queue.due.first_entry() else { return Err(None) };
        let (at, _) = *first.key();
        if Instant::now() < at {
            return Err(Some(at));
        }
        let retry = first.remove();
        let left = queue.by_user.get(&retry.user).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            queue.by_user.remove(&retry.user);
        } else {
            queue.by_user.insert(retry.user.clone(), left);
        }
        metrics::gauge!("galley_push_queue").set(count(queue.due.len()));
        Ok(retry)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(number: usize) -> f64 {
    u32::try_from(number).unwrap_or(u32::MAX).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::push::notification::NotificationKind;

    fn retry(user: &UserId) -> Retry {
        Retry {
            user: user.clone(),
            subscription: PushSubscriptionId::generate(),
            notification: Arc::new(Notification::new(NotificationKind::SeatFree, "/")),
            attempts: 1,
            give_up_at: Instant::now() + Duration::from_secs(60),
            ends_at: Instant::now() + Duration::from_secs(60),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_is_due_at_its_time_and_the_earliest_comes_first() {
        let (retries, kim) = (Retries::default(), UserId::generate());
        let (late, early) = (retry(&kim), retry(&kim));
        let began = Instant::now();
        assert!(retries.add(late.clone(), began + Duration::from_secs(9)));
        let first = tokio::join!(retries.next(), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(retries.add(early.clone(), began + Duration::from_secs(3)));
        });
        assert_eq!(first.0.subscription, early.subscription);
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        assert_eq!(retries.next().await.subscription, late.subscription);
        assert_eq!(began.elapsed(), Duration::from_secs(9));
        assert!(timeout(Duration::from_secs(99), retries.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn g13_the_queue_is_bounded_for_a_user_and_in_all() {
        let (retries, kim) = (Retries::default(), UserId::generate());
        let now = Instant::now();
        let added = (0..PUSH_RETRIES_MAX).filter(|_| retries.add(retry(&kim), now)).count();
        assert_eq!(added, PUSH_RETRIES_PER_USER_MAX);
        let others = PUSH_RETRIES_MAX - added;
        assert!((0..others).all(|_| retries.add(retry(&UserId::generate()), now)));
        assert!(!retries.add(retry(&UserId::generate()), now));
        for _ in 0..PUSH_RETRIES_MAX {
            retries.next().await;
        }
        assert!(retries.lock().by_user.is_empty());
        assert!(retries.add(retry(&kim), now));
    }
}
