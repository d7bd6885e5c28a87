//! What it takes to settle where everything in a document stands.
//!
//! YATA puts what was written between the two units that were its neighbours when it was written.
//! Where something stands between those by now, it goes through that to find its place (Nicolaescu,
//! Jahns, Derntl, Klamma: *Near Real-Time Peer-to-Peer Shared Editing on Extensible Data Types*, 2016;
//! `Item.integrate` in Yjs, `resolve_conflict` in `yrs` 0.28.1). Between neighbours that were ones
//! there is only what others wrote at the same place at the same time: nothing, or some words. But an
//! update may name neighbours that never stood beside each other, with the whole text between them,
//! for each of thousands of letters. Fifty kilobytes of that take `yrs` minutes, two megabytes hours,
//! and nothing can interrupt it. No struct shows it by itself.
//!
//! So before a document is built, it is settled here: the same steps, without its text, up to a
//! limit. What is kept is a link to the left and right for each struct, and where each begins.

use std::collections::{BTreeMap, HashMap};

use crate::sync::error::{Rejected, SyncError};
use crate::sync::lib0::Reader;
use crate::sync::structs::{Content, Id, Struct};

/// Structs that a document may go through to settle where others stand, all together: a second
/// of `yrs`, or of a browser. What one person writes takes none at all.
const STEPS_MAX: usize = 5_000_000;
/// How many structs a client has, itself, and its clock.
const SECTION_BYTES_MIN: usize = 3;
/// Kind and length.
const STRUCT_BYTES_MIN: usize = 2;

/// Whether a whole document, as [`UpdateLog::merged`] gives it, can be built in good time.
///
/// [`UpdateLog::merged`]: crate::sync::log::UpdateLog::merged
///
/// # Errors
///
/// [`SyncError::TooCostly`] if not, [`SyncError::Refused`] when it is not a whole document.
pub(crate) fn check(merged: &[u8]) -> Result<(), SyncError> {
    settle(merged, STEPS_MAX).map(drop)
}

/// Puts everything in its place, in at most so many steps.
fn settle(merged: &[u8], steps_max: usize) -> Result<Line, SyncError> {
    let mut waiting = read(merged)?;
    let at_client: HashMap<u64, usize> =
        waiting.iter().enumerate().map(|(at, section)| (section.client, at)).collect();
    let mut line = Line::default();
    for first in 0..waiting.len() {
        // Who waits for whom, and up to which clock.
        let mut stack = vec![(first, u32::MAX)];
        while let Some(&(at, until)) = stack.last() {
            let Some(section) = waiting.get_mut(at) else { break };
            match section.integrate(until, &mut line) {
                Next::Done => drop(stack.pop()),
                Next::More if line.steps <= steps_max => {}
                Next::More => return Err(SyncError::TooCostly),
                Next::Needs(id) => {
                    let on = at_client.get(&id.client).copied();
                    let is_there =
                        on.and_then(|on| waiting.get(on)).is_some_and(|on| on.brings(id));
                    // No two wait for each other: the validator sees to that.
                    let on = on.filter(|_| is_there && stack.len() <= waiting.len());
                    stack.push((on.ok_or(Rejected::Gap)?, id.clock));
                }
            }
        }
    }
    Ok(line)
}

/// A struct without what it brings.
#[derive(Clone, Copy)]
struct Bare {
    clock: u32,
    length: u32,
    origin: Option<Id>,
    right_origin: Option<Id>,
    is_collected: bool,
}

/// The structs of one client, in order, and how many of them stand in the line.
struct Section {
    client: u64,
    structs: Vec<Bare>,
    done: usize,
}

/// How it goes on with the structs of a client.
enum Next {
    /// None is left up to there.
    Done,
    More,
    /// Another client's unit comes first.
    Needs(Id),
}

impl Section {
    /// Puts the next struct in its place, if it begins at `until` or before.
    fn integrate(&mut self, until: u32, line: &mut Line) -> Next {
        let next = self.structs.get(self.done).filter(|next| next.clock <= until);
        let Some(&next) = next else { return Next::Done };
        let mut needs = [next.origin, next.right_origin].into_iter().flatten();
        if let Some(missing) = needs.find(|id| line.end(id.client) <= id.clock) {
            return Next::Needs(missing);
        }
        self.done += 1;
        line.integrate(self.client, next);
        Next::More
    }

    fn brings(&self, id: Id) -> bool {
        self.structs.last().is_some_and(|last| id.clock < last.clock.saturating_add(last.length))
    }
}

fn read(merged: &[u8]) -> Result<Vec<Section>, Rejected> {
    let mut reader = Reader::new(merged);
    let mut sections = Vec::new();
    for _ in 0..reader.count(SECTION_BYTES_MIN)? {
        let count = reader.count(STRUCT_BYTES_MIN)?;
        let (client, mut clock) = (reader.number()?, reader.clock()?);
        let mut structs = Vec::with_capacity(count);
        for _ in 0..count {
            let Struct { length, origin, right_origin, content, .. } =
                Struct::read(&mut reader, clock)?;
            let is_collected = content == Content::Collected;
            structs.push(Bare { clock, length, origin, right_origin, is_collected });
            clock = clock.saturating_add(length);
        }
        sections.push(Section { client, structs, done: 0 });
    }
    Ok(sections)
}

/// Nobody: the end of the line.
const NONE: usize = usize::MAX;

/// A struct, or a part of one, and who stands beside it.
struct Place {
    client: u64,
    bare: Bare,
    left: usize,
    right: usize,
    /// In which round it was last gone through.
    seen_in: usize,
    /// In which part of a round: since the last that stands left of who seeks its place.
    open_in: usize,
}

/// All that stand in the document, from left to right.
struct Line {
    places: Vec<Place>,
    first: usize,
    /// Where each part begins, and its place.
    starts: HashMap<u64, BTreeMap<u32, usize>>,
    /// Up to where each client's structs are here, those that stand nowhere too.
    ends: HashMap<u64, u32>,
    steps: usize,
    round: usize,
    part: usize,
}

impl Default for Line {
    fn default() -> Self {
        let (starts, ends) = (HashMap::new(), HashMap::new());
        Self { places: Vec::new(), first: NONE, starts, ends, steps: 0, round: 0, part: 0 }
    }
}

impl Line {
    fn end(&self, client: u64) -> u32 {
        self.ends.get(&client).copied().unwrap_or(0)
    }

    fn integrate(&mut self, client: u64, bare: Bare) {
        self.ends.insert(client, bare.clock.saturating_add(bare.length));
        let left = bare.origin.map_or(NONE, |id| self.ending_at(id));
        let right = bare.right_origin.map_or(NONE, |id| self.starting_at(id));
        let is_beside = bare.origin.is_some() || bare.right_origin.is_some();
        // Beside what was collected there is no place.
        if bare.is_collected || is_beside && left == NONE && right == NONE {
            return;
        }
        let is_between = match (self.places.get(left), self.places.get(right)) {
            (None, None) => true,
            (None, Some(right)) => right.left != NONE,
            (Some(left), _) => left.right != right,
        };
        let left = if is_between { self.seek(client, &bare, left, right) } else { left };
        let after = self.places.get(left).map_or(self.first, |left| left.right);
        let here = self.add(client, bare, left, after);
        match self.places.get_mut(left) {
            Some(left) => left.right = here,
            None => self.first = here,
        }
    }

    /// Goes through those that stand between, and gives the one that it comes to stand right of.
    fn seek(&mut self, client: u64, bare: &Bare, mut left: usize, right: usize) -> usize {
        self.round += 1;
        self.part += 1;
        let mut at = self.places.get(left).map_or(self.first, |left| left.right);
        while at != right {
            let (round, part) = (self.round, self.part);
            let Some(other) = self.places.get_mut(at) else { break };
            self.steps += 1;
            (other.seen_in, other.open_in) = (round, part);
            let (next, theirs) = (other.right, other.bare);
            let is_smaller = other.client < client;
            let is_before = if theirs.origin == bare.origin {
                let is_end = !is_smaller && theirs.right_origin == bare.right_origin;
                (!is_end).then_some(is_smaller)
            } else {
                let origin = self.places.get(theirs.origin.map_or(NONE, |id| self.find(id)));
                let origin = origin.filter(|origin| origin.seen_in == round);
                origin.map(|origin| origin.open_in != part)
            };
            let Some(is_before) = is_before else { break };
            if is_before {
                left = at;
                self.part += 1;
            }
            at = next;
        }
        left
    }

    fn add(&mut self, client: u64, bare: Bare, left: usize, right: usize) -> usize {
        let here = self.places.len();
        self.places.push(Place { client, bare, left, right, seen_in: 0, open_in: 0 });
        self.starts.entry(client).or_default().insert(bare.clock, here);
        if let Some(right) = self.places.get_mut(right) {
            right.left = here;
        }
        here
    }

    /// Where a unit stands.
    fn find(&self, id: Id) -> usize {
        let starts = self.starts.get(&id.client);
        let place = starts.and_then(|starts| starts.range(..=id.clock).next_back());
        let Some((_, &at)) = place else { return NONE };
        let is_there = |place: &Place| id.clock - place.bare.clock < place.bare.length;
        if self.places.get(at).is_some_and(is_there) { at } else { NONE }
    }

    /// The part that ends with a unit.
    fn ending_at(&mut self, id: Id) -> usize {
        let at = self.find(id);
        self.cut(at, id.clock.saturating_add(1));
        at
    }

    /// The part that begins with a unit.
    fn starting_at(&mut self, id: Id) -> usize {
        let at = self.find(id);
        self.cut(at, id.clock)
    }

    /// Divides what stands there before `clock`; gives the second part, which is all of it if that is
    /// where it begins.
    fn cut(&mut self, at: usize, clock: u32) -> usize {
        let Some(place) = self.places.get_mut(at) else { return at };
        let (client, whole, right) = (place.client, place.bare, place.right);
        let first = clock.saturating_sub(whole.clock);
        if first == 0 || whole.length <= first {
            return at;
        }
        place.bare.length = first;
        let origin = Some(Id { client, clock: clock.saturating_sub(1) });
        let rest = Bare { clock, length: whole.length - first, origin, ..whole };
        let second = self.add(client, rest, at, right);
        if let Some(place) = self.places.get_mut(at) {
            place.right = second;
        }
        second
    }
}

#[cfg(test)]
#[path = "effort_tests.rs"]
pub(crate) mod tests;
