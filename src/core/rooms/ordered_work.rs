//! Concurrent jobs of many documents, sequential within each document (G16).
//!
//! A slow job delays the next job of its own document. It delays no other document as long as a
//! lane is free.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::pin::Pin;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Jobs by key: at most one job of each key runs, and the caller bounds their number with
/// [`is_full`](Self::is_full). The jobs run only while [`next`](Self::next) is awaited.
pub(crate) struct Lanes<K, J, T> {
    at_once: usize,
    work: Box<dyn Fn(J) -> Boxed<T> + Send>,
    running: FuturesUnordered<Boxed<(K, T)>>,
    /// The jobs that wait behind a running job of their key. A key is present while its job runs.
    waiting: HashMap<K, VecDeque<J>>,
}

impl<K, J, T> Lanes<K, J, T>
where
    K: Copy + Eq + Hash + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn new<F>(at_once: usize, work: impl Fn(J) -> F + Send + 'static) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        Self {
            at_once,
            work: Box::new(move |job| Box::pin(work(job))),
            running: FuturesUnordered::new(),
            waiting: HashMap::new(),
        }
    }

    /// Whether a job of another key exceeds `at_once`. `beside`: running jobs that do not count.
    pub(super) fn is_full(&self, beside: usize) -> bool {
        self.at_once.saturating_add(beside) <= self.running.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn jobs_of(&self, key: K) -> usize {
        self.waiting.get(&key).map_or(0, |waiting| waiting.len().saturating_add(1))
    }

    pub(crate) fn add(&mut self, key: K, job: J) {
        match self.waiting.get_mut(&key) {
            Some(waiting) => waiting.push_back(job),
            None => {
                self.waiting.insert(key, VecDeque::new());
                self.start(key, job);
            }
        }
    }

    /// `None`: no job runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<T> {
        let (key, outcome) = self.running.next().await?;
        match self.waiting.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(job) => self.start(key, job),
            None => drop(self.waiting.remove(&key)),
        }
        Some(outcome)
    }

    fn start(&mut self, key: K, job: J) {
        let work = (self.work)(job);
        self.running.push(Box::pin(async move { (key, work.await) }));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    type Job = (u32, oneshot::Receiver<()>);

    fn job(number: u32) -> (oneshot::Sender<()>, Job) {
        let (ends, ended) = oneshot::channel();
        (ends, (number, ended))
    }

    fn lanes(at_once: usize) -> Lanes<char, Job, u32> {
        Lanes::new(at_once, |(number, ended): Job| async move {
            let _ended = ended.await;
            number
        })
    }

    /// Goal: a slow job delays its own document only, and each document keeps its order.
    #[tokio::test]
    async fn g16_slow_work_delays_its_own_document_only() {
        let mut lanes = lanes(4);
        let (slow, first) = job(1);
        let (after, second) = job(2);
        lanes.add('s', first);
        lanes.add('s', second);
        drop(after);
        for number in 10..20 {
            let (ends, quick) = job(number);
            lanes.add('q', quick);
            drop(ends);
        }
        for number in 10..20 {
            assert_eq!(lanes.next().await, Some(number));
        }
        assert_eq!((lanes.jobs_of('q'), lanes.jobs_of('s'), lanes.is_empty()), (0, 2, false));
        drop(slow);
        assert_eq!(
            (lanes.next().await, lanes.next().await, lanes.next().await),
            (Some(1), Some(2), None)
        );
    }

    #[tokio::test]
    async fn lanes_are_full_at_the_bound_of_concurrent_jobs() {
        let mut lanes = lanes(2);
        let (one, first) = job(1);
        let (other, second) = job(2);
        lanes.add('a', first);
        assert!(!lanes.is_full(0));
        lanes.add('b', second);
        assert!(lanes.is_full(0));
        assert!(!lanes.is_full(1));
        drop(other);
        assert_eq!(lanes.next().await, Some(2));
        assert!(!lanes.is_full(0));
        drop(one);
        assert_eq!(lanes.next().await, Some(1));
    }
}
