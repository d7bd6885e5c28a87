//! What waits to be sent to one socket.
//!
//! Bounded in frames and in bytes: a reader that cannot keep up is closed and syncs again when it
//! comes back. It is never skipped, because a replica that missed an update stays behind for ever.

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
use crate::outbox::queue::Queue;
use crate::yjs::protocol;

/// How long what was queued before a close may take to be sent: within two seconds a socket without
/// a right to its seat has ended (G14).
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Something for the socket task to do.
#[derive(Debug)]
pub enum Outgoing {
    /// Send this binary message.
    Frame(Bytes),
    /// Send a websocket ping with this in it, which comes back in the pong.
    Ping(Bytes),
    /// Send this close and stop.
    Close(Close),
}

impl Outgoing {
    /// A message that means nothing, to a client that counts messages as signs of life.
    #[must_use]
    pub fn keep_alive() -> Self {
        Self::Frame(protocol::keep_alive())
    }
}

/// The sending end; cheap to clone, never waits.
#[derive(Clone, Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
}

/// The receiving end, owned by the socket task.
#[derive(Debug)]
pub struct OutboxReader {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue<Queued>,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Why it ends, and until when what was queued before is still sent.
    close: OnceLock<(Close, Instant)>,
    /// There is a reason now, for who waits for it while something is being sent.
    closed: Notify,
}

impl Shared {
    fn is_closed(&self) -> bool {
        self.close.get().is_some()
    }
}

/// What waits to be sent.
#[derive(Debug)]
enum Queued {
    Frame(Bytes),
    Ping(Bytes),
}

/// An empty outbox that holds at most `bytes_max` bytes of frames.
#[must_use]
pub fn outbox(bytes_max: usize) -> (Outbox, OutboxReader) {
    let shared = Arc::new(Shared {
        queue: Queue::new(OUTBOX_FRAMES_MAX),
        bytes: AtomicUsize::new(0),
        bytes_max,
        close: OnceLock::new(),
        closed: Notify::new(),
    });
    (Outbox { shared: Arc::clone(&shared) }, OutboxReader { shared })
}

impl Outbox {
    /// Queues a message; closes the socket if it cannot keep up. Nothing is queued behind a close
    /// (G14): a slow reader whose seat was lost would go on reading.
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

    /// Queues a ping. A full queue is proof enough that the socket is not idle.
    pub fn ping(&self) {
        let _full = self.shared.queue.push(Queued::Ping(Bytes::new()));
    }

    /// Queues a ping whose pong is told from all others.
    pub fn ask(&self, number: u64) {
        let number = Bytes::copy_from_slice(&number.to_be_bytes());
        let _full = self.shared.queue.push(Queued::Ping(number));
    }

    /// Ends the socket. The first reason stands.
    pub fn close(&self, close: Close) {
        let _earlier = self.shared.close.set((close, Instant::now() + LAST_WORDS));
        self.shared.closed.notify_one();
        self.shared.queue.stir();
    }

    /// Whether the socket has been told to end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl OutboxReader {
    /// What to do next. What was queued before a close is still sent, unless the reader is slow.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Outgoing {
        let queued = self.shared.queue.pop_unless(|| self.shared.is_closed()).await;
        match queued {
            Some(queued) if !self.gave_up() => self.take(queued),
            Some(_) | None => {
                let close = self.shared.close.get().map(|(close, _until)| close.clone());
                Outgoing::Close(close.unwrap_or(Close::Left))
            }
        }
    }

    /// What else is to be sent and waits already. A close is left to [`next`](Self::next).
    pub fn ready(&self) -> Option<Outgoing> {
        if self.gave_up() {
            return None;
        }
        self.shared.queue.try_pop().map(|queued| self.take(queued))
    }

    fn take(&self, queued: Queued) -> Outgoing {
        match queued {
            Queued::Frame(frame) => {
                self.shared.bytes.fetch_sub(frame.len(), Ordering::Relaxed);
                Outgoing::Frame(frame)
            }
            Queued::Ping(number) => Outgoing::Ping(number),
        }
    }

    /// Resolves when the socket was told to end and has had its time for what was queued before.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn overdue(&self) {
        loop {
            // Asked for before the look, so that a close between the two is not slept through.
            let closed = self.shared.closed.notified();
            if let Some((_, until)) = self.shared.close.get() {
                return sleep_until(*until).await;
            }
            closed.await;
        }
    }

    /// A slow reader's queue is not worth sending.
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
    async fn what_waits_is_had_at_once_and_gives_its_room_back_but_the_close_comes_last() {
        let (outbox, mut reader) = outbox(20);
        for _ in 0..3 {
            outbox.send(Bytes::from_static(b"0123456789"));
            assert!(matches!(reader.ready(), Some(Outgoing::Frame(_))));
        }
        assert!(reader.ready().is_none());
        outbox.ask(7);
        outbox.close(Close::NoSuchLink);
        assert!(matches!(reader.ready(), Some(Outgoing::Ping(_))));
        assert!(reader.ready().is_none());
        assert!(matches!(reader.next().await, Outgoing::Close(Close::NoSuchLink)));
    }

    #[tokio::test]
    async fn g13_a_slow_readers_queue_is_not_worth_sending() {
        let (outbox, reader) = outbox(15);
        outbox.send(Bytes::from_static(b"0123456789"));
        outbox.send(Bytes::from_static(b"0123456789"));
        assert!(reader.ready().is_none());
    }

    #[tokio::test]
    async fn what_waits_behind_a_message_can_be_had_with_it_and_a_close_wakes_who_waits() {
        let (outbox, mut reader) = outbox(1_000);
        outbox.send(Bytes::from_static(b"one"));
        outbox.ask(2);
        assert!(matches!(reader.next().await, Outgoing::Frame(frame) if frame == "one"));
        assert!(matches!(reader.ready(), Some(Outgoing::Ping(_))));
        assert!(reader.ready().is_none());
        let closing = async {
            tokio::task::yield_now().await;
            outbox.close(Close::NoSuchLink);
        };
        let (end, ()) = tokio::join!(reader.next(), closing);
        assert!(matches!(end, Outgoing::Close(Close::NoSuchLink)), "{end:?}");
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

    #[tokio::test(start_paused = true)]
    async fn g14_nothing_is_queued_behind_a_close_and_what_was_before_it_has_a_second() {
        let (outbox, mut reader) = outbox(1_000);
        outbox.send(Bytes::from_static(b"before"));
        outbox.send(Bytes::from_static(b"before, read late"));
        outbox.close(Close::NoSuchLink);
        outbox.send(Bytes::from_static(b"after"));
        assert!(matches!(reader.next().await, Outgoing::Frame(frame) if frame == "before"));
        reader.overdue().await;
        let end = reader.next().await;
        assert!(matches!(end, Outgoing::Close(Close::NoSuchLink)), "{end:?}");
    }
}
