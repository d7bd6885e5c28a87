//! The list of all attacks, and the attacks by documents.
//!
//! Each runs until its future is dropped. After a rejection or a closed socket an attack reconnects
//! and repeats.

use std::pin::Pin;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{Sink, SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::attacker::{Attacker, Target, drain, send};
use crate::edge;
use crate::files;
use crate::people;
use crate::reviews;
use crate::updates;

/// An attack, running until it is dropped.
pub(crate) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One row of the table.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) settings: &'static [(&'static str, &'static str)],
    pub(crate) run: fn(Arc<Attacker>) -> Running,
}

macro_rules! attacks {
    ($($name:literal $title:literal $settings:expr, $run:path;)+) => {
        &[$(Attack {
            name: $name,
            title: concat!($name, " ", $title),
            settings: $settings,
            run: |attacker| Box::pin($run(attacker)),
        }),+]
    };
}

/// As in a server that keeps a version every three seconds.
const OFTEN: &[(&str, &str)] = &[("HISTORY__PAUSE", "3s"), ("HISTORY__LONGEST", "3s")];
/// Few connections in all: the attacker's own process may not open 20,000.
const FEW: &[(&str, &str)] = &[("LIMITS__CONNECTIONS", "400")];

/// A push service of the attacker's on this host.
const PRIVATE: &[(&str, &str)] = &[("PUSH__ALLOW_PRIVATE", "true")];

/// An endpoint of the host product without a listener: every event waits in the database.
const ENDPOINT: &[(&str, &str)] = &[(
    "NOTIFY__WEBHOOKS",
    r#"[{ "url": "http://127.0.0.1:9/", "secret": "a secret of this bench",
          "events": ["review.created", "seat.taken", "seat.left"] }]"#,
)];

/// All of them.
pub(crate) const ATTACKS: &[Attack] = attacks! {
    "none" "nothing" &[], nothing;
    "H1" "state vectors inside long structs" &[], state_vectors;
    "H2" "splits of one long struct, read" &[], splits;
    "H3" "reviews whose quotes are everywhere" &[], reviews::orphans;
    "H4" "half bodies of 2 MB" &[], edge::half_bodies;
    "H5a" "early messages of 200 waiters" &[], edge::early_messages;
    "H5b" "fragments of 2 MB" &[], edge::fragments;
    "H6" "documents of 190,000 clients, and gaps" &[], clients;
    "H7" "lists of reviews of 80 KiB" &[], reviews::lists;
    "M1" "two hundred guests" &[], edge::guests;
    "M2" "texts of 7.6 MB, 24 at once" &[], texts;
    "M3" "versions of costly documents" OFTEN, versions;
    "M4" "files to be compressed" &[], edge::files;
    "M5" "replies to one review" &[], reviews::replies;
    "M6" "half heads on all connections" FEW, edge::half_heads;
    "M7" "documents of 2 MB, as fast as they go" &[], documents;
    "M8" "requests, offers and slow pushes" PRIVATE, people::requests;
    "M9" "builds of 2 MB, imports of 34 MB" &[], files::builds;
    "M10" "events for a dead endpoint" ENDPOINT, files::webhooks;
    "N1" "announced frames of 2 MB in 400 seats" &[], edge::announced;
    "N2" "HTML exports of 8 MB of quotes" &[], files::quotes;
    "N3" "text exports of 8 MB of line feeds" &[], files::line_feeds;
    "N4" "half bodies of 2 MB, fifty addresses" &[], edge::bodies_of_many;
    "N5" "rooms of 8 MB, fifty addresses" &[], rooms_of_many;
    "N7" "half heads, four addresses" FEW, edge::half_heads_of_many;
    "N9" "empty pongs on four seats" &[], edge::pongs;
    "S1" "lists and views of 2,000 suggestions" &[], reviews::views;
    "S2" "the same from fifty addresses" &[], reviews::views_of_many;
    "F1" "exports of 2 MB, fifty addresses" &[], files::builds_of_many;
    "F2" "documents of 2 MB, fifty addresses" &[], documents_of_many;
};

/// A struct as long as a message allows.
pub(crate) const LONG: usize = 1_900_000;
/// Structs of that length in a document at its limit.
pub(crate) const FULL: usize = 4;
/// Addresses of an attacker that has many.
pub(crate) const FIFTY: u8 = 50;
/// From one sync step 1 to the next; the server allows 200 messages a second.
const STEPS: Duration = Duration::from_millis(16);
/// From one gap to the next; each makes the server request a state vector.
const GAPS: Duration = Duration::from_millis(10);
/// How long one document is filled, and how long gaps are sent into it.
const REFILL: Duration = Duration::from_secs(6);
/// From one long message to the next: a socket may not send all at once.
const PAUSE: Duration = Duration::from_millis(300);
/// Longest wait for a seat.
const SEATED_WITHIN: Duration = Duration::from_secs(3);
/// A socket on which the server sends nothing for so long has been read to its end.
const SILENCE: Duration = Duration::from_millis(700);
/// From one attempt to the next.
pub(crate) const RETRY: Duration = Duration::from_millis(200);

async fn nothing(_attacker: Arc<Attacker>) {
    std::future::pending::<()>().await;
}

/// Writes those messages as the writer, again and again until the server has taken them all.
pub(crate) async fn write(attacker: &Attacker, target: &Target, messages: &[Bytes]) {
    while !try_write(attacker, target, messages).await.unwrap_or(false) {
        sleep(RETRY).await;
    }
}

/// False when the server closes the socket before it has read all.
async fn try_write(attacker: &Attacker, target: &Target, messages: &[Bytes]) -> Option<bool> {
    let mut socket = attacker.socket(target, "writer", "").await?;
    // The server skips long messages until it has granted the seat, with its first message.
    let first = timeout(SEATED_WITHIN, socket.next()).await;
    if !matches!(first, Ok(Some(Ok(message))) if message.is_binary()) {
        return Some(false);
    }
    for message in messages {
        if !send(&mut socket, message.clone()).await {
            return Some(false);
        }
        sleep(PAUSE).await;
    }
    // Until the server sends nothing more: it has read everything by then.
    while let Ok(Some(Ok(answer))) = timeout(SILENCE, socket.next()).await {
        if answer.is_close() {
            return Some(false);
        }
    }
    let _closed = socket.close(None).await;
    Some(true)
}

async fn state_vectors(attacker: Arc<Attacker>) {
    let clients: Vec<u64> = (1..=FULL as u64).collect();
    let long: Vec<_> = clients.iter().map(|client| updates::first(*client, LONG)).collect();
    let step = updates::all_but_the_last(&clients, LONG);
    let Some(target) = attacker.target().await else { return };
    write(&attacker, &target, &long).await;
    let sends = |role| repeat(&attacker, &target, role, &step, STEPS);
    tokio::join!(sends("writer"), sends("reviewer"));
}

/// Sends one message over and over, on one socket after the other, and reads along.
async fn repeat(
    attacker: &Attacker,
    target: &Target,
    role: &str,
    message: &Bytes,
    every: Duration,
) {
    loop {
        if let Some(socket) = attacker.socket(target, role, "").await {
            let (sink, stream) = socket.split();
            tokio::join!(repeat_into(sink, message, every), drain(stream));
        }
        sleep(RETRY).await;
    }
}

/// Until the server closes the socket.
async fn repeat_into(mut sink: impl Sink<Message> + Unpin, message: &Bytes, every: Duration) {
    let mut ticker = interval(every);
    loop {
        ticker.tick().await;
        if sink.send(Message::Binary(message.clone())).await.is_err() {
            return;
        }
    }
}

/// Documents of 1.4 MB, each requested again and again.
async fn splits(attacker: Arc<Attacker>) {
    let targets = attacker.targets(12).await;
    // As many as stay below the length of a message.
    let message = [updates::splits(600_000, 110_000)];
    join_all(targets.iter().map(|target| write(&attacker, target, &message))).await;
    join_all(targets.iter().map(|target| read_on(&attacker, target))).await;
}

async fn read_on(attacker: &Attacker, target: &Target) {
    let path = format!("/api/documents/{}/text", target.document);
    loop {
        attacker.get(&target.writer, &path).await;
        sleep(Duration::from_millis(10)).await;
    }
}

async fn texts(attacker: Arc<Attacker>) {
    let Some(target) = attacker.target().await else { return };
    let long: Vec<_> = (1..=FULL as u64).map(|client| updates::first(client, LONG)).collect();
    write(&attacker, &target, &long).await;
    join_all((0..24).map(|_| read_on(&attacker, &target))).await;
}

/// Edits documents that are costly to build, so that versions of them fall due.
async fn versions(attacker: Arc<Attacker>) {
    let targets = attacker.targets(8).await;
    let message = [updates::splits(600_000, 110_000)];
    let edits = |target: Target| {
        let (attacker, message) = (&attacker, &message);
        async move {
            write(attacker, &target, message).await;
            for client in 1_000.. {
                write(attacker, &target, &[updates::first(client, 1)]).await;
            }
        }
    };
    join_all(targets.into_iter().map(edits)).await;
}

/// Fills documents with client ids, and sends gaps into them; then into others.
async fn clients(attacker: Arc<Attacker>) {
    let (many, gap) = (updates::clients(180_000), updates::gap(5));
    loop {
        let targets = attacker.targets(3).await;
        let fill = async |target: &Target| {
            let gaps = repeat(&attacker, target, "writer", &gap, GAPS);
            // A document that rejects its filling gets the gaps all the same.
            let _refused = timeout(REFILL, write(&attacker, target, slice::from_ref(&many))).await;
            let _elapsed = timeout(REFILL, gaps).await;
        };
        join_all(targets.iter().map(fill)).await;
        sleep(RETRY).await;
    }
}

/// Sixteen users who store as much as the server accepts.
async fn documents(attacker: Arc<Attacker>) {
    let body = json!({ "title": "disk", "text": "a".repeat(LONG) });
    let stores = async |_| {
        loop {
            if let Some(token) = attacker.guest().await {
                store(&attacker, &token, &body).await;
            }
            sleep(RETRY).await;
        }
    };
    join_all((0..16).map(stores)).await;
}

/// Documents from fifty addresses.
async fn documents_of_many(attacker: Arc<Attacker>) {
    let body = json!({ "title": "disk", "text": "a".repeat(LONG) });
    let addresses = attacker.at_addresses(FIFTY);
    let stores = addresses.iter().map(|attacker| async {
        loop {
            if let Some(token) = attacker.guest().await {
                store(attacker, &token, &body).await;
            }
            sleep(RETRY).await;
        }
    });
    join_all(stores).await;
}

/// Documents at their limit, filled by fifty addresses at 1 MB a second each. A reviewer keeps each room open.
async fn rooms_of_many(attacker: Arc<Attacker>) {
    const EDIT: usize = 300_000;
    let addresses = attacker.at_addresses(FIFTY);
    let edits = (FULL * LONG / EDIT) as u64;
    let long: Vec<_> = (1..=edits).map(|client| updates::first(client, EDIT)).collect();
    join_all(addresses.iter().map(|attacker| fill_rooms(attacker, &long))).await;
}

async fn fill_rooms(attacker: &Attacker, long: &[Bytes]) {
    loop {
        if let Some(target) = attacker.target().await {
            let writing = timeout(REFILL * 2, write(attacker, &target, long));
            let _written = tokio::join!(writing, review(attacker, &target));
        }
        sleep(RETRY).await;
    }
}

/// Holds the reviewer's seat until the server closes the socket.
async fn review(attacker: &Attacker, target: &Target) {
    if let Some(socket) = attacker.socket(target, "reviewer", "").await {
        drain(socket.split().1).await;
    }
}

/// Until the server refuses one.
async fn store(attacker: &Attacker, token: &str, body: &Value) {
    while let Some((status, _)) = attacker.post(token, "/api/documents", body).await {
        if !status.is_success() {
            return;
        }
    }
}
