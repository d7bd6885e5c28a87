//! A socket whose session waits for its seat.
//!
//! It may be in the wait queue for minutes. Meanwhile the server pings it and reads its messages. A
//! stock client begins to sync at once; the server stores its messages and applies them after the grant.
//!
//! The server stores the last sync step 1 and little else. It drops messages beyond the limit, and no
//! edit is lost: on the grant the room sends its own step 1, and the client answers with every edit that
//! the room does not have. The client repeats its cursor with the next awareness renewal.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, close_code};
use bytes::Bytes;
use tokio::time::{Instant, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::domain::ids::UserId;
use crate::http::byte_budget::Charge;
use crate::http::ws::EARLY_BYTES_MAX;
use crate::http::ws::socket::{Socket, fault_of, message};
use crate::http::ws::term::Term;
use crate::outbox::close::Close;
use crate::outbox::{OutboxReader, SocketMessage};
use crate::seats::handle::{SeatHandle, TOO_MANY_MESSAGES};
use crate::seats::joining::{Arriving, is_question, is_step_1};
use crate::sessions::budgets::UserBudgets;
use crate::yjs::protocol;

/// Maximum of stored messages. A waiting client sends one step 1 and moves a cursor.
const EARLY_MESSAGES_MAX: usize = 64;
/// Interval of the heartbeat, and of the message that a stock client counts as a sign of life.
const LOOK_AFTER_EVERY: Duration = Duration::from_secs(4);

pub(super) struct UnseatedSocket {
    pub(super) arriving: Arriving,
    /// A longer silence ends the socket.
    pub(super) silence_max: Duration,
    /// The user to whom the server charges each message, ping and pong.
    pub(super) payer: (Arc<UserBudgets>, UserId),
}

/// The messages and the state of a connection during the claim.
pub(super) struct EarlyMessages {
    messages: Vec<Bytes>,
    question: Option<Bytes>,
    bytes: usize,
    /// A message was dropped, and later ones may depend on it.
    is_over: bool,
    /// Charges the stored messages until they are taken.
    charge: Charge,
    /// The close that replaces the result of the claim.
    pub(super) close: Option<Close>,
}

impl EarlyMessages {
    pub(super) fn new(charge: Charge) -> Self {
        let (messages, question) = (Vec::new(), None);
        Self { messages, question, bytes: 0, is_over: false, charge, close: None }
    }

    pub(super) fn take_messages(&mut self) -> Vec<Bytes> {
        let mut messages = std::mem::take(&mut self.messages);
        messages.extend(self.question.take());
        self.charge.clear();
        messages
    }

    fn push(&mut self, message: &Bytes) {
        // The state vector of a later step 1 covers the earlier ones.
        let replaced = if is_step_1(message) {
            self.question.as_ref().map_or(0, Bytes::len)
        } else if self.is_over {
            return;
        } else {
            0
        };
        let bytes = self.bytes - replaced + message.len();
        let more = u64::try_from(message.len()).unwrap_or(u64::MAX);
        let is_full = self.messages.len() >= EARLY_MESSAGES_MAX && !is_step_1(message);
        if is_full || bytes > EARLY_BYTES_MAX || self.charge.grow(more).is_err() {
            self.is_over = true;
            return;
        }
        self.bytes = bytes;
        self.charge.shrink(u64::try_from(replaced).unwrap_or(u64::MAX));
        // A copy: the message may share the buffer that it was read into.
        let message = Bytes::copy_from_slice(message);
        if is_step_1(&message) {
            self.question = Some(message);
        } else {
            self.messages.push(message);
        }
    }
}

impl Socket {
    /// Serves the connection until `claim` ends. The function cancels `gone` when the client
    /// disconnects or its token expires.
    pub(super) async fn wait_for(
        &mut self,
        claim: impl Future<Output = Result<SeatHandle, Close>>,
        outbox: &mut OutboxReader,
        gone: &CancellationToken,
        unseated: UnseatedSocket,
        mut early: EarlyMessages,
        term: &mut Term,
    ) -> (Result<SeatHandle, Close>, EarlyMessages) {
        let mut claim = pin!(claim);
        let mut token_expired = pin!(sleep_until(term.ends_at()));
        let mut heard_at = Instant::now();
        let mut look_after = interval(LOOK_AFTER_EVERY);
        look_after.reset();
        loop {
            let is_there = !gone.is_cancelled();
            let goes_on = tokio::select! {
                biased;
                seated = &mut claim => return (seated, early),
                () = &mut token_expired, if is_there => {
                    early.close = term.end().err();
                    token_expired.as_mut().reset(term.ends_at());
                    true
                }
                outgoing = outbox.next(), if is_there => {
                    self.pass_on(outgoing, outbox, &mut early).await
                }
                incoming = self.recv(), if is_there => {
                    heard_at = Instant::now();
                    early.is_over |= self.inbound.has_skipped();
                    match early.take(incoming, &unseated, term) {
                        Took::Continue => true,
                        Took::Renewed => {
                            token_expired.as_mut().reset(term.ends_at());
                            true
                        }
                        // The client (the page, after the computer slept) checks the connection. Without
                        // an answer it would reconnect, and join the wait queue at its end.
                        Took::Question => {
                            self.pass_on(SocketMessage::keep_alive(), outbox, &mut early).await
                        }
                        Took::End => false,
                    }
                }
                _ = look_after.tick(), if is_there => {
                    heard_at.elapsed() < unseated.silence_max
                        && self.pass_on(SocketMessage::Ping(Bytes::new()), outbox, &mut early).await
                        && self.pass_on(SocketMessage::keep_alive(), outbox, &mut early).await
                }
            };
            if !goes_on || early.close.is_some() {
                gone.cancel();
            }
        }
    }

    async fn pass_on(
        &mut self,
        outgoing: SocketMessage,
        outbox: &OutboxReader,
        early: &mut EarlyMessages,
    ) -> bool {
        match message(outgoing) {
            Ok(message) => self.send(message, outbox).await,
            Err(close) => {
                early.close = Some(close);
                false
            }
        }
    }
}

enum Took {
    /// The message was stored, or needs no action.
    Continue,
    /// The socket has a new end.
    Renewed,
    /// The client queries the presence of others, which is empty before the grant.
    Question,
    End,
}

impl EarlyMessages {
    fn take(
        &mut self,
        incoming: Option<Result<Message, axum::Error>>,
        UnseatedSocket { arriving, payer: (budgets, user), .. }: &UnseatedSocket,
        term: &mut Term,
    ) -> Took {
        if matches!(incoming, Some(Ok(_))) {
            arriving.heard();
            if !budgets.may_send(user) {
                self.close = Some(TOO_MANY_MESSAGES);
                return Took::End;
            }
        }
        match incoming {
            Some(Ok(Message::Binary(message))) => {
                if is_question(&message) {
                    return Took::Question;
                }
                if let Some(token) = protocol::renewal(&message) {
                    self.close = term.renew(token).err();
                    return Took::Renewed;
                }
                self.push(&message);
            }
            Some(Ok(Message::Text(_))) => self.close = Some(Close::Malformed("text-frame")),
            Some(Ok(Message::Pong(number))) => arriving.answered(&number),
            Some(Ok(Message::Ping(_))) => {}
            Some(Ok(Message::Close(frame))) => {
                if frame.is_none_or(|frame| frame.code == close_code::NORMAL) {
                    arriving.leaves();
                }
                return Took::End;
            }
            None => return Took::End,
            Some(Err(error)) => {
                self.close = fault_of(error);
                return Took::End;
            }
        }
        Took::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::byte_budget::{BudgetLimits, ByteBudget, Payer};
    use crate::http::peer::Peer;

    /// A waiter that repeated its step 1 was charged for each of them.
    #[test]
    fn g17_a_replaced_step_1_is_no_longer_charged() {
        let budget = ByteBudget::new(BudgetLimits { all: 80_000, address: 10_000, user: 10_000 });
        let mut early = EarlyMessages::new(budget.open(Payer::of(None, Peer::default())));
        let step_1 = |clients: u8| {
            let mut vector = vec![clients];
            (1..=clients).for_each(|client| vector.extend([client, 1]));
            protocol::sync_step1(&vector)
        };
        for clients in [1, 90, 3].into_iter().cycle().take(1_000) {
            let message = step_1(clients);
            early.push(&message);
            assert_eq!(early.question.as_ref(), Some(&message));
            assert_eq!(early.charge.bytes(), message.len() as u64);
        }
        assert_eq!(early.take_messages().len(), 1);
        assert_eq!(early.charge.bytes(), 0);
    }
}
