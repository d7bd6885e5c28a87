//! Requests to other servers that wait for a reply.
//!
//! - **Q1** (G13) At most [`QUESTIONS_MAX`] requests are open.
//! - **Q2** At most one liveness probe for each session is in flight: all its callers share the
//!   reply. So a flood of claims for one seat publishes one message.
//! - **Q3** A reply counts only if the addressed server sent it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::domain::ids::{NodeId, SessionId};
use crate::domain::limits::QUESTIONS_MAX;
use crate::pubsub::Reply;

/// The open requests of this process.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    asked: HashMap<u64, Question>,
    /// The liveness probes among them.
    knocks: HashMap<SessionId, u64>,
}

#[derive(Debug)]
struct Question {
    to: NodeId,
    /// The session that the request probes, if it is a probe.
    knocked_at: Option<SessionId>,
    askers: usize,
    answer: watch::Sender<Option<Reply>>,
}

/// A caller that waits for the reply. The request stays open until its last caller drops.
#[derive(Debug)]
pub(crate) struct Request {
    questions: Arc<PendingRequests>,
    /// The number that the reply will carry.
    pub(crate) number: u64,
    /// Whether the caller must publish the request. False: another caller has published it.
    pub(crate) is_new: bool,
    answer: watch::Receiver<Option<Reply>>,
}

impl PendingRequests {
    /// Opens a request to `to`. None when too many are open (Q1).
    pub(crate) fn ask(self: &Arc<Self>, to: NodeId) -> Option<Request> {
        self.open_question(to, None)
    }

    /// Opens a liveness probe of `session` at `to`, or joins the open one (Q2).
    pub(crate) fn knock(self: &Arc<Self>, to: NodeId, session: SessionId) -> Option<Request> {
        let mut open = self.open();
        if let Some(number) = open.knocks.get(&session).copied()
            && let Some(question) = open.asked.get_mut(&number)
        {
            question.askers += 1;
            let answer = question.answer.subscribe();
            let questions = Arc::clone(self);
            return Some(Request { questions, number, is_new: false, answer });
        }
        drop(open);
        self.open_question(to, Some(session))
    }

    /// Accepts the reply to request `number`, if `from` is the addressed server (Q3).
    pub(crate) fn answered(&self, from: NodeId, number: u64, answer: Reply) {
        if let Some(question) = self.open().asked.get(&number).filter(|asked| asked.to == from) {
            question.answer.send_replace(Some(answer));
        }
    }

    fn open_question(
        self: &Arc<Self>,
        to: NodeId,
        knocked_at: Option<SessionId>,
    ) -> Option<Request> {
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
        Some(Request { questions: Arc::clone(self), number, is_new: true, answer })
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

impl Request {
    /// Waits for a reply that `is_meant` accepts; for ever if none arrives.
    ///
    /// # Cancel safety
    ///
    /// A reply stays until a call reads it.
    pub(crate) async fn answer(&mut self, is_meant: impl Fn(Reply) -> bool) -> Reply {
        loop {
            if let Some(answer) = *self.answer.borrow_and_update()
                && is_meant(answer)
            {
                return answer;
            }
            if self.answer.changed().await.is_err() {
                // Unreachable: this caller holds the request open.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.questions.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn q2_probes_of_one_session_share_one_request_and_its_reply() {
        let questions = Arc::new(PendingRequests::default());
        let (node, session) = (NodeId::generate(), SessionId::generate());
        let mut first = questions.knock(node, session).expect("room");
        let mut second = questions.knock(node, session).expect("room");
        assert!(first.is_new && !second.is_new);
        let number = first.number;
        questions.answered(NodeId::generate(), number, Reply::Alive);
        assert_eq!(
            first.answer(|_| true).now_or_never(),
            None,
            "from another server than the addressed one"
        );
        questions.answered(node, number, Reply::Gone);
        assert_eq!(first.answer(|_| true).now_or_never(), Some(Reply::Gone));
        drop(first);
        assert_eq!(second.answer(|_| true).now_or_never(), Some(Reply::Gone));
        drop(second);
        assert!(questions.knock(node, session).is_some_and(|asked| asked.is_new));
        assert!(questions.open().asked.is_empty() && questions.open().knocks.is_empty());
    }

    #[tokio::test]
    async fn a_request_waits_past_an_intermediate_reply() {
        let questions = Arc::new(PendingRequests::default());
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
    fn g13_open_requests_to_other_servers_are_bounded() {
        let questions = Arc::new(PendingRequests::default());
        let ask = |_| questions.knock(NodeId::generate(), SessionId::generate());
        let open: Vec<_> = (0..QUESTIONS_MAX).map(ask).collect();
        assert!(open.iter().all(Option::is_some) && ask(0).is_none());
        drop(open);
        assert!(ask(0).is_some());
    }
}
