//! The bytes of all open rooms, and their bound (G17).
//!
//! Above the bound a document that is not open gets no room, and a room rejects edits longer than a
//! keystroke. A seated session keeps its seat and types on: the overshoot is what people type.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Debug)]
pub struct RoomMemory {
    held: Arc<AtomicUsize>,
    limit: usize,
}

/// The bytes of one room. Dropping it releases them.
#[derive(Debug)]
pub struct RoomBytes {
    all: RoomMemory,
    bytes: usize,
}

impl RoomMemory {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { held: Arc::default(), limit }
    }

    /// Charges a room of `bytes`, also above the bound: a room holds what was read.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> RoomBytes {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        RoomBytes { all: self.clone(), bytes }
    }

    /// Whether a further room of `bytes` exceeds the bound. The only open room may exceed it.
    pub(crate) fn is_short_of(&self, bytes: usize) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        held != 0 && self.limit < held.saturating_add(bytes)
    }
}

impl RoomBytes {
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Wraps as the counter does, so that one operation serves growth and decrease.
        self.all.held.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.all.limit <= self.all.held.load(Ordering::Relaxed)
    }
}

impl Drop for RoomBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_rooms_are_charged_and_released() {
        let memory = RoomMemory::new(100);
        assert!(!memory.is_short_of(1_000), "the only room may be larger than the bound");
        let mut one = memory.charge(60);
        assert!(memory.is_short_of(41) && !memory.is_short_of(40));
        one.set(10);
        let two = memory.charge(90);
        assert!(two.is_full());
        drop(one);
        assert!(!two.is_full() && memory.is_short_of(11));
        drop(two);
        assert!(!memory.is_short_of(1_000));
    }
}
