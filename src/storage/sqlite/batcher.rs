//! Questions that are asked together.
//!
//! A statement costs a hop to a connection's thread and back, and a commit a wait for the disk, whoever
//! asks: after a restart, when thousands come back at the same moment, that is most of what they
//! wait for. So a question is put into a list, and whoever has its turn first asks for all that are
//! in it by then. While that is under way, the next ones gather. With nobody else there it is a
//! group of one, at once.
//!
//! No task does this, so none can die: whoever is taken along by somebody whose call is then dropped
//! asks again at its own turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;

/// Where questions of one kind gather.
#[derive(Debug)]
pub(super) struct Gathered<Q, A> {
    waiting: Mutex<Vec<Waiting<Q, A>>>,
    turn: tokio::sync::Mutex<()>,
    group_max: usize,
}

/// A question, and where its answer goes.
#[derive(Debug)]
struct Waiting<Q, A> {
    question: Q,
    answer: oneshot::Sender<Result<A, StorageError>>,
}

impl<Q: Clone, A> Gathered<Q, A> {
    /// At most so many are asked together.
    pub(super) fn new(group_max: usize) -> Self {
        Self { waiting: Mutex::default(), turn: tokio::sync::Mutex::new(()), group_max }
    }

    /// Asks, with all others that wait. `ask` gives an answer for each question, by position; its
    /// error is everybody's, but for `Corrupt`: then each is asked for alone.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its turn, the question is not asked. Dropped in the middle of it, those who
    /// were taken along ask again: `ask` may be, too.
    pub(super) async fn ask<F>(
        &self,
        question: Q,
        ask: impl Fn(Vec<Q>) -> F,
    ) -> Result<A, StorageError>
    where
        F: Future<Output = Result<Vec<A>, StorageError>>,
    {
        loop {
            let (sender, mut answered) = oneshot::channel();
            self.waiting().push(Waiting { question: question.clone(), answer: sender });
            let _turn = tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    Err(_asker_is_gone) => continue,
                },
                turn = self.turn.lock() => turn,
            };
            loop {
                match answered.try_recv() {
                    Ok(answer) => return answer,
                    Err(TryRecvError::Closed) => break,
                    // Nobody else has the turn, so it is in the list.
                    Err(TryRecvError::Empty) => self.ask_some(&ask).await,
                }
            }
        }
    }

    /// Asks for the first of those who wait.
    async fn ask_some<F>(&self, ask: &impl Fn(Vec<Q>) -> F)
    where
        F: Future<Output = Result<Vec<A>, StorageError>>,
    {
        let (questions, askers): (Vec<_>, Vec<_>) =
            self.group().into_iter().map(|it| (it.question, it.answer)).unzip();
        let answers = match ask(questions.clone()).await {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            // That is one of them; the others are none the worse for it.
            Err(StorageError::Corrupt(_)) if 1 < questions.len() => {
                one_by_one(questions, ask).await
            }
            Err(error) => askers.iter().map(|_| Err(error.clone())).collect::<Vec<_>>(),
        };
        for (asker, answer) in askers.into_iter().zip(answers) {
            let _gone = asker.send(answer);
        }
    }

    /// Takes out those who have waited longest, and are still there.
    fn group(&self) -> Vec<Waiting<Q, A>> {
        let mut waiting = self.waiting();
        waiting.retain(|it| !it.answer.is_closed());
        let count = waiting.len().min(self.group_max);
        waiting.drain(..count).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting<Q, A>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn one_by_one<Q, A, F>(
    questions: Vec<Q>,
    ask: &impl Fn(Vec<Q>) -> F,
) -> Vec<Result<A, StorageError>>
where
    F: Future<Output = Result<Vec<A>, StorageError>>,
{
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let alone = ask(vec![question]).await;
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

    /// Answers each question with itself when it is let, and says how many groups there were.
    struct Oracle {
        gathered: Gathered<usize, usize>,
        may_answer: Semaphore,
        groups: AtomicUsize,
        error: Mutex<Option<StorageError>>,
    }

    impl Oracle {
        fn new(group_max: usize) -> Self {
            let (may_answer, groups) = (Semaphore::new(0), AtomicUsize::new(0));
            let gathered = Gathered::new(group_max);
            Self { gathered, may_answer, groups, error: Mutex::new(None) }
        }

        async fn ask(&self, question: usize) -> Answer {
            let answer = async |questions: Vec<usize>| {
                self.groups.fetch_add(1, Ordering::Relaxed);
                self.may_answer.acquire().await.expect("it is not closed").forget();
                let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
                error.map_or(Ok(questions), Err)
            };
            self.gathered.ask(question, answer).await
        }

        /// The answers to 0, which is under way before the others come, and to `1..=others`.
        async fn ask_with_company(
            &self,
            others: usize,
            between: impl FnOnce(),
        ) -> (Answer, Vec<Answer>) {
            let mut first = pin!(self.ask(0));
            assert_eq!(poll_immediate(&mut first).await, None);
            let mut others = pin!(join_all((1..=others).map(|question| self.ask(question))));
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
    async fn those_who_come_while_one_is_asked_are_asked_together_and_answered_apart() {
        let oracle = Oracle::new(100);
        let (first, others) = oracle.ask_with_company(50, || {}).await;
        assert_eq!(first, Ok(0));
        assert_eq!(others, (1..=50).map(Ok).collect::<Vec<_>>());
        assert_eq!(oracle.groups(), 2);
    }

    #[tokio::test]
    async fn more_than_go_into_a_group_are_asked_in_several() {
        let oracle = Oracle::new(8);
        oracle.may_answer.add_permits(100);
        let answers = join_all((0..50).map(|question| oracle.ask(question))).await;
        assert_eq!(answers, (0..50).map(Ok).collect::<Vec<_>>());
        assert!(6 < oracle.groups(), "{} groups", oracle.groups());
    }

    #[tokio::test]
    async fn an_error_is_everybodys_and_only_of_that_group() {
        let oracle = Oracle::new(100);
        let away = StorageError::Unavailable("away".to_owned());
        let error = |error| *oracle.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
        let (first, others) = oracle.ask_with_company(3, || error(Some(away.clone()))).await;
        assert_eq!(first, Ok(0));
        assert_eq!(others, [Err(away.clone()), Err(away.clone()), Err(away)]);
        error(None);
        oracle.may_answer.add_permits(1);
        assert_eq!(oracle.ask(4).await, Ok(4));
    }

    #[tokio::test]
    async fn one_that_cannot_be_read_does_not_keep_others_from_their_answers() {
        let gathered = Gathered::new(100);
        let corrupt = StorageError::Corrupt("2".to_owned());
        let answer = async |questions: Vec<i32>| {
            tokio::task::yield_now().await;
            let is_sound = !questions.contains(&2);
            is_sound.then_some(questions).ok_or_else(|| corrupt.clone())
        };
        let answers = join_all((0..4).map(|question| gathered.ask(question, answer))).await;
        assert_eq!(answers, [Ok(0), Ok(1), Err(corrupt.clone()), Ok(3)]);
    }

    #[tokio::test]
    async fn those_whose_asker_goes_away_half_way_ask_again() {
        let oracle = Oracle::new(100);
        let mut first = Box::pin(oracle.ask(0));
        let turn = oracle.gathered.turn.lock().await;
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = pin!(oracle.ask(1));
        let mut third = Box::pin(oracle.ask(2));
        assert_eq!(poll_immediate(&mut second).await, None);
        assert!(third.as_mut().now_or_never().is_none());
        drop(turn);
        // The first takes all three along. The third does not wait for it.
        assert!(first.as_mut().now_or_never().is_none());
        assert!(oracle.gathered.waiting().is_empty());
        drop((first, third));
        oracle.may_answer.add_permits(1);
        assert_eq!(second.await, Ok(1));
        assert_eq!(oracle.groups(), 2);
    }
}
