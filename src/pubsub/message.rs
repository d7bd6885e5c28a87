//! What servers tell each other, and how it stands on the wire.
//!
//! One format, read strictly: `version, node, sent, kind, fields`, and then mark and seal. Numbers are big-endian, ids are
//! text behind a length byte, and the last field takes the rest. A frame that cannot be read
//! (a newer server of a rolling upgrade) is not skipped in silence: the reader makes a gap of it.

use bytes::Bytes;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, QuestionId, SessionId, ShareLinkId};
use crate::domain::seat::Role;
use crate::pubsub::seal::SEAL_BYTES;

/// Changes with the format, and with that of the seal. A reader of another version sees a gap, not
/// nonsense.
pub(crate) const VERSION: u8 = 3;

/// All that stands beside the body, at its longest, with the seal.
const HEADER_BYTES_MAX: usize = 1 + 1 + 64 + 8 + 1 + 16 + SEAL_BYTES;

/// Where a message is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// By the servers that have this document open.
    Room(DocumentId),
    /// By all servers.
    Cluster,
    /// By this server alone.
    Node(NodeId),
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
    /// An event of a review, for the sockets.
    Review {
        /// The number of the change, by which the reader ignores a replayed one and finds a gap.
        change: i64,
        /// The event.
        json: String,
    },
    /// Whoever sits there has worked, by the REST API of another server.
    Worked(Role),
    /// The share link was revoked: end its seats.
    Revoked(ShareLinkId),
    /// The session was evicted: end it.
    Evicted(SessionId),
    /// A question to the session's server: is the client still there?
    Knocked {
        /// The number that the answer is to have.
        question: u64,
        /// The session.
        session: SessionId,
    },
    /// The seat was given to another session of the same person: end this one, have stored what was
    /// written in it, and say so.
    Replaced {
        /// The number that the answers are to have.
        question: u64,
        /// The session that lost its seat.
        session: SessionId,
        /// What it worked on.
        document: DocumentId,
    },
    /// What another server wanted to know.
    Answered {
        /// The number of its question.
        question: u64,
        /// The answer.
        answer: Reply,
    },
    /// What does the server that has this session's socket know of it?
    Question {
        /// Which question.
        id: QuestionId,
        /// Of which session.
        of: SessionId,
    },
    /// What it knows.
    Answer {
        /// Which question.
        id: QuestionId,
        /// What is known, as JSON.
        json: String,
    },
}

/// What a server answers another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The session's client gave a sign of life.
    Alive,
    /// There is no such session any more, or nobody at its other end.
    Gone,
    /// The session has ended; what was written is about to be stored. Another answer follows.
    Settling,
    /// The session has ended, and nothing of it is left to be stored.
    Settled,
}

impl Reply {
    pub(crate) const ALL: [Self; 4] = [Self::Alive, Self::Gone, Self::Settling, Self::Settled];

    /// How it stands on the wire.
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

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// A message.
    Message(Message),
    /// The admission that some were lost on the way out.
    Lost,
}

/// A parcel, as it stands above its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// From whom.
    pub from: NodeId,
    /// When it left by the sender's own clock, in µs.
    pub sent_us: u64,
    /// What is in it.
    pub parcel: Parcel,
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

    /// The envelope in `frame`; nothing when it is none of this version.
    #[must_use]
    pub fn decode(frame: &Bytes) -> Option<Self> {
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
