//! A writer at full speed, and a reviewer who is sent all of it.

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
use crate::redis_server::PATIENCE;

/// Edits under way. Each is a message of its own; a server that is slower than the writer is not
/// sent more before the reviewer has these.
const WINDOW: usize = 64;

/// Two at a desk; the writer hears the events of the page.
pub(crate) struct Typing {
    writer: Socket,
    reviewer: Socket,
    /// Of each client id the letters that are saved, in the last word of it.
    saved: StateVector,
}

impl Typing {
    pub(crate) async fn seated(address: &Address) -> Self {
        let (writer, _) = enter(address, Role::Writer).await;
        let (reviewer, _) = enter(address, Role::Reviewer).await;
        Self { writer, reviewer, saved: StateVector::default() }
    }

    /// Sends them all; over when the reviewer has the last one.
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
                    said = receive(&mut self.writer) => self.hear(&said),
                }
            }
        }
    }

    /// Waits until so many letters of this client are called saved. Whoever types faster than a disk
    /// stores is stopped in the end: no room owes more than `limits.unsaved_bytes`, and no server
    /// more than so many edits.
    pub(crate) async fn saved(&mut self, client: ClientID, letters: u32) {
        while self.saved.get(&client) < letters {
            let said = receive(&mut self.writer).await;
            self.hear(&said);
        }
    }

    /// An edit that was not taken is one that nobody is sent: the wait for it would be in vain.
    fn hear(&mut self, said: &Bytes) {
        let Some(start) = said.iter().position(|byte| *byte == b'{') else { return };
        let Ok(event) = serde_json::from_slice::<serde_json::Value>(&said[start..]) else { return };
        match event["event"].as_str() {
            Some("document.saved") => {
                let told = event["state_vector"].as_str().expect("a text");
                let told = STANDARD.decode(told).expect("Base64");
                self.saved = StateVector::decode_v1(&told).expect("a state vector");
            }
            Some("denied" | "problem") => panic!("an edit was not taken: {event}"),
            _ => {}
        }
    }

    /// Both close.
    pub(crate) async fn leave(mut self) {
        for socket in [&mut self.writer, &mut self.reviewer] {
            socket.close(None).await.expect("it is sent");
            while let Ok(Some(Ok(_))) = timeout(PATIENCE, socket.next()).await {}
        }
    }
}

async fn receive(socket: &mut Socket) -> Bytes {
    let message = timeout(PATIENCE, socket.next()).await.expect("it comes in time");
    let message = message.expect("an open socket").expect("a frame");
    if let Message::Close(close) = message {
        panic!("put out: {close:?}");
    }
    message.into_data()
}

/// A document as a stock client has it.
pub(crate) fn stock_document() -> Doc {
    let client_id = ClientID::new(getrandom::u32().expect("random bits").into());
    Doc::with_options(Options { offset_kind: OffsetKind::Utf16, client_id, ..Options::default() })
}
