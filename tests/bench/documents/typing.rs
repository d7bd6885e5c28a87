//! A writer at full speed, and a reviewer who is sent all of it.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use galley::domain::seat::Role;
use galley::sync::frame;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use yrs::block::ClientID;
use yrs::{Doc, OffsetKind, Options};

use crate::client::{Address, Socket, enter};
use crate::redis_server::PATIENCE;

/// Edits under way. Each is a message of its own; a server that is slower than the writer is not
/// sent more before the reviewer has these.
const WINDOW: usize = 64;

pub(crate) struct Typing {
    writer: Socket,
    reviewer: Socket,
}

impl Typing {
    pub(crate) async fn seated(address: &Address) -> Self {
        let (writer, _) = enter(address, Role::Writer).await;
        let (reviewer, _) = enter(address, Role::Reviewer).await;
        Self { writer, reviewer }
    }

    /// Sends them all; over when the reviewer has the last one.
    pub(crate) async fn send(&mut self, updates: &[Bytes]) {
        for window in updates.chunks(WINDOW) {
            let mut last = Bytes::new();
            for update in window {
                last = frame::update(update);
                self.writer.feed(Message::Binary(last.clone())).await.expect("it is sent");
            }
            self.writer.flush().await.expect("it is sent");
            while receive(&mut self.reviewer).await != last {}
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
    message.expect("an open socket").expect("a frame").into_data()
}

/// A document as a stock client has it.
pub(crate) fn stock_document() -> Doc {
    let client_id = ClientID::new(getrandom::u32().expect("random bits").into());
    Doc::with_options(Options { offset_kind: OffsetKind::Utf16, client_id, ..Options::default() })
}
