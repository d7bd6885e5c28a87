//! What servers tell each other, and how it stands on the wire.
//!
//! One format, read strictly: `version, node, sent, kind, fields`. Numbers are big-endian, ids are
//! text behind a length byte, and the last field takes the rest. A frame that cannot be read
//! (a newer server of a rolling upgrade) is not skipped in silence: the reader makes a gap of it.

use bytes::Bytes;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, QuestionId, SessionId, ShareLinkId};
use crate::domain::seat::Role;

/// Changes with the format. A reader of another version sees a gap, not nonsense.
const VERSION: u8 = 1;

/// All that stands before the body, at its longest.
const HEADER_BYTES_MAX: usize = 1 + 1 + 64 + 8 + 1 + 16;

/// Where a message is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// By the servers that have this document open.
    Room(DocumentId),
    /// By all servers.
    Cluster,
}

/// What one server tells the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An update of the document, committed in the database under that number.
    Update {
        /// Its number in the log.
        seq: i64,
        /// The grant it was made under.
        fence: Fence,
        /// The update itself.
        update: Bytes,
    },
    /// An awareness update.
    Presence(Bytes),
    /// A server opened the room: send your presence.
    Hello,
    /// An event for the sockets.
    Event {
        /// Which role it is for; none: both.
        to: Option<Role>,
        /// The event.
        json: String,
    },
    /// The share link was revoked: end its seats.
    Revoked(ShareLinkId),
    /// The session was evicted: end it.
    Evicted(SessionId),
    /// What does the server that has this session's socket know of it?
    Question {
        /// Which question.
        id: QuestionId,
        /// Of which session.
        of: SessionId,
    },
    /// What it knows, told to all: who asked knows the question.
    Answer {
        /// Which question.
        id: QuestionId,
        /// What is known, as JSON.
        json: String,
    },
}

/// What travels: a message, or the admission that some were lost on the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parcel {
    Message(Message),
    Lost,
}

/// A parcel, from whom, and when it left by the sender's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) from: NodeId,
    pub(super) sent_us: u64,
    pub(super) parcel: Parcel,
}

impl Topic {
    /// The channel in Redis.
    pub(super) fn channel(self) -> String {
        match self {
            Self::Room(document) => format!("share-link:room:{document}"),
            Self::Cluster => "share-link:cluster".to_owned(),
        }
    }

    /// The topic of a channel.
    pub(super) fn of_channel(channel: &[u8]) -> Option<Self> {
        let channel = std::str::from_utf8(channel).ok()?;
        match channel.strip_prefix("share-link:room:") {
            Some(document) => document.parse().ok().map(Self::Room),
            None => (channel == "share-link:cluster").then_some(Self::Cluster),
        }
    }
}

impl Envelope {
    pub(super) fn encode(&self) -> Vec<u8> {
        let body = match &self.parcel {
            Parcel::Message(message) => message.bytes(),
            Parcel::Lost => 0,
        };
        let mut out = Vec::with_capacity(HEADER_BYTES_MAX + body);
        out.push(VERSION);
        put_id(&mut out, &self.from);
        out.extend_from_slice(&self.sent_us.to_be_bytes());
        match &self.parcel {
            Parcel::Lost => out.push(0),
            Parcel::Message(message) => message.encode(&mut out),
        }
        out
    }

    /// The envelope in `frame`, or as much as can be told of it: who sent it.
    pub(super) fn decode(frame: &Bytes) -> Option<Self> {
        let mut reader = Reader { frame, at: 0 };
        if reader.byte()? != VERSION {
            return None;
        }
        let from = reader.id()?;
        let sent_us = reader.number()?;
        let parcel = match reader.byte()? {
            0 => Parcel::Lost,
            kind => Parcel::Message(Message::decode(kind, &mut reader)?),
        };
        (reader.at == frame.len()).then_some(Self { from, sent_us, parcel })
    }
}

impl Message {
    /// How long the body is.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Update { update, .. } => update.len(),
            Self::Presence(update) => update.len(),
            Self::Event { json, .. } => json.len(),
            Self::Answer { json, .. } => json.len(),
            Self::Hello | Self::Revoked(_) | Self::Evicted(_) | Self::Question { .. } => 0,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Update { seq, fence, update } => {
                out.push(1);
                out.extend_from_slice(&seq.to_be_bytes());
                out.extend_from_slice(&fence.0.to_be_bytes());
                out.extend_from_slice(update);
            }
            Self::Presence(update) => {
                out.push(2);
                out.extend_from_slice(update);
            }
            Self::Hello => out.push(3),
            Self::Event { to, json } => {
                out.push(4);
                out.push(match to {
                    None => 0,
                    Some(Role::Writer) => 1,
                    Some(Role::Reviewer) => 2,
                });
                out.extend_from_slice(json.as_bytes());
            }
            Self::Revoked(link) => {
                out.push(5);
                put_id(out, link);
            }
            Self::Evicted(session) => {
                out.push(6);
                put_id(out, session);
            }
            Self::Question { id, of } => {
                out.push(20);
                put_id(out, id);
                put_id(out, of);
            }
            Self::Answer { id, json } => {
                out.push(21);
                put_id(out, id);
                out.extend_from_slice(json.as_bytes());
            }
        }
    }

    fn decode(kind: u8, reader: &mut Reader<'_>) -> Option<Self> {
        Some(match kind {
            1 => Self::Update {
                seq: reader.number()?.cast_signed(),
                fence: Fence(reader.number()?),
                update: reader.rest(),
            },
            2 => Self::Presence(reader.rest()),
            3 => Self::Hello,
            4 => {
                let to = match reader.byte()? {
                    0 => None,
                    1 => Some(Role::Writer),
                    2 => Some(Role::Reviewer),
                    _ => return None,
                };
                Self::Event { to, json: String::from_utf8(reader.rest().to_vec()).ok()? }
            }
            5 => Self::Revoked(reader.id()?),
            6 => Self::Evicted(reader.id()?),
            20 => Self::Question { id: reader.id()?, of: reader.id()? },
            21 => {
                let id = reader.id()?;
                Self::Answer { id, json: String::from_utf8(reader.rest().to_vec()).ok()? }
            }
            _ => return None,
        })
    }
}

/// Appends an id behind its length. Ids have at most 64 bytes.
fn put_id(out: &mut Vec<u8>, id: &impl ToString) {
    let text = id.to_string();
    out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(text.as_bytes());
}

/// Reads a frame from its beginning; `None` when it ends too early.
struct Reader<'a> {
    frame: &'a Bytes,
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(bytes)?;
        let taken = self.frame.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn id<T: std::str::FromStr>(&mut self) -> Option<T> {
        let bytes = usize::from(self.byte()?);
        std::str::from_utf8(self.take(bytes)?).ok()?.parse().ok()
    }

    /// What is left, without a copy.
    fn rest(&mut self) -> Bytes {
        let rest = self.frame.slice(self.at.min(self.frame.len())..);
        self.at = self.frame.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Parcel> {
        let messages = [
            Message::Update { seq: 7, fence: Fence(1 << 52), update: Bytes::from_static(b"\0\0") },
            Message::Presence(Bytes::new()),
            Message::Hello,
            Message::Event { to: None, json: "{}".to_owned() },
            Message::Event { to: Some(Role::Writer), json: "{\"이름\":1}".to_owned() },
            Message::Event { to: Some(Role::Reviewer), json: String::new() },
            Message::Revoked(ShareLinkId::generate()),
            Message::Evicted(SessionId::generate()),
            Message::Question { id: QuestionId::generate(), of: SessionId::generate() },
            Message::Answer { id: QuestionId::generate(), json: "{}".to_owned() },
        ];
        messages.into_iter().map(Parcel::Message).chain([Parcel::Lost]).collect()
    }

    #[test]
    fn every_message_survives_the_wire() {
        for parcel in all() {
            let envelope = Envelope { from: NodeId::generate(), sent_us: 42, parcel };
            assert_eq!(Envelope::decode(&envelope.encode().into()), Some(envelope));
        }
    }

    #[test]
    fn g12_a_cut_or_altered_frame_is_read_as_something_or_nothing_but_never_panics() {
        for parcel in all() {
            let whole = Envelope { from: NodeId::generate(), sent_us: 42, parcel }.encode();
            for (at, flip) in (0..whole.len()).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xff)]) {
                let mut altered = whole.clone();
                altered[at] ^= flip;
                let _ = Envelope::decode(&altered.into());
                let _ = Envelope::decode(&Bytes::copy_from_slice(&whole[..at]));
            }
        }
    }

    #[test]
    fn a_frame_of_another_version_is_not_guessed_at() {
        let envelope =
            Envelope { from: NodeId::generate(), sent_us: 0, parcel: all().swap_remove(2) };
        let mut frame = envelope.encode();
        frame[0] = VERSION + 1;
        assert_eq!(Envelope::decode(&frame.into()), None);
    }

    #[test]
    fn a_topic_is_found_again_in_its_channel() {
        let document = DocumentId::generate();
        for topic in [Topic::Room(document), Topic::Cluster] {
            assert_eq!(Topic::of_channel(topic.channel().as_bytes()), Some(topic));
        }
        assert_eq!(Topic::Room(document).channel(), format!("share-link:room:{document}"));
        assert_eq!(Topic::of_channel(b"share-link:room:"), None);
        assert_eq!(Topic::of_channel(b"other"), None);
    }
}
