//! How large a document may become, and who is told how near it is to that.
//!
//! From four fifths of the limit on everybody is warned. At the limit a document is read-only but
//! for what makes it smaller: deletions are taken, into a reserve, since they leave marks of their
//! own, and so is the mark of what was typed in vain. When there is room again everybody is told,
//! and the writer's client is asked for what was refused.
//!
//! How large a document is, is known only after the text of what was deleted is dropped from its
//! log, which takes a walk through all of it. So that is done at most once in [`LOOK_EVERY`], and
//! only near the limit.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::domain::limits::{CLIENTS_PER_DOCUMENT_MAX, DOCUMENT_ITEMS_MAX};
use crate::outbox::event::{Event, Fullness};
use crate::rooms::room::{Room, State};
use crate::sessions::options::RoomLimits;
use crate::yjs::log::{Checked, UpdateLog};

/// How often a room that is nearly full is looked through, at most: some 20 ms each.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What must be free before a full document takes text again, in bytes, or each keystroke would
/// open and close it.
const ROOM_AGAIN: usize = 1_024;

/// Where a room stands.
#[derive(Debug, Default)]
pub(super) struct Quota {
    pub(super) fullness: Fullness,
    looked_at: Option<Instant>,
    /// The version of the text into which something did not fit, however one looked at it.
    refused: Option<u64>,
    /// Something was refused without a look, since the last one was too short a while ago.
    is_untried: bool,
}

impl Room {
    /// Looks how large the document is, if it may be near its limit.
    pub fn update_quota(&self, now: Instant) {
        self.weigh_again(&mut self.lock(), now);
    }

    /// Called when the document has changed: tells if it is another step nearer to its limit, or
    /// farther from it.
    pub(super) fn weigh_again(&self, state: &mut State, now: Instant) {
        let RoomLimits { document_bytes: limit, .. } = self.limits;
        let near = limit / 5 * 4;
        if state.size.fullness == Fullness::Ample && state.log.bytes() < near {
            return;
        }
        if state.may_look(now) && std::mem::take(&mut state.size.is_untried) {
            // What comes of it is looked at when it is here again.
            return state.ask_writers();
        }
        if state.log.is_untidy() && state.may_look(now) {
            state.look(now);
        }
        let bytes = state.log.bytes();
        let is_refused = state.size.refused == Some(state.version);
        let fullness = match state.size.fullness {
            // Only what is sure is said: what was deleted may still be counted.
            Fullness::Ample if bytes < near || state.log.is_untidy() => Fullness::Ample,
            Fullness::Ample => Fullness::Near,
            Fullness::Full if is_refused || limit < bytes.saturating_add(ROOM_AGAIN) => {
                Fullness::Full
            }
            // Not at once, or a word more or less would be worth a message each.
            Fullness::Near | Fullness::Full if bytes < near - limit / 50 => Fullness::Ample,
            Fullness::Near | Fullness::Full => Fullness::Near,
        };
        let had_no_room = state.size.fullness == Fullness::Full;
        self.become_full(state, fullness);
        if had_no_room && fullness != Fullness::Full {
            state.ask_writers();
        }
    }

    /// Something did not fit in.
    pub(super) fn was_too_large(&self, state: &mut State) {
        self.become_full(state, Fullness::Full);
    }

    fn become_full(&self, state: &mut State, fullness: Fullness) {
        let before = std::mem::replace(&mut state.size.fullness, fullness);
        if before == fullness {
            return;
        }
        let size = state.told_size(&self.limits);
        state.tell_all(&size);
        // Where nothing was refused nobody knows that the document is full.
        if before == Fullness::Full || fullness == Fullness::Full {
            self.tell_servers(&size);
        }
    }
}

impl State {
    /// Whether there is room for an update. Finds out by trying, if need be.
    pub(super) fn has_room(
        &mut self,
        update: &Bytes,
        checked: &Checked,
        limits: &RoomLimits,
        now: Instant,
    ) -> bool {
        if !self.has_places(checked) {
            self.size.refused = Some(self.version);
            return false;
        }
        let limit = limits.document_bytes;
        let most = if checked.brings_text { limit } else { limit.saturating_add(reserve(limit)) };
        let fits = |log: &UpdateLog| log.bytes().saturating_add(checked.bytes) <= most;
        if fits(&self.log) {
            return true;
        }
        if !self.may_look(now) {
            self.size.is_untried = true;
            return false;
        }
        self.look(now);
        if fits(&self.log) {
            return true;
        }
        // It may delete more than it brings.
        let mut trial = self.log.clone();
        trial.append(update.clone(), checked.clone());
        trial.tidy();
        let has_room = trial.bytes() <= most;
        if !has_room {
            self.size.refused = Some(self.version);
        }
        has_room
    }

    /// Whether the document may have as many client ids and items as it would have with an update (G17).
    fn has_places(&self, checked: &Checked) -> bool {
        let clients = self.log.clients().saturating_add(self.new_clients(checked));
        let limit = DOCUMENT_ITEMS_MAX;
        let most = if checked.brings_text { limit } else { limit.saturating_add(reserve(limit)) };
        clients <= CLIENTS_PER_DOCUMENT_MAX
            && self.log.items().saturating_add(checked.items) <= most
    }

    /// How many client ids an update brings that wrote nothing before.
    pub(super) fn new_clients(&self, checked: &Checked) -> usize {
        checked.clients.iter().filter(|client| self.log.clock_of(**client) == 0).count()
    }

    fn ask_writers(&self) {
        for member in &self.members {
            self.ask_for_missing(member);
        }
    }

    /// How large the document is, for those who are told.
    pub(super) fn told_size(&self, limits: &RoomLimits) -> Event<'static> {
        Event::DocumentSize {
            fullness: self.size.fullness,
            bytes: self.log.bytes(),
            limit: limits.document_bytes,
        }
    }

    fn may_look(&self, now: Instant) -> bool {
        self.size.looked_at.is_none_or(|then| LOOK_EVERY <= now.saturating_duration_since(then))
    }

    /// Drops the text of what was deleted, so that what is counted is what is there.
    fn look(&mut self, now: Instant) {
        self.size.looked_at = Some(now);
        self.log.tidy();
    }
}

/// What deletions may take beyond the limit: each is some bytes for a range of any length.
fn reserve(limit: usize) -> usize {
    limit / 8
}
