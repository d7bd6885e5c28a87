//! Batches of concurrent queries.
//!
//! A statement costs a hop to a connection's thread and back. A commit costs a sync of the disk. Both
//! costs are the same for one caller and for many. After a restart, when thousands of clients
//! reconnect at once, they are most of the waiting time. So each query enters a queue. The first
//! caller that gets the mutex runs the statement for all queued queries; later ones queue meanwhile.
//! A lone caller runs at once.
//!
//! There is no background task that could die. If the running caller's future is dropped, the others
//! run the query themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;

#[derive(Debug)]
pub(crate) struct Batcher<Q, A> {
    waiting: Mutex<Vec<QueuedQuery<Q, A>>>,
    running: tokio::sync::Mutex<()>,
    group_max: usize,
}

#[derive(Debug)]
struct QueuedQuery<Q, A> {
    question: Q,
    answer: oneshot::Sender<Result<A, StorageError>>,
}

impl<Q: Clone, A> Batcher<Q, A> {
    /// `group_max` bounds the queries of one batch.
    pub(crate) fn new(group_max: usize) -> Self {
        Self { waiting: Mutex::default(), running: tokio::sync::Mutex::new(()), group_max }
    }

    /// Runs a query in a batch with all others that are queued. `run` returns a result for each query,
    /// by position. Its error goes to every caller of the batch; after `Corrupt`, each query runs
    /// alone. Dropped before it has the mutex, the query does not run. Dropped while it runs the batch,
    /// the other callers run their queries again; the database may thus run a query twice.
    pub(crate) async fn run<F>(
        &self,
        question: Q,
        run: impl Fn(Vec<Q>) -> F,
    ) -> Result<A, StorageError>
    where
        F: Future<Output = Result<Vec<A>, StorageError>>,
    {
        loop {
            let (sender, mut answered) = oneshot::channel();
            self.waiting().push(QueuedQuery { question: question.clone(), answer: sender });
            let _running = tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    Err(_caller_is_gone) => continue,
                },
                running = self.running.lock() => running,
            };
            loop {
                match answered.try_recv() {
                    Ok(answer) => return answer,
                    Err(TryRecvError::Closed) => break,
                    // This caller has the mutex, so its query is still queued.
                    Err(TryRecvError::Empty) => self.run_batch(&run).await,
                }
            }
        }
    }

    async fn run_batch<F>(&self, run: &impl Fn(Vec<Q>) -> F)
    where
        F: Future<Output = Result<Vec<A>, StorageError>>,
    {
        let (questions, callers): (Vec<_>, Vec<_>) =
            self.group().into_iter().map(|it| (it.question, it.answer)).unzip();
        let answers = match run(questions.clone()).await {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            // One query hit the corrupt row; the others can still succeed.
            Err(StorageError::Corrupt(_)) if questions.len() > 1 => {
                one_by_one(questions, run).await
            }
            Err(error) => callers.iter().map(|_| Err(error.clone())).collect::<Vec<_>>(),
        };
        for (caller, answer) in callers.into_iter().zip(answers) {
            let _gone = caller.send(answer);
        }
    }

    /// Takes the oldest queries whose callers still wait out of the queue.
    fn group(&self) -> Vec<QueuedQuery<Q, A>> {
        let mut waiting = self.waiting();
        waiting.retain(|it| !it.answer.is_closed());
        let count = waiting.len().min(self.group_max);
        waiting.drain(..count).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<QueuedQuery<Q, A>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn one_by_one<Q, A, F>(
    questions: Vec<Q>,
    run: &impl Fn(Vec<Q>) -> F,
) -> Vec<Result<A, StorageError>>
where
    F: Future<Output = Result<Vec<A>, StorageError>>,
{
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let alone = run(vec![question]).await;
        answers.push(alone.and_then(|mut it| it.pop().ok_or_else(|| corrupt("no answer"))));
    }
    answers
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use futures_util::future::{join_all, poll_immediate};
    use tokio::sync::Semaphore;

    use super::*;

    type Answer = Result<usize, StorageError>;

    /// Returns each query as its result once permitted, and counts the batches.
    struct Oracle {
        batcher: Batcher<usize, usize>,
        may_answer: Semaphore,
        groups: AtomicUsize,
        error: Mutex<Option<StorageError>>,
    }

    impl Oracle {
        fn new(group_max: usize) -> Self {
            let (may_answer, groups) = (Semaphore::new(0), AtomicUsize::new(0));
            let batcher = Batcher::new(group_max);
            Self { batcher, may_answer, groups, error: Mutex::new(None) }
        }

        async fn run(&self, question: usize) -> Answer {
            let answer = async |questions: Vec<usize>| {
                self.groups.fetch_add(1, Ordering::Relaxed);
                self.may_answer.acquire().await.expect("it is not closed").forget();
                let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
                error.map_or(Ok(questions), Err)
            };
            self.batcher.run(question, answer).await
        }

        /// The results of query 0, which runs before the others are queued, and of `1..=others`.
        async fn query_with_others(
            &self,
            others: usize,
            between: impl FnOnce(),
        ) -> (Answer, Vec<Answer>) {
            let mut first = pin!(self.run(0));
            assert_eq!(poll_immediate(&mut first).await, None);
            let mut others = pin!(join_all((1..=others).map(|question| self.run(question))));
            assert_eq!(poll_immediate(&mut others).await, None);
            self.may_answer.add_permits(1);
            let first = first.await;
            between();
            self.may_answer.add_permits(1);
            (first, others.await)
        }

        fn groups(&self) -> usize {
            self.groups.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn queries_queued_during_a_batch_run_as_one_batch_with_a_result_each() {
        let oracle = Oracle::new(100);
        let (first, others) = oracle.query_with_others(50, || {}).await;
        assert_eq!(first, Ok(0));
        assert_eq!(others, (1..=50).map(Ok).collect::<Vec<_>>());
        assert_eq!(oracle.groups(), 2);
    }

    #[tokio::test]
    async fn more_queries_than_a_batch_holds_run_in_several_batches() {
        let oracle = Oracle::new(8);
        oracle.may_answer.add_permits(100);
        let answers = join_all((0..50).map(|question| oracle.run(question))).await;
        assert_eq!(answers, (0..50).map(Ok).collect::<Vec<_>>());
        assert!(oracle.groups() > 6, "{} groups", oracle.groups());
    }

    #[tokio::test]
    async fn an_error_reaches_every_caller_of_its_batch_and_no_other() {
        let oracle = Oracle::new(100);
        let away = StorageError::Unavailable("away".to_owned());
        let error = |error| *oracle.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
        let (first, others) = oracle.query_with_others(3, || error(Some(away.clone()))).await;
        assert_eq!(first, Ok(0));
        assert_eq!(others, [Err(away.clone()), Err(away.clone()), Err(away)]);
        error(None);
        oracle.may_answer.add_permits(1);
        assert_eq!(oracle.run(4).await, Ok(4));
    }

    #[tokio::test]
    async fn a_corrupt_row_fails_only_its_own_query() {
        let batcher = Batcher::new(100);
        let corrupt = StorageError::Corrupt("2".to_owned());
        let answer = async |questions: Vec<i32>| {
            tokio::task::yield_now().await;
            let is_sound = !questions.contains(&2);
            is_sound.then_some(questions).ok_or_else(|| corrupt.clone())
        };
        let answers = join_all((0..4).map(|question| batcher.run(question, answer))).await;
        assert_eq!(answers, [Ok(0), Ok(1), Err(corrupt.clone()), Ok(3)]);
    }

    #[tokio::test]
    async fn callers_of_a_cancelled_batch_run_their_queries_again() {
        let oracle = Oracle::new(100);
        let mut first = Box::pin(oracle.run(0));
        let running = oracle.batcher.running.lock().await;
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = pin!(oracle.run(1));
        let mut third = Box::pin(oracle.run(2));
        assert_eq!(poll_immediate(&mut second).await, None);
        assert!(third.as_mut().now_or_never().is_none());
        drop(running);
        // The first caller's batch takes all three. The third caller is dropped with it.
        assert!(first.as_mut().now_or_never().is_none());
        assert!(oracle.batcher.waiting().is_empty());
        drop((first, third));
        oracle.may_answer.add_permits(1);
        assert_eq!(second.await, Ok(1));
        assert_eq!(oracle.groups(), 2);
    }
}
