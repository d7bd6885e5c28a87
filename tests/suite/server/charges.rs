//! G17 at the edge: the server charges bytes, requests, entries and connections to the user and the
//! address that cause them. Other users do not wait.

use std::time::Duration;

use futures_util::future::join_all;
use galley::yjs::protocol as message;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use yrs::{Doc, ReadTxn as _, StateVector, Text as _, Transact as _};

use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::raw_socket::{BINARY, connect, frame, open, pour};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Person;

const MIB: u64 = 1_024 * 1_024;
/// A body, or a message, just below the limit of 2 MiB.
const LONG: usize = 2_000_000;

/// The head of a request for `path` with a body of `length` bytes.
fn head_of(server: &Server, path: &str, token: &str, length: usize) -> String {
    let host = server.url.strip_prefix("http://").expect("an address");
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// The status of the response that arrives within `patience`, if one does.
async fn status_within(socket: &mut TcpStream, time_limit: Duration) -> Option<String> {
    let mut start = [0; 12];
    let read = timeout(time_limit, socket.read_exact(&mut start)).await;
    let _bytes = read.ok()?.ok()?;
    Some(String::from_utf8_lossy(&start[9..]).into_owned())
}

/// Sends a body except for its last byte.
async fn half_body(server: &Server, path: &str, token: &str) -> TcpStream {
    let mut socket = connect(server).await;
    let sent = head_of(server, path, token, LONG) + &" ".repeat(LONG - 1);
    // The server may refuse the request before it reads the body.
    let _refused = timeout(TEST_TIMEOUT, socket.write_all(sent.as_bytes())).await.expect("in time");
    socket
}

/// The route for guests took 2 MB from each connection before it read a token.
#[tokio::test]
async fn g17_a_request_without_a_token_holds_no_long_body_in_memory() {
    let server = Server::start().await;
    let before = server.peak();
    for _ in 0..30 {
        let mut socket = half_body(&server, "/api/auth/guest", "none").await;
        assert_eq!(status_within(&mut socket, TEST_TIMEOUT).await.as_deref(), Some("413"));
    }
    let grew = server.peak().saturating_sub(before);
    assert!(grew < 8 * MIB, "{grew} bytes");
}

/// The body was read before the handler looked at `auth.guests`.
#[tokio::test]
async fn g17_a_server_without_guests_answers_before_it_reads_the_body() {
    let server = Server::with(&[("AUTH__GUESTS", "false")]).await;
    let mut socket = connect(&server).await;
    let head = head_of(&server, "/api/auth/guest", "none", 1_000);
    socket.write_all(head.as_bytes()).await.expect("sent");
    let status = status_within(&mut socket, Duration::from_secs(20)).await;
    assert_eq!(status.as_deref(), Some("403"));
}

/// The handler of a change runs in a task of its own, which could read a body behind the end of its request.
#[tokio::test]
async fn g13_a_body_that_never_ends_is_given_up_with_its_request() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let mut socket = half_body(&server, "/api/documents", &kim.token).await;
    let answer = status_within(&mut socket, Duration::from_secs(40)).await;
    assert_eq!(answer.as_deref(), Some("503"), "an answer may take thirty seconds");
    let mut rest = Vec::new();
    let closed = timeout(Duration::from_secs(5), socket.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection is open, and its body is read");
}

/// The body of a guest without room was read before it was rejected.
#[tokio::test]
async fn g17_a_body_above_the_rest_of_a_guests_budget_is_rejected_before_it_is_read() {
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "100000")]).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let document = json!({ "title": "t", "text": "a".repeat(60_000) });
    server.post(&kim, "/api/documents", document).await.ok(201);
    for _ in 0..3 {
        let mut socket = connect(&server).await;
        let head = head_of(&server, "/api/documents", &lee.token, 60_000);
        socket.write_all(head.as_bytes()).await.expect("sent");
        assert_eq!(status_within(&mut socket, TEST_TIMEOUT).await.as_deref(), Some("429"));
    }
    // The announcements took nothing.
    let document = json!({ "title": "t", "text": "a".repeat(39_000) });
    server.post(&lee, "/api/documents", document).await.ok(201);
}

/// Request bodies under way had no bound for one user.
#[tokio::test]
async fn g17_bodies_under_way_are_charged_to_their_user_and_others_are_served() {
    let server = Server::start().await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(half_body(&server, "/api/documents", &kim.token).await);
    }
    let mut refused = 0;
    for socket in &mut held {
        match status_within(socket, Duration::from_millis(500)).await.as_deref() {
            None => {}
            Some("429") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!((3..=10).contains(&refused), "{refused} of 20 were refused");
    let text = "x".repeat(LONG - 1_000);
    let body = json!({ "title": "t", "text": text });
    server.post(&lee, "/api/documents", body.clone()).await.ok(201);
    drop(held);
    let again =
        async { while server.post(&kim, "/api/documents", body.clone()).await.status != 201 {} };
    timeout(TEST_TIMEOUT, again).await.expect("the charge is released");
}

/// A socket for the writer's seat of a document of its own.
async fn seat_of(server: &Server, who: &Person, name: &str) -> TcpStream {
    let reviewer = server.guest(name).await;
    let desk = server.desk_of(who.clone(), reviewer, "text").await;
    open(server, &desk, "writer", "events=1").await
}

/// An unfinished message of each socket stayed in memory as long as pings came between its frames.
#[tokio::test]
async fn g17_unfinished_messages_are_charged_to_their_user_and_others_are_served() {
    let server = Server::with(&[("SEATS__CLIENT_TIMEOUT", "60s")]).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let before = server.peak();
    let mut held = Vec::new();
    for number in 0..24 {
        held.push(seat_of(&server, &kim, &format!("{number}")).await);
    }
    for socket in &mut held {
        // The first frame of a message that has more.
        pour(socket, &frame(BINARY, &vec![7; LONG])).await;
    }
    let mut refused = 0;
    for socket in &mut held {
        let close =
            timeout(Duration::from_millis(500), crate::support::raw_socket::closed(socket)).await;
        if let Ok(Some((code, reason))) = close {
            assert_eq!((code, reason.as_str()), (4529, "too-many-bytes"));
            refused += 1;
        }
    }
    assert!((6..=16).contains(&refused), "{refused} of 24 were closed");
    let grew = server.peak().saturating_sub(before);
    assert!(grew < 96 * MIB, "{grew} bytes");
    let mut other = seat_of(&server, &lee, "Lee's").await;
    pour(&mut other, &frame(BINARY, &vec![7; LONG])).await;
    let close =
        timeout(Duration::from_secs(1), crate::support::raw_socket::closed(&mut other)).await;
    assert!(close.is_err(), "{close:?}");
}

/// The release of a long message released the bytes of the unfinished message behind it.
#[tokio::test]
async fn g17_an_unfinished_message_behind_a_long_one_is_charged() {
    let limits = [("SEATS__CLIENT_TIMEOUT", "60s"), ("LIMITS__BUFFERED_BYTES_PER_USER", "4194304")];
    let server = Server::with(&limits).await;
    let kim = server.guest("Kim").await;
    let mut held = Vec::new();
    for number in 0..32 {
        held.push(seat_of(&server, &kim, &format!("{number}")).await);
    }
    let document = Doc::new();
    document.get_or_insert_text("content").push(&mut document.transact_mut(), &"x".repeat(5_000));
    let update = document.transact().encode_state_as_update_v1(&StateVector::default());
    let long = frame(crate::support::raw_socket::FIN | BINARY, &message::update(&update));
    let bytes = [long, frame(BINARY, &vec![7; 250_000])].concat();
    for socket in &mut held {
        pour(socket, &bytes).await;
    }
    let mut refused = 0;
    for socket in &mut held {
        pour(
            socket,
            &frame(crate::support::raw_socket::FIN | crate::support::raw_socket::PING, b""),
        )
        .await;
        // The pong proves that the server has read the whole frame, however slow the server is.
        if let Some((code, reason)) = crate::support::raw_socket::closed_before_a_pong(socket).await
        {
            assert_eq!((code, reason.as_str()), (4529, "too-many-bytes"));
            refused += 1;
        }
    }
    // 4 MiB hold 16 of these frames. The server reads some side by side, and a refused socket holds its
    // bytes until its close, so more than the other 16 may be refused.
    assert!((16..32).contains(&refused), "{refused} of 32 were closed");
}

/// The server held up to 4 MiB of early messages for each waiter.
#[tokio::test]
async fn g17_early_messages_of_a_waiter_are_bounded() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let mut waiters = Vec::new();
    let before = server.peak();
    for _ in 0..20 {
        let mut waiter = open(&server, &desk, "writer", "wait=300").await;
        for _ in 0..2 {
            pour(&mut waiter, &frame(crate::support::raw_socket::FIN | BINARY, &vec![7; LONG]))
                .await;
        }
        waiters.push(waiter);
    }
    // The server answers a query after the messages before it.
    for waiter in &mut waiters {
        pour(waiter, &frame(crate::support::raw_socket::FIN | BINARY, &message::query_awareness()))
            .await;
        let mut first = [0; 1];
        let _byte = timeout(TEST_TIMEOUT, waiter.read_exact(&mut first)).await.expect("an answer");
    }
    let grew = server.peak().saturating_sub(before);
    assert!(grew < 32 * MIB, "{grew} bytes");
}

/// The server charged a long message of a waiter until it was whole. It closed the waiters of a
/// user that sent many, and they lost their queue positions.
#[tokio::test]
async fn g17_a_long_message_of_a_waiter_is_not_charged() {
    let server = Server::with(&[("LIMITS__BUFFERED_BYTES_PER_USER", "4194304")]).await;
    let desk = server.desk("text").await;
    let _holder = server.writer(&desk).await;
    let message = frame(crate::support::raw_socket::FIN | BINARY, &vec![7; LONG]);
    let close_frame = frame(
        crate::support::raw_socket::FIN | crate::support::raw_socket::CLOSE,
        &1_000_u16.to_be_bytes(),
    );
    let sends = async || {
        let mut waiter = open(&server, &desk, "writer", "wait=300").await;
        pour(&mut waiter, &[&message[..], &close_frame].concat()).await;
        crate::support::raw_socket::closed(&mut waiter).await
    };
    let ends = join_all((0..32).map(|_| sends())).await;
    // The server read each message and the close behind it.
    assert!(ends.iter().all(|end| *end == Some((1_000, String::new()))), "{ends:?}");
}

/// After 64 early messages the server closed the socket, and its queue position was lost.
#[tokio::test]
async fn g17_a_waiter_that_types_keeps_its_queue_position_and_every_edit() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let holder = server.writer(&desk).await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let mut typed = String::new();
    for number in 0..200 {
        let word = format!(" {number}");
        waiter.append(&word);
        waiter.announce(&json!({ "cursor": number }));
        typed += &word;
    }
    // A long paste is over the bound by itself.
    let paste = "y".repeat(100_000);
    waiter.append(&paste);
    waiter.send(message::query_awareness());
    waiter.until("the server read it all", |state| (0 < state.keep_alives).then_some(())).await;
    assert!(waiter.is_open());
    holder.leave().await;
    waiter.event("seat.granted").await;
    waiter.synced().await;
    let whole = |text: &str| text.contains("text") && text.contains(&(typed.clone() + &paste));
    let stored = async { while !whole(&server.text(&desk.writer, &desk.document).await) {} };
    timeout(TEST_TIMEOUT, stored).await.expect("every edit is stored");
    assert!(waiter.is_open());
}

/// Guest accounts cost nothing, and each had a limit of its own.
#[tokio::test]
async fn g17_an_address_is_counted_beside_its_users() {
    let limits = [("LIMITS__REQUESTS_PER_SECOND", "1"), ("LIMITS__REQUEST_BURST", "5")];
    let server = Server::with(&limits).await;
    let mut guests = Vec::new();
    for number in 0..40 {
        guests.push(server.guest(&format!("{number}")).await);
    }
    // The address has ten times the limit of a user: 50 at once, and 10 a second. All requests are sent at once.
    let requests = guests.iter().flat_map(|guest| [guest; 5]).map(|it| server.get(it, "/api/me"));
    let statuses: Vec<_> = join_all(requests).await.iter().map(|it| it.status.as_u16()).collect();
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    assert!(statuses.contains(&429), "one address sent 240 requests");
}

/// 200 guests entered within 0.14 s.
#[tokio::test]
async fn g17_guests_enter_at_a_bounded_rate_from_one_address() {
    let server = Server::with(&[("LIMITS__GUEST_BURST", "30")]).await;
    let kim = server.guest("Kim").await;
    let mut statuses = Vec::new();
    for number in 0..60 {
        let request = server.http.post(format!("{}/api/auth/guest", server.url));
        let request = request.json(&json!({ "name": format!("{number}") }));
        let response = request.send().await.expect("an answer");
        if response.status() == 429 {
            assert!(response.headers().contains_key("retry-after"));
        }
        statuses.push(response.status().as_u16());
    }
    assert!(statuses[..29].iter().all(|status| *status == 201), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    server.get(&kim, "/api/me").await.ok(200);
}

/// Half heads of one address took every connection.
#[tokio::test]
async fn g17_one_address_leaves_connections_for_others() {
    let limits = [("LIMITS__CONNECTIONS", "200"), ("LIMITS__CONNECTIONS_PER_ADDRESS", "10")];
    leaves_connections(&limits, 10).await;
}

/// Where all connections are few, the bound by address was above them.
#[tokio::test]
async fn g17_one_address_takes_a_quarter_of_few_connections() {
    leaves_connections(&[("LIMITS__CONNECTIONS", "80")], 20).await;
    leaves_connections(&[("LIMITS__CONNECTIONS", "20")], 8).await;
}

/// Four addresses with a quarter each took every connection.
#[tokio::test]
async fn g17_four_addresses_leave_connections_for_others() {
    let server = Server::with(&[("LIMITS__CONNECTIONS", "80")]).await;
    let mut halves = Vec::new();
    for address in 2..=5 {
        for _ in 0..25 {
            let mut socket = connect_from(&server, &format!("127.0.0.{address}:0")).await;
            let _refused = socket.write_all(b"GET /healthz HTTP/1.1\r\nX-Half: ").await;
            halves.push(socket);
        }
    }
    answers(&server, "127.0.0.6:0").await;
}

async fn connect_from(server: &Server, address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(address.parse().expect("an address")).expect("a loopback address");
    let to = server.url.strip_prefix("http://").expect("an address");
    socket.connect(to.parse().expect("an address")).await.expect("connected")
}

/// The server answers a new connection from `address`.
async fn answers(server: &Server, address: &str) {
    let mut other = connect_from(server, address).await;
    let host = server.url.strip_prefix("http://").expect("an address");
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    other.write_all(request.as_bytes()).await.expect("sent");
    let status = status_within(&mut other, TEST_TIMEOUT).await;
    assert_eq!(status.as_deref(), Some("200"));
}

/// One address opens 90 connections and gets `most` of them; another address is served.
async fn leaves_connections(limits: &[(&str, &str)], most: usize) {
    let server = Server::with(limits).await;
    let mut halves = Vec::new();
    for _ in 0..90 {
        let mut socket = connect(&server).await;
        let _refused = socket.write_all(b"GET /healthz HTTP/1.1\r\nX-Half: ").await;
        halves.push(socket);
    }
    answers(&server, "127.0.0.2:0").await;
    // The server has accepted every connection before that one, and closed those above the bound.
    let mut open = 0;
    for socket in &mut halves {
        let read = timeout(Duration::from_millis(100), socket.read_u8()).await;
        open += usize::from(read.is_err());
    }
    assert_eq!(open, most);
}

/// After 620 MB of bodies were freed, the process retained 499 MB.
#[tokio::test]
async fn g17_the_memory_of_freed_bodies_is_returned_to_the_system() {
    // The wide bounds allow a peak of memory.
    let server = Server::with(&[
        ("LIMITS__BUFFERED_BYTES", "2147483648"),
        ("LIMITS__BUFFERED_BYTES_PER_ADDRESS", "536870912"),
        ("LIMITS__BUFFERED_BYTES_PER_USER", "536870912"),
    ])
    .await;
    let kim = server.guest("Kim").await;
    let before = server.resident();
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(half_body(&server, "/api/documents", &kim.token).await);
    }
    until("the bodies are held", async || before + 150 * MIB <= server.resident()).await;
    drop(held);
    let most = before + server.peak().saturating_sub(before) / 4;
    found(async || {
        let resident = server.resident();
        if resident <= most { Ok(()) } else { Err((resident - before, server.peak())) }
    })
    .await;
}
