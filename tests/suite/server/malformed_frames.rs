//! Frames that no websocket library sends: each closes its own socket with a typed code, and no other
//! socket is affected (G12, G13).

use std::time::Duration;

use galley::domain::seat::Role;
use galley::yjs::awareness::{AwarenessEntry, encode_awareness};
use galley::yjs::protocol as message;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::server::lost_seats::{ENDED, logged};
use crate::support::galley_process::Server;
use crate::support::raw_socket::{
    A_MOMENT, BINARY, CONTINUATION, FIN, PING, PONG, TEXT, closed, connect, frame, head, open,
    pour, upgrade,
};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::ws_client::State;

const MIB: u64 = 1_024 * 1_024;

#[tokio::test]
async fn g12_invalid_frames_are_closed_with_4400_and_no_other_socket_is_affected() {
    let server = Server::start().await;
    let (desk, other) = (server.desk("unharmed").await, server.desk("").await);
    let (reviewer, neighbour) = (server.reviewer(&desk).await, server.writer(&other).await);
    let unmasked = vec![FIN | BINARY, 1, 3];
    let long_ping = frame(FIN | PING, &[0; 126]);
    let two_beginnings = [frame(BINARY, &[3]), frame(BINARY, &[3])].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a frame without a mask", unmasked),
        ("a bit that is reserved", frame(FIN | 0x40 | BINARY, &[3])),
        ("all bits that are reserved", frame(FIN | 0x70 | BINARY, &[3])),
        ("an unknown data opcode", frame(FIN | 3, &[3])),
        ("an unknown control opcode", frame(FIN | 11, &[])),
        ("a ping in two parts", frame(PING, b"a")),
        ("a ping that is too long", long_ping),
        ("the middle of nothing", frame(FIN | CONTINUATION, &[3])),
        ("a message within a message", two_beginnings),
        ("text that is no UTF-8", frame(FIN | TEXT, &[0xc3, 0x28])),
        ("text", frame(FIN | TEXT, b"hello")),
    ];
    for (what, bytes) in cases {
        let mut writer = open(&server, &desk, "writer", "events=1").await;
        pour(&mut writer, &bytes).await;
        assert_eq!(closed(&mut writer).await.map(|(code, _)| code), Some(4400), "{what}");
    }
    // The server released the seat each time, and granted it to the next session.
    let writer = server.writer(&desk).await;
    writer.append("!");
    reviewer.reads("unharmed!").await;
    neighbour.append("undisturbed");
    neighbour.saved().await;
}

#[tokio::test]
async fn g13_a_declared_length_allocates_no_memory() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    for length in [u64::MAX, i64::MAX.unsigned_abs(), 1 << 40, 3 * MIB] {
        let before = server.peak();
        let mut writer = open(&server, &desk, "writer", "").await;
        let head = [&[FIN | BINARY, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat();
        pour(&mut writer, &head).await;
        let code = closed(&mut writer).await.map(|(code, _)| code);
        assert!(matches!(code, Some(4400 | 4413)), "{length}: {code:?}");
        // The allocator takes pages from the system in steps of some hundred KiB for each thread.
        let grew = server.peak().saturating_sub(before);
        assert!(grew < 4 * MIB, "{length}: {grew} bytes");
    }
}

/// Goal: a million frames of one byte cost a million bytes, and their message is validated as any
/// other.
#[tokio::test]
async fn g13_a_million_fragments_of_one_byte_are_one_message() {
    // Fragments are no heartbeat, and a busy machine needs time for three million of them.
    let server = Server::with(&[("SEATS__CLIENT_TIMEOUT", "60s")]).await;
    let (desk, other) = (server.desk("unharmed").await, server.desk("").await);
    let neighbour = server.writer(&other).await;
    let fragments = frame(CONTINUATION, &[0]).repeat(1_000_000);
    for (count, code) in [(1, 4400), (3, 4413)] {
        let before = server.peak();
        let mut writer = open(&server, &desk, "writer", "").await;
        pour(&mut writer, &frame(BINARY, &[9])).await;
        for _ in 0..count {
            pour(&mut writer, &fragments).await;
        }
        pour(&mut writer, &frame(FIN | CONTINUATION, &[])).await;
        assert_eq!(closed(&mut writer).await.map(|(code, _)| code), Some(code));
        let grew = server.peak().saturating_sub(before);
        assert!(grew < 16 * MIB, "{grew} bytes");
    }
    neighbour.append("undisturbed");
    neighbour.saved().await;
}

/// Goal: endless empty fragments do not count as a heartbeat.
#[tokio::test]
async fn g13_endless_empty_fragments_are_no_heartbeat() {
    let settings = [
        ("SEATS__LEASE", "3s"),
        ("SEATS__RENEW_EVERY", "1s"),
        ("SEATS__CLIENT_TIMEOUT", "2s"),
        ("SEATS__RESUME_GRACE", "0s"),
    ];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let reviewer = server.reviewer(&desk).await;
    let mut writer = open(&server, &desk, "writer", "").await;
    reviewer.event("peer.joined").await;
    pour(&mut writer, &frame(BINARY, &[])).await;
    let drip = async {
        let empty = frame(CONTINUATION, &[]).repeat(100);
        loop {
            pour(&mut writer, &empty).await;
            sleep(A_MOMENT).await;
        }
    };
    tokio::select! {
        () = drip => {}
        left = reviewer.event("peer.left") => assert_eq!(left["role"], "writer"),
    }
    server.writer(&desk).await;
}

/// Goal: the server closes a slow reader that reads nothing, or less than it is sent. Silence cannot be
/// the reason here; for the slower reader, nor can one message that is in flight for too long.
#[tokio::test]
async fn g13_a_slow_reader_is_closed_and_costs_its_peer_nothing() {
    let server = Server::with(&[
        ("SEATS__CLIENT_TIMEOUT", "10m"),
        ("LIMITS__DOCUMENT_BYTES", "65536"),
        ("LIMITS__MESSAGE_BYTES", "65536"),
        ("LIMITS__MESSAGE_BURST", "100000"),
        ("LOG__FORMAT", "json"),
    ])
    .await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    let cursor = "x".repeat(8_000);
    for taken in [0, 2_048] {
        let slow = open(&server, &desk, "reviewer", "").await;
        writer.event("peer.joined").await;
        let before = server.peak();
        let mut taken = vec![0; taken];
        let mut said = 0;
        let is_left = |state: &mut State| state.events.iter().any(|e| e["event"] == "peer.left");
        while !writer.look(is_left) {
            // The loop counts messages, not time: a slow machine only sends fewer of them.
            writer.announce(&json!({ "cursor": cursor }));
            let _nothing_yet = slow.try_read(&mut taken);
            said += 1;
            assert!(said < 6_000, "the server sends to the slow reader without a bound");
            // Below the sustained rate limit of a socket.
            sleep(A_MOMENT * 2).await;
        }
        assert_eq!(writer.event("peer.left").await["role"], Role::Reviewer.to_string());
        let grew = server.peak().saturating_sub(before);
        assert!(grew < 6 * MIB, "{grew} bytes");
    }
    logged(&server, (ENDED, 4529, "slow-reader"), &desk, "reviewer").await;
    writer.append("still here");
    writer.saved().await;
    server.reviewer(&desk).await.reads("still here").await;
}

/// Goal: a client sets no presence but its own, and none that would break another client.
#[tokio::test]
async fn g12_a_client_sets_only_its_own_presence_within_bounds() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.announce(&json!({ "cursor": 1 }));
    let id = writer.client_id();
    let of = |client, clock, state: Option<&str>| {
        let state = state.map(str::to_owned);
        message::awareness(&encode_awareness(&[AwarenessEntry { client, clock, state }]))
    };
    let seen = |wanted: i64| {
        reviewer.until("the writer's cursor", move |state| {
            let (_, published) = state.presence.get(&id)?;
            (published.as_ref()?["cursor"] == wanted).then_some(())
        })
    };
    seen(1).await;
    // Another client moves the cursor, removes it, and blocks it with the largest clock.
    for clock in [2, 1 << 31, (1 << 53) - 1] {
        reviewer.send(of(id, clock, Some(r#"{"cursor":99}"#)));
        reviewer.send(of(id, clock, None));
    }
    reviewer.announce(&json!({ "cursor": 7 }));
    let own = reviewer.client_id();
    writer.until("what came after", |state| state.presence.contains_key(&own).then_some(())).await;
    writer.announce(&json!({ "cursor": 2, "user": { "name": "the boss" } }));
    seen(2).await;
    reviewer.look(|state| {
        assert_eq!(state.presence[&id].1.as_ref().expect("there")["user"]["name"], "Kim");
    });
    // Each of these closes its own socket only.
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let cases = [
        (of(7, 5, Some(&deep)), 4400),
        (of(7, 5, Some("[]")), 4400),
        (of(7, 5, Some("{\"a\":")), 4400),
        (of(7, 1 << 60, Some("{}")), 4400),
        (of(7, 5, Some(&format!("{{\"a\":\"{}\"}}", "x".repeat(9_000)))), 4413),
    ];
    drop(reviewer);
    for (bytes, code) in cases {
        let reviewer = server.reviewer(&desk).await;
        reviewer.send(bytes.clone());
        assert_eq!(reviewer.closed().await.0, code, "{bytes:?}");
    }
    writer.append("!");
    writer.saved().await;
}

#[tokio::test]
async fn g13_the_rate_limit_of_joins_closes_one_user_and_not_others() {
    let limits = [("LIMITS__JOINS_PER_SECOND", "1"), ("LIMITS__JOIN_BURST", "5")];
    let server = Server::with(&limits).await;
    let desk = server.desk("text").await;
    let reviewer = server.reviewer(&desk).await;
    let mut refused = 0;
    for _ in 0..12 {
        let writer = server.claim_seat(&desk, "writer", "events=1").await;
        let over = |state: &mut State| {
            let is_in = state.events.iter().any(|event| event["event"] == "seat.granted");
            (is_in || state.closed.is_some()).then(|| state.closed.clone())
        };
        if let Some(close) = writer.until("a seat or a close", over).await {
            assert_eq!(close, (4529, "too-many-joins".to_owned()));
            refused += 1;
        } else {
            writer.leave().await;
        }
    }
    assert!(0 < refused, "no join was refused");
    // The rate limit is per user: the other user joins, and the same user may still send other
    // requests.
    drop(reviewer);
    server.reviewer(&desk).await;
    server.get(&desk.writer, "/api/me").await.ok(200);
}

/// Goal: the server rejects a duplicate parameter instead of choosing a value.
#[tokio::test]
async fn g12_a_duplicate_parameter_is_rejected() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    for query in ["wait=1&wait=0", "takeover=0&takeover=1", "events=1&events=1", "a=1&a=2"] {
        let mut socket = open(&server, &desk, "writer", query).await;
        assert_eq!(closed(&mut socket).await, Some((4400, "query".to_owned())), "{query}");
    }
    for query in ["wait=-1", "wait=301", "wait=1e9", "events=2", "takeover=yes"] {
        let mut socket = open(&server, &desk, "writer", query).await;
        assert_eq!(closed(&mut socket).await.map(|(code, _)| code), Some(4400), "{query}");
    }
}

#[tokio::test]
async fn g13_endless_heads_are_closed_and_other_clients_are_served() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let endless = format!("X-Long: {}\r\n", "x".repeat(200_000));
    let many = "X-Many: 1\r\n".repeat(200);
    for more in [endless, many] {
        let mut socket = connect(&server).await;
        let request = upgrade(&desk, "writer", "", &more);
        let sent = async { head(&mut socket, &request).await };
        let answer = timeout(TEST_TIMEOUT, sent).await.unwrap_or_default();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    // Many unfinished heads are open, and a session is still seated.
    let mut halves = Vec::new();
    for _ in 0..200 {
        let mut socket = connect(&server).await;
        pour(&mut socket, b"GET /ws/share-links/x HTTP/1.1\r\nHost: localhost\r\nX-Half: ").await;
        halves.push(socket);
    }
    let writer = server.writer(&desk).await;
    writer.append("!");
    writer.saved().await;
    assert_eq!(halves.len(), 200);
}

#[tokio::test]
async fn g13_a_storm_of_pings_and_pongs_delays_no_edit() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let reviewer = server.reviewer(&desk).await;
    let before = server.peak();
    let mut writer = open(&server, &desk, "writer", "events=1").await;
    let storm = [frame(FIN | PING, &[7; 125]), frame(FIN | PONG, &[7; 125])].concat();
    pour(&mut writer, &storm.repeat(10_000)).await;
    let grew = server.peak().saturating_sub(before);
    assert!(grew < 6 * MIB, "{grew} bytes");
    assert!(timeout(Duration::from_secs(30), closed(&mut writer)).await.is_ok());
    assert!(reviewer.is_open());
}

/// No limit counted control frames, and a client sent millions of them a second.
#[tokio::test]
async fn g17_pings_and_pongs_are_charged_as_messages_with_a_seat_and_without() {
    const TOO_MANY: (u16, &str) = (4529, "too-many-messages");
    let limits = [("LIMITS__MESSAGES_PER_SECOND", "10"), ("LIMITS__MESSAGE_BURST", "50")];
    let server = Server::with(&limits).await;
    let (desk, other) = (server.desk("text").await, server.desk("").await);
    for opcode in [PING, PONG] {
        let mut writer = open(&server, &desk, "writer", "").await;
        pour(&mut writer, &frame(FIN | opcode, b"").repeat(1_000)).await;
        let close = closed(&mut writer).await.expect("a close");
        assert_eq!((close.0, &*close.1), TOO_MANY);
    }
    let _holder = server.writer(&other).await;
    let mut waiter = open(&server, &other, "writer", "wait=300").await;
    pour(&mut waiter, &frame(FIN | PONG, b"").repeat(1_000)).await;
    let close = closed(&mut waiter).await.expect("a close");
    assert_eq!((close.0, &*close.1), TOO_MANY);
    // The budget of that user is spent, and no other.
    let reviewer = server.reviewer(&desk).await;
    reviewer.synced().await;
    assert!(reviewer.is_open());
}

/// Goal: the server builds a bounded number of responses for a client that reads none, and others get
/// theirs.
#[tokio::test]
async fn g13_large_responses_to_a_slow_reader_are_bounded() {
    // Longer than the kernel's send buffer.
    const LONG: usize = 7_500_000;
    let server = Server::with(&[("LIMITS__BODY_BYTES", "16777216")]).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let body = json!({ "title": "long", "text": "x".repeat(LONG) });
    let mut addresses = Vec::new();
    for who in [&kim, &lee] {
        let made = server.post(who, "/api/documents", body.clone()).await.ok(201);
        let id = made["id"].as_str().expect("an id").to_owned();
        addresses.push(format!("/api/documents/{id}/text"));
    }
    let head_of_request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        addresses[0], kim.token
    );
    let (mut held, mut refused) = (Vec::new(), 0);
    while refused == 0 {
        let mut socket = connect(&server).await;
        let head = head(&mut socket, &head_of_request).await;
        refused += usize::from(head.starts_with("HTTP/1.1 429"));
        held.push(socket);
        assert!(held.len() < 40, "no request was refused");
    }
    assert!(3 < held.len(), "{} were let out", held.len());
    // For a client that reads it.
    let request = server.http.get(format!("{}{}", server.url, addresses[1]));
    let answer = request.bearer_auth(&lee.token).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.bytes().await.expect("a body").len(), LONG);
    // A user whose responses were read, or whose connections ended, may send requests again.
    held.clear();
    let again = async {
        while server.text(&kim, addresses[0].split('/').nth(3).expect("an id")).await.len() < LONG {
        }
    };
    timeout(TEST_TIMEOUT, again).await.expect("in time");
}

/// Every update in the fuzzer's corpus that the validator rejects, over a real socket.
fn poison() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/fuzz/corpus/update");
    let files = std::fs::read_dir(folder).expect("the corpus");
    let files = files.map(|file| file.expect("an entry").path());
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("text");
        let (head, hex) = text.split_once('\n').expect("a line that says what it is");
        let digits: String = hex.split_whitespace().collect();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
        let bytes = (0..digits.len()).step_by(2).map(byte).collect();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        head.starts_with("# refused").then_some((name, bytes))
    };
    files.filter_map(read).collect()
}

/// Goal: no message type carries an update that would corrupt a document into one.
#[tokio::test]
async fn g12_no_invalid_update_enters_a_document_by_any_message() {
    let server = Server::with(&[("LIMITS__JOIN_BURST", "1000")]).await;
    let desk = server.desk("unharmed").await;
    let reviewer = server.reviewer(&desk).await;
    let poison = poison();
    assert!(30 < poison.len(), "{}", poison.len());
    for (at, (name, update)) in poison.iter().enumerate() {
        let writer = server.writer(&desk).await;
        let carrier = if at % 2 == 0 { message::update } else { message::sync_step2 };
        writer.send(carrier(update));
        // The server requests a gap's missing part again; every other update closes the socket. The
        // next frame always gets a reply from an open socket.
        if name.starts_with("gap") || name.starts_with("skip") {
            writer.send(message::query_awareness());
            writer.announce(&json!({ "cursor": at }));
            let id = writer.client_id();
            reviewer.until(name, |state| state.presence.contains_key(&id).then_some(())).await;
            writer.leave().await;
        } else {
            let (code, reason) = writer.closed().await;
            assert!(code == 4400 || code == 4403, "{name}: {code} {reason}");
        }
        assert_eq!(reviewer.text(), "unharmed", "{name}");
    }
    assert_eq!(server.text(&desk.writer, &desk.document).await, "unharmed");
    let writer = server.writer(&desk).await;
    writer.append("!");
    reviewer.reads("unharmed!").await;
    writer.saved().await;
}
