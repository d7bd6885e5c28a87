//! What waits to be sent to one socket.
//!
//! Bounded in frames and in bytes: a reader that cannot keep up is closed and syncs again when it
//! comes back. It is never skipped, because a replica that missed an update stays behind for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::domain::limits::OUTBOX_FRAMES_MAX;
use crate::session::close::Close;

/// Something for the socket task to do.
#[derive(Debug)]
pub enum Outgoing {
    /// Send this binary message.
    Frame(Bytes),
    /// Send a websocket ping.
    Ping,
    /// Send this close and stop.
    Close(Close),
}

/// The sending end; cheap to clone, never waits.
#[derive(Clone, Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Outgoing>,
}

/// The receiving end, owned by the socket task.
#[derive(Debug)]
pub struct OutboxReader {
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Outgoing>,
}

#[derive(Debug)]
struct Shared {
    bytes: AtomicUsize,
    bytes_max: usize,
    close: OnceLock<Close>,
    closed: CancellationToken,
}

/// An empty outbox that holds at most `bytes_max` bytes of frames.
#[must_use]
pub fn outbox(bytes_max: usize) -> (Outbox, OutboxReader) {
    let (sender, receiver) = mpsc::channel(OUTBOX_FRAMES_MAX);
    let shared = Arc::new(Shared {
        bytes: AtomicUsize::new(0),
        bytes_max,
        close: OnceLock::new(),
        closed: CancellationToken::new(),
    });
    let reader = OutboxReader { shared: Arc::clone(&shared), queue: receiver };
    (Outbox { shared, queue: sender }, reader)
}

impl Outbox {
    /// Queues a message; closes the socket if it cannot keep up.
    pub fn send(&self, frame: Bytes) {
        let waiting = self.shared.bytes.fetch_add(frame.len(), Ordering::Relaxed) + frame.len();
        if self.shared.bytes_max < waiting {
            return self.close(Close::TooMuch("slow-reader"));
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = self.queue.try_send(Outgoing::Frame(frame))
        {
            self.close(Close::TooMuch("slow-reader"));
        }
    }

    /// Queues a ping. A full queue is proof enough that the socket is not idle.
    pub fn ping(&self) {
        let _full = self.queue.try_send(Outgoing::Ping);
    }

    /// Ends the socket. The first reason stands.
    pub fn close(&self, close: Close) {
        let _earlier = self.shared.close.set(close);
        self.shared.closed.cancel();
    }

    /// Whether the socket has been told to end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }
}

impl OutboxReader {
    /// What to do next. What was queued before a close is still sent, unless the reader is slow.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Outgoing {
        let outgoing = tokio::select! {
            biased;
            queued = self.queue.recv() => queued,
            () = self.shared.closed.cancelled() => None,
        };
        match outgoing {
            Some(Outgoing::Frame(frame)) if !self.gave_up() => {
                self.shared.bytes.fetch_sub(frame.len(), Ordering::Relaxed);
                Outgoing::Frame(frame)
            }
            Some(Outgoing::Ping) if !self.gave_up() => Outgoing::Ping,
            Some(_) | None => {
                Outgoing::Close(self.shared.close.get().cloned().unwrap_or(Close::Left))
            }
        }
    }

    /// A slow reader's queue is not worth sending.
    fn gave_up(&self) -> bool {
        matches!(self.shared.close.get(), Some(Close::TooMuch(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_queued_before_the_close_is_sent_first() {
        let (outbox, mut reader) = outbox(1_000);
        outbox.send(Bytes::from_static(b"last words"));
        outbox.close(Close::Restart("stopping"));
        outbox.close(Close::NoSuchLink);
        assert!(matches!(reader.next().await, Outgoing::Frame(_)));
        let end = reader.next().await;
        assert!(matches!(end, Outgoing::Close(Close::Restart("stopping"))), "{end:?}");
    }

    #[tokio::test]
    async fn g13_a_reader_that_never_reads_is_closed_at_the_bound() {
        let (outbox, mut reader) = outbox(1_000);
        for _ in 0..101 {
            outbox.send(Bytes::from_static(b"0123456789"));
        }
        assert!(outbox.is_closed());
        let end = reader.next().await;
        assert!(matches!(end, Outgoing::Close(Close::TooMuch(_))), "{end:?}");
    }
}
