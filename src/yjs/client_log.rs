//! All structs of one client in order, as bytes.

use std::iter::Peekable;

use crate::error::Rejected;
use crate::lib0::{Reader, put_length, put_number};
use crate::structs::{Content, Id, Piece, Struct};

/// The structs of one client from clock 0 on, without a gap (Y2).
///
/// A text that continues the preceding text joins its struct, as when Yjs encodes a document. A page
/// typed letter by letter then takes a page of letters, instead of a page of structs of a dozen
/// bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    end: u32,
    count: usize,
    bytes: Vec<u8>,
    /// Starts of structs from which reading can begin, about every [`MARK_EVERY`] bytes.
    marks: Vec<Mark>,
    /// The last struct, if a new struct can join it.
    tail: Option<Tail>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    clock: u32,
    at: usize,
    /// The number of structs before it.
    before: usize,
}

/// A struct at the end of the client log that new text or a deletion can continue.
#[derive(Clone, Copy, Debug)]
struct Tail {
    right_origin: Option<Id>,
    /// The position of its length.
    length_at: usize,
    /// The position of its text; none when it is deleted.
    text_at: Option<usize>,
    /// Its number of units.
    units: u32,
}

/// Distance of marks in bytes: a look-up of a clock reads at most about this much before its target.
const MARK_EVERY: usize = 4096;
/// Longest text of one struct, in bytes. The log stores a longer text as several structs, each right
/// of the one before it, as Yjs itself splits a text. So a state vector that ends inside a text
/// costs a walk through one piece. An append moves at most one piece when the length of a continued
/// text needs one more byte. The cost: some 12 bytes for each cut, 0.3 % of a piece.
pub(crate) const PIECE_BYTES_MAX: usize = 4096;

/// Three numbers of at most eight bytes, for each client of an update.
pub(crate) const SECTION_HEADER_MAX: usize = 24;

/// Shortest deletion that garbage collection removes. Two more structs take about 50 bytes, so
/// cutting a single backspace out of a paragraph would enlarge the log.
const FORGOTTEN_MIN: u32 = 64;

/// A position in a client log from which a copy starts.
pub(crate) struct Cut<'a> {
    first: Struct<'a>,
    rest: &'a [u8],
    /// The number of structs from here on.
    pub(crate) count: usize,
    /// Bytes of structs read to find it.
    pub(crate) walked: usize,
}

impl Cut<'_> {
    pub(crate) fn clock(&self) -> u32 {
        self.first.clock
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.first.write(out);
        out.extend_from_slice(self.rest);
    }
}

impl Run {
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Appends the new part of `found`. `client` is the owner of this log.
    pub(crate) fn push(&mut self, found: &Struct<'_>, client: u64) {
        let Some(end) = found.end().filter(|end| self.end < *end) else { return };
        debug_assert!(found.clock <= self.end, "a gap (Y2)");
        let mut new = found.starting(self.end, client);
        if !self.continue_tail(&new, client) {
            while let Some((first, rest)) = new.cut_text(PIECE_BYTES_MAX, client) {
                self.push_struct(&first);
                new = rest;
            }
            self.push_struct(&new);
        }
        self.end = end;
    }

    fn push_struct(&mut self, new: &Struct<'_>) {
        let at = self.bytes.len();
        if self.marks.last().is_none_or(|mark| at.saturating_sub(mark.at) >= MARK_EVERY) {
            self.marks.push(Mark { clock: new.clock, at, before: self.count });
        }
        new.write(&mut self.bytes);
        self.count = self.count.saturating_add(1);
        self.tail = match new.content {
            Content::Text(piece) => {
                let text_at = self.bytes.len().saturating_sub(piece.bytes());
                Some((text_at.saturating_sub(length_bytes(piece.bytes())), Some(text_at)))
            }
            Content::Deleted => {
                let units = usize::try_from(new.length).unwrap_or(usize::MAX);
                Some((self.bytes.len().saturating_sub(length_bytes(units)), None))
            }
            Content::Collected | Content::Format { .. } => None,
        }
        .map(|(length_at, text_at)| Tail {
            right_origin: new.right_origin,
            length_at,
            text_at,
            units: new.length,
        });
    }

    /// Joins text to the text directly before it, and a deletion to the deletion before it.
    ///
    /// Two structs are one if the second is right of the first's last unit and both have the same
    /// right origin: splitting the joined struct at any unit yields such a pair.
    fn continue_tail(&mut self, new: &Struct<'_>, client: u64) -> bool {
        let Some(tail) = self.tail else { return false };
        let before = Some(Id { client, clock: self.end.saturating_sub(1) });
        if new.origin != before || new.right_origin != tail.right_origin {
            return false;
        }
        let units = tail.units.saturating_add(new.length);
        let continued = match new.content {
            Content::Text(piece) => self.continue_text(tail, piece),
            Content::Deleted if tail.text_at.is_none() => {
                self.bytes.truncate(tail.length_at);
                put_number(&mut self.bytes, units);
                Some(tail)
            }
            Content::Deleted | Content::Collected | Content::Format { .. } => None,
        };
        let Some(tail) = continued else { return false };
        self.tail = Some(Tail { units, ..tail });
        true
    }

    fn continue_text(&mut self, tail: Tail, piece: Piece<'_>) -> Option<Tail> {
        let text_at = tail.text_at?;
        let length = self.bytes.len().saturating_sub(text_at).saturating_add(piece.bytes());
        if length > PIECE_BYTES_MAX {
            return None;
        }
        piece.write(&mut self.bytes);
        let mut prefix = Vec::with_capacity(length_bytes(PIECE_BYTES_MAX));
        put_length(&mut prefix, length);
        let moved_to = tail.length_at.saturating_add(prefix.len());
        self.bytes.splice(tail.length_at..text_at, prefix);
        Some(Tail { text_at: Some(moved_to), ..tail })
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.marks.shrink_to_fit();
    }

    /// Replaces deleted text by a mark of its deletion, as Yjs does when it collects garbage. A page
    /// that a user pastes over repeatedly then keeps the size of a page. `ranges` are the deleted
    /// clocks, in order. Fails with [`Rejected`] when the client log cannot be parsed, which would be a
    /// bug: the validator accepted its structs.
    pub(crate) fn gc(
        &mut self,
        client: u64,
        ranges: impl Iterator<Item = (u32, u32)>,
    ) -> Result<(), Rejected> {
        let mut compacted = Self::default();
        let mut ranges =
            ranges.filter(|(from, to)| to.saturating_sub(*from) >= FORGOTTEN_MIN).peekable();
        let mut reader = Reader::new(&self.bytes);
        while compacted.end < self.end {
            let found = Struct::read(&mut reader, compacted.end)?;
            compacted.push_collected(&found, client, &mut ranges);
        }
        *self = compacted;
        Ok(())
    }

    /// Appends a struct, with its parts inside `ranges` as deleted.
    fn push_collected(
        &mut self,
        found: &Struct<'_>,
        client: u64,
        ranges: &mut Peekable<impl Iterator<Item = (u32, u32)>>,
    ) {
        let end = found.clock.saturating_add(found.length);
        while self.end < end {
            while ranges.next_if(|(_, to)| *to <= self.end).is_some() {}
            let (from, to) = ranges.peek().copied().unwrap_or((end, end));
            let part =
                if self.end < from { found.ending(from) } else { found.ending(to).deleted() };
            self.push(&part, client);
        }
    }

    /// The structs from `clock` on; none when the client log ends there.
    pub(crate) fn cut(&self, clock: u32, client: u64) -> Result<Option<Cut<'_>>, Rejected> {
        if self.end <= clock {
            return Ok(None);
        }
        let nearest = self.marks.partition_point(|mark| mark.clock <= clock);
        let Some(mark) = nearest.checked_sub(1).and_then(|at| self.marks.get(at)) else {
            return Ok(None);
        };
        let mut reader = Reader::new(self.bytes.get(mark.at..).unwrap_or_default());
        let from = reader.left();
        let mut before = mark.before;
        let mut next = mark.clock;
        loop {
            let found = Struct::read(&mut reader, next)?;
            next = found.clock.saturating_add(found.length);
            if clock < next {
                let rest = self.bytes.len().saturating_sub(reader.left());
                return Ok(Some(Cut {
                    first: found.starting(clock, client),
                    rest: self.bytes.get(rest..).unwrap_or_default(),
                    count: self.count.saturating_sub(before),
                    walked: from.saturating_sub(reader.left()),
                }));
            }
            before = before.saturating_add(1);
        }
    }

    pub(crate) fn write(&self, client: u64, out: &mut Vec<u8>) {
        put_length(out, self.count);
        put_number(out, client);
        put_number(out, 0_u32);
        out.extend_from_slice(&self.bytes);
    }
}

fn length_bytes(length: usize) -> usize {
    let bits = usize::BITS.saturating_sub(length.leading_zeros()).max(1);
    usize::try_from(bits.div_ceil(7)).unwrap_or(usize::MAX)
}
