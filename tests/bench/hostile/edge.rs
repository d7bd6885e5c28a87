//! The attacks on connections, bodies, messages and files: most of them before any right is checked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::attacker::{Attacker, Target, drain};
use crate::attacks::FIFTY;

/// The announced length of a body that is never completed.
const BODY: usize = 2_097_000;
/// Connections of an attack that holds them.
const CONNECTIONS: usize = 300;
/// Connections with half a head: more than the server of that row has places.
const HEADS: usize = 420;
/// Half bodies that each of fifty addresses sends.
const BODIES_OF_AN_ADDRESS: usize = 24;
/// From one attempt to the next.
const RETRY: Duration = Duration::from_millis(200);
/// How long the server waits for a body, and more.
const HELD: Duration = Duration::from_secs(35);

/// Writes `bytes` and holds the connection until the server closes it.
async fn hold(mut stream: TcpStream, bytes: &[u8]) {
    let (mut answer, _written) = ([0; 512], stream.write_all(bytes).await);
    let reading = async { while let Ok(1..) = stream.read(&mut answer).await {} };
    let _elapsed = timeout(HELD, reading).await;
}

async fn hold_again(attacker: &Attacker, bytes: &[u8]) {
    loop {
        if let Some(stream) = attacker.connect().await {
            hold(stream, bytes).await;
        }
        sleep(RETRY).await;
    }
}

pub(crate) async fn half_bodies(attacker: Arc<Attacker>) {
    let mut request = format!(
        "POST /api/auth/guest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {BODY}\r\n\r\n{{\"name\":\""
    )
    .into_bytes();
    request.resize(request.len() + BODY - 10, b'a');
    join_all((0..CONNECTIONS).map(|_| hold_again(&attacker, &request))).await;
}

pub(crate) async fn half_heads(attacker: Arc<Attacker>) {
    let head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
    join_all((0..HEADS).map(|_| hold_again(&attacker, head))).await;
}

/// Half bodies that their guests may send, from fifty addresses.
pub(crate) async fn bodies_of_many(attacker: Arc<Attacker>) {
    let addresses = attacker.at_addresses(FIFTY);
    let holds = async |attacker: &Attacker| {
        let Some(token) = attacker.guest().await else { return };
        let mut request = format!(
            "POST /api/documents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {BODY}\r\n\r\n"
        )
        .into_bytes();
        request.resize(request.len() + BODY - 1, b' ');
        join_all((0..BODIES_OF_AN_ADDRESS).map(|_| hold_again(attacker, &request))).await;
    };
    join_all(addresses.iter().map(holds)).await;
}

pub(crate) async fn half_heads_of_many(attacker: Arc<Attacker>) {
    let head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
    let addresses = attacker.at_addresses(4);
    let holds = addresses.iter().flat_map(|attacker| std::iter::repeat_n(attacker, HEADS / 4));
    join_all(holds.map(|attacker| hold_again(attacker, head))).await;
}

/// Control frames without end, on seats of one address.
pub(crate) async fn pongs(attacker: Arc<Attacker>) {
    const EMPTY_PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];
    let targets = attacker.targets(4).await;
    let frames = EMPTY_PONG.repeat(10_000);
    let floods = targets.iter().map(|target| flood(&attacker, target, &frames));
    join_all(floods).await;
}

async fn flood(attacker: &Attacker, target: &Target, frames: &[u8]) {
    loop {
        if let Some(mut socket) = attacker.socket(target, "writer", "").await {
            while socket.get_mut().write_all(frames).await.is_ok() {}
        }
        sleep(RETRY).await;
    }
}

/// Two hundred sockets that wait for a taken seat and send two messages of 2 MB each.
pub(crate) async fn early_messages(attacker: Arc<Attacker>) {
    let Some(target) = attacker.target().await else { return };
    let Some(writer) = attacker.socket(&target, "writer", "").await else { return };
    // Encoded once: the library would mask and move each message again.
    let mut large = vec![0x82, 0xff];
    large.extend(2_000_000_u64.to_be_bytes());
    large.resize(large.len() + 4 + 2_000_000, 0);
    let waits = async || {
        loop {
            if let Some(mut socket) = attacker.socket(&target, "writer", "wait=300").await {
                let stream = socket.get_mut();
                let _both = stream.write_all(&large).await.is_ok()
                    && stream.write_all(&large).await.is_ok();
                drain(socket).await;
            }
            sleep(RETRY).await;
        }
    };
    tokio::join!(drain(writer), join_all((0..200).map(|_| waits())));
}

/// An unfinished message of 2 MB in each of many seats; pings keep the sockets alive.
pub(crate) async fn fragments(attacker: Arc<Attacker>) {
    let targets = attacker.targets(200).await;
    join_all(targets.iter().map(|target| fragment(&attacker, target))).await;
}

async fn fragment(attacker: &Attacker, target: &Target) {
    loop {
        if let Some(mut socket) = attacker.socket(target, "writer", "").await {
            let part = Frame::message(vec![0_u8; 2_000_000], OpCode::Data(Data::Binary), false);
            let mut ticker = interval(Duration::from_secs(3));
            let mut is_open = socket.send(Message::Frame(part)).await.is_ok();
            while is_open {
                ticker.tick().await;
                is_open = socket.send(Message::Ping(Bytes::new())).await.is_ok();
            }
        }
        sleep(RETRY).await;
    }
}

/// The head of a frame of 2 MB in each of many seats, and nothing behind it (N1).
pub(crate) async fn announced(attacker: Arc<Attacker>) {
    let targets = attacker.targets(400).await;
    join_all(targets.iter().map(|target| announce(&attacker, target))).await;
}

async fn announce(attacker: &Attacker, target: &Target) {
    /// A masked binary frame of 0x1f0000 bytes.
    const HEAD: [u8; 14] = [0x82, 0xff, 0, 0, 0, 0, 0, 0x1f, 0, 0, 0, 0, 0, 0];
    loop {
        if let Some(mut socket) = attacker.socket(target, "writer", "").await
            && socket.get_mut().write_all(&HEAD).await.is_ok()
        {
            while let Some(Ok(_)) = socket.next().await {}
        }
        sleep(RETRY).await;
    }
}

/// Two hundred guests with eight calls in flight.
pub(crate) async fn guests(attacker: Arc<Attacker>) {
    let mut tokens = Vec::new();
    for _ in 0..200 {
        tokens.extend(attacker.guest().await);
    }
    if tokens.is_empty() {
        return;
    }
    let calls = async |first: usize| {
        for token in tokens.iter().cycle().skip(first) {
            attacker.get(token, "/api/me").await;
        }
    };
    join_all((0..8).map(calls)).await;
}

/// The largest file of the server, compressed, by four connections.
pub(crate) async fn files(attacker: Arc<Attacker>) {
    let query = async || {
        loop {
            if attacker.get_packed("/vendor/docs.js").await.is_none() {
                sleep(RETRY).await;
            }
        }
    };
    tokio::join!(query(), query(), query(), query());
}
