//! The time to open a document of a megabyte.
//!
//! It runs from before the connect until the client has the whole document: handshake, seat, commit
//! of its fence, request and reply. The client is on loopback; it counts the bytes and drops them.
//!
//! - The text was written in one piece, or by 200,000 edits: 4,000 bursts, each at another place.
//! - Its room is open, because the writer holds its seat; or the server must read the document from
//!   the database. Then the room is empty and the server has merged its rows, as it does after the
//!   last session leaves.

use bytes::Bytes;
use futures_util::StreamExt as _;
use galley::domain::seat::Role;
use galley::yjs::ROOT;
use tokio::time::{Duration, Instant, sleep, timeout};
use yrs::{Doc, Text as _, Transact as _};

use crate::client::{Address, EVENTS, Socket, enter};
use crate::contender::{Relay, address};
use crate::measure::{Bar, Table, quantile};
use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Desk;
use crate::typing::{Typing, stock_document};

const TEXT_BYTES: usize = 1_000_000;
const BURSTS: usize = 4_000;
const EDITS_A_BURST: usize = 50;
const LETTERS_AN_EDIT: usize = TEXT_BYTES / BURSTS / EDITS_A_BURST;
/// Edits in flight before the database has stored the previous ones.
const PORTION: usize = 10_000;
const ROUNDS: usize = 40;
/// Milliseconds.
const BAR: f64 = 20.0;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

pub(crate) async fn measure(table: &mut Table) {
    let Relay::Galley(server) = Relay::galley().await else { return };
    let pasted = server.desk(&"galley ".repeat(TEXT_BYTES / 7)).await;
    let typed = server.desk("").await;
    // Before any session starts: the documents take seconds to build, and the server ends a session
    // that is silent for so long.
    let writer = stock_document();
    let edits = edits(&writer);
    let mut typing = Typing::seated(&address(&server, &typed, EVENTS)).await;
    let mut letters = 0;
    for portion in edits.chunks(PORTION) {
        typing.send(portion).await;
        letters += portion.len() * LETTERS_AN_EDIT;
        typing.saved(writer.client_id(), u32::try_from(letters).expect("it fits")).await;
    }
    typing.leave().await;
    for (how, desk) in [("in one piece", pasted), ("by 200,000 edits", typed)] {
        let room = address(&server, &desk, EVENTS);
        tidied(&server, &desk).await;
        let (writer, _) = enter(&room, Role::Writer).await;
        let mut open = Vec::new();
        for _ in 0..ROUNDS {
            let (socket, taken) = first_sync(&room).await;
            close(socket).await;
            open.push(taken);
        }
        close(writer).await;
        let mut read = Vec::new();
        for _ in 0..ROUNDS {
            let (socket, taken) = first_sync(&room).await;
            close(socket).await;
            read.push(taken);
        }
        for (room, taken) in [("an open room", open), ("the database", read)] {
            let what = format!("first sync of 1 MB that came {how}, from {room}: p50 (p99)");
            let (p50, p99) = (quantile(&taken, 0.5), quantile(&taken, 0.99));
            let ours = format!("{p50:.1} ms ({p99:.1})");
            table.row(what, (ours, format!("{BAR} ms")), p50 / BAR, Bar::AtMost(1.0));
        }
    }
}

/// Milliseconds until the reviewer has the whole document.
async fn first_sync(address: &Address) -> (Socket, f64) {
    let began = Instant::now();
    let (socket, had) = enter(address, Role::Reviewer).await;
    let taken = began.elapsed().as_secs_f64() * 1_000.0;
    assert!(TEXT_BYTES * 9 / 10 < had.len(), "{} bytes are not all of it", had.len());
    (socket, taken)
}

/// Leaves. The server closes the connection once it has closed the room, if that was its last
/// session.
async fn close(mut socket: Socket) {
    socket.close(None).await.expect("it is sent");
    while let Ok(Some(Ok(_))) = timeout(TEST_TIMEOUT, socket.next()).await {}
}

/// Waits until the server has finished after the last session: it merges the rows, then counts
/// them.
async fn tidied(server: &Server, desk: &Desk) {
    let path = format!("/api/documents/{}", desk.document);
    loop {
        let document = server.get(&desk.writer, &path).await.ok(200);
        let counted = document["characters"].as_u64().expect("a count");
        if TEXT_BYTES * 9 / 10 < usize::try_from(counted).expect("it fits") {
            return;
        }
        sleep(LOOK_AGAIN_AFTER).await;
    }
}

/// A megabyte, letters by letters.
fn edits(writer: &Doc) -> Vec<Bytes> {
    let content = writer.get_or_insert_text(ROOT);
    let mut edits = Vec::with_capacity(BURSTS * EDITS_A_BURST);
    let mut length = 0;
    for burst in 0..BURSTS {
        // A place anywhere, the same in each run.
        let mut at = (burst * 7_919 * 125) % (length + 1);
        for _ in 0..EDITS_A_BURST {
            let mut edit = writer.transact_mut();
            let index = u32::try_from(at).expect("a short text");
            content.insert(&mut edit, index, &"galley"[..LETTERS_AN_EDIT]);
            edits.push(edit.encode_update_v1().into());
            at += LETTERS_AN_EDIT;
        }
        length += EDITS_A_BURST * LETTERS_AN_EDIT;
    }
    edits
}
