//! Replication: a room applies the updates that other servers publish.
//!
//! A server publishes an update under its database number. After a gap in these numbers, or a lost
//! connection, the room reads the log. Pub/sub may therefore lose any message (decision 5).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until};

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::pubsub::Pubsub;
use crate::pubsub::Signal;
use crate::pubsub::{Message, Topic};
use crate::rooms::room::peers::Step;
use crate::rooms::room::{ResetCause, Room, RoomState};
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::yjs::awareness::{decode_awareness, encode_awareness};
use crate::yjs::log::Origin;
use crate::yjs::protocol;

/// Pause before the room reads the log again after a failed read.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Bytes of the updates in one message. Other servers read a longer group from the database: Redis closes
/// a connection with too many bytes in its queue.
const UPDATES_BYTES_MAX: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    Yes,
    Behind,
}

/// The effects of a message that need the task of the room.
#[derive(Debug)]
pub(super) struct Reaction {
    pub(super) replies: Vec<Message>,
    pub(super) is_behind: Applied,
}

/// The updates of one document in one transaction, in the order of their numbers. They travel as one
/// message.
#[derive(Debug, Default)]
pub(crate) struct StoredUpdates {
    fence: Fence,
    updates: Vec<(i64, Bytes)>,
}

impl StoredUpdates {
    pub(crate) fn push(&mut self, seq: i64, fence: Fence, update: Bytes) {
        self.fence = fence;
        self.updates.push((seq, update));
    }

    pub(crate) fn into_message(self) -> Message {
        let Self { fence, mut updates } = self;
        let last = updates.last().map_or(0, |(seq, _)| *seq);
        // A server of an older version takes several updates for a gap, and one for what it is.
        if updates.len() == 1
            && let Some((seq, update)) = updates.pop()
        {
            return Message::Update { seq, fence, update };
        }
        let message = Message::Updates(updates);
        let is_short = message.bytes() <= UPDATES_BYTES_MAX;
        if is_short { message } else { Message::Numbers { seq: last, change: 0 } }
    }
}

impl Room {
    /// Publishes and receives messages, sends the postponed `document.saved`, and resets the room when a
    /// cause is set, until the room is retired. Rare branches are boxed: the future lives as long as the
    /// room and would reserve their memory.
    pub async fn follow(self: Arc<Self>, pubsub: Pubsub, storage: Storage, tick: Duration) {
        let topic = Topic::Room(self.document);
        let mut subscription = pubsub.subscribe(topic);
        let (mut saved_due, mut hello_due) = (None, None);
        let mut gaps = 0_u64;
        loop {
            let due = [saved_due, hello_due].into_iter().flatten().min();
            tokio::select! {
                () = self.retired.cancelled() => break,
                () = self.saved_later.notified() => saved_due = Some(self.saved_due_at()),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let now = Instant::now();
                    if saved_due.take_if(|due| *due <= now).is_some() {
                        self.broadcast_saved();
                    }
                    if hello_due.take_if(|due| *due <= now).is_some() {
                        self.publish(&pubsub, &Message::Hello).await;
                    }
                }
                signal = subscription.next() => match signal {
                    Signal::Message { from, message } => {
                        Box::pin(self.handle_message(from, message, &pubsub, &storage)).await;
                    }
                    Signal::Gap => {
                        self.lock().subscribers.note_gap(Instant::now());
                        // The subscription is active now; an earlier `Hello` would lose its replies. After a
                        // restart of Redis all rooms have a gap, and the others know this one.
                        if gaps == 0 {
                            self.publish(&pubsub, &Message::Hello).await;
                        } else {
                            hello_due = hello_due.or_else(|| Some(Instant::now() + Pubsub::spread(tick)));
                        }
                        gaps += 1;
                        Box::pin(self.catch_up(&storage)).await;
                    }
                },
                () = self.reset_due.notified() => Box::pin(self.find_cause_and_reset(&pubsub, &storage)).await,
                () = self.behind.notified() => Box::pin(self.catch_up(&storage)).await,
                message = self.outgoing.pop() => self.publish(&pubsub, &message).await,
            }
        }
        // Publishes the queued `peer.left`, so that the sessions leave the rooms of other servers.
        while let Some(message) = self.outgoing.try_pop() {
            self.publish(&pubsub, &message).await;
        }
        if self.lock().subscribers.were_any() {
            pubsub.leave(&subscription, &Message::Goodbye);
        }
    }

    /// Applies an update that the database has under `seq`, and broadcasts it to the members. Returns
    /// whether the caller is to publish it: later servers read it from the log (M5).
    pub fn take_stored(&self, seq: i64, update: &Bytes) -> bool {
        if self.try_take(seq, update) == Applied::Behind {
            self.behind.notify_one();
        }
        let mut state = self.lock();
        state.durability.raise(seq);
        !state.subscribers.is_empty()
    }

    async fn handle_message(
        self: &Arc<Self>,
        from: NodeId,
        message: Message,
        pubsub: &Pubsub,
        storage: &Storage,
    ) {
        let Reaction { replies, is_behind } = self.react(from, message);
        for message in replies {
            self.publish(pubsub, &message).await;
        }
        if is_behind == Applied::Behind {
            self.catch_up(storage).await;
        }
    }

    pub(super) fn react(self: &Arc<Self>, from: NodeId, message: Message) -> Reaction {
        let (mut replies, mut is_behind) = (Vec::new(), Applied::Yes);
        match message {
            Message::Update { seq, update, fence: _ } => is_behind = self.try_take(seq, &update),
            Message::Updates(updates) => {
                let mut all = updates.iter().map(|(seq, update)| self.try_take(*seq, update));
                is_behind = all.find(|it| *it == Applied::Behind).unwrap_or(is_behind);
            }
            Message::Numbers { seq, change } => {
                replies = self.meet(from);
                self.review_change_named(change);
                if self.seq() < seq {
                    is_behind = Applied::Behind;
                }
            }
            Message::Presence(update) => {
                replies = self.meet(from);
                self.merge_presence(from, &update);
            }
            Message::Event { to, json } => match self.apply_peer_event(from, &json) {
                Some(Step::Joined) => replies = self.meet(from),
                Some(Step::Left) => {}
                None => self.broadcast_json(to, &json),
            },
            Message::Review { change, json } => {
                let _is_published_by_its_sender = self.take_review_event(change, &json);
            }
            Message::Worked(role) => self.worked(role),
            Message::Hello => replies = self.greet(from),
            Message::Goodbye => self.lock().subscribers.remove(from),
            Message::Revoked(_)
            | Message::Deleted { .. }
            | Message::Evicted(_)
            | Message::Removed { .. }
            | Message::Request { .. }
            | Message::Reply { .. } => {
                tracing::debug!("a room received a message for a server");
            }
        }
        Reaction { replies, is_behind }
    }

    /// Reads from the database the updates that this log lacks; retries until the read succeeds.
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
        if let Some(tail) = storage.log_from(self.document, seq).await? {
            for (seq, update) in tail.updates {
                self.try_take(seq, &update);
            }
            return Ok(());
        }
        // Maintenance merged those rows: reads the whole log and applies the unknown part.
        if let Some(log) = storage.log(self.document).await? {
            let mut state = self.lock();
            for update in &log.parts {
                self.integrate(&mut state, update);
            }
            state.seq = state.seq.max(log.seq);
        }
        Ok(())
    }

    pub(super) fn try_take(&self, seq: i64, update: &Bytes) -> Applied {
        let mut state = self.lock();
        if state.integrity.is_damaged() || state.integrity.takes_no_more() {
            return Applied::Yes;
        }
        if seq <= state.seq {
            // A repeated number must carry the same update. A different one means that the database was
            // set back and gave the number again.
            let checked = state.log.check(update, Origin::Server);
            if !checked.is_ok_and(|checked| !checked.is_new) {
                drop(state);
                tracing::error!(document = %self.document, seq, "the database gave a number twice");
                self.request_reset(ResetCause::SetBack);
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

    fn integrate(&self, state: &mut RoomState, update: &Bytes) {
        match state.log.check(update, Origin::Server) {
            Ok(checked) => {
                if checked.is_new {
                    state.append(update.clone(), checked);
                    self.weigh_again(state, Instant::now());
                    state.members.send_to_all(&protocol::update(update));
                    self.look_at_saved(state, 0);
                }
            }
            Err(error) => {
                // The update passed this check on the server that stored it. One of the two logs
                // therefore holds an update that the database lost.
                tracing::error!(document = %self.document, ?error, "an update of the log fails validation");
                state.integrity.begin_reset(ResetCause::SetBack);
                self.reset_due.notify_one();
            }
        }
    }

    fn merge_presence(&self, from: NodeId, update: &[u8]) {
        let Ok(entries) = decode_awareness(update) else {
            tracing::warn!(%from, "a server published malformed presence");
            return;
        };
        let mut state = self.lock();
        let news = state.presence.merge(from, entries, Instant::now());
        if !news.is_empty() {
            state.members.send_to_all(&protocol::awareness(&encode_awareness(&news)));
        }
    }

    async fn publish(&self, pubsub: &Pubsub, message: &Message) {
        if let Err(error) = pubsub.publish(Topic::Room(self.document), message).await {
            tracing::debug!(document = %self.document, %error, "cannot publish to the other servers");
        }
    }
}
