//! The wire format of messages: encode and decode are inverse.

use bytes::Bytes;
use chrono::DateTime;

use crate::domain::deletion::Deletion;
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, NodeId, SessionId, ShareLinkId, UserId};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::pubsub::message::{Envelope, Message, Payload, Reply, Request, Topic, VERSION};

fn deletion() -> Deletion {
    let by = User { id: "kim".parse().expect("an id"), name: "김".to_owned() };
    Deletion { by, at: DateTime::UNIX_EPOCH }
}

fn all() -> Vec<Payload> {
    let messages = [
        Message::Update { seq: 7, fence: Fence(1 << 52), update: Bytes::from_static(b"\0\0") },
        Message::Presence(Bytes::new()),
        Message::Hello,
        Message::Numbers { seq: 7, change: i64::MAX },
        Message::Goodbye,
        Message::Updates(vec![(7, Bytes::from_static(b"\0\0")), (8, Bytes::from_static(b"x"))]),
        Message::Event { to: None, json: "{}".to_owned() },
        Message::Review { change: i64::MAX, json: "{\"이름\":1}".to_owned() },
        Message::Event { to: Some(Role::Writer), json: "{\"이름\":1}".to_owned() },
        Message::Event { to: Some(Role::Reviewer), json: String::new() },
        Message::Worked(Role::Writer),
        Message::Worked(Role::Reviewer),
        Message::Revoked(ShareLinkId::generate()),
        Message::Deleted { document: DocumentId::generate(), deletion: deletion() },
        Message::Evicted(SessionId::generate()),
        Message::Removed { link: ShareLinkId::generate(), user: UserId::generate() },
    ];
    let (session, document) = (SessionId::generate(), DocumentId::generate());
    let requests = [
        Request::Probe(session),
        Request::Replace { session, document },
        Request::Facts(session),
        Request::Series,
        Request::Name,
    ];
    let requests = requests.map(|request| Message::Request { id: u64::MAX, request });
    let (facts, series) = (Reply::Facts("{}".to_owned()), Reply::Series("[]".to_owned()));
    let name = Reply::Name("galley-1".to_owned());
    let replies = [Reply::Alive, Reply::Gone, Reply::Flushing, Reply::Flushed, facts, series, name];
    let replies = replies.map(|reply| Message::Reply { id: 7, reply });
    let messages = messages.into_iter().chain(requests).chain(replies);
    messages.map(Payload::Message).chain([Payload::Lost]).collect()
}

#[test]
fn every_message_decodes_to_itself() {
    for payload in all() {
        let envelope = Envelope { from: NodeId::generate(), sent_us: 42, payload };
        assert_eq!(Envelope::decode(&envelope.encode().into()), Some(envelope));
    }
}

#[test]
fn g12_the_decoder_never_panics_on_a_cut_or_altered_frame() {
    for payload in all() {
        let whole = Envelope { from: NodeId::generate(), sent_us: 42, payload }.encode();
        for (at, flip) in (0..whole.len()).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xff)]) {
            let mut altered = whole.clone();
            altered[at] ^= flip;
            let _ = Envelope::decode(&altered.into());
            let _ = Envelope::decode(&Bytes::copy_from_slice(&whole[..at]));
        }
    }
}

#[test]
fn a_frame_of_another_version_is_rejected() {
    let envelope = Envelope { from: NodeId::generate(), sent_us: 0, payload: all().swap_remove(2) };
    let mut frame = envelope.encode();
    frame[0] = VERSION + 1;
    assert_eq!(Envelope::decode(&frame.into()), None);
}

#[test]
fn a_channel_decodes_to_its_topic() {
    let document = DocumentId::generate();
    for topic in [Topic::Room(document), Topic::Cluster, Topic::Node(NodeId::generate())] {
        assert_eq!(Topic::of_channel(topic.channel().as_bytes()), Some(topic));
    }
    assert_eq!(Topic::Room(document).channel(), format!("share-link:room:{document}"));
    assert_eq!(Topic::of_channel(b"share-link:room:"), None);
    assert_eq!(Topic::of_channel(b"share-link:other:1"), None);
    assert_eq!(Topic::of_channel(b"other"), None);
}
