//! G17: a socket pays for what its messages cost, and a document has an end in each direction.

use std::time::Instant;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use galley::yjs::awareness::{AwarenessEntry, encode_awareness};
use galley::yjs::protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::process::Server;
use crate::raw;
use crate::redis_server::PATIENCE;

/// The least that the settings take: a socket may move four times as many bytes at once.
const SMALL: [(&str, &str); 2] =
    [("LIMITS__DOCUMENT_BYTES", "65536"), ("LIMITS__MESSAGE_BYTES", "65536")];
/// Client ids that a document takes.
const CLIENTS_MAX: u32 = 5_000;

/// Goal (H1): a state vector that ends inside a long text is charged for what the server reads, though
/// the answer has a few bytes.
#[tokio::test]
async fn g17_a_step_1_is_charged_for_the_bytes_that_it_has_the_server_read() {
    const LETTERS: u32 = 14 * 4_096 - 1;
    let server = Server::with(&SMALL).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.append(&"x".repeat(LETTERS as usize));
    writer.saved().await;
    let mut vector = vec![1];
    number(&mut vector, u32::try_from(writer.client_id()).expect("32 bits"));
    number(&mut vector, LETTERS - 1);
    for _ in 0..900 {
        reviewer.send(protocol::sync_step1(&vector));
    }
    assert_eq!(reviewer.closed().await, (4529, "too-many-answers".to_owned()));
    writer.append("!");
    writer.saved().await;
}

/// Goal (W11): a byte that asks for everybody's presence is charged for the answer.
#[tokio::test]
async fn g17_a_query_of_presence_is_charged_for_its_answer() {
    const STATES: usize = 7;
    let server = Server::with(&SMALL).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    for client in 1..=STATES as u64 {
        let state = Some(format!("{{\"a\":\"{}\"}}", "x".repeat(8_000)));
        let update = encode_awareness(&[AwarenessEntry { client, clock: 1, state }]);
        writer.send(protocol::awareness(&update));
    }
    reviewer.until("the presence", |state| (STATES <= state.presence.len()).then_some(())).await;
    for _ in 0..50 {
        reviewer.send(protocol::query_awareness());
    }
    assert_eq!(reviewer.closed().await, (4529, "too-many-answers".to_owned()));
    assert!(writer.is_open());
}

/// Goal (H6): a document takes so many client ids, and an edit that brings more is in no replica.
#[tokio::test]
async fn g17_a_document_takes_so_many_client_ids_and_no_more() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.send(protocol::update(&by_clients(1, CLIENTS_MAX + 1)));
    let problem = writer.event("problem").await;
    assert_eq!(problem["type"], "/problems/document-too-large");
    assert_eq!(server.text(&desk.writer, &desk.document).await, "");
    // What an honest document has of them, many times over, is taken.
    writer.send(protocol::update(&by_clients(1, CLIENTS_MAX - 1)));
    writer.append("!");
    writer.saved().await;
    let text = server.text(&desk.writer, &desk.document).await;
    assert_eq!(text.len(), CLIENTS_MAX as usize);
    writer.send(protocol::update(&by_clients(CLIENTS_MAX, 1)));
    writer.append("?");
    writer.saved().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await.len(), CLIENTS_MAX as usize + 1);
}

/// Goal (H6): edits that build on something missing are asked about once, until the client answers.
#[tokio::test]
async fn g17_the_room_asks_for_what_is_missing_once_until_it_is_answered() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let mut socket = raw::open(&server, &desk, "writer", "").await;
    let began = Instant::now();
    let gap = protocol::update(&[1, 1, 7, 5, 0x84, 7, 4, 1, b'x', 0]);
    let message = raw::frame(raw::FIN | raw::BINARY, &gap);
    for _ in 0..60 {
        socket.write_all(&message).await.expect("sent");
    }
    let query = raw::frame(raw::FIN | raw::BINARY, &protocol::query_awareness());
    socket.write_all(&query).await.expect("sent");
    let mut asked = 0_u64;
    loop {
        let message = timeout(PATIENCE, message_of(&mut socket)).await.expect("an answer");
        match message.get(..2) {
            Some([0, 0]) => asked += 1,
            // The answer to the query, which came last.
            Some([1, ..]) => break,
            _ => {}
        }
    }
    // The first is for who comes; a slow machine may need seconds.
    assert!((1..=3 + began.elapsed().as_secs()).contains(&asked), "asked {asked} times");
}

/// Goal (H2): thousands of letters, each of which splits one long text, are read as a text like any other.
#[tokio::test]
async fn g17_a_text_of_thirty_thousand_splits_is_read() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let (letters, splits) = (100_000_u32, 30_000_u32);
    let writer = server.writer(&desk).await;
    writer.send(protocol::update(&split(letters, splits)));
    writer.saved().await;
    let text = server.text(&desk.writer, &desk.document).await;
    let expected =
        "a".repeat((letters - splits - 1) as usize) + &"ax".repeat(splits as usize) + "a";
    assert!(text == expected, "{} letters", text.len());
    assert!(writer.is_open());
}

/// Goal (M2): one user who asks for a costly text again and again has one place; the texts of others are
/// built beside it, and not after all of those.
#[tokio::test]
async fn g17_one_user_who_asks_for_many_texts_delays_nobody_elses() {
    const REQUESTS: usize = 24;
    const SPLITS: u32 = 30_000;
    let server = Server::start().await;
    let (costly, other) = (server.desk("").await, server.desk("another's").await);
    let writer = server.writer(&costly).await;
    writer.send(protocol::update(&split(2 * SPLITS, SPLITS)));
    writer.saved().await;
    let path = format!("/api/documents/{}/text", costly.document);
    let mut requests: FuturesUnordered<_> =
        (0..REQUESTS).map(|_| server.get(&costly.writer, &path)).collect();
    // The first answer says that they are under way.
    assert_eq!(requests.next().await.expect("an answer").status, 200);
    let mut answered = 1;
    let text = server.text(&other.writer, &other.document);
    let mut text = std::pin::pin!(text);
    let text = loop {
        tokio::select! {
            biased;
            text = &mut text => break text,
            Some(answer) = requests.next() => {
                assert_eq!(answer.status, 200);
                answered += 1;
            }
        }
    };
    assert_eq!(text, "another's");
    assert!(answered < REQUESTS / 2, "{answered} of {REQUESTS} came before it");
}

/// A document of letters, each by another client.
fn by_clients(first: u32, count: u32) -> Vec<u8> {
    let mut update = Vec::new();
    number(&mut update, count);
    for client in first..first + count {
        update.push(1);
        number(&mut update, client);
        update.extend([0, 4, 1, 7]);
        update.extend_from_slice(b"content");
        update.extend([1, b'x']);
    }
    update.push(0);
    update
}

/// One text, and letters each of which stands right of another unit of it.
pub(crate) fn split(letters: u32, splits: u32) -> Vec<u8> {
    let mut update = vec![2, 1, 100, 0, 4, 1, 7];
    update.extend_from_slice(b"content");
    number(&mut update, letters);
    update.resize(update.len() + letters as usize, b'a');
    number(&mut update, splits);
    update.extend([77, 0]);
    for split in 0..splits {
        update.extend([0x84, 100]);
        number(&mut update, letters - 2 - split);
        update.extend([1, b'x']);
    }
    update.push(0);
    update
}

/// A number as lib0 writes it.
fn number(out: &mut Vec<u8>, mut number: u32) {
    while 0x7f < number {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("seven bits"));
}

/// One message of the server, which masks none and splits none.
async fn message_of(socket: &mut TcpStream) -> Vec<u8> {
    let _first = socket.read_u8().await.expect("a frame");
    let length = match socket.read_u8().await.expect("its length") {
        126 => usize::from(socket.read_u16().await.expect("its length")),
        127 => usize::try_from(socket.read_u64().await.expect("its length")).expect("a length"),
        short => usize::from(short),
    };
    let mut message = vec![0; length];
    socket.read_exact(&mut message).await.expect("its body");
    message
}
