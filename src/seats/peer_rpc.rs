//! Questions to other servers that wait for their answers.
//!
//! - **Q1** (G13) There are never more than [`QUESTIONS_MAX`] of them.
//! - **Q2** Of one session it is asked once at a time whether it lives, however many want to know: a
//!   flood of knocks at one seat is one message.
//! - **Q3** An answer counts only from the server that was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::domain::ids::{NodeId, SessionId};
use crate::domain::limits::QUESTIONS_MAX;
use crate::pubsub::Reply;

/// The questions of this process.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    asked: HashMap<u64, Question>,
    /// The questions for a sign of life among them.
    knocks: HashMap<SessionId, u64>,
}

#[derive(Debug)]
struct Question {
    to: NodeId,
    /// Whose sign of life is asked for.
    knocked_at: Option<SessionId>,
    askers: usize,
    answer: watch::Sender<Option<Reply>>,
}

/// One who waits for an answer. The question is open for as long as anybody does.
#[derive(Debug)]
pub(crate) struct Asked {
    questions: Arc<Questions>,
    /// What the answer will be known by.
    pub(crate) number: u64,
    /// Whether the question is yet to be sent: somebody else has asked it already if not.
    pub(crate) is_new: bool,
    answer: watch::Receiver<Option<Reply>>,
}

impl Questions {
    /// A question to `to` of its own. None when too many are open (Q1).
    pub(crate) fn ask(self: &Arc<Self>, to: NodeId) -> Option<Asked> {
        self.open_question(to, None)
    }

    /// The question to `to` whether `session` lives, which may have been asked already (Q2).
    pub(crate) fn knock(self: &Arc<Self>, to: NodeId, session: SessionId) -> Option<Asked> {
        let mut open = self.open();
        if let Some(number) = open.knocks.get(&session).copied()
            && let Some(question) = open.asked.get_mut(&number)
        {
            question.askers += 1;
            let answer = question.answer.subscribe();
            let questions = Arc::clone(self);
            return Some(Asked { questions, number, is_new: false, answer });
        }
        drop(open);
        self.open_question(to, Some(session))
    }

    /// Takes in an answer to the question `number`, if it is one of `from`'s (Q3).
    pub(crate) fn answered(&self, from: NodeId, number: u64, answer: Reply) {
        if let Some(question) = self.open().asked.get(&number).filter(|asked| asked.to == from) {
            question.answer.send_replace(Some(answer));
        }
    }

    fn open_question(self: &Arc<Self>, to: NodeId, knocked_at: Option<SessionId>) -> Option<Asked> {
        let mut open = self.open();
        if QUESTIONS_MAX <= open.asked.len() {
            return None;
        }
        open.last += 1;
        let number = open.last;
        let (sender, answer) = watch::channel(None);
        if let Some(session) = knocked_at {
            open.knocks.insert(session, number);
        }
        open.asked.insert(number, Question { to, knocked_at, askers: 1, answer: sender });
        Some(Asked { questions: Arc::clone(self), number, is_new: true, answer })
    }

    fn leave(&self, number: u64) {
        let mut open = self.open();
        let Some(question) = open.asked.get_mut(&number) else { return };
        question.askers -= 1;
        if 0 < question.askers {
            return;
        }
        let knocked_at = question.knocked_at;
        open.asked.remove(&number);
        if let Some(session) = knocked_at {
            open.knocks.remove(&session);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    /// Waits for an answer that `is_meant`; for ever if none comes.
    ///
    /// # Cancel safety
    ///
    /// An answer stays until it is looked at.
    pub(crate) async fn answer(&mut self, is_meant: impl Fn(Reply) -> bool) -> Reply {
        loop {
            if let Some(answer) = *self.answer.borrow_and_update()
                && is_meant(answer)
            {
                return answer;
            }
            if self.answer.changed().await.is_err() {
                // Cannot be: whoever asks keeps the question open.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.questions.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_asks_the_same_gets_the_same_answer_from_one_question() {
        let questions = Arc::new(Questions::default());
        let (node, session) = (NodeId::generate(), SessionId::generate());
        let mut first = questions.knock(node, session).expect("room");
        let mut second = questions.knock(node, session).expect("room");
        assert!(first.is_new && !second.is_new);
        let number = first.number;
        questions.answered(NodeId::generate(), number, Reply::Alive);
        assert_eq!(first.answer(|_| true).now_or_never(), None, "from somebody who was not asked");
        questions.answered(node, number, Reply::Gone);
        assert_eq!(first.answer(|_| true).now_or_never(), Some(Reply::Gone));
        drop(first);
        assert_eq!(second.answer(|_| true).now_or_never(), Some(Reply::Gone));
        drop(second);
        assert!(questions.knock(node, session).is_some_and(|asked| asked.is_new));
        assert!(questions.open().asked.is_empty() && questions.open().knocks.is_empty());
    }

    #[tokio::test]
    async fn an_answer_that_is_not_the_last_is_waited_beyond() {
        let questions = Arc::new(Questions::default());
        let node = NodeId::generate();
        let mut asked = questions.ask(node).expect("room");
        questions.answered(node, asked.number, Reply::Settling);
        assert_eq!(asked.answer(|_| true).await, Reply::Settling);
        let is_last = |answer| answer == Reply::Settled;
        assert_eq!(asked.answer(is_last).now_or_never(), None);
        questions.answered(node, asked.number, Reply::Settled);
        assert_eq!(asked.answer(is_last).await, Reply::Settled);
    }

    #[test]
    fn g13_open_questions_are_bounded() {
        let questions = Arc::new(Questions::default());
        let ask = |_| questions.knock(NodeId::generate(), SessionId::generate());
        let open: Vec<_> = (0..QUESTIONS_MAX).map(ask).collect();
        assert!(open.iter().all(Option::is_some) && ask(0).is_none());
        drop(open);
        assert!(ask(0).is_some());
    }
}
