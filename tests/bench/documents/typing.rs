//! A writer at full speed, and a reviewer who receives all edits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use galley::domain::seat::Role;
use galley::yjs::protocol;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use yrs::block::ClientID;
use yrs::updates::decoder::Decode as _;
use yrs::{Doc, OffsetKind, Options, StateVector};

use crate::client::{Address, Socket, enter};
use crate::support::redis_server::TEST_TIMEOUT;

/// Edits in flight. Each is one message. The writer sends no further edit before the reviewer has
/// these, so a slow server gets no more.
const WINDOW: usize = 64;

/// Both sessions of a document; the writer also receives the page's events.
pub(crate) struct Typing {
    writer: Socket,
    reviewer: Socket,
    /// Saved letters of each client id, by the last `document.saved`.
    saved: StateVector,
}

impl Typing {
    pub(crate) async fn seated(address: &Address) -> Self {
        let (writer, _) = enter(address, Role::Writer).await;
        let (reviewer, _) = enter(address, Role::Reviewer).await;
        Self { writer, reviewer, saved: StateVector::default() }
    }

    /// Sends all edits; returns when the reviewer has the last one.
    pub(crate) async fn send(&mut self, updates: &[Bytes]) {
        for window in updates.chunks(WINDOW) {
            let mut last = Bytes::new();
            for update in window {
                last = protocol::update(update);
                self.writer.feed(Message::Binary(last.clone())).await.expect("it is sent");
            }
            self.writer.flush().await.expect("it is sent");
            loop {
                tokio::select! {
                    relayed = receive(&mut self.reviewer) => if relayed == last { break },
                    said = receive(&mut self.writer) => self.read_word(&said),
                }
            }
        }
    }

    /// Waits until `document.saved` names so many letters of this client. Without the wait a fast
    /// writer is rejected in the end: a room holds at most `limits.unsaved_bytes` of unsaved edits,
    /// and a server a bounded number.
    pub(crate) async fn saved(&mut self, client: ClientID, letters: u32) {
        while self.saved.get(&client) < letters {
            let said = receive(&mut self.writer).await;
            self.read_word(&said);
        }
    }

    /// The server broadcasts no rejected edit: a wait for it would not end.
    fn read_word(&mut self, said: &Bytes) {
        let Some(start) = said.iter().position(|byte| *byte == b'{') else { return };
        let Ok(event) = serde_json::from_slice::<serde_json::Value>(&said[start..]) else { return };
        match event["event"].as_str() {
            Some("document.saved") => {
                let vector = event["state_vector"].as_str().expect("a text");
                let vector = STANDARD.decode(vector).expect("Base64");
                self.saved = StateVector::decode_v1(&vector).expect("a state vector");
            }
            Some("denied" | "problem") => panic!("the server rejected an edit: {event}"),
            _ => {}
        }
    }

    /// Closes both sockets.
    pub(crate) async fn leave(mut self) {
        for socket in [&mut self.writer, &mut self.reviewer] {
            socket.close(None).await.expect("it is sent");
            while let Ok(Some(Ok(_))) = timeout(TEST_TIMEOUT, socket.next()).await {}
        }
    }
}

async fn receive(socket: &mut Socket) -> Bytes {
    let message = timeout(TEST_TIMEOUT, socket.next()).await.expect("it comes in time");
    let message = message.expect("an open socket").expect("a frame");
    if let Message::Close(close) = message {
        panic!("the server closed the socket: {close:?}");
    }
    message.into_data()
}

/// A document as a stock client has it.
pub(crate) fn stock_document() -> Doc {
    let client_id = ClientID::new(getrandom::u32().expect("random bits").into());
    Doc::with_options(Options { offset_kind: OffsetKind::Utf16, client_id, ..Options::default() })
}
