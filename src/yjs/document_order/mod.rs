//! The order of a document: its structs side by side, its text, and the position of each unit.
//!
//! YATA integrates a struct between the two units that were its neighbours at its creation. If other
//! structs lie between these units by now, YATA passes them to find the position (Nicolaescu, Jahns,
//! Derntl, Klamma: *Near Real-Time Peer-to-Peer Shared Editing on Extensible Data Types*, 2016;
//! `Item.integrate` in Yjs, `resolve_conflict` in `yrs` 0.28.1). This module takes the same steps
//! and yields the same order. Tests compare both.
//!
//! # Cost
//!
//! A client chooses the structs, so each cost has a bound.
//!
//! - **Splits.** An update may name a neighbour inside a long text, for each of thousands of
//!   letters. Yjs and `yrs` split the text each time, which copies the text and moves all later
//!   structs of that client. Here a first pass over the bytes collects the positions of all splits.
//!   A second pass creates all parts at once, so a split copies nothing and moves nothing.
//! - **Conflicts.** An update may name neighbours that were never adjacent, with the whole text
//!   between them. Each passed struct is a step, and a document has [`STEPS_MAX`] steps.
//! - **Look-ups.** A binary search over the parts of its client finds a unit.

use std::collections::HashMap;

use crate::delete_set::Deletes;
use crate::error::{Rejected, SyncError};
use crate::lib0::{Reader, put_length, put_number};
use crate::structs::{Content, Id, Struct};

/// Structs that the integration of one document may pass in all: half a second here, a second in a
/// browser. The text of a single user takes no step.
const STEPS_MAX: usize = 5_000_000;
/// Marks a missing part or client.
const NONE: u32 = u32::MAX;

/// A unit, with the index of its client.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit {
    client: u32,
    clock: u32,
}

const NO_UNIT: Unit = Unit { client: NONE, clock: 0 };

/// The role of a part in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has no position.
    Collected,
    /// Has a position and no text.
    Deleted,
    /// Has a position and no width.
    Format,
    /// Belongs to the text.
    Visible,
}

/// A struct, or a piece of one. No reference points inside a part.
struct Part {
    client: u32,
    clock: u32,
    length: u32,
    origin: Unit,
    right_origin: Unit,
    left: u32,
    right: u32,
    /// The last round that passed it.
    seen_in: u32,
    /// The section of that round. A section starts after the last part that lies left of the seeking
    /// struct.
    open_in: u32,
    /// Number of visible units left of it.
    at: u32,
    kind: Kind,
    begins_struct: bool,
    is_placed: bool,
}

impl Part {
    fn end(&self) -> u32 {
        self.clock.saturating_add(self.length)
    }
}

struct Client {
    id: u64,
    first: u32,
    /// The next part to place.
    next: u32,
    last: u32,
    /// The clock up to which its parts are placed, and the clock after its last part.
    placed_end: u32,
    end: u32,
    /// Positions of its splits, until the second pass consumes them.
    cuts: Vec<u32>,
    /// Its deleted clocks, until the second pass consumes them.
    deleted: Vec<(u32, u32)>,
}

/// The result of placing a client's next struct.
enum Next {
    /// No struct remains up to the goal.
    Done,
    More,
    /// The struct needs a unit of another client first.
    Needs(Unit),
}

pub(crate) struct DocumentOrder {
    clients: Vec<Client>,
    index: HashMap<u64, u32>,
    parts: Vec<Part>,
    first: u32,
    /// The parts of the text, from left to right.
    visible: Vec<u32>,
    units: u32,
    steps: usize,
    round: u32,
    section: u32,
}

/// The text of each part, in the order of the parts.
#[derive(Default)]
struct Source {
    text: String,
    /// The end of each part's text.
    ends: Vec<usize>,
}

impl DocumentOrder {
    /// Orders a whole document from [`UpdateLog::merged`](crate::log::UpdateLog::merged), and reads its
    /// text. Fails with [`SyncError::TooCostly`] when its conflicts take too many steps,
    /// [`SyncError::Refused`] when it is no whole document.
    pub(crate) fn build(merged: &[u8]) -> Result<(Self, String), SyncError> {
        Self::build_within(merged, STEPS_MAX)
    }

    fn build_within(merged: &[u8], steps_max: usize) -> Result<(Self, String), SyncError> {
        let mut order = Self::scan(merged)?;
        let source = order.split(merged)?;
        order.integrate_all(steps_max)?;
        let text = order.read(&source);
        Ok((order, text))
    }

    fn next_part(&self) -> Result<u32, SyncError> {
        u32::try_from(self.parts.len()).ok().filter(|at| *at != NONE).ok_or(SyncError::TooCostly)
    }

    fn add(
        &mut self,
        client: u32,
        part: &Struct<'_>,
        is_deleted: bool,
        begins_struct: bool,
        source: &mut Source,
    ) -> Result<(), SyncError> {
        let kind = match part.content {
            Content::Collected => Kind::Collected,
            Content::Deleted => Kind::Deleted,
            _ if is_deleted => Kind::Deleted,
            Content::Format { .. } => Kind::Format,
            Content::Text(piece) => {
                piece.push_to(&mut source.text);
                Kind::Visible
            }
        };
        source.ends.push(source.text.len());
        let unit = |id: Option<Id>| {
            let Some(Id { client, clock }) = id else { return NO_UNIT };
            // The first pass has registered each client.
            Unit { client: self.index.get(&client).copied().unwrap_or(NONE), clock }
        };
        let (origin, right_origin) = (unit(part.origin), unit(part.right_origin));
        self.next_part()?;
        self.parts.push(Part {
            client,
            clock: part.clock,
            length: part.length,
            origin,
            right_origin,
            left: NONE,
            right: NONE,
            seen_in: 0,
            open_in: 0,
            at: 0,
            kind,
            begins_struct,
            is_placed: false,
        });
        Ok(())
    }

    /// Places every part, in at most `steps_max` steps.
    fn integrate_all(&mut self, steps_max: usize) -> Result<(), SyncError> {
        for first in (0..).take(self.clients.len()) {
            // Each client waits for the next one on the stack, up to the clock beside it.
            let mut stack = vec![(first, u32::MAX)];
            while let Some(&(at, until)) = stack.last() {
                match self.integrate_next(at, until) {
                    Next::Done => drop(stack.pop()),
                    Next::More => self.check_steps(steps_max)?,
                    Next::Needs(unit) => stack.push(self.goal(unit, stack.len())?),
                }
            }
        }
        Ok(())
    }

    fn check_steps(&self, steps_max: usize) -> Result<(), SyncError> {
        if self.steps <= steps_max { Ok(()) } else { Err(SyncError::TooCostly) }
    }

    /// The client of a unit. `waiting` is the depth of the stack.
    fn goal(&self, unit: Unit, waiting: usize) -> Result<(u32, u32), SyncError> {
        let is_there = self.client(unit.client).is_some_and(|on| unit.clock < on.end);
        // The validator rejects cycles, so each client is on the stack once at most.
        if is_there && waiting <= self.clients.len() {
            Ok((unit.client, unit.clock))
        } else {
            Err(Rejected::Gap.into())
        }
    }

    /// Places the next struct of a client, if it begins at `until` or before.
    fn integrate_next(&mut self, client: u32, until: u32) -> Next {
        let Some(Client { next, last, .. }) = self.client(client) else { return Next::Done };
        let (from, last) = (*next, *last);
        let Some(head) = self.part(from).filter(|head| from < last && head.clock <= until) else {
            return Next::Done;
        };
        let is_missing = |unit: &Unit| {
            *unit != NO_UNIT
                && self.client(unit.client).is_none_or(|on| on.placed_end <= unit.clock)
        };
        if let Some(missing) = [head.origin, head.right_origin].into_iter().find(is_missing) {
            return Next::Needs(missing);
        }
        let continues = |at: &u32| self.part(*at).is_some_and(|part| !part.begins_struct);
        let to = (from.saturating_add(1)..last).take_while(continues).last();
        let to = to.unwrap_or(from).saturating_add(1);
        let end = self.part(to.saturating_sub(1)).map_or(0, Part::end);
        if let Some(client) = self.client_mut(client) {
            (client.next, client.placed_end) = (to, end);
        }
        self.insert_nodes(from, to);
        Next::More
    }

    /// Places the parts of one struct side by side.
    fn insert_nodes(&mut self, from: u32, to: u32) {
        let Some(head) = self.part(from) else { return };
        let (origin, right_origin, kind) = (head.origin, head.right_origin, head.kind);
        let (left, right) = (self.find(origin), self.find(right_origin));
        let is_beside = origin != NO_UNIT || right_origin != NO_UNIT;
        // A neighbour that was collected has no position.
        if kind == Kind::Collected || is_beside && left == NONE && right == NONE {
            return;
        }
        let is_between = match (self.part(left), self.part(right)) {
            (None, None) => true,
            (None, Some(right)) => right.left != NONE,
            (Some(left), _) => left.right != right,
        };
        let mut left = if is_between { self.seek(from, left, right) } else { left };
        let after = self.part(left).map_or(self.first, |left| left.right);
        for at in from..to {
            let right = if at.saturating_add(1) < to { at.saturating_add(1) } else { after };
            if let Some(part) = self.part_mut(at) {
                (part.left, part.right, part.is_placed) = (left, right, true);
            }
            match self.part_mut(left) {
                Some(left) => left.right = at,
                None => self.first = at,
            }
            left = at;
        }
        if let Some(after) = self.part_mut(after) {
            after.left = left;
        }
    }

    /// Passes the parts between `left` and `right`, and returns the new left neighbour of the
    /// struct.
    fn seek(&mut self, head: u32, mut left: u32, right: u32) -> u32 {
        let Some(head) = self.part(head) else { return left };
        let (origin, right_origin) = (head.origin, head.right_origin);
        let client = self.client(head.client).map_or(0, |client| client.id);
        self.round = self.round.saturating_add(1);
        self.section = self.section.saturating_add(1);
        let mut at = self.part(left).map_or(self.first, |left| left.right);
        while at != right {
            let (round, section) = (self.round, self.section);
            let Some(other) = self.part_mut(at) else { break };
            (other.seen_in, other.open_in) = (round, section);
            let (next, by, theirs) = (other.right, other.client, other.origin);
            let is_same_right = other.right_origin == right_origin;
            self.steps = self.steps.saturating_add(1);
            let is_smaller = self.client(by).is_some_and(|other| other.id < client);
            let is_before = if theirs == origin {
                let is_end = !is_smaller && is_same_right;
                (!is_end).then_some(is_smaller)
            } else {
                let origin = self.part(self.find(theirs));
                let origin = origin.filter(|origin| origin.seen_in == round);
                origin.map(|origin| origin.open_in != section)
            };
            let Some(is_before) = is_before else { break };
            if is_before {
                left = at;
                self.section = self.section.saturating_add(1);
            }
            at = next;
        }
        left
    }

    fn part(&self, at: u32) -> Option<&Part> {
        self.parts.get(slot(at))
    }

    fn part_mut(&mut self, at: u32) -> Option<&mut Part> {
        self.parts.get_mut(slot(at))
    }

    /// The placed part with a unit. A unit that a struct names is the first or last of its part.
    fn find(&self, unit: Unit) -> u32 {
        let Some(client) = self.client(unit.client) else { return NONE };
        let parts = self.parts.get(slot(client.first)..slot(client.last)).unwrap_or_default();
        let behind = parts.partition_point(|part| part.clock <= unit.clock);
        let Some(before) = behind.checked_sub(1) else { return NONE };
        let is_there = |part: &Part| part.is_placed && unit.clock < part.end();
        match parts.get(before).is_some_and(is_there) {
            true => client.first.saturating_add(u32::try_from(before).unwrap_or(NONE)),
            false => NONE,
        }
    }
}

fn slot(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

mod edit;
mod scan;
#[cfg(test)]
mod tests;
