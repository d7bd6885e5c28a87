//! The messages between servers and their wire format.
//!
//! One strict format: `version, node, sent, kind, fields`, then mark and seal. Numbers are
//! big-endian, ids are text with a length byte, and the last field takes the rest. The reader
//! reports an undecodable frame as a gap: a newer server may send it during a rolling upgrade.

use bytes::Bytes;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, QuestionId, SessionId, ShareLinkId};
use crate::domain::seat::Role;
use crate::pubsub::seal::SEAL_BYTES;

/// Rises with each change of the format or the seal. A reader of another version gets a gap.
pub(crate) const VERSION: u8 = 3;

/// The longest frame without its body, with the seal.
const HEADER_BYTES_MAX: usize = 1 + 1 + 64 + 8 + 1 + 16 + SEAL_BYTES;

/// The subscribers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The servers that have this document open.
    Room(DocumentId),
    /// All servers.
    Cluster,
    /// This server.
    Node(NodeId),
}

/// A message between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An update that the database committed under this number.
    Update {
        /// The number in the update log.
        seq: i64,
        /// The fence of the grant that it was written under.
        fence: Fence,
        /// The bytes of the update.
        update: Bytes,
    },
    /// An awareness update.
    Presence(Bytes),
    /// A server opened the room and requests the others' presence.
    Hello,
    /// An event for the sockets.
    Event {
        /// The role of the receiving sessions; `None`: both.
        to: Option<Role>,
        /// The event.
        json: String,
    },
    /// An event of a review, for the sockets.
    Review {
        /// The number of the change. The reader uses it to ignore a duplicate and to find a gap.
        change: i64,
        /// The event.
        json: String,
    },
    /// The session of this seat was active through the REST API of another server.
    Worked(Role),
    /// The share link was revoked: end its sessions.
    Revoked(ShareLinkId),
    /// The session was evicted: end it.
    Evicted(SessionId),
    /// A liveness probe: does the session's client still reply?
    Knocked {
        /// The number of the request, repeated in the reply.
        question: u64,
        /// The session.
        session: SessionId,
    },
    /// Another session of the same user acquired the seat. The receiver ends this session, flushes
    /// its edits, and replies.
    Replaced {
        /// The number of the request, repeated in the replies.
        question: u64,
        /// The session that lost its seat.
        session: SessionId,
        /// The document.
        document: DocumentId,
    },
    /// The reply to a request.
    Answered {
        /// The number of the request.
        question: u64,
        /// The reply.
        answer: Reply,
    },
    /// A request for the state of a session, to the server of its socket.
    Question {
        /// The id of the request.
        id: QuestionId,
        /// The session.
        of: SessionId,
    },
    /// The reply to [`Message::Question`].
    Answer {
        /// The id of the request.
        id: QuestionId,
        /// The state of the session, as JSON.
        json: String,
    },
}

/// The result of a request between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The session's client replied.
    Alive,
    /// The session has ended, or its client does not reply.
    Gone,
    /// The session has ended and its server flushes its edits. A second reply follows.
    Settling,
    /// The session has ended and no edit is pending.
    Settled,
}

impl Reply {
    pub(crate) const ALL: [Self; 4] = [Self::Alive, Self::Gone, Self::Settling, Self::Settled];

    /// The code on the wire.
    fn code(self) -> u8 {
        match self {
            Self::Alive => 0,
            Self::Gone => 1,
            Self::Settling => 2,
            Self::Settled => 3,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.code() == code)
    }
}

/// The content of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A message.
    Message(Message),
    /// The sender lost messages on the way out.
    Lost,
}

/// A frame without its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sending server.
    pub from: NodeId,
    /// The sender's clock at the time of sending, in µs.
    pub sent_us: u64,
    /// The content.
    pub payload: Payload,
}

impl Topic {
    /// The channel in Redis.
    pub(crate) fn channel(self) -> String {
        match self {
            Self::Room(document) => format!("share-link:room:{document}"),
            Self::Cluster => "share-link:cluster".to_owned(),
            Self::Node(node) => format!("share-link:node:{node}"),
        }
    }

    /// The topic of a channel.
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
    /// The frame.
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
    /// The length of the body.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Update { update, .. } => update.len(),
            Self::Presence(update) => update.len(),
            Self::Event { json, .. } | Self::Review { json, .. } => json.len(),
            Self::Answer { json, .. } => json.len(),
            Self::Hello
            | Self::Worked(_)
            | Self::Revoked(_)
            | Self::Evicted(_)
            | Self::Knocked { .. }
            | Self::Replaced { .. }
            | Self::Answered { .. }
            | Self::Question { .. } => 0,
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
                out.push(to.map_or(0, code_of));
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
            Self::Knocked { question, session } => {
                out.push(7);
                out.extend_from_slice(&question.to_be_bytes());
                put_id(out, session);
            }
            Self::Replaced { question, session, document } => {
                out.push(8);
                out.extend_from_slice(&question.to_be_bytes());
                put_id(out, session);
                put_id(out, document);
            }
            Self::Answered { question, answer } => {
                out.push(9);
                out.extend_from_slice(&question.to_be_bytes());
                out.push(answer.code());
            }
            Self::Worked(role) => out.extend_from_slice(&[10, code_of(*role)]),
            Self::Review { change, json } => {
                out.push(11);
                out.extend_from_slice(&change.to_be_bytes());
                out.extend_from_slice(json.as_bytes());
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
                    code => Some(role_of(code)?),
                };
                Self::Event { to, json: String::from_utf8(reader.rest().to_vec()).ok()? }
            }
            5 => Self::Revoked(reader.id()?),
            6 => Self::Evicted(reader.id()?),
            7 => Self::Knocked { question: reader.number()?, session: reader.id()? },
            8 => Self::Replaced {
                question: reader.number()?,
                session: reader.id()?,
                document: reader.id()?,
            },
            9 => Self::Answered {
                question: reader.number()?,
                answer: Reply::of_code(reader.byte()?)?,
            },
            10 => Self::Worked(role_of(reader.byte()?)?),
            11 => Self::Review {
                change: reader.number()?.cast_signed(),
                json: String::from_utf8(reader.rest().to_vec()).ok()?,
            },
            20 => Self::Question { id: reader.id()?, of: reader.id()? },
            21 => {
                let id = reader.id()?;
                Self::Answer { id, json: String::from_utf8(reader.rest().to_vec()).ok()? }
            }
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

    /// The rest of the frame, without a copy.
    fn rest(&mut self) -> Bytes {
        let rest = self.frame.slice(self.at.min(self.frame.len())..);
        self.at = self.frame.len();
        rest
    }
}
