//! The messages between servers and their wire format.
//!
//! One strict format: `version, node, sent, kind, fields`, then mark and seal. Numbers are
//! big-endian, ids are text with a length byte, and the last field takes the rest. The reader
//! reports an undecodable frame as a gap: a newer server may send it during a rolling upgrade.

use bytes::Bytes;
use chrono::DateTime;

use crate::domain::deletion::Deletion;
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, SessionId, ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::pubsub::seal::SEAL_BYTES;

/// Rises with each change of the envelope or the seal. A reader of another version gets a gap. A new
/// message has a new tag instead, so that servers of both versions replicate edits side by side.
pub(crate) const VERSION: u8 = 3;

/// The longest frame without its body, with the seal.
const HEADER_BYTES_MAX: usize = 1 + 1 + 64 + 8 + 1 + 16 + SEAL_BYTES;

/// The number and the length before each update of [`Message::Updates`].
const NUMBERED_BYTES: usize = 8 + 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The servers that have this document open.
    Room(DocumentId),
    Cluster,
    Node(NodeId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An update that the database committed under this number.
    Update {
        seq: i64,
        /// The fence of the grant that it was written under.
        fence: Fence,
        update: Bytes,
    },
    /// The updates of one group commit, each with its number.
    Updates(Vec<(i64, Bytes)>),
    Presence(Bytes),
    /// On a room's topic: a server opened the room and requests the others' presence. On another topic: the
    /// server runs.
    Hello,
    /// The last numbers of the sender's room, which has published no message of them. The receiver reads
    /// from the database what it lacks. 0: not named.
    Numbers {
        seq: i64,
        change: i64,
    },
    /// The sender closed its room.
    Goodbye,
    Event {
        /// The role of the receiving sessions; `None`: both.
        to: Option<Role>,
        json: String,
    },
    /// An event of a review, for the sockets.
    Review {
        /// The number of the change. The reader uses it to ignore a duplicate and to find a gap.
        change: i64,
        json: String,
    },
    /// The session of this seat was active through the REST API of another server.
    Worked(Role),
    /// The share link was revoked: end its sessions.
    Revoked(ShareLinkId),
    /// The owner deleted the document: end its sessions.
    Deleted {
        document: DocumentId,
        deletion: Deletion,
    },
    /// The session was evicted: end it.
    Evicted(SessionId),
    /// The user is no longer the reviewer of the link: end the user's sessions in the reviewer's seat.
    Removed {
        link: ShareLinkId,
        user: UserId,
    },
    Request {
        /// The id of the request, repeated in the reply. 0: no caller awaits the reply.
        id: u64,
        request: Request,
    },
    Reply {
        id: u64,
        reply: Reply,
    },
}

/// A request between servers, mostly to the server of a session's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Probe(SessionId),
    /// Another session of the same user acquired the seat. The receiver ends this session and
    /// flushes its edits. The requester repeats the request until the flush is complete.
    Replace {
        session: SessionId,
        document: DocumentId,
    },
    Facts(SessionId),
    Series,
    /// The name of the server.
    Name,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Alive,
    /// The session has ended, or its client does not reply.
    Gone,
    /// The session has ended, and its edits are not durable yet.
    Flushing,
    /// The session has ended, and no edit is pending.
    Flushed,
    /// The state of the session, as JSON.
    Facts(String),
    /// The minutes of the last hour, as JSON.
    Series(String),
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    Message(Message),
    /// The sender lost messages on the way out.
    Lost,
}

/// A frame without its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub from: NodeId,
    /// The sender's clock at the time of sending, in µs from a random start.
    pub sent_us: u64,
    pub payload: Payload,
}

impl Topic {
    pub(crate) fn channel(self) -> String {
        match self {
            Self::Room(document) => format!("share-link:room:{document}"),
            Self::Cluster => "share-link:cluster".to_owned(),
            Self::Node(node) => format!("share-link:node:{node}"),
        }
    }

    pub(crate) fn of_channel(channel: &[u8]) -> Option<Self> {
        let channel = std::str::from_utf8(channel).ok()?;
        match channel.strip_prefix("share-link:")?.split_once(':') {
            Some(("room", document)) => document.parse().ok().map(Self::Room),
            Some(("node", node)) => node.parse().ok().map(Self::Node),
            Some(_) => None,
            None => (channel == "share-link:cluster").then_some(Self::Cluster),
        }
    }
}

impl Envelope {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let body = match &self.payload {
            Payload::Message(message) => message.bytes(),
            Payload::Lost => 0,
        };
        let mut out = Vec::with_capacity(HEADER_BYTES_MAX + body);
        out.push(VERSION);
        put_id(&mut out, &self.from);
        out.extend_from_slice(&self.sent_us.to_be_bytes());
        match &self.payload {
            Payload::Lost => out.push(0),
            Payload::Message(message) => message.encode(&mut out),
        }
        out
    }

    /// Decodes an envelope; `None` if the frame is not one of this version.
    #[must_use]
    pub fn decode(frame: &Bytes) -> Option<Self> {
        let mut reader = Reader { frame, at: 0 };
        if reader.byte()? != VERSION {
            return None;
        }
        let from = reader.id()?;
        let sent_us = reader.number()?;
        let payload = match reader.byte()? {
            0 => Payload::Lost,
            kind => Payload::Message(Message::decode(kind, &mut reader)?),
        };
        (reader.at == frame.len()).then_some(Self { from, sent_us, payload })
    }
}

impl Message {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Update { update, .. } => update.len(),
            Self::Updates(updates) => {
                updates.iter().map(|(_, update)| NUMBERED_BYTES + update.len()).sum()
            }
            Self::Presence(update) => update.len(),
            Self::Event { json, .. } | Self::Review { json, .. } => json.len(),
            Self::Reply {
                reply: Reply::Facts(text) | Reply::Series(text) | Reply::Name(text),
                ..
            } => text.len(),
            Self::Deleted { deletion, .. } => deletion.by.name.len(),
            Self::Hello
            | Self::Numbers { .. }
            | Self::Goodbye
            | Self::Worked(_)
            | Self::Revoked(_)
            | Self::Evicted(_)
            | Self::Removed { .. }
            | Self::Request { .. }
            | Self::Reply { .. } => 0,
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
            Self::Updates(updates) => {
                out.push(19);
                put_numbered(out, updates);
            }
            Self::Presence(update) => {
                out.push(2);
                out.extend_from_slice(update);
            }
            Self::Hello => out.push(3),
            Self::Numbers { seq, change } => {
                out.push(17);
                out.extend_from_slice(&seq.to_be_bytes());
                out.extend_from_slice(&change.to_be_bytes());
            }
            Self::Goodbye => out.push(18),
            Self::Event { to, json } => {
                out.push(4);
                out.push(to.map_or(0, code_of));
                out.extend_from_slice(json.as_bytes());
            }
            Self::Revoked(link) => {
                out.push(5);
                put_id(out, link);
            }
            Self::Deleted { document, deletion } => {
                out.push(13);
                put_id(out, document);
                put_id(out, &deletion.by.id);
                out.extend_from_slice(&deletion.at.timestamp_micros().to_be_bytes());
                out.extend_from_slice(deletion.by.name.as_bytes());
            }
            Self::Evicted(session) => {
                out.push(6);
                put_id(out, session);
            }
            Self::Removed { link, user } => {
                out.push(14);
                put_id(out, link);
                put_id(out, user);
            }
            Self::Request { id, request } => {
                out.push(request.tag());
                out.extend_from_slice(&id.to_be_bytes());
                request.encode(out);
            }
            Self::Reply { id, reply } => {
                out.push(9);
                out.extend_from_slice(&id.to_be_bytes());
                reply.encode(out);
            }
            Self::Worked(role) => out.extend_from_slice(&[10, code_of(*role)]),
            Self::Review { change, json } => {
                out.push(11);
                out.extend_from_slice(&change.to_be_bytes());
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
                    code => Some(role_of(code)?),
                };
                Self::Event { to, json: reader.text()? }
            }
            5 => Self::Revoked(reader.id()?),
            6 => Self::Evicted(reader.id()?),
            7 | 8 | 12 => {
                let (id, session) = (reader.number()?, reader.id()?);
                let request = match kind {
                    7 => Request::Probe(session),
                    8 => Request::Replace { session, document: reader.id()? },
                    _ => Request::Facts(session),
                };
                Self::Request { id, request }
            }
            9 => Self::Reply { id: reader.number()?, reply: Reply::decode(reader)? },
            10 => Self::Worked(role_of(reader.byte()?)?),
            13 => {
                let (document, id) = (reader.id()?, reader.id()?);
                let at = DateTime::from_timestamp_micros(reader.number()?.cast_signed())?;
                let by = User { id, name: reader.text()? };
                Self::Deleted { document, deletion: Deletion { by, at } }
            }
            11 => Self::Review { change: reader.number()?.cast_signed(), json: reader.text()? },
            14 => Self::Removed { link: reader.id()?, user: reader.id()? },
            15 => Self::Request { id: reader.number()?, request: Request::Series },
            16 => Self::Request { id: reader.number()?, request: Request::Name },
            17 => Self::Numbers {
                seq: reader.number()?.cast_signed(),
                change: reader.number()?.cast_signed(),
            },
            18 => Self::Goodbye,
            19 => Self::Updates(reader.numbered()?),
            _ => return None,
        })
    }
}

impl Request {
    fn tag(self) -> u8 {
        match self {
            Self::Probe(_) => 7,
            Self::Replace { .. } => 8,
            Self::Facts(_) => 12,
            Self::Series => 15,
            Self::Name => 16,
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::Series | Self::Name => {}
            Self::Probe(session) | Self::Facts(session) => put_id(out, &session),
            Self::Replace { session, document } => {
                put_id(out, &session);
                put_id(out, &document);
            }
        }
    }
}

impl Reply {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Alive => out.push(0),
            Self::Gone => out.push(1),
            Self::Flushing => out.push(2),
            Self::Flushed => out.push(3),
            Self::Facts(json) => {
                out.push(4);
                out.extend_from_slice(json.as_bytes());
            }
            Self::Series(json) => {
                out.push(5);
                out.extend_from_slice(json.as_bytes());
            }
            Self::Name(name) => {
                out.push(6);
                out.extend_from_slice(name.as_bytes());
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.byte()? {
            0 => Self::Alive,
            1 => Self::Gone,
            2 => Self::Flushing,
            3 => Self::Flushed,
            4 => Self::Facts(reader.text()?),
            5 => Self::Series(reader.text()?),
            6 => Self::Name(reader.text()?),
            _ => return None,
        })
    }
}

fn code_of(role: Role) -> u8 {
    match role {
        Role::Writer => 1,
        Role::Reviewer => 2,
    }
}

fn role_of(code: u8) -> Option<Role> {
    [Role::Writer, Role::Reviewer].into_iter().find(|role| code_of(*role) == code)
}

/// Appends an id after its length. Ids have at most 64 bytes.
fn put_id(out: &mut Vec<u8>, id: &impl ToString) {
    let text = id.to_string();
    out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(text.as_bytes());
}

fn put_numbered(out: &mut Vec<u8>, updates: &[(i64, Bytes)]) {
    for (seq, update) in updates {
        out.extend_from_slice(&seq.to_be_bytes());
        // The publisher bounds the message far below this.
        let length = u32::try_from(update.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(update);
    }
}

/// Reads a frame from its start; `None` when the frame is too short.
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

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.rest().to_vec()).ok()
    }

    /// The numbered updates in the rest of the frame, without a copy.
    fn numbered(&mut self) -> Option<Vec<(i64, Bytes)>> {
        let mut updates = Vec::new();
        while self.at < self.frame.len() {
            let seq = self.number()?.cast_signed();
            let length = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
            let from = self.at;
            self.take(usize::try_from(length).ok()?)?;
            updates.push((seq, self.frame.slice(from..self.at)));
        }
        Some(updates)
    }

    /// The rest of the frame, without a copy.
    fn rest(&mut self) -> Bytes {
        let rest = self.frame.slice(self.at.min(self.frame.len())..);
        self.at = self.frame.len();
        rest
    }
}
