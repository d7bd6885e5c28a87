//! The memory of a server for idle sessions.
//!
//! The test reads the process's peak, so transient allocations count too. The bounds are far above the
//! usual values, because a test build takes more; the benchmark `documents` has the exact values.

use yrs::Text as _;

use crate::server::lost_seats::{REFUSED, logged};
use crate::server::many_servers::was_seated;
use crate::support::galley_process::Server;
use crate::support::ws_client::Peer;

const KIB: u64 = 1_024;
/// Opened first, so that the one-time allocations of a server are not counted.
const ROOMS_BEFORE: u64 = 20;

/// Goal: the read buffer of an idle socket is small, although a websocket library allocates its own:
/// tungstenite takes 128 KiB for reading alone.
#[tokio::test]
async fn an_idle_session_and_its_half_of_a_room_take_little_memory() {
    const ROOMS: u64 = 100;
    let server = Server::start().await;
    let mut seated_peers = Vec::new();
    let mut before = 0;
    for room in 0..ROOMS_BEFORE + ROOMS {
        if room == ROOMS_BEFORE {
            before = server.peak();
        }
        let desk = server.desk("text").await;
        seated_peers.push([server.writer(&desk).await, server.reviewer(&desk).await]);
    }
    let each = server.peak().saturating_sub(before) / (2 * ROOMS);
    assert!(each < 64 * KIB, "{each} bytes each");
    assert!(seated_peers.iter().flatten().all(Peer::is_open));
}

/// Goal: a room retains the bytes of its document. The objects of a CRDT, many times as large, exist
/// only during a request for the text.
#[tokio::test]
async fn a_room_retains_the_bytes_of_its_document_and_no_objects() {
    const ROOMS: u64 = 15;
    const PARTS: u64 = 4;
    /// Each before the previous one, so that no two are merged.
    const LETTERS: u32 = 5_000;
    let server = Server::start().await;
    let mut seated_peers = Vec::new();
    let (mut peaks, mut sent) = (Vec::new(), 0);
    for room in 0..PARTS * ROOMS {
        let desk = server.desk("").await;
        let writer = server.writer(&desk).await;
        let update = writer.edit_offline(|content, transaction| {
            (0..LETTERS).for_each(|_| content.insert(transaction, 0, "x"));
        });
        sent = update.len();
        writer.send(galley::yjs::protocol::update(&update));
        writer.saved().await;
        assert_eq!(server.text(&desk.writer, &desk.document).await.len(), LETTERS as usize);
        seated_peers.push(writer);
        if (room + 1).is_multiple_of(ROOMS) {
            peaks.push(server.peak());
        }
    }
    // Retained bytes are in every later part. An allocation of the process, such as the arena of one more
    // thread that builds a text, is in some of them.
    let grown = peaks.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) / ROOMS);
    let each = grown.min().expect("later parts");
    assert!(each < 400 * KIB, "{each} bytes each for {sent}, of peaks {peaks:?}");
    assert!(seated_peers.iter().all(Peer::is_open));
}

/// Goal: when the open documents have `limits.room_bytes` together, a further document does not open and a
/// long edit waits. Seated writers type on, and everything goes on when a room closes.
#[tokio::test]
async fn g17_the_bytes_of_open_rooms_are_bounded_and_no_session_loses_its_seat() {
    const TEXT: usize = 1_900_000;
    let server = Server::with(&[("LIMITS__ROOM_BYTES", "16777216"), ("LOG__FORMAT", "json")]).await;
    let text = "x".repeat(TEXT);
    let mut seated = Vec::new();
    for _ in 0..8 {
        let desk = server.desk(&text).await;
        seated.push((server.writer(&desk).await, desk));
    }
    let ninth = server.desk(&text).await;
    let refused = server.claim_seat(&ninth, "writer", "").await;
    assert_eq!(refused.closed().await, (4503, "memory".to_owned()));
    logged(&server, (REFUSED, 4503, "memory"), &ninth, "writer").await;

    let (other, _) = seated.pop().expect("eight");
    let (writer, desk) = seated.pop().expect("seven");
    writer.append(&text[..1_700_000]);
    writer.saved().await;
    // The rooms are full: a long edit waits, and typing goes on beside it.
    writer.append(&"y".repeat(5_000));
    let problem = writer.event("problem").await;
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&"/problems/unsaved-full".into(), &503.into())
    );
    let (typist, _) = &seated[0];
    typist.append("typed");
    typist.saved().await;

    other.leave().await;
    writer.saved().await;
    let stored = server.text(&desk.writer, &desk.document).await;
    assert_eq!(stored.len(), TEXT + 1_700_000 + 5_000);
    assert!(writer.is_open() && seated.iter().all(|(peer, _)| peer.is_open()));
    writer.leave().await;
    // The room lives until its last maintenance ends; a client connects again.
    while !was_seated(&server.claim_seat(&ninth, "writer", "events=1").await).await {}
}
