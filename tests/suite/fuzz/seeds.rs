//! Real input for mutation: the output of the real Yjs (`tests/data/yjs`), and the corpus.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use galley::domain::anchor::{AnchorOrigin, AnchorRequest};
use galley::domain::deletion::Deletion;
use galley::domain::fence::Fence;
use galley::domain::ids::{DocumentId, NodeId, SessionId, ShareLinkId, UserId};
use galley::domain::seat::Role;
use galley::domain::user::User;
use galley::http::auth::tokens::{Identity, Tokens};
use galley::pubsub::{Envelope, Message, Payload, Reply, Request};
use galley::yjs::log::{Origin, UpdateLog};
use galley::yjs::text::Text;
use serde_json::Value;
use yrs::{Text as _, Transact as _};

use crate::fuzz::corpus;
use crate::fuzz::mutate::number;
use crate::fuzz::properties::document;
use crate::fuzz::target::unhex;

/// Output of `tests/data/yjs/make.mjs`.
struct Fixture(Value);

impl Fixture {
    fn read(json: &str) -> Self {
        Self(serde_json::from_str(json).expect("a fixture"))
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        unhex(self.0[key].as_str().expect("bytes"))
    }

    fn all(&self, key: &str) -> Vec<Vec<u8>> {
        let list = self.0[key].as_array().expect("a list");
        list.iter().map(|hex| unhex(hex.as_str().expect("bytes"))).collect()
    }
}

fn typing() -> Fixture {
    Fixture::read(include_str!("../../data/yjs/typing.json"))
}

fn together() -> Fixture {
    Fixture::read(include_str!("../../data/yjs/together.json"))
}

fn open(parts: Vec<Vec<u8>>) -> UpdateLog {
    UpdateLog::open(parts.into_iter().map(Bytes::from).collect()).expect("a document")
}

/// Logs of growing documents, each with an update that follows.
pub(crate) fn moments() -> Vec<(UpdateLog, Vec<u8>)> {
    let mut moments = Vec::new();
    for fixture in [together(), typing()] {
        let mut log = UpdateLog::empty();
        moments.push((log.clone(), fixture.bytes("whole")));
        for update in fixture.all("updates") {
            moments.push((log.clone(), update.clone()));
            let checked = log.check(&update, Origin::Client).expect("a real update");
            log.append(update.into(), checked);
        }
        moments.push((log, fixture.bytes("whole")));
    }
    let offline = Fixture::read(include_str!("../../data/yjs/offline.json"));
    let log = open(offline.all("server"));
    moments.push((log.clone(), offline.bytes("step2")));
    moments.push((log, offline.bytes("whole_step2")));
    moments.extend(forgotten());
    let refused = Fixture::read(include_str!("../../data/yjs/refused.json"));
    for key in refused.0.as_object().expect("an object").keys() {
        moments.push((UpdateLog::empty(), refused.bytes(key)));
    }
    moments.extend(corpus::all("update").into_iter().map(|one| (UpdateLog::empty(), one.bytes)));
    moments
}

/// Updates for a log whose deleted text is garbage-collected.
fn forgotten() -> Vec<(UpdateLog, Vec<u8>)> {
    let writer = document(6);
    let root = writer.get_or_insert_text(galley::yjs::ROOT);
    let edit = |at, length, with: &str| {
        let mut transaction = writer.transact_mut();
        root.remove_range(&mut transaction, at, length);
        root.insert(&mut transaction, at, with);
        transaction.encode_update_v1()
    };
    let both = vec![edit(0, 0, &"한글 text 👩‍👧 ".repeat(20)), edit(10, 120, "")];
    let log = open(vec![open(both).merged().to_vec()]);
    vec![(log.clone(), edit(5, 20, "x")), (log, edit(5, 1, "e\u{301}"))]
}

/// A room's log, the state of its client, and state vectors.
pub(crate) fn vectors() -> (UpdateLog, Vec<u8>, Vec<Vec<u8>>) {
    let whole = together().bytes("whole");
    let mut vectors: Vec<Vec<u8>> =
        moments().iter().map(|(log, _)| log.state_vector().to_vec()).collect();
    vectors.extend([typing().bytes("state_vector"), together().bytes("state_vector")]);
    vectors.push([number(1), number(11), number(7)].concat());
    vectors.extend(corpus::all("state_vector").into_iter().map(|one| one.bytes));
    (open(vec![whole.clone()]), whole, vectors)
}

pub(crate) fn frames() -> Vec<Vec<u8>> {
    let fixture = Fixture::read(include_str!("../../data/yjs/frames.json"));
    let keys = ["step1", "step2", "update", "awareness", "gone", "query"];
    let mut frames: Vec<_> = keys.iter().map(|key| fixture.bytes(key)).collect();
    frames.extend(corpus::all("frame").into_iter().map(|one| one.bytes));
    frames
}

/// The bodies of frames with awareness updates.
pub(crate) fn presence() -> Vec<Vec<u8>> {
    let fixture = Fixture::read(include_str!("../../data/yjs/frames.json"));
    let mut all: Vec<_> =
        ["awareness", "gone"].iter().map(|key| fixture.bytes(key)[2..].to_vec()).collect();
    all.push([&[1, 10, 0, 9][..], b"{\"a\":[1]}"].concat());
    all.extend(corpus::all("awareness").into_iter().map(|one| one.bytes));
    all
}

/// A text, the anchor of a passage in it, and relative positions.
pub(crate) fn positions() -> (Text, AnchorOrigin, Vec<Vec<u8>>) {
    let text = Text::build(&together().bytes("whole")).expect("a document");
    let content = text.content();
    let mut positions: Vec<_> = corpus::all("place").into_iter().map(|one| one.bytes).collect();
    let mut origin = None;
    let mut start = 0;
    for character in content.chars() {
        let end = start + u32::try_from(character.len_utf16()).expect("one or two");
        let request = AnchorRequest { start, end, quote: character.to_string() };
        if let Ok((of, range)) = text.anchor(&request) {
            origin.get_or_insert(of);
            positions.extend([range.start, range.end]);
        }
        start = end;
    }
    (text, origin.expect("a passage"), positions)
}

/// One message of each kind between servers.
pub(crate) fn envelopes() -> Vec<Vec<u8>> {
    let (session, document) = (SessionId::generate(), DocumentId::generate());
    let messages = [
        Message::Update { seq: 7, fence: Fence(1 << 52), update: Bytes::from_static(b"\0\0") },
        Message::Presence(Bytes::from_static(&[1, 10, 0, 2, b'{', b'}'])),
        Message::Hello,
        Message::Numbers { seq: 7, change: 7 },
        Message::Goodbye,
        Message::Updates(vec![(7, Bytes::from_static(b"\0\0")), (8, Bytes::from_static(b"\0\0"))]),
        Message::Review { change: 7, json: "{\"이름\":1}".to_owned() },
        Message::Event { to: Some(Role::Writer), json: "{\"이름\":1}".to_owned() },
        Message::Revoked(ShareLinkId::generate()),
        Message::Deleted {
            document: DocumentId::generate(),
            deletion: Deletion {
                by: User { id: "kim".parse().expect("an id"), name: "김".to_owned() },
                at: DateTime::UNIX_EPOCH,
            },
        },
        Message::Evicted(session),
        Message::Removed { link: ShareLinkId::generate(), user: UserId::generate() },
        Message::Request { id: 1, request: Request::Probe(session) },
        Message::Request { id: u64::MAX, request: Request::Replace { session, document } },
        Message::Request { id: 2, request: Request::Facts(session) },
        Message::Reply { id: 7, reply: Reply::Flushing },
        Message::Reply { id: 2, reply: Reply::Facts("{}".to_owned()) },
    ];
    let payloads = messages.into_iter().map(Payload::Message).chain([Payload::Lost]);
    let from = NodeId::generate();
    let own = payloads.map(|payload| Envelope { from, sent_us: 42, payload }.encode());
    own.chain(corpus::all("relay").into_iter().map(|one| one.bytes)).collect()
}

/// The token key, an identity with its signed token, and the corpus of invalid tokens.
pub(crate) fn tokens() -> (Tokens, Identity, Vec<Vec<u8>>) {
    let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
    let user = User { id: UserId::generate(), name: "김민수".to_owned() };
    let day = Duration::from_secs(24 * 3_600);
    let signed = tokens.sign(&user, false, day, Utc::now()).expect("signed").token;
    let identity = tokens.verify(&signed).expect("valid");
    let mut all = vec![signed.into_bytes()];
    all.extend(corpus::all("token").into_iter().map(|one| one.bytes));
    (tokens, identity, all)
}

pub(crate) fn cursors() -> Vec<Vec<u8>> {
    let document = format!("1700000000000-{}", DocumentId::generate());
    let lock = "1700000000000000-seat:share-link:lock:shr_1:writer".to_owned();
    let own = [document, lock].map(String::into_bytes);
    own.into_iter().chain(corpus::all("cursor").into_iter().map(|one| one.bytes)).collect()
}
