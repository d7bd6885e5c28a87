//! G17: the server charges a socket for the work that its messages cause, and a document is bounded in
//! each dimension.

use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use galley::yjs::awareness::{AwarenessEntry, encode_awareness};
use galley::yjs::protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::galley_process::Server;
use crate::support::raw_socket;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::ws_client::{Peer, State};

/// The least value that the settings accept. A socket may move four times as many bytes in a burst.
const SMALL: [(&str, &str); 2] =
    [("LIMITS__DOCUMENT_BYTES", "65536"), ("LIMITS__MESSAGE_BYTES", "65536")];
/// The bound of client ids in a document.
const CLIENTS_MAX: u32 = 5_000;

/// Goal: the server charges a state vector that ends inside a long text for the bytes that it
/// reads, although the reply has a few bytes.
#[tokio::test]
async fn g17_a_sync_step_1_is_charged_for_the_bytes_that_the_server_reads() {
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

/// Goal: the server charges a one-byte presence query for its reply.
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
    // One after the other: a client that reads slower than the answers come is closed as a slow reader.
    for _ in 0..500 {
        if !reviewer.is_open() {
            break;
        }
        reviewer.send(protocol::query_awareness());
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(reviewer.closed().await, (4529, "too-many-answers".to_owned()));
    assert!(writer.is_open());
}

/// Goal: a document has a bounded number of client ids, and an edit that exceeds it reaches no
/// replica.
#[tokio::test]
async fn g17_the_client_ids_of_a_document_are_bounded() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    writer.send(protocol::update(&by_clients(1, CLIENTS_MAX + 1)));
    let problem = writer.event("problem").await;
    assert_eq!(problem["type"], "/problems/document-too-large");
    assert_eq!(server.text(&desk.writer, &desk.document).await, "");
    // The server accepts many times the client ids of an honest document.
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

/// Goal: the room requests missing edits once, until the client answers.
#[tokio::test]
async fn g17_the_room_requests_missing_edits_once_until_the_client_answers() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let mut socket = raw_socket::open(&server, &desk, "writer", "").await;
    let began = Instant::now();
    let gap = protocol::update(&[1, 1, 7, 5, 0x84, 7, 4, 1, b'x', 0]);
    let message = raw_socket::frame(raw_socket::FIN | raw_socket::BINARY, &gap);
    for _ in 0..60 {
        socket.write_all(&message).await.expect("sent");
    }
    let query =
        raw_socket::frame(raw_socket::FIN | raw_socket::BINARY, &protocol::query_awareness());
    socket.write_all(&query).await.expect("sent");
    let (mut queries, mut is_answered) = (0_u64, false);
    while !is_answered || queries == 0 {
        let message = timeout(TEST_TIMEOUT, message_of(&mut socket)).await.expect("an answer");
        match message.get(..2) {
            Some([0, 0]) => queries += 1,
            // The reply to the query that the test sent last.
            Some([1, ..]) => is_answered = true,
            _ => {}
        }
    }
    // The room sends the first request to each joining client. A slow machine may need seconds.
    assert!(queries <= 3 + began.elapsed().as_secs(), "asked {queries} times");
}

/// Goal: a text of thousands of letters, each of which splits one long text, is read as any other.
#[tokio::test]
async fn g17_a_text_of_thirty_thousand_splits_is_read() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let (letters, splits) = (100_000_u32, 30_000_u32);
    let writer = server.writer(&desk).await;
    writer.send(protocol::update(&split(letters, splits)));
    // The first `document.saved` of a session precedes its edits.
    let saved = |state: &mut State| {
        state.events.iter().any(|event| Peer::saved_in(event, SPLIT_CLIENT) == Some(letters))
    };
    writer.until("document.saved of the text", move |state| saved(state).then_some(())).await;
    let text = server.text(&desk.writer, &desk.document).await;
    let expected =
        "a".repeat((letters - splits - 1) as usize) + &"ax".repeat(splits as usize) + "a";
    assert!(text == expected, "{} letters", text.len());
    assert!(writer.is_open());
}

/// Goal: repeated requests of one user for a costly text share one build permit. The server builds
/// texts of other users beside it, not after all of them.
#[tokio::test]
async fn g17_many_text_requests_of_one_user_delay_no_other_user() {
    const REQUESTS: usize = 48;
    const SPLITS: u32 = 30_000;
    let server = Server::start().await;
    let (costly, other) = (server.desk("").await, server.desk("another's").await);
    let writer = server.writer(&costly).await;
    writer.send(protocol::update(&split(2 * SPLITS, SPLITS)));
    writer.saved().await;
    let path = format!("/api/documents/{}/text", costly.document);
    let mut requests: FuturesUnordered<_> =
        (0..REQUESTS).map(|_| server.get(&costly.writer, &path)).collect();
    // The first response proves that the requests are in flight.
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

/// A document of letters, each under another client id.
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

/// The client of the text that [`split`] divides.
const SPLIT_CLIENT: u64 = 100;

/// One text, and letters that each name another unit of it as their left neighbour.
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

/// A number in lib0's variable-length encoding.
fn number(out: &mut Vec<u8>, mut number: u32) {
    while 0x7f < number {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("seven bits"));
}

/// One message of the server, which sends it unmasked in one frame.
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
