//! A hand-written websocket: it sends frames that no library sends.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Desk;

/// The status line of a completed handshake.
const SWITCHED: &str = "HTTP/1.1 101 ";
/// The first byte of a frame: the FIN bit, three reserved bits, and the opcode.
pub(crate) const FIN: u8 = 0x80;
pub(crate) const CONTINUATION: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// A connection to a server on this host.
pub(crate) async fn connect(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    // The kernel buffers little of the data that the test does not read.
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let address = server.url.strip_prefix("http://").expect("an address");
    socket.connect(address.parse().expect("an address")).await.expect("connected")
}

/// Sends a request and reads the head of its response.
pub(crate) async fn head(socket: &mut TcpStream, request: &str) -> String {
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut head = Vec::new();
    let read = async {
        while !head.ends_with(b"\r\n\r\n") {
            match socket.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => break,
            }
        }
    };
    timeout(TEST_TIMEOUT, read).await.expect("an answer in time");
    String::from_utf8_lossy(&head).into_owned()
}

/// The request that opens a websocket, with more header lines.
pub(crate) fn upgrade(desk: &Desk, role: &str, query: &str, more: &str) -> String {
    let who = if role == "writer" { &desk.writer } else { &desk.reviewer };
    format!(
        "GET /ws/share-links/{}/{role}?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {}\r\n{more}\r\n",
        desk.link, who.token
    )
}

/// A websocket that holds a seat or claims one.
pub(crate) async fn open(server: &Server, desk: &Desk, role: &str, query: &str) -> TcpStream {
    let mut socket = connect(server).await;
    let head = head(&mut socket, &upgrade(desk, role, query, "")).await;
    assert!(head.starts_with(SWITCHED), "{head}");
    socket
}

/// A frame as a client must send it: masked, here with a key of zeros.
pub(crate) fn frame(first: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match u16::try_from(body.len()) {
        Ok(short @ 0..126) => out.push(0x80 | u8::try_from(short).expect("below 126")),
        Ok(length) => {
            out.push(0x80 | 126);
            out.extend(length.to_be_bytes());
        }
        Err(_) => {
            out.push(0x80 | 127);
            out.extend(u64::try_from(body.len()).expect("a length").to_be_bytes());
        }
    }
    out.extend([0; 4]);
    out.extend(body);
    out
}

/// Reads to the server's close, or to its pong, which proves that the server has read everything before
/// the ping and serves the socket.
pub(crate) async fn closed_before_a_pong(socket: &mut TcpStream) -> Option<(u16, String)> {
    let ending = timeout(TEST_TIMEOUT, read_to(socket, &[FIN | CLOSE, FIN | PONG])).await;
    let (first, body) = ending.expect("a pong or a close in time").expect("no other end");
    (first == FIN | CLOSE).then(|| close_of(&body)).flatten()
}

/// Reads to the server's close: its code and reason. None if the connection ended without one.
pub(crate) async fn closed(socket: &mut TcpStream) -> Option<(u16, String)> {
    let ending = timeout(TEST_TIMEOUT, read_to(socket, &[FIN | CLOSE])).await;
    close_of(&ending.expect("an end in time")?.1)
}

fn close_of(body: &[u8]) -> Option<(u16, String)> {
    let (code, reason) = body.split_first_chunk()?;
    let reason = String::from_utf8_lossy(reason).into_owned();
    Some((u16::from_be_bytes(*code), reason))
}

/// Reads to the first frame that begins with one of these bytes. None if the connection ended first.
async fn read_to(socket: &mut TcpStream, wanted: &[u8]) -> Option<(u8, Vec<u8>)> {
    loop {
        let first = socket.read_u8().await.ok()?;
        let length = match socket.read_u8().await.ok()? {
            126 => u64::from(socket.read_u16().await.ok()?),
            127 => socket.read_u64().await.ok()?,
            short => u64::from(short),
        };
        let mut body = vec![0; usize::try_from(length).ok()?];
        socket.read_exact(&mut body).await.ok()?;
        if wanted.contains(&first) {
            return Some((first, body));
        }
    }
}

/// Writes until every byte is sent, or the server stops reading.
pub(crate) async fn pour(socket: &mut TcpStream, bytes: &[u8]) {
    let _ended = timeout(TEST_TIMEOUT, socket.write_all(bytes)).await.expect("taken, or cut off");
}

/// The pause between two bytes of a slow client.
pub(crate) const A_MOMENT: Duration = Duration::from_millis(5);
