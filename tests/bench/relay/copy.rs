//! The least possible relay between two clients: it copies bytes and does nothing else.
//!
//! It authenticates no client, and decodes, validates and stores nothing. Like Galley it serves
//! each socket by one task, with configured buffers ([`buffers`]). It accepts as many connections
//! at a time, sends small packets at once and runs on tokio's default runtime.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use galley::http::serve;
use galley::yjs::protocol;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_util::task::TaskTracker;

use crate::client::buffers;

/// The clients of each room, by its address without the role.
type Rooms = Arc<Mutex<HashMap<String, Vec<(u64, UnboundedSender<Bytes>)>>>>;

/// Serves on a free port and prints its address, until the process is killed.
pub(crate) async fn serve() {
    let listener = serve::listen(([127, 0, 0, 1], 0).into()).expect("a port");
    println!("http://{}", listener.local_addr().expect("an address"));
    let (rooms, tasks) = (Rooms::default(), TaskTracker::new());
    for number in 0.. {
        let (stream, _) = listener.accept().await.expect("a connection");
        #[expect(clippy::disallowed_methods, reason = "one for each client")]
        tasks.spawn(enter(stream, number, Arc::clone(&rooms)));
    }
}

async fn enter(stream: TcpStream, number: u64, rooms: Rooms) {
    stream.set_nodelay(true).expect("a socket option");
    let mut room = String::new();
    #[allow(clippy::result_large_err, reason = "the shape is the library's")]
    let read_address = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        request.uri().path().rsplit_once('/').unwrap_or_default().0.clone_into(&mut room);
        Ok(response)
    };
    let accepting = accept_hdr_async_with_config(stream, read_address, Some(buffers()));
    let socket = accepting.await.expect("a handshake");
    let (sender, queue) = unbounded_channel();
    // Galley's reply to a client's first request: here the document is empty.
    sender.send(protocol::sync_step2(&[0, 0])).expect("the queue is there");
    rooms.lock().expect("not poisoned").entry(room.clone()).or_default().push((number, sender));
    carry(socket, queue, |frame| {
        for (other, sender) in rooms.lock().expect("not poisoned").get(&room).into_iter().flatten()
        {
            if *other != number {
                // Disconnected, and about to be removed.
                let _gone = sender.send(frame.clone());
            }
        }
    })
    .await;
    let mut rooms = rooms.lock().expect("not poisoned");
    rooms.entry(room).or_default().retain(|(other, _)| *other != number);
}

/// Sends queued messages, and relays received ones, until the client disconnects.
async fn carry(
    mut socket: tokio_tungstenite::WebSocketStream<TcpStream>,
    mut queue: UnboundedReceiver<Bytes>,
    copy: impl Fn(&Bytes),
) {
    loop {
        tokio::select! {
            outgoing = queue.recv() => {
                let Some(frame) = outgoing else { return };
                if socket.send(Message::Binary(frame)).await.is_err() {
                    return;
                }
            }
            incoming = socket.next() => match incoming {
                Some(Ok(Message::Binary(frame))) => copy(&frame),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}
