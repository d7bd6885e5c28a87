//! Pushes that wait for another attempt, in the memory of this server. A restart loses them: a reminder
//! that is late is no reminder.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::time::Instant;
use tokio_util::time::DelayQueue;

use crate::bounds::shares::{Share, Shares};
use crate::domain::ids::{PushSubscriptionId, UserId};
use crate::push::notification::Notification;
use crate::push::{PUSH_RETRIES_MAX, PUSH_RETRIES_PER_USER_MAX};

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

#[derive(Default)]
pub(super) struct Retries {
    queue: Mutex<DelayQueue<(Retry, Share<UserId>)>>,
    users: Shares<UserId>,
}

impl Retries {
    /// Adds a push. False: the queue is full, for this user or in all.
    pub(super) fn add(&self, retry: Retry, at: Instant) -> bool {
        let has_room = |all, own| all < PUSH_RETRIES_MAX && own < PUSH_RETRIES_PER_USER_MAX;
        let admit = |all, own| has_room(all, own).then_some(()).ok_or(());
        let Ok(share) = self.users.take(Some(retry.user.clone()), admit) else { return false };
        let mut queue = self.lock();
        queue.insert_at((retry, share), at);
        metrics::gauge!("galley_push_queue").set(count(queue.len()));
        true
    }

    /// Waits for the next push that is due.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future takes no push.
    pub(super) async fn next(&self) -> Retry {
        poll_fn(|context| {
            let mut queue = self.lock();
            match queue.poll_expired(context) {
                Poll::Ready(Some(due)) => {
                    metrics::gauge!("galley_push_queue").set(count(queue.len()));
                    Poll::Ready(due.into_inner().0)
                }
                // An insertion wakes this task, also while the queue is empty.
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, DelayQueue<(Retry, Share<UserId>)>> {
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
        assert_eq!(added as u64, PUSH_RETRIES_PER_USER_MAX);
        let others = PUSH_RETRIES_MAX - added as u64;
        assert!((0..others).all(|_| retries.add(retry(&UserId::generate()), now)));
        assert!(!retries.add(retry(&UserId::generate()), now));
        for _ in 0..PUSH_RETRIES_MAX {
            retries.next().await;
        }
        assert!(retries.users.is_empty());
        assert!(retries.add(retry(&kim), now));
    }
}
