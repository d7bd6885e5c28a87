//! The validator of updates, which guards the log (Y1).
//!
//! It makes one pass over the bytes. Its allocations grow with the bytes that it has read, never
//! with a declared number, and it never recurses (Y3). An accepted update fits the log without a gap
//! or a cycle (Y2) and contains only text and formatting. Its origin allows its author.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use crate::client_log::{PIECE_BYTES_MAX, Run, SECTION_HEADER_MAX};
use crate::delete_set::{Deletes, RANGE_BYTES};
use crate::dependency_order::{self, Need};
use crate::error::Rejected;
use crate::lib0::{CLOCK_MAX, Reader};
use crate::structs::{Content, Id, Struct};

/// Client ids under which only servers write: the last 2^32 of JavaScript's exact integers. Yjs
/// draws random ids below 2^32, so no browser uses one by accident.
pub const SERVER_IDS: RangeInclusive<u64> = (1 << 53) - (1 << 32)..=(1 << 53) - 1;

/// The origin of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A websocket. It may not write under [`SERVER_IDS`].
    Client,
    /// A client's reply to sync step 1. It may restore an edit that a server wrote and the database
    /// lost. A server writes one edit under each id, so the log has all of that edit or nothing.
    Answer,
    /// This or another server, or the database.
    Server,
}

/// The verdict on an update that its log may append.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Checked {
    /// The clients with new structs.
    pub clients: Vec<u64>,
    /// Whether it changes the document, if only by a deletion. A resend changes nothing.
    pub is_new: bool,
    /// Whether it contains text or formatting besides deletions.
    pub brings_text: bool,
    /// Upper bound of the log's growth in bytes.
    pub bytes: usize,
    /// Upper bound of the log's growth in structs and deleted ranges.
    pub items: usize,
}

impl Checked {
    /// Counts a struct of `bytes` if it has units beyond `stored`.
    fn count(&mut self, found: &Struct<'_>, stored: u32, bytes: usize) {
        if found.end().is_some_and(|end| end <= stored) {
            return;
        }
        let cuts = bytes / PIECE_BYTES_MIN;
        let cut_bytes = cuts.saturating_mul(CUT_BYTES_MAX);
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(cut_bytes);
        self.items = self.items.saturating_add(cuts).saturating_add(1);
        self.brings_text |= matches!(found.content, Content::Text(_) | Content::Format { .. });
    }
}

/// The log cuts a text after a whole character, up to three bytes before the limit of a piece.
const PIECE_BYTES_MIN: usize = PIECE_BYTES_MAX - 3;
/// Encoded overhead of each cut: a kind, two ids and a length.
const CUT_BYTES_MAX: usize = 32;

#[derive(Clone, Copy)]
struct Section {
    client: u64,
    /// The end of the client's structs in the log.
    stored: u32,
    /// The end after the update.
    end: u32,
}

/// Number of structs, client, clock, and a struct.
const SECTION_BYTES_MIN: usize = 5;
/// Kind and length.
const STRUCT_BYTES_MIN: usize = 2;
/// Client and number of ranges.
const DELETES_BYTES_MIN: usize = 2;
/// Clock and length.
const RANGE_BYTES_MIN: usize = 2;
/// Up to this number of sections a linear search is faster than a map.
const SECTIONS_SEARCHED: usize = 8;

/// The units of a log: an update may refer to them.
#[derive(Clone, Copy)]
pub(crate) struct StoredUnits<'a> {
    pub(crate) runs: &'a BTreeMap<u64, Run>,
    pub(crate) deletes: &'a Deletes,
}

impl StoredUnits<'_> {
    fn clock(self, client: u64) -> u32 {
        self.runs.get(&client).map_or(0, Run::end)
    }

    fn is_deleted(self, client: u64, start: u32, end: u32) -> bool {
        self.deletes.contains(client, start, end)
    }
}

/// Checks `update` against the units that are `stored`. After an error the caller must use no part of
/// the update.
pub(crate) fn check(
    update: &[u8],
    stored: StoredUnits<'_>,
    from: Origin,
) -> Result<Checked, Rejected> {
    let mut check = Check { stored, from, sections: Sections::default(), needs: Vec::new() };
    let mut reader = Reader::new(update);
    let mut checked = check.structs(&mut reader)?;
    check.order()?;
    check.deletes(&mut reader, &mut checked)?;
    reader.finish()?;
    Ok(checked)
}

struct Check<'a> {
    stored: StoredUnits<'a>,
    from: Origin,
    sections: Sections,
    /// Units of other clients that the log lacks: the update must contain them.
    needs: Vec<(usize, u32, Id)>,
}

impl Check<'_> {
    fn structs(&mut self, reader: &mut Reader<'_>) -> Result<Checked, Rejected> {
        let mut checked =
            Checked { clients: Vec::new(), is_new: false, brings_text: false, bytes: 0, items: 0 };
        for _ in 0..reader.count(SECTION_BYTES_MIN)? {
            let count = reader.count(STRUCT_BYTES_MIN)?;
            let client = reader.number()?;
            let start = reader.clock()?;
            if count == 0 {
                return Err(Rejected::Malformed("a client has no structs"));
            }
            let section = self.sections.begin(client, self.stored.clock(client))?;
            if section.stored < start {
                return Err(Rejected::Gap);
            }
            let mut end = start;
            for _ in 0..count {
                let before = reader.left();
                let found = self.one_struct(reader, client, end)?;
                end = end.saturating_add(found.length);
                checked.count(&found, section.stored, before.saturating_sub(reader.left()));
            }
            self.sections.finish(end.max(section.stored));
            if section.stored < end {
                self.check_author(&section)?;
                checked.bytes = checked.bytes.saturating_add(SECTION_HEADER_MAX);
                checked.clients.push(client);
                checked.is_new = true;
            }
        }
        Ok(checked)
    }

    fn one_struct<'a>(
        &mut self,
        reader: &mut Reader<'a>,
        client: u64,
        clock: u32,
    ) -> Result<Struct<'a>, Rejected> {
        let found = Struct::read(reader, clock)?;
        for neighbour in [found.origin, found.right_origin].into_iter().flatten() {
            self.neighbour(client, clock, neighbour)?;
        }
        match found.end() {
            Some(end) if end <= CLOCK_MAX => Ok(found),
            Some(_) | None => Err(Rejected::Malformed("a clock is out of range")),
        }
    }

    /// Checks that `neighbour`, beside which the struct of `client` at `clock` was created, precedes
    /// it.
    fn neighbour(&mut self, client: u64, clock: u32, neighbour: Id) -> Result<(), Rejected> {
        if neighbour.client == client {
            return if neighbour.clock < clock {
                Ok(())
            } else {
                Err(Rejected::Malformed("a struct depends on a later one"))
            };
        }
        if self.stored.clock(neighbour.client) <= neighbour.clock {
            self.needs.push((self.sections.last(), clock, neighbour));
        }
        Ok(())
    }

    /// Rejects new structs under server ids. A client may resend a server's structs, as in its sync
    /// reply.
    fn check_author(&self, section: &Section) -> Result<(), Rejected> {
        let is_open = match self.from {
            Origin::Server => true,
            Origin::Answer => section.stored == 0,
            Origin::Client => false,
        };
        if is_open || !SERVER_IDS.contains(&section.client) {
            Ok(())
        } else {
            Err(Rejected::Forbidden("write under a client id of servers"))
        }
    }

    /// Checks that the update contains all needed units, without a cycle.
    fn order(&self) -> Result<(), Rejected> {
        if self.needs.is_empty() {
            return Ok(());
        }
        let mut needs = Vec::with_capacity(self.needs.len());
        for &(section, clock, id) in &self.needs {
            let (on, brings) = self.sections.find(id.client).ok_or(Rejected::Gap)?;
            if brings.end <= id.clock {
                return Err(Rejected::Gap);
            }
            needs.push(Need { section, clock, on, unit: id.clock });
        }
        if dependency_order::can_be_ordered(&needs, self.sections.all.len()) {
            Ok(())
        } else {
            Err(Rejected::Malformed("the dependencies of structs form a cycle"))
        }
    }

    /// Checks the delete set. A range is new if it deletes a unit that is not deleted yet.
    fn deletes(&self, reader: &mut Reader<'_>, checked: &mut Checked) -> Result<(), Rejected> {
        // If a client occurs twice, yjs applies both sections and yrs the last one.
        let mut seen = Sections::default();
        for _ in 0..reader.count(DELETES_BYTES_MIN)? {
            let client = reader.number()?;
            let ranges = reader.count(RANGE_BYTES_MIN)?;
            let end = match self.sections.find(client) {
                Some((_, section)) => section.end,
                None => self.stored.clock(client),
            };
            seen.begin(client, end)?;
            for _ in 0..ranges {
                let (from, to) = deletion(reader, end)?;
                let is_new = !self.stored.is_deleted(client, from, to);
                checked.is_new |= is_new;
                let new = usize::from(is_new);
                checked.bytes = checked.bytes.saturating_add(new.saturating_mul(RANGE_BYTES));
                checked.items = checked.items.saturating_add(new);
            }
        }
        Ok(())
    }
}

fn deletion(reader: &mut Reader<'_>, end: u32) -> Result<(u32, u32), Rejected> {
    let (from, length) = (reader.clock()?, reader.clock()?);
    let to = from.saturating_add(length);
    if length == 0 {
        return Err(Rejected::Malformed("a deletion is empty"));
    }
    if end < to {
        return Err(Rejected::Gap);
    }
    Ok((from, to))
}

/// The sections of an update with a look-up by client.
#[derive(Default)]
struct Sections {
    all: Vec<Section>,
    /// Filled when there are more than [`SECTIONS_SEARCHED`].
    index: HashMap<u64, usize>,
}

impl Sections {
    fn begin(&mut self, client: u64, stored: u32) -> Result<Section, Rejected> {
        if self.find(client).is_some() {
            return Err(Rejected::Malformed("a client occurs twice"));
        }
        let section = Section { client, stored, end: stored };
        self.all.push(section);
        if self.all.len() == SECTIONS_SEARCHED + 1 {
            self.index = self.all.iter().enumerate().map(|(at, one)| (one.client, at)).collect();
        } else if self.all.len() > SECTIONS_SEARCHED {
            self.index.insert(client, self.last());
        }
        Ok(section)
    }

    fn finish(&mut self, end: u32) {
        if let Some(section) = self.all.last_mut() {
            section.end = end;
        }
    }

    fn last(&self) -> usize {
        self.all.len().saturating_sub(1)
    }

    fn find(&self, client: u64) -> Option<(usize, Section)> {
        let at = if self.all.len() <= SECTIONS_SEARCHED {
            self.all.iter().position(|section| section.client == client)?
        } else {
            *self.index.get(&client)?
        };
        self.all.get(at).map(|section| (at, *section))
    }
}
