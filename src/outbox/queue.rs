//! A queue with a bound that takes no memory while it is empty.
//!
//! tokio's allocates a block of 32 places with the first and keeps it: two KiB for each of
//! thousands of sockets and rooms in which nothing happens.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Places that are kept for what comes next, once there was a need for them.
const PLACES_KEPT: usize = 32;

/// One end takes out what any number of others put in.
#[derive(Debug)]
pub struct Queue<T> {
    waiting: Mutex<VecDeque<T>>,
    places: usize,
    arrived: Notify,
}

/// There is no place left.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl<T> Queue<T> {
    /// An empty queue with so many places.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { waiting: Mutex::default(), places, arrived: Notify::new() }
    }

    /// Puts it behind the others.
    ///
    /// # Errors
    ///
    /// [`Full`], and it is dropped.
    pub fn push(&self, item: T) -> Result<(), Full> {
        let mut waiting = self.waiting();
        if self.places <= waiting.len() {
            return Err(Full);
        }
        waiting.push_back(item);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// Takes out the first; waits until there is one. For one task at a time.
    ///
    /// # Cancel safety
    ///
    /// What was not returned stays for the next call.
    pub async fn pop(&self) -> T {
        loop {
            if let Some(item) = self.pop_unless(|| false).await {
                return item;
            }
        }
    }

    /// The same, but `None` if there is nothing and nothing more is to be waited for. Whoever changes
    /// that [stirs](Self::stir) the queue.
    ///
    /// # Cancel safety
    ///
    /// What was not returned stays for the next call.
    pub async fn pop_unless(&self, is_over: impl Fn() -> bool) -> Option<T> {
        loop {
            // Asked for before the look, so that what comes between the two is not slept through.
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

    /// Has who waits look again.
    pub fn stir(&self) {
        self.arrived.notify_one();
    }

    /// Takes out the first, if there is one.
    pub fn try_pop(&self) -> Option<T> {
        let mut waiting = self.waiting();
        let item = waiting.pop_front();
        if waiting.is_empty() && PLACES_KEPT < waiting.capacity() {
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

    async fn all_of(reader: &Queue<usize>) -> Vec<usize> {
        let mut all = Vec::new();
        while all.len() < 100 {
            all.push(reader.pop().await);
        }
        all
    }

    #[tokio::test]
    async fn what_was_put_in_comes_out_in_order_and_wakes_who_waits() {
        let queue = Arc::new(Queue::new(100));
        let reader = Arc::clone(&queue);
        let read = tokio_util::task::TaskTracker::new().spawn(async move { all_of(&reader).await });
        for item in 0..100 {
            queue.push(item).expect("a place");
            tokio::task::yield_now().await;
        }
        assert_eq!(read.await.expect("no panic"), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn g13_a_full_queue_takes_no_more_and_an_empty_one_no_memory() {
        let queue = Queue::new(100);
        assert!((0..100).all(|item| queue.push(item).is_ok()));
        assert_eq!(queue.push(100), Err(Full));
        assert!((0..100).all(|item| queue.try_pop() == Some(item)));
        assert!(queue.waiting().capacity() <= PLACES_KEPT);
    }
}
