//! The two passes over the bytes of a document: first clients and splits, then parts.

use super::{
    Client, DocumentOrder, HashMap, NONE, Reader, Rejected, Source, Struct, SyncError, slot,
};

/// Number of structs, client, and clock.
const SECTION_BYTES_MIN: usize = 3;
/// Kind and length.
const STRUCT_BYTES_MIN: usize = 2;
/// Client and number of ranges; clock and length.
const DELETES_BYTES_MIN: usize = 2;

/// The remaining splits and deletions of a client, in the order of clocks.
struct Ahead<'a> {
    cuts: &'a [u32],
    deleted: &'a [(u32, u32)],
}

impl DocumentOrder {
    /// The first pass: clients, positions of all splits, deleted clocks.
    pub(super) fn scan(merged: &[u8]) -> Result<Self, Rejected> {
        let mut order = Self {
            clients: Vec::new(),
            index: HashMap::new(),
            parts: Vec::new(),
            first: NONE,
            visible: Vec::new(),
            units: 0,
            steps: 0,
            round: 0,
            section: 0,
        };
        let mut reader = Reader::new(merged);
        for _ in 0..reader.count(SECTION_BYTES_MIN)? {
            order.scan_client(&mut reader)?;
        }
        for _ in 0..reader.count(DELETES_BYTES_MIN)? {
            order.scan_deletes(&mut reader)?;
        }
        reader.finish()?;
        for client in &mut order.clients {
            client.cuts.sort_unstable();
            client.cuts.dedup();
            client.deleted.sort_unstable();
        }
        Ok(order)
    }

    fn scan_client(&mut self, reader: &mut Reader<'_>) -> Result<(), Rejected> {
        let count = reader.count(STRUCT_BYTES_MIN)?;
        let (id, mut clock) = (reader.number()?, reader.clock()?);
        let own = self.enter(id);
        for _ in 0..count {
            let found = Struct::read(reader, clock)?;
            let after = found.origin.map(|id| (id.client, id.clock.saturating_add(1)));
            let before = found.right_origin.map(|id| (id.client, id.clock));
            for (of, cut) in after.into_iter().chain(before) {
                let client = self.enter_beside(of, (id, own));
                self.client_mut(client).ok_or(Rejected::Gap)?.cuts.push(cut);
            }
            clock = found.end().ok_or(Rejected::Malformed("a clock is out of range"))?;
        }
        let client = self.client_mut(own).filter(|client| client.end == 0);
        client.ok_or(Rejected::Malformed("a client occurs twice"))?.end = clock;
        Ok(())
    }

    fn scan_deletes(&mut self, reader: &mut Reader<'_>) -> Result<(), Rejected> {
        let id = reader.number()?;
        let own = self.enter(id);
        let client = self.client_mut(own).ok_or(Rejected::Gap)?;
        for _ in 0..reader.count(DELETES_BYTES_MIN)? {
            let (from, length) = (reader.clock()?, reader.clock()?);
            let to = from.saturating_add(length);
            if client.end < to {
                return Err(Rejected::Gap);
            }
            client.cuts.extend([from, to]);
            client.deleted.push((from, to));
        }
        Ok(())
    }

    fn enter(&mut self, id: u64) -> u32 {
        let next = u32::try_from(self.clients.len()).unwrap_or(NONE);
        let at = *self.index.entry(id).or_insert(next);
        if at == next {
            self.clients.push(Client {
                id,
                first: 0,
                next: 0,
                last: 0,
                placed_end: 0,
                end: 0,
                cuts: Vec::new(),
                deleted: Vec::new(),
            });
        }
        at
    }

    /// The index of a neighbour's client: in most cases the struct's own client.
    fn enter_beside(&mut self, id: u64, (own, at): (u64, u32)) -> u32 {
        if id == own { at } else { self.enter(id) }
    }

    pub(super) fn client(&self, at: u32) -> Option<&Client> {
        self.clients.get(slot(at))
    }

    pub(super) fn client_mut(&mut self, at: u32) -> Option<&mut Client> {
        self.clients.get_mut(slot(at))
    }

    /// The second pass: the parts, in the order of the bytes.
    pub(super) fn split(&mut self, merged: &[u8]) -> Result<Source, SyncError> {
        let mut source = Source::default();
        let mut reader = Reader::new(merged);
        for _ in 0..reader.count(SECTION_BYTES_MIN).map_err(Rejected::from)? {
            self.split_client(&mut reader, &mut source)?;
        }
        Ok(source)
    }

    fn split_client(
        &mut self,
        reader: &mut Reader<'_>,
        source: &mut Source,
    ) -> Result<(), SyncError> {
        let count = reader.count(STRUCT_BYTES_MIN).map_err(Rejected::from)?;
        let id = reader.number().map_err(Rejected::from)?;
        let mut clock = reader.clock().map_err(Rejected::from)?;
        if clock != 0 {
            return Err(Rejected::Gap.into());
        }
        let own = self.enter(id);
        let client = self.client_mut(own).ok_or(Rejected::Gap)?;
        let (cuts, deleted) =
            (std::mem::take(&mut client.cuts), std::mem::take(&mut client.deleted));
        let mut ahead = Ahead { cuts: &cuts, deleted: &deleted };
        let first = self.next_part()?;
        for _ in 0..count {
            let found = Struct::read(reader, clock)?;
            clock = clock.saturating_add(found.length);
            self.split_struct((own, id), found, &mut ahead, source)?;
        }
        let last = self.next_part()?;
        if let Some(client) = self.client_mut(own) {
            (client.first, client.next, client.last) = (first, first, last);
        }
        Ok(())
    }

    fn split_struct(
        &mut self,
        (own, id): (u32, u64),
        mut rest: Struct<'_>,
        ahead: &mut Ahead<'_>,
        source: &mut Source,
    ) -> Result<(), SyncError> {
        let end = rest.clock.saturating_add(rest.length);
        let mut begins_struct = true;
        while rest.clock < end {
            let clock = rest.clock;
            skip(&mut ahead.cuts, |cut| *cut <= clock);
            skip(&mut ahead.deleted, |(_, to)| *to <= clock);
            let to = ahead.cuts.first().map_or(end, |cut| end.min(*cut));
            let is_deleted = ahead.deleted.first().is_some_and(|(from, _)| *from <= clock);
            self.add(own, &rest.ending(to), is_deleted, begins_struct, source)?;
            if to == end {
                break;
            }
            (rest, begins_struct) = (rest.starting(to, id), false);
        }
        Ok(())
    }
}

/// Drops leading items while `is_past` holds.
fn skip<T>(list: &mut &[T], is_past: impl Fn(&T) -> bool) {
    while let Some((first, rest)) = list.split_first()
        && is_past(first)
    {
        *list = rest;
    }
}
