//! The waiting line: its terms, and how this process's waiters are woken.
//!
//! The line itself is kept with the lock (`wait_queue.lua`, [`crate::locks::memory::table`]). Here is who of
//! those in it wait in this process. Each has a bell; a server has one subscription, on which it
//! is told which of its waiters was handed a lock, and under which fence. A bell that was missed is no
//! harm: each waiter looks for itself before its deadline in the line, and finds what it was given.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, watch};

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::locks::types::{Grant, Holder};

/// How long a waiter that says nothing is believed to live. It says something in half of that, so
/// that one call may fail; a lost message costs no more than that half; and a dead waiter holds
/// the others up for no longer than the whole.
pub(in crate::locks) const LINE_DEADLINE: Duration = Duration::from_secs(6);
/// How long a waiter waits at the most before it looks for itself.
pub(in crate::locks) const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Waiters in one line. More are refused.
pub(in crate::locks) const LINE_MAX: usize = 1_000;

const _: () = assert!(LOOK_EVERY.as_millis() * 2 <= LINE_DEADLINE.as_millis());

/// What a waiter says of itself, each time that it looks.
#[derive(Clone, Debug)]
pub(in crate::locks) struct Waiter {
    /// The server to tell when the lock is its own.
    pub(in crate::locks) server: NodeId,
    /// When it first came, by the keeper's count; 0 the first time.
    pub(in crate::locks) arrival: u64,
    /// For how long the holder that it knows of may come back, should Redis have forgotten it.
    pub(in crate::locks) remembers: Duration,
}

/// What a waiter finds when it looks.
#[derive(Debug)]
pub(in crate::locks) enum Standing {
    /// It is its turn.
    Granted(Grant),
    /// It stands in the line.
    InLine {
        /// 1 is next.
        position: usize,
        arrival: u64,
        /// None if nobody is known to: Redis came back empty.
        holder: Option<Holder>,
    },
    /// It does not wait, or the line is full.
    Refused(Option<Holder>),
}

/// What a waiter is told when a lock is handed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::locks) struct Turn {
    pub(in crate::locks) fence: Fence,
    pub(in crate::locks) since: DateTime<Utc>,
}

/// The waiters of this process, by value.
#[derive(Debug, Default)]
pub(in crate::locks) struct Lobby {
    bells: Mutex<HashMap<String, Arc<Chime>>>,
    /// How often this server has heard itself.
    echoes: watch::Sender<u64>,
}

/// What a bell says.
#[derive(Debug, Default)]
struct Chime {
    rung: Notify,
    turn: Mutex<Option<Turn>>,
}

/// A waiter's bell. It hangs for as long as this lives.
#[derive(Debug)]
pub(in crate::locks) struct Bell {
    lobby: Arc<Lobby>,
    value: String,
    chime: Arc<Chime>,
}

impl Lobby {
    /// Hangs up a bell. Before the line is entered, so that no message comes too early.
    pub(in crate::locks) fn enter(self: &Arc<Self>, value: &str) -> Bell {
        let chime = Arc::<Chime>::default();
        self.bells().insert(value.to_owned(), Arc::clone(&chime));
        Bell { lobby: Arc::clone(self), value: value.to_owned(), chime }
    }

    /// Tells one waiter that the lock is its own.
    pub(in crate::locks) fn wake(&self, value: &str, turn: Turn) {
        if let Some(chime) = self.bells().get(value) {
            *chime.turn() = Some(turn);
            chime.rung.notify_one();
        }
    }

    /// Lets all look: messages may have been lost.
    pub(in crate::locks) fn wake_all(&self) {
        self.bells().values().for_each(|chime| chime.rung.notify_one());
    }

    /// A message of this server to itself has arrived.
    pub(in crate::locks) fn echo(&self) {
        self.echoes.send_modify(|heard| *heard += 1);
    }

    /// Tells of the next such message.
    pub(in crate::locks) fn echoes(&self) -> watch::Receiver<u64> {
        self.echoes.subscribe()
    }

    fn bells(&self) -> MutexGuard<'_, HashMap<String, Arc<Chime>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chime {
    fn turn(&self) -> MutexGuard<'_, Option<Turn>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// Waits until it rings, or has rung since. What it says is said once.
    pub(in crate::locks) async fn rings(&self) -> Option<Turn> {
        self.chime.rung.notified().await;
        self.chime.turn().take()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut bells = self.lobby.bells();
        if bells.get(&self.value).is_some_and(|bell| Arc::ptr_eq(bell, &self.chime)) {
            bells.remove(&self.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_bell_that_rang_before_anybody_listened_is_heard_once() {
        let lobby = Arc::new(Lobby::default());
        let (one, other) = (lobby.enter("one"), lobby.enter("other"));
        let turn = Turn { fence: Fence(7), since: DateTime::UNIX_EPOCH };
        lobby.wake("one", turn);
        assert_eq!(one.rings().now_or_never(), Some(Some(turn)));
        assert!(one.rings().now_or_never().is_none());
        assert!(other.rings().now_or_never().is_none());
        lobby.wake_all();
        assert_eq!(one.rings().now_or_never(), Some(None), "it may have missed something");
        assert_eq!(other.rings().now_or_never(), Some(None));
        drop((one, other));
        assert!(lobby.bells().is_empty());
    }
}
