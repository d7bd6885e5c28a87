//! What a server takes of memory for those who sit and say nothing.
//!
//! By its peak, so that what it took for a moment counts as well; in bounds that are far from what is
//! usual, because a build for tests takes more. What it is exactly, the benchmark `documents` says.

use yrs::Text as _;

use crate::peer::Peer;
use crate::process::Server;

const KIB: u64 = 1_024;
/// There first, so that what a server takes once is not counted.
const ROOMS_BEFORE: u64 = 20;

/// Goal: what waits for the next message is small, whatever a websocket library keeps ready by
/// itself: of tungstenite that is 128 KiB for reading alone.
#[tokio::test]
async fn who_says_nothing_takes_little_with_their_half_of_a_room() {
    const ROOMS: u64 = 100;
    let server = Server::start().await;
    let mut sitting = Vec::new();
    let mut before = 0;
    for room in 0..ROOMS_BEFORE + ROOMS {
        if room == ROOMS_BEFORE {
            before = server.peak();
        }
        let desk = server.desk("text").await;
        sitting.push([server.writer(&desk).await, server.reviewer(&desk).await]);
    }
    let each = server.peak().saturating_sub(before) / (2 * ROOMS);
    assert!(each < 32 * KIB, "{each} bytes each");
    assert!(sitting.iter().flatten().all(Peer::is_open));
}

/// Goal: a room keeps the bytes of its document; the objects of a CRDT, which take many times as
/// much, are there only while somebody asks for the text.
#[tokio::test]
async fn a_room_keeps_the_bytes_of_its_document_and_no_objects() {
    const ROOMS: u64 = 20;
    /// Each in front of the one before, so that no two become one.
    const LETTERS: u32 = 5_000;
    let server = Server::start().await;
    let mut sitting = Vec::new();
    let (mut before, mut sent) = (0, 0);
    for room in 0..ROOMS_BEFORE + ROOMS {
        if room == ROOMS_BEFORE {
            before = server.peak();
        }
        let desk = server.desk("").await;
        let writer = server.writer(&desk).await;
        let update = writer.edit_offline(|content, transaction| {
            (0..LETTERS).for_each(|_| content.insert(transaction, 0, "x"));
        });
        sent = update.len();
        writer.send(galley::yjs::protocol::update(&update));
        writer.saved().await;
        assert_eq!(server.text(&desk.writer, &desk.document).await.len(), LETTERS as usize);
        sitting.push(writer);
    }
    let each = server.peak().saturating_sub(before) / ROOMS;
    assert!(each < 400 * KIB, "{each} bytes each for {sent}");
    assert!(sitting.iter().all(Peer::is_open));
}
