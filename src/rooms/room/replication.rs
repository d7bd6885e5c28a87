//! What other servers do to the same document.
//!
//! Updates are announced under the number that the database gave them. A number that is not the
//! next one, or a connection that was lost, means: read the log. So pub/sub may lose what it
//! likes (decision 5).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until};

use crate::domain::ids::NodeId;
use crate::pubsub::Pubsub;
use crate::pubsub::Signal;
use crate::pubsub::{Message, Topic};
use crate::rooms::room::{Ailment, Room, State};
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::yjs::awareness::{decode_awareness, encode_awareness};
use crate::yjs::log::Origin;
use crate::yjs::protocol;

/// How long to wait before an unreadable log is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Whether an announced update could be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    Yes,
    /// Something before it is missing.
    Behind,
}

impl Room {
    /// Speaks and listens to the other servers, and tells what is saved a little later, until the
    /// room is retired.
    ///
    /// What it does now and then is boxed: it waits for as long as the room is open.
    pub async fn follow(self: Arc<Self>, relay: Pubsub, storage: Storage) {
        let topic = Topic::Room(self.document);
        let mut subscription = relay.subscribe(topic);
        let mut tell_at = None;
        loop {
            tokio::select! {
                () = self.retired.cancelled() => break,
                () = self.untold.notified() => tell_at = Some(self.tell_saved_at()),
                () = sleep_until(tell_at.unwrap_or_else(Instant::now)), if tell_at.is_some() => {
                    tell_at = None;
                    self.tell_saved();
                }
                signal = subscription.next() => match signal {
                    Signal::Message { from, message } => {
                        Box::pin(self.hear(from, message, &relay, &storage)).await;
                    }
                    Signal::Gap => {
                        // Not before the subscription is in force, or the answers are not heard.
                        self.publish(&relay, &Message::Hello).await;
                        Box::pin(self.catch_up(&storage)).await;
                    }
                },
                () = self.ailing.notified() => Box::pin(self.treat(&relay, &storage)).await,
                () = self.behind.notified() => Box::pin(self.catch_up(&storage)).await,
                message = self.outgoing.pop() => self.publish(&relay, &message).await,
            }
        }
        // Last words: whoever left the room has left the others' rooms too.
        while let Some(message) = self.outgoing.try_pop() {
            self.publish(&relay, &message).await;
        }
    }

    /// Takes in an update that the database has under `seq`, and shows it to everybody here.
    pub fn take_stored(&self, seq: i64, update: &Bytes) {
        if self.try_take(seq, update) == Applied::Behind {
            self.behind.notify_one();
        }
    }

    async fn hear(
        self: &Arc<Self>,
        from: NodeId,
        message: Message,
        relay: &Pubsub,
        storage: &Storage,
    ) {
        match message {
            Message::Update { seq, update, fence: _ } => {
                if self.try_take(seq, &update) == Applied::Behind {
                    self.catch_up(storage).await;
                }
            }
            Message::Presence(update) => self.hear_presence(from, &update),
            Message::Event { to, json } => {
                if !self.hear_of_guest(from, &json) {
                    self.tell(to, &json);
                }
            }
            Message::Review { change, json } => self.take_review_event(change, &json),
            Message::Worked(role) => self.worked(role),
            Message::Hello => {
                for message in self.introduction() {
                    self.publish(relay, &message).await;
                }
            }
            Message::Revoked(_)
            | Message::Evicted(_)
            | Message::Knocked { .. }
            | Message::Replaced { .. }
            | Message::Answered { .. }
            | Message::Question { .. }
            | Message::Answer { .. } => {
                tracing::debug!("a message for a server came to a room");
            }
        }
    }

    /// Reads from the database what this log has not.
    pub async fn catch_up(&self, storage: &Storage) {
        while !self.retired.is_cancelled() && !self.is_damaged() {
            match self.read_on(storage).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(document = %self.document, %error, "cannot read the log");
                    sleep(READ_AGAIN_AFTER).await;
                }
            }
        }
    }

    async fn read_on(&self, storage: &Storage) -> Result<(), StorageError> {
        let seq = self.lock().seq;
        if let Some(tail) = storage.log_after(self.document, seq).await? {
            for (seq, update) in tail.updates {
                self.try_take(seq, &update);
            }
            return Ok(());
        }
        // Merged away meanwhile: the whole log, of which we know most.
        if let Some(log) = storage.log(self.document).await? {
            let mut state = self.lock();
            for update in &log.parts {
                self.integrate(&mut state, update);
            }
            state.seq = state.seq.max(log.seq);
        }
        Ok(())
    }

    fn try_take(&self, seq: i64, update: &Bytes) -> Applied {
        let mut state = self.lock();
        if state.is_damaged || state.takes_no_more() {
            return Applied::Yes;
        }
        if seq <= state.seq {
            // A number that the room has is announced again, or read again, with the same update.
            let checked = state.log.check(update, Origin::Server);
            if !checked.is_ok_and(|checked| !checked.is_new) {
                drop(state);
                tracing::error!(document = %self.document, seq, "the database gave a number twice");
                self.ails(Ailment::SetBack);
            }
            return Applied::Yes;
        }
        if seq != state.seq + 1 {
            return Applied::Behind;
        }
        self.integrate(&mut state, update);
        state.seq = seq;
        Applied::Yes
    }

    /// Appends and shows what is new in an update that is in the database.
    fn integrate(&self, state: &mut State, update: &Bytes) {
        match state.log.check(update, Origin::Server) {
            Ok(checked) => {
                if checked.is_new {
                    state.append(update.clone(), checked);
                    self.weigh_again(state, Instant::now());
                    state.send_to_all(&protocol::update(update));
                    self.look_at_saved(state, 0);
                }
            }
            Err(error) => {
                // It passed this same check on the server that stored it: one of the two logs has
                // what the database lost.
                tracing::error!(document = %self.document, ?error, "the log does not fit together");
                state.ailment.get_or_insert(Ailment::SetBack);
                self.ailing.notify_one();
            }
        }
    }

    fn hear_presence(&self, from: NodeId, update: &[u8]) {
        let Ok(entries) = decode_awareness(update) else {
            tracing::warn!(%from, "a server sent presence that cannot be read");
            return;
        };
        let mut state = self.lock();
        let news = state.presence.merge(from, entries, Instant::now());
        if !news.is_empty() {
            state.send_to_all(&protocol::awareness(&encode_awareness(&news)));
        }
    }

    /// What a server that just opened this document should know of the people here.
    fn introduction(&self) -> Vec<Message> {
        let mut messages = self.words_of_those_here();
        let local = self.lock().presence.local();
        if !local.is_empty() {
            messages.push(Message::Presence(encode_awareness(&local).into()));
        }
        messages
    }

    async fn publish(&self, relay: &Pubsub, message: &Message) {
        if let Err(error) = relay.publish(Topic::Room(self.document), message).await {
            tracing::debug!(document = %self.document, %error, "the other servers were not told");
        }
    }
}
