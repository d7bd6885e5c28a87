//! A bounded queue that takes no memory while it is empty.
//!
//! tokio's channel allocates a block of 32 entries for the first one and retains it. The cost: two
//! KiB for each of thousands of idle sockets and rooms.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

const RETAINED_CAPACITY: usize = 32;

/// Any number of producers, one consumer.
#[derive(Debug)]
pub struct OutboxQueue<T> {
    waiting: Mutex<VecDeque<T>>,
    capacity: usize,
    arrived: Notify,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl<T> OutboxQueue<T> {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { waiting: Mutex::default(), capacity, arrived: Notify::new() }
    }

    /// Appends an entry. [`Full`] drops the entry.
    pub fn push(&self, item: T) -> Result<(), Full> {
        let mut waiting = self.waiting();
        if self.capacity <= waiting.len() {
            return Err(Full);
        }
        waiting.push_back(item);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// Removes and returns the first entry; waits for it. For one task at a time. Dropping the future
    /// loses no entry.
    pub async fn pop(&self) -> T {
        loop {
            if let Some(item) = self.pop_unless(|| false).await {
                return item;
            }
        }
    }

    /// As [`pop`](Self::pop), but returns `None` when the queue is empty and `is_over` holds. After a
    /// change of `is_over` the caller must [wake](Self::stir) the consumer. Dropping the future loses
    /// no entry.
    pub async fn pop_unless(&self, is_over: impl Fn() -> bool) -> Option<T> {
        loop {
            // Registers for the notification before the check, so that it misses no entry in
            // between.
            let arrived = self.arrived.notified();
            if let Some(item) = self.try_pop() {
                return Some(item);
            }
            if is_over() {
                return None;
            }
            arrived.await;
        }
    }

    /// Wakes the consumer, which then checks `is_over` again.
    pub fn stir(&self) {
        self.arrived.notify_one();
    }

    pub fn try_pop(&self) -> Option<T> {
        let mut waiting = self.waiting();
        let item = waiting.pop_front();
        if waiting.is_empty() && waiting.capacity() > RETAINED_CAPACITY {
            *waiting = VecDeque::new();
        }
        item
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn all_of(reader: &OutboxQueue<usize>) -> Vec<usize> {
        let mut all = Vec::new();
        while all.len() < 100 {
            all.push(reader.pop().await);
        }
        all
    }

    #[tokio::test]
    async fn entries_come_out_in_order_and_wake_the_consumer() {
        let queue = Arc::new(OutboxQueue::new(100));
        let reader = Arc::clone(&queue);
        #[expect(clippy::disallowed_methods, reason = "a test")]
        let read = tokio_util::task::TaskTracker::new().spawn(async move { all_of(&reader).await });
        for item in 0..100 {
            queue.push(item).expect("room");
            tokio::task::yield_now().await;
        }
        assert_eq!(read.await.expect("no panic"), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn g13_a_full_queue_rejects_entries_and_an_empty_one_takes_no_memory() {
        let queue = OutboxQueue::new(100);
        assert!((0..100).all(|item| queue.push(item).is_ok()));
        assert_eq!(queue.push(100), Err(Full));
        assert!((0..100).all(|item| queue.try_pop() == Some(item)));
        assert!(queue.waiting().capacity() <= RETAINED_CAPACITY);
    }
}
