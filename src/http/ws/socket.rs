//! The transport of a socket: sends in batches, receives, closes.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio::time::timeout;

use crate::domain::limits::LONG_MESSAGE_BYTES;
use crate::http::ws::inbound::Inbound;
use crate::outbox::close::Close;
use crate::outbox::{OutboxReader, SocketMessage};

const SENT_TOGETHER_MAX: usize = 64;
/// Time limit of that write; then the client counts as gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the client's answer to a close.
const LINGER: Duration = Duration::from_secs(1);
/// The close when the budget rejects the bytes of an unfinished message.
pub(super) const TOO_MANY_BYTES: Close = Close::TooMuch("too-many-bytes");

pub(super) struct Socket {
    socket: WebSocket,
    /// Bytes of an unfinished message.
    pub(super) inbound: Arc<Inbound>,
    /// The last message, if it was long, until the next one is read.
    long: Option<Bytes>,
}

impl Socket {
    pub(super) fn new(socket: WebSocket, inbound: Arc<Inbound>) -> Self {
        Self { socket, inbound, long: None }
    }

    /// Sends a message, and those queued behind it. Returns false when the client is gone or reads too
    /// slowly.
    pub(super) async fn send(&mut self, first: Message, outbox: &OutboxReader) -> bool {
        tokio::select! {
            // The first poll sends most messages; then `overdue` is never polled.
            biased;
            sent = timeout(SEND_TIMEOUT, self.hand_over(first, outbox)) => match sent {
                Ok(sent) => sent.is_ok(),
                Err(_elapsed) => {
                    tracing::debug!("cut a socket whose client reads nothing");
                    false
                }
            },
            () = outbox.overdue() => {
                tracing::debug!("cut a socket whose client read nothing before its close");
                false
            }
        }
    }

    /// Batches messages into few writes: a write costs more than all other work on a message.
    async fn hand_over(
        &mut self,
        first: Message,
        outbox: &OutboxReader,
    ) -> Result<(), axum::Error> {
        self.socket.feed(first).await?;
        let waiting = std::iter::from_fn(|| outbox.ready().and_then(|next| message(next).ok()));
        for next in waiting.take(SENT_TOGETHER_MAX) {
            self.socket.feed(next).await?;
        }
        self.socket.flush().await
    }

    /// Receives the next message.
    ///
    /// A long message shares the library's read buffer, which would retain its size for the socket's
    /// life. The library allocates a new buffer if the message still exists when it begins to read the
    /// next one.
    pub(super) async fn recv(&mut self) -> Option<Result<Message, axum::Error>> {
        let Self { socket, inbound, long } = self;
        let mut receiving = pin!(socket.recv());
        let incoming = poll_fn(|context| {
            let polled = receiving.as_mut().poll(context);
            if let Some(message) = long.take() {
                inbound.release(message.len() as u64);
            }
            polled
        });
        let incoming = incoming.await;
        match &incoming {
            Some(Ok(Message::Binary(message))) if message.len() as u64 > LONG_MESSAGE_BYTES => {
                *long = Some(message.clone());
            }
            Some(Ok(Message::Binary(message))) => inbound.release(message.len() as u64),
            // Other messages have no counted bytes, or the socket ends with them.
            Some(_) | None => {}
        }
        incoming
    }

    pub(super) async fn close(&mut self, close: &Close) {
        let frame = CloseFrame { code: close.code(), reason: close.reason().into() };
        // A client that is gone needs no reason.
        let _sent = timeout(LINGER, self.socket.send(Message::Close(Some(frame)))).await;
    }

    /// Waits for the client's close, so that it reads the server's close before the connection is reset.
    pub(super) async fn linger(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let _gone = timeout(LINGER, rest).await;
    }
}

pub(super) fn message(outgoing: SocketMessage) -> Result<Message, Close> {
    match outgoing {
        SocketMessage::Frame(frame) => Ok(Message::Binary(frame)),
        SocketMessage::Ping(number) => Ok(Message::Ping(number)),
        SocketMessage::Close(close) => Err(close),
    }
}

/// The client's fault; `None` if it only disconnected.
pub(super) fn fault_of(error: axum::Error) -> Option<Close> {
    use tungstenite::Error as Is;
    use tungstenite::error::ProtocolError;
    match error.into_inner().downcast_ref()? {
        Is::Capacity(_) => Some(Close::TooLarge("message")),
        Is::Io(error) if error.kind() == ErrorKind::QuotaExceeded => Some(TOO_MANY_BYTES),
        Is::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Is::Protocol(_) | Is::Utf8(_) => Some(Close::Malformed("websocket")),
        _ => None,
    }
}
