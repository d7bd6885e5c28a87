//! The quota of a document: its size against its limit, as ample, near or full.
//!
//! From four fifths of the limit the room warns all members. At the limit it rejects text. It accepts
//! deletions, and the marks of text that was typed and deleted without being stored. These marks go
//! into a reserve above the limit. When the document has room again, the room notifies all members and
//! requests the rejected edits from the writer.
//!
//! The size is exact only after garbage collection drops deleted text from the log. The cost: a walk
//! through the whole log. The room therefore collects at most once in [`GC_INTERVAL`], and only near
//! the limit.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::domain::limits::{CLIENTS_PER_DOCUMENT_MAX, DOCUMENT_ITEMS_MAX};
use crate::outbox::event::{Event, Fullness};
use crate::rooms::room::{Room, RoomState};
use crate::sessions::options::RoomLimits;
use crate::yjs::log::{Checked, UpdateLog};

/// The least time between two garbage collections of a nearly full room. Each costs some 20 ms.
const GC_INTERVAL: Duration = Duration::from_secs(1);
/// Free bytes that a full document needs before it accepts text again. Without this margin each
/// keystroke would switch between near and full.
const ROOM_AGAIN: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Quota {
    pub(super) fullness: Fullness,
    collected_at: Option<Instant>,
    /// The version of the text for which an edit was too large even after garbage collection.
    refused: Option<u64>,
    /// An edit was rejected without garbage collection, because the last one was too recent.
    is_untried: bool,
}

impl Room {
    pub fn update_quota(&self, now: Instant) {
        self.weigh_again(&mut self.lock(), now);
    }

    /// Frees the spare memory of a room without an edit since the last tick.
    pub(crate) fn shrink_idle(&self) {
        let mut state = self.lock();
        let version = state.version;
        if state.ticked_at.replace(version) == Some(version) {
            state.log.shrink();
        }
    }

    /// The room calls this after each change. Broadcasts the size if the quota state changed.
    pub(super) fn weigh_again(&self, state: &mut RoomState, now: Instant) {
        let RoomLimits { document_bytes: limit, .. } = self.limits;
        let near = limit / 5 * 4;
        if state.quota.fullness == Fullness::Ample && state.log.bytes() < near {
            return;
        }
        if state.may_collect(now) && std::mem::take(&mut state.quota.is_untried) {
            // The clients send the rejected edits again; `admit` then collects garbage first.
            return state.request_from_writers();
        }
        if state.log.is_untidy() && state.may_collect(now) {
            state.collect_garbage(now);
        }
        let bytes = state.log.bytes();
        let is_refused = state.quota.refused == Some(state.version);
        let fullness = match state.quota.fullness {
            // Without garbage collection the size is an upper bound, and a warning would be premature.
            Fullness::Ample if bytes < near || state.log.is_untidy() => Fullness::Ample,
            Fullness::Ample => Fullness::Near,
            Fullness::Full if is_refused || limit < bytes.saturating_add(ROOM_AGAIN) => {
                Fullness::Full
            }
            // Hysteresis of 2 %: without it each word at the threshold would cost a broadcast.
            Fullness::Near | Fullness::Full if bytes < near - limit / 50 => Fullness::Ample,
            Fullness::Near | Fullness::Full => Fullness::Near,
        };
        let had_no_room = state.quota.fullness == Fullness::Full;
        self.become_full(state, fullness);
        if had_no_room && fullness != Fullness::Full {
            state.request_from_writers();
        }
    }

    pub(super) fn set_full(&self, state: &mut RoomState) {
        self.become_full(state, Fullness::Full);
    }

    fn become_full(&self, state: &mut RoomState, fullness: Fullness) {
        let before = std::mem::replace(&mut state.quota.fullness, fullness);
        if before == fullness {
            return;
        }
        let size = state.size_event(&self.limits);
        state.members.broadcast_event(&size);
        // A server that rejected no edit cannot see that the document is full.
        if before == Fullness::Full || fullness == Fullness::Full {
            self.publish_event(state, &size);
        }
    }
}

impl RoomState {
    /// Whether the quota admits an update. If sizes do not decide it, a copy of the log takes the
    /// update for a trial.
    pub(super) fn admit(
        &mut self,
        update: &Bytes,
        checked: &Checked,
        limits: &RoomLimits,
        now: Instant,
    ) -> bool {
        if !self.has_ids_left(checked) {
            self.quota.refused = Some(self.version);
            return false;
        }
        let limit = limits.document_bytes;
        let most = if checked.brings_text { limit } else { limit.saturating_add(reserve(limit)) };
        let fits = |log: &UpdateLog| log.bytes().saturating_add(checked.bytes) <= most;
        if fits(&self.log) {
            return true;
        }
        if !self.may_collect(now) {
            self.quota.is_untried = true;
            return false;
        }
        self.collect_garbage(now);
        if fits(&self.log) {
            return true;
        }
        // The update may delete more than it adds.
        let mut trial = self.log.clone();
        trial.append(update.clone(), checked.clone());
        trial.tidy();
        let admits = trial.bytes() <= most;
        if !admits {
            self.quota.refused = Some(self.version);
        }
        admits
    }

    /// Whether the document stays within its limits of client ids and items after an update (G17).
    fn has_ids_left(&self, checked: &Checked) -> bool {
        let clients = self.log.clients().saturating_add(self.new_clients(checked));
        let limit = DOCUMENT_ITEMS_MAX;
        let most = if checked.brings_text { limit } else { limit.saturating_add(reserve(limit)) };
        clients <= CLIENTS_PER_DOCUMENT_MAX
            && self.log.items().saturating_add(checked.items) <= most
    }

    pub(super) fn new_clients(&self, checked: &Checked) -> usize {
        checked.clients.iter().filter(|client| self.log.clock_of(**client) == 0).count()
    }

    pub(super) fn request_from_writers(&self) {
        for member in self.members.iter() {
            self.send_sync_request(member);
        }
    }

    pub(super) fn size_event(&self, limits: &RoomLimits) -> Event<'static> {
        Event::DocumentSize {
            fullness: self.quota.fullness,
            bytes: self.log.bytes(),
            limit: limits.document_bytes,
        }
    }

    fn may_collect(&self, now: Instant) -> bool {
        self.quota
            .collected_at
            .is_none_or(|then| now.saturating_duration_since(then) >= GC_INTERVAL)
    }

    /// Collects garbage, so that the size counts live text only.
    fn collect_garbage(&mut self, now: Instant) {
        self.quota.collected_at = Some(now);
        self.log.tidy();
        self.memory.set(self.log.bytes());
    }
}

/// The reserve for deletions above the limit. A deletion costs some bytes for a range of any length.
fn reserve(limit: usize) -> usize {
    limit / 8
}
