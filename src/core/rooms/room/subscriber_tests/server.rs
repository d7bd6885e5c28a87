//! A server of the model: its room is real.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::domain::seat::Seat;
use crate::pubsub::Message;
use crate::rooms::room::Room;
use crate::rooms::room::replication::{Applied, Reaction, StoredUpdates};
use crate::rooms::room::review_events::{Missed, MissedQueue, missed};
use crate::sessions::session::Session;
use crate::yjs::awareness::{AwarenessEntry, encode_awareness};
use crate::yjs::log::Origin;
use crate::yjs::text::document_from_text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerVersion {
    /// Takes the new kinds of messages for gaps, publishes always, and says no goodbye.
    Old,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subscribed {
    No,
    Sent,
    Confirmed,
}

pub(super) struct Server {
    pub(super) version: ServerVersion,
    pub(super) node: NodeId,
    pub(super) seat: Seat,
    pub(super) room: Option<(Arc<Room>, Arc<Session>)>,
    pub(super) missed: MissedQueue,
    pub(super) missed_sender: Missed,
    pub(super) subscribed: Subscribed,
    /// To Redis, and from it.
    pub(super) sending: VecDeque<Message>,
    pub(super) arrived: VecDeque<(NodeId, Message)>,
    pub(super) is_read_due: bool,
    pub(super) read: Option<Vec<(i64, Bytes)>>,
    pub(super) unsaved: Vec<Bytes>,
    pub(super) committed: Vec<(i64, Bytes)>,
    pub(super) changed: VecDeque<i64>,
    pub(super) clock: u64,
    pub(super) has_announced: bool,
    /// Its Yjs client id.
    pub(super) client: u64,
    /// How often the server may still do each of these.
    pub(super) left: HashMap<&'static str, usize>,
}

pub(super) fn is_of_old(message: &Message) -> bool {
    !matches!(message, Message::Numbers { .. } | Message::Goodbye | Message::Updates(_))
}

impl Server {
    pub(super) fn new(version: ServerVersion, seat: Seat, client: u64) -> Self {
        let (missed_sender, missed) = missed();
        Self {
            version,
            node: NodeId::generate(),
            seat,
            room: None,
            missed,
            missed_sender,
            subscribed: Subscribed::No,
            sending: VecDeque::new(),
            arrived: VecDeque::new(),
            is_read_due: false,
            read: None,
            unsaved: Vec::new(),
            committed: Vec::new(),
            changed: VecDeque::new(),
            clock: 0,
            has_announced: false,
            client,
            left: HashMap::new(),
        }
    }

    pub(super) fn room(&self) -> &Arc<Room> {
        &self.room.as_ref().expect("an open room").0
    }

    pub(super) fn close(&mut self) {
        self.subscribed = Subscribed::No;
        self.arrived.clear();
        (self.is_read_due, self.read, self.has_announced) = (false, None, false);
    }

    /// The first signal of a subscription, before which the table drops every message.
    pub(super) fn confirm(&mut self) {
        self.subscribed = Subscribed::Confirmed;
        self.arrived.clear();
        self.gap();
    }

    pub(super) fn gap(&mut self) {
        self.room().lock().subscribers.note_gap(Instant::now());
        self.sending.push_back(Message::Hello);
        self.is_read_due = true;
    }

    pub(super) fn receive(&mut self) {
        let (from, message) = self.arrived.pop_front().expect("a message");
        if self.version == ServerVersion::Old && !is_of_old(&message) {
            return self.gap();
        }
        let is_hello = message == Message::Hello;
        let Reaction { replies, is_behind } = self.room().react(from, message);
        self.is_read_due |= is_behind == Applied::Behind;
        let is_sent =
            |it: &Message| self.version == ServerVersion::New || (is_hello && is_of_old(it));
        let replies: Vec<_> = replies.into_iter().filter(is_sent).collect();
        self.sending.extend(replies);
    }

    pub(super) fn edit(&mut self, client: u64) {
        let update = document_from_text("x", client);
        let mut state = self.room().lock();
        let checked = state.log.check(&update, Origin::Server).expect("an edit");
        state.append(update.clone(), checked);
        state.durability.queue(update.len());
        let log = state.log.clone();
        state.saved.book(&log);
        drop(state);
        self.unsaved.push(update);
    }

    /// As the persister completes a group.
    pub(super) fn stored(&mut self) {
        let mut group = None;
        for (seq, update) in std::mem::take(&mut self.committed) {
            let is_published = self.room().stored(seq, update.len());
            if self.version == ServerVersion::Old {
                self.sending.push_back(Message::Update { seq, fence: Fence::ZERO, update });
            } else if is_published {
                let group = group.get_or_insert_with(StoredUpdates::default);
                group.push(seq, Fence::ZERO, update);
            }
        }
        self.sending.extend(group.map(StoredUpdates::into_message));
    }

    /// As `deliver_change` announces it.
    pub(super) fn changed(&mut self) {
        let change = self.changed.pop_front().expect("a change");
        let room = self.room.as_ref().map(|(room, _)| room);
        let is_published = room.is_none_or(|room| room.take_review_event(change, "{}"));
        if is_published || self.version == ServerVersion::Old {
            self.sending.push_back(Message::Review { change, json: "{}".to_owned() });
        }
    }

    pub(super) fn announce(&mut self) {
        self.clock += 1;
        self.has_announced = true;
        let state = Some("{}".to_owned());
        let entry = AwarenessEntry { client: self.client, clock: self.clock, state };
        let (room, session) = self.room.as_ref().expect("an open room");
        let update = encode_awareness(&[entry]);
        room.receive_presence(session, &update, Instant::now()).expect("valid");
    }
}
