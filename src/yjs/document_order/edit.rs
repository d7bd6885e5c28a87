//! The text of an ordered document, positions in it, and the updates that edit it.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::{
    Client, Deletes, DocumentOrder, Id, Kind, NONE, Part, Source, Struct, put_length, put_number,
    slot,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbours {
    left: Option<Id>,
    right: Option<Id>,
}

impl DocumentOrder {
    /// Reads the text from left to right.
    pub(super) fn read(&mut self, source: &Source) -> String {
        let mut text = String::with_capacity(source.text.len());
        let (mut at, mut units) = (self.first, 0_u32);
        while let Some(part) = self.parts.get_mut(slot(at)) {
            part.at = units;
            if part.kind == Kind::Visible {
                let from = slot(at).checked_sub(1).and_then(|before| source.ends.get(before));
                let to = source.ends.get(slot(at)).copied().unwrap_or_default();
                text.push_str(source.text.get(from.copied().unwrap_or(0)..to).unwrap_or_default());
                units = units.saturating_add(part.length);
                self.visible.push(at);
            }
            at = part.right;
        }
        self.units = units;
        text
    }

    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// The number of visible units left of a unit, or up to and with it. `None`: the unit has no
    /// position.
    pub(crate) fn offset(&self, id: Id, is_included: bool) -> Option<u32> {
        let client = self.index.get(&id.client).copied()?;
        let part = self.part(self.find(super::Unit { client, clock: id.clock }))?;
        if part.kind != Kind::Visible {
            return Some(part.at);
        }
        let inside = id.clock.saturating_sub(part.clock);
        Some(part.at.saturating_add(inside).saturating_add(is_included.into()))
    }

    pub(crate) fn is_visible(&self, id: Id) -> bool {
        let Some(client) = self.index.get(&id.client).copied() else { return false };
        let part = self.part(self.find(super::Unit { client, clock: id.clock }));
        part.is_some_and(|part| part.kind == Kind::Visible)
    }

    /// The clients with their next clocks.
    pub(crate) fn clocks(&self) -> impl Iterator<Item = (u64, u32)> {
        self.clients.iter().map(|client| (client.id, client.end))
    }

    /// The stretches of units that a state vector lacks, in the order of the text.
    pub(crate) fn units_since(&self, vector: &HashMap<u64, u32>) -> Vec<Range<u32>> {
        let clock = |client: &Client| vector.get(&client.id).copied().unwrap_or_default();
        let clocks: Vec<u32> = self.clients.iter().map(clock).collect();
        let mut stretches: Vec<Range<u32>> = Vec::new();
        for part in self.visible.iter().filter_map(|at| self.part(*at)) {
            let clock = clocks.get(slot(part.client)).copied().unwrap_or_default();
            let older = clock.saturating_sub(part.clock).min(part.length);
            let units = part.at.saturating_add(older)..part.at.saturating_add(part.length);
            match stretches.last_mut().filter(|last| last.end == units.start) {
                _ if units.is_empty() => {}
                Some(last) => last.end = units.end,
                None => stretches.push(units),
            }
        }
        stretches
    }

    /// The number of pieces that make up the text.
    pub(crate) fn pieces(&self) -> usize {
        self.visible.len()
    }

    pub(crate) fn next_clock(&self, client: u64) -> u32 {
        let existing = self.index.get(&client).and_then(|at| self.client(*at));
        existing.map_or(0, |client| client.end)
    }

    pub(crate) fn unit_at(&self, offset: u32) -> Option<Id> {
        let part = self.part(self.part_at(offset)?)?;
        self.id(part, offset.saturating_sub(part.at))
    }

    /// The update that replaces ranges of the text, in order, under a client id without concurrent
    /// writes. No two ranges touch.
    pub(crate) fn replace(&self, replacements: &[(Range<u32>, &str)], client: u64) -> Bytes {
        let (mut structs, mut count) = (Vec::new(), 0_usize);
        let start = self.next_clock(client);
        let mut clock = start;
        let mut deletes = Deletes::default();
        for (range, with) in replacements {
            self.delete(range, &mut deletes);
            if with.is_empty() {
                continue;
            }
            let Neighbours { left, right } = self.neighbours(range);
            let new = Struct { clock, origin: left, right_origin: right, ..Struct::first(with) };
            new.write(&mut structs);
            clock = clock.saturating_add(new.length);
            count = count.saturating_add(1);
        }
        let mut out = Vec::with_capacity(structs.len().saturating_add(32));
        put_length(&mut out, usize::from(count > 0));
        if count > 0 {
            put_length(&mut out, count);
            put_number(&mut out, client);
            put_number(&mut out, start);
            out.extend_from_slice(&structs);
        }
        deletes.write(&mut out);
        Bytes::from(out)
    }

    fn part_at(&self, offset: u32) -> Option<u32> {
        if self.units <= offset {
            return None;
        }
        let begins = |at: &u32| self.part(*at).is_some_and(|part| part.at <= offset);
        let before = self.visible.partition_point(begins).checked_sub(1)?;
        self.visible.get(before).copied()
    }

    fn id(&self, part: &Part, inside: u32) -> Option<Id> {
        let client = self.client(part.client)?.id;
        Some(Id { client, clock: part.clock.saturating_add(inside) })
    }

    fn delete(&self, range: &Range<u32>, deletes: &mut Deletes) {
        let mut at = range.start;
        while at < range.end {
            let Some(part) = self.part_at(at).and_then(|part| self.part(part)) else { return };
            let inside = at.saturating_sub(part.at);
            let length = part.length.saturating_sub(inside).min(range.end.saturating_sub(at));
            let Some(first) = self.id(part, inside) else { return };
            deletes.insert(first.client, first.clock, first.clock.saturating_add(length));
            at = at.saturating_add(length.max(1));
        }
    }

    /// The neighbours of a text that replaces a range: right of all deleted units, as in Yjs, and
    /// left of the next unit or formatting that is not deleted.
    fn neighbours(&self, range: &Range<u32>) -> Neighbours {
        let mut left = None;
        let mut at = self.first;
        if let Some(before) = range.start.checked_sub(1).and_then(|before| self.part_at(before)) {
            let Some(part) = self.part(before) else { return Neighbours { left, right: None } };
            let end = part.at.saturating_add(part.length);
            if range.end < end {
                let inside = range.end.saturating_sub(part.at);
                let left = self.id(part, inside.saturating_sub(1));
                return Neighbours { left, right: self.id(part, inside) };
            }
            left = self.id(part, part.length.saturating_sub(1));
            at = part.right;
        }
        while let Some(part) = self.parts.get(slot(at)) {
            let end = part.at.saturating_add(part.length);
            let is_gone = match part.kind {
                Kind::Visible => part.at < range.end,
                Kind::Deleted | Kind::Collected => true,
                Kind::Format => false,
            };
            if !is_gone {
                return Neighbours { left, right: self.id(part, 0) };
            }
            if part.kind == Kind::Visible && range.end < end {
                let inside = range.end.saturating_sub(part.at);
                let left = self.id(part, inside.saturating_sub(1));
                return Neighbours { left, right: self.id(part, inside) };
            }
            left = self.id(part, part.length.saturating_sub(1));
            at = part.right;
        }
        debug_assert_eq!(at, NONE, "the last part has none right of it");
        Neighbours { left, right: None }
    }
}
