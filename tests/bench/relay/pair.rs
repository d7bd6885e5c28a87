//! Two clients of one room: one types, the other sees it. The same for whatever stands between.

use bytes::Bytes;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use galley::sync::frame::{self, ClientFrame};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use tokio_util::task::TaskTracker;
use yrs::{Doc, OffsetKind, Options, Text, Transact};

use crate::redis_server::PATIENCE;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Where a room is, and with which tokens.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) link: String,
    pub(crate) writer_token: String,
    pub(crate) reviewer_token: String,
}

/// A writer, a reviewer, and what the writer is going to type.
pub(crate) struct Pair {
    writer: SplitSink<Socket, Message>,
    reviewer: Socket,
    keystrokes: std::vec::IntoIter<Bytes>,
    ear: AbortHandle,
}

impl Pair {
    /// Both seated, with so many keystrokes ready to be sent.
    pub(crate) async fn seated(address: &Address, keystrokes: usize, tasks: &TaskTracker) -> Self {
        let writer = connect(address, "writer", &address.writer_token).await;
        let reviewer = connect(address, "reviewer", &address.reviewer_token).await;
        let (writer, mut to_writer) = writer.split();
        // What the writer is sent is read and left alone.
        let ear = tasks.spawn(async move { while let Some(Ok(_)) = to_writer.next().await {} });
        let keystrokes = typed(keystrokes).into_iter();
        Self { writer, reviewer, keystrokes, ear: ear.abort_handle() }
    }

    /// Types one character; returns how long the reviewer waited for it.
    pub(crate) async fn keystroke(&mut self) -> std::time::Duration {
        let keystroke = self.keystrokes.next().expect("as many as were asked for");
        let began = Instant::now();
        self.writer.send(Message::Binary(keystroke.clone())).await.expect("it is sent");
        loop {
            let message = timeout(PATIENCE, self.reviewer.next()).await.expect("it comes in time");
            // Presence and signs of life come in between.
            if message.expect("an open socket").expect("a frame").into_data() == keystroke {
                return began.elapsed();
            }
        }
    }

    /// Leaves as a page does.
    pub(crate) async fn leave(mut self) {
        self.writer.send(Message::Close(None)).await.expect("it is sent");
        self.reviewer.close(None).await.expect("it is sent");
        self.ear.abort();
    }
}

/// A socket that is in the room: its first question has been answered.
async fn connect(address: &Address, role: &str, token: &str) -> Socket {
    let Address { url, link, .. } = address;
    let url = format!("{}/ws/share-links/{link}/{role}", url.replacen("http", "ws", 1));
    let mut request = url.into_client_request().expect("a request");
    let bearer = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    let connecting = connect_async_with_config(request, None, true);
    let (mut socket, _) = connecting.await.expect("a handshake");
    socket.send(Message::Binary(frame::sync_step1(&[0]))).await.expect("it is sent");
    loop {
        let message = timeout(PATIENCE, socket.next()).await.expect("an answer in time");
        let data = message.expect("an open socket").expect("a frame").into_data();
        if matches!(frame::parse(&data), Ok(ClientFrame::SyncStep2(_))) {
            return socket;
        }
    }
}

/// What a writer sends who types so many characters, one after the other.
fn typed(characters: usize) -> Vec<Bytes> {
    let client_id = yrs::block::ClientID::new(getrandom::u32().expect("random bits").into());
    let options = Options { offset_kind: OffsetKind::Utf16, client_id, ..Options::default() };
    let doc = Doc::with_options(options);
    let content = doc.get_or_insert_text("content");
    let keystroke = |at| {
        let mut transaction = doc.transact_mut();
        content.insert(&mut transaction, at, "글");
        frame::update(&transaction.encode_update_v1())
    };
    (0..).take(characters).map(keystroke).collect()
}
