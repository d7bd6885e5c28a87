//! The outbox: the bounded outbound queue of one socket.
//!
//! It is bounded in frames and in bytes. A slow reader is closed at the bound, reconnects and syncs
//! again. The outbox skips no update: a replica that missed one stays incomplete for ever.

pub mod close;
pub mod event;
pub mod queue;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::domain::limits::OUTBOX_FRAMES_MAX;
use crate::outbox::close::Close;
use crate::outbox::queue::OutboxQueue;
use crate::yjs::protocol;

/// Time for the frames that the outbox queued before a close. Within two seconds a socket without a
/// right to its seat has ended (G14).
const FINAL_FRAMES_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub enum SocketMessage {
    Frame(Bytes),
    /// Sends a websocket ping with this payload. The pong returns it.
    Ping(Bytes),
    Close(Close),
}

impl SocketMessage {
    /// An empty message. It is a heartbeat for a client that counts messages.
    #[must_use]
    pub fn keep_alive() -> Self {
        Self::Frame(protocol::keep_alive())
    }
}

#[derive(Clone, Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub struct OutboxReader {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: OutboxQueue<Queued>,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// The close, and the deadline for the frames queued before it.
    close: OnceLock<(Close, Instant)>,
    /// Wakes [`OutboxReader::overdue`] when the close is set during a send.
    closed: Notify,
}

impl Shared {
    fn is_closed(&self) -> bool {
        self.close.get().is_some()
    }

    fn reason(&self) -> Option<Close> {
        self.close.get().map(|(close, _until)| close.clone())
    }
}

#[derive(Debug)]
enum Queued {
    Frame(Bytes),
    Ping(Bytes),
}

#[must_use]
pub fn outbox(bytes_max: usize) -> (Outbox, OutboxReader) {
    let shared = Arc::new(Shared {
        queue: OutboxQueue::new(OUTBOX_FRAMES_MAX),
        bytes: AtomicUsize::new(0),
        bytes_max,
        close: OnceLock::new(),
        closed: Notify::new(),
    });
    (Outbox { shared: Arc::clone(&shared) }, OutboxReader { shared })
}

impl Outbox {
    /// Queues a message, or closes the socket of a slow reader at the bound. After a close the
    /// outbox queues nothing (G14): a slow reader would receive frames for a seat that it has lost.
    pub fn send(&self, frame: Bytes) {
        if self.is_closed() {
            return;
        }
        let waiting = self.shared.bytes.fetch_add(frame.len(), Ordering::Relaxed) + frame.len();
        if self.shared.bytes_max < waiting {
            return self.close(Close::TooMuch("slow-reader"));
        }
        if self.shared.queue.push(Queued::Frame(frame)).is_err() {
            self.close(Close::TooMuch("slow-reader"));
        }
    }

    /// Queues a ping. A full queue already shows that the socket is not idle.
    pub fn ping(&self) {
        let _full = self.shared.queue.push(Queued::Ping(Bytes::new()));
    }

    /// Queues the numbered ping of a liveness probe. Its pong returns the number.
    pub fn probe(&self, number: u64) {
        let number = Bytes::copy_from_slice(&number.to_be_bytes());
        let _full = self.shared.queue.push(Queued::Ping(number));
    }

    /// Closes the socket. The first reason stands.
    pub fn close(&self, close: Close) {
        let _earlier = self.shared.close.set((close, Instant::now() + FINAL_FRAMES_TIMEOUT));
        self.shared.closed.notify_one();
        self.shared.queue.stir();
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Why the server closed the socket, also if the client has not read it.
    #[must_use]
    pub fn close_reason(&self) -> Option<Close> {
        self.shared.reason()
    }
}

impl OutboxReader {
    /// Waits for the next command. Frames from before a close come first, unless the reader is slow.
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> SocketMessage {
        let queued = self.shared.queue.pop_unless(|| self.shared.is_closed()).await;
        match queued {
            Some(queued) if !self.gave_up() => self.take(queued),
            Some(_) | None => SocketMessage::Close(self.shared.reason().unwrap_or(Close::Left)),
        }
    }

    /// Returns a queued frame or ping without waiting. Only [`next`](Self::next) returns the close.
    pub fn ready(&self) -> Option<SocketMessage> {
        if self.gave_up() {
            return None;
        }
        self.shared.queue.try_pop().map(|queued| self.take(queued))
    }

    fn take(&self, queued: Queued) -> SocketMessage {
        match queued {
            Queued::Frame(frame) => {
                self.shared.bytes.fetch_sub(frame.len(), Ordering::Relaxed);
                SocketMessage::Frame(frame)
            }
            Queued::Ping(number) => SocketMessage::Ping(number),
        }
    }

    /// Resolves when the close is set and the time for earlier frames is over. Nothing is lost if the
    /// future is dropped.
    pub async fn overdue(&self) {
        loop {
            // Registers for the notification before the check, so that it misses no close in
            // between.
            let closed = self.shared.closed.notified();
            if let Some((_, until)) = self.shared.close.get() {
                return sleep_until(*until).await;
            }
            closed.await;
        }
    }

    /// Whether the outbox drops its queue: the reader is slow, or the deadline has passed.
    fn gave_up(&self) -> bool {
        self.shared.close.get().is_some_and(|(close, until)| {
            matches!(close, Close::TooMuch(_)) || *until <= Instant::now()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_queued_before_a_close_are_sent_before_it() {
        let (outbox, mut reader) = outbox(1_000);
        outbox.send(Bytes::from_static(b"last words"));
        outbox.close(Close::Restart("stopping"));
        outbox.close(Close::NoSuchLink);
        assert!(matches!(reader.next().await, SocketMessage::Frame(_)));
        let end = reader.next().await;
        assert!(matches!(end, SocketMessage::Close(Close::Restart("stopping"))), "{end:?}");
    }

    #[tokio::test]
    async fn ready_returns_queued_frames_and_frees_their_bytes_and_never_the_close() {
        let (outbox, mut reader) = outbox(20);
        for _ in 0..3 {
            outbox.send(Bytes::from_static(b"0123456789"));
            assert!(matches!(reader.ready(), Some(SocketMessage::Frame(_))));
        }
        assert!(reader.ready().is_none());
        outbox.probe(7);
        outbox.close(Close::NoSuchLink);
        assert!(matches!(reader.ready(), Some(SocketMessage::Ping(_))));
        assert!(reader.ready().is_none());
        assert!(matches!(reader.next().await, SocketMessage::Close(Close::NoSuchLink)));
    }

    #[tokio::test]
    async fn g13_the_outbox_drops_the_queue_of_a_slow_reader() {
        let (outbox, reader) = outbox(15);
        outbox.send(Bytes::from_static(b"0123456789"));
        outbox.send(Bytes::from_static(b"0123456789"));
        assert!(reader.ready().is_none());
    }

    #[tokio::test]
    async fn ready_follows_next_and_a_close_wakes_a_waiting_reader() {
        let (outbox, mut reader) = outbox(1_000);
        outbox.send(Bytes::from_static(b"one"));
        outbox.probe(2);
        assert!(matches!(reader.next().await, SocketMessage::Frame(frame) if frame == "one"));
        assert!(matches!(reader.ready(), Some(SocketMessage::Ping(_))));
        assert!(reader.ready().is_none());
        let closing = async {
            tokio::task::yield_now().await;
            outbox.close(Close::NoSuchLink);
        };
        let (end, ()) = tokio::join!(reader.next(), closing);
        assert!(matches!(end, SocketMessage::Close(Close::NoSuchLink)), "{end:?}");
    }

    #[tokio::test]
    async fn g13_the_outbox_closes_a_slow_reader_at_the_bound() {
        let (outbox, mut reader) = outbox(1_000);
        for _ in 0..101 {
            outbox.send(Bytes::from_static(b"0123456789"));
        }
        assert!(outbox.is_closed());
        let end = reader.next().await;
        assert!(matches!(end, SocketMessage::Close(Close::TooMuch(_))), "{end:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn g14_after_a_close_nothing_is_queued_and_earlier_frames_have_one_second() {
        let (outbox, mut reader) = outbox(1_000);
        outbox.send(Bytes::from_static(b"before"));
        outbox.send(Bytes::from_static(b"before, read late"));
        outbox.close(Close::NoSuchLink);
        outbox.send(Bytes::from_static(b"after"));
        assert!(matches!(reader.next().await, SocketMessage::Frame(frame) if frame == "before"));
        reader.overdue().await;
        let end = reader.next().await;
        assert!(matches!(end, SocketMessage::Close(Close::NoSuchLink)), "{end:?}");
    }
}
