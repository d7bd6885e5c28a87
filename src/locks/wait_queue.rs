//! The wait queue: its terms, and how this process wakes its waiters.
//!
//! The backend stores the queue with its lock (`wait_queue.lua`, [`crate::memory::table`]).
//! This module holds the waiters of this process. Each has a wake-up slot. The server has one
//! subscription; a message names the waiter that was handed a lock, and the fence. A lost message
//! is harmless: each waiter polls before its entry expires, and finds its grant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, watch};

use crate::types::{Grant, Holder};
use galley_domain::fence::Fence;
use galley_domain::ids::NodeId;

/// How long an entry lives without a poll. A waiter polls after half of that, so one call may fail.
/// A lost message costs at most that half, and a dead waiter delays the others by at most the
/// whole.
pub(crate) const QUEUE_ENTRY_TTL: Duration = Duration::from_secs(6);
/// The longest pause between two polls of a waiter.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// Waiters of one lock. The script rejects further claimants.
pub(crate) const QUEUE_LENGTH_MAX: usize = 1_000;

const _: () = assert!(POLL_INTERVAL.as_millis() * 2 <= QUEUE_ENTRY_TTL.as_millis());

#[derive(Clone, Debug)]
pub(crate) struct QueueEntry {
    pub(crate) server: NodeId,
    /// The time of its arrival by the backend's clock; 0 in its first poll.
    pub(crate) arrival: u64,
    /// The reassert grace for the holder that the waiter observed, if Redis has lost it.
    pub(crate) remembers: Duration,
}

#[derive(Debug)]
pub(crate) enum QueueStatus {
    /// The lock was granted.
    Granted(Grant),
    /// The claim is in the queue.
    Queued {
        /// 1 is next.
        position: usize,
        arrival: u64,
        /// `None` if the holder is unknown: Redis restarted empty.
        holder: Option<Holder>,
    },
    /// The claim is not in the queue: it does not wait, or the queue is full.
    Refused(Option<Holder>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) fence: Fence,
    pub(crate) since: DateTime<Utc>,
}

#[derive(Debug, Default)]
pub(crate) struct WaiterRegistry {
    slots: Mutex<HashMap<String, Arc<WakeSlot>>>,
    /// Received messages of this server to itself.
    echoes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct WakeSlot {
    rung: Notify,
    handover: Mutex<Option<Handover>>,
}

/// A waiter's registration, until it is dropped.
#[derive(Debug)]
pub(crate) struct WakeHandle {
    waiter_registry: Arc<WaiterRegistry>,
    value: String,
    slot: Arc<WakeSlot>,
}

impl WaiterRegistry {
    /// Registers a waiter. The waiter calls it before its first poll, so that no message precedes
    /// it.
    pub(crate) fn enter(self: &Arc<Self>, value: &str) -> WakeHandle {
        let slot = Arc::<WakeSlot>::default();
        self.slots().insert(value.to_owned(), Arc::clone(&slot));
        WakeHandle { waiter_registry: Arc::clone(self), value: value.to_owned(), slot }
    }

    pub(crate) fn wake(&self, value: &str, handover: Handover) {
        if let Some(slot) = self.slots().get(value) {
            *slot.handover() = Some(handover);
            slot.rung.notify_one();
        }
    }

    /// Wakes all waiters for a poll: messages may have been lost.
    pub(crate) fn wake_all(&self) {
        self.slots().values().for_each(|slot| slot.rung.notify_one());
    }

    pub(crate) fn echo(&self) {
        self.echoes.send_modify(|heard| *heard += 1);
    }

    pub(crate) fn echoes(&self) -> watch::Receiver<u64> {
        self.echoes.subscribe()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<WakeSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakeSlot {
    fn handover(&self) -> MutexGuard<'_, Option<Handover>> {
        self.handover.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakeHandle {
    /// Waits for a wake-up, including an earlier one. Takes the hand-over: the next call does not
    /// return it.
    pub(crate) async fn rings(&self) -> Option<Handover> {
        self.slot.rung.notified().await;
        self.slot.handover().take()
    }
}

impl Drop for WakeHandle {
    fn drop(&mut self) {
        let mut slots = self.waiter_registry.slots();
        if slots.get(&self.value).is_some_and(|other| Arc::ptr_eq(other, &self.slot)) {
            slots.remove(&self.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_wake_up_before_the_wait_is_received_once() {
        let waiter_registry = Arc::new(WaiterRegistry::default());
        let (one, other) = (waiter_registry.enter("one"), waiter_registry.enter("other"));
        let handover = Handover { fence: Fence(7), since: DateTime::UNIX_EPOCH };
        waiter_registry.wake("one", handover);
        assert_eq!(one.rings().now_or_never(), Some(Some(handover)));
        assert!(one.rings().now_or_never().is_none());
        assert!(other.rings().now_or_never().is_none());
        waiter_registry.wake_all();
        assert_eq!(one.rings().now_or_never(), Some(None), "it may have missed something");
        assert_eq!(other.rings().now_or_never(), Some(None));
        drop((one, other));
        assert!(waiter_registry.slots().is_empty());
    }
}
