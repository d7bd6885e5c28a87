//! All structs of one client, one after the other, as bytes.

use std::iter::Peekable;

use crate::yjs::error::Rejected;
use crate::yjs::lib0::{Reader, put_length, put_number};
use crate::yjs::structs::{Content, Id, Piece, Struct};

/// The structs of one client from clock 0 on, without a gap (Y2).
///
/// Text that continues the text before it is put into the same struct, as Yjs does when it
/// encodes a document: a page typed letter by letter is then a page of letters, not a page of
/// structs of a dozen bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// The clock of the next unit.
    end: u32,
    /// How many structs the bytes hold.
    count: usize,
    bytes: Vec<u8>,
    /// Where one can begin to read, about every [`MARK_EVERY`] bytes.
    marks: Vec<Mark>,
    /// The last struct, if text can be put behind it.
    tail: Option<Tail>,
}

/// The beginning of a struct.
#[derive(Clone, Copy, Debug)]
struct Mark {
    clock: u32,
    at: usize,
    /// How many structs come before it.
    before: usize,
}

/// A struct at the end of a run that may be continued.
#[derive(Clone, Copy, Debug)]
struct Tail {
    right_origin: Option<Id>,
    /// Where its length stands.
    length_at: usize,
    /// Where its text begins; nothing when it is deleted.
    text_at: Option<usize>,
    /// How many units it has.
    units: u32,
}

/// How much is read in vain at most to find a clock.
const MARK_EVERY: usize = 4096;
/// Longest text of one struct, in bytes. A longer text is stored as several structs, each right of the
/// one before it: the form in which Yjs itself splits a text. So a state vector that ends inside a
/// text costs a walk through one piece, and an append moves at most one piece when the length of a
/// continued text needs one more byte. A cut costs some 12 bytes, 0.3 % of a piece.
pub(crate) const PIECE_BYTES_MAX: usize = 4096;

/// Shortest deletion whose text is forgotten. Two structs more take about 50 bytes, so to cut a
/// single backspace out of a paragraph would make it longer.
const FORGOTTEN_MIN: u32 = 64;

/// A place in a run from where it can be copied.
pub(crate) struct Cut<'a> {
    first: Struct<'a>,
    rest: &'a [u8],
    /// How many structs there are, the first one included.
    pub(crate) count: usize,
    /// How many bytes of structs were read to find it.
    pub(crate) walked: usize,
}

impl Cut<'_> {
    /// The clock of its first unit.
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

    /// How many structs the run has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Puts the part of `found` that is new behind the others. `client` is whose run this is.
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
        if self.marks.last().is_none_or(|mark| MARK_EVERY <= at.saturating_sub(mark.at)) {
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

    /// Puts text that was typed right behind the last text into the same struct, and what was
    /// deleted to what was deleted before it.
    ///
    /// Two structs are one when the second stands right of the first's last unit and both were
    /// made left of the same unit: split at any unit, the one falls into the two again.
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

    /// Puts `piece` behind the text of the tail and gives the tail as it is then.
    fn continue_text(&mut self, tail: Tail, piece: Piece<'_>) -> Option<Tail> {
        let text_at = tail.text_at?;
        let length = self.bytes.len().saturating_sub(text_at).saturating_add(piece.bytes());
        if PIECE_BYTES_MAX < length {
            return None;
        }
        piece.write(&mut self.bytes);
        let mut prefix = Vec::with_capacity(length_bytes(PIECE_BYTES_MAX));
        put_length(&mut prefix, length);
        let moved_to = tail.length_at.saturating_add(prefix.len());
        self.bytes.splice(tail.length_at..text_at, prefix);
        Some(Tail { text_at: Some(moved_to), ..tail })
    }

    /// Leaves of what is deleted only that it was there, as Yjs does when it collects garbage:
    /// a page that is pasted over again and again stays a page. `ranges` are the deleted clocks,
    /// in order.
    ///
    /// # Errors
    ///
    /// [`Rejected`] when the run cannot be read back, which cannot be.
    pub(crate) fn forget(
        &mut self,
        client: u64,
        ranges: impl Iterator<Item = (u32, u32)>,
    ) -> Result<(), Rejected> {
        let mut kept = Self::default();
        let mut ranges =
            ranges.filter(|(from, to)| FORGOTTEN_MIN <= to.saturating_sub(*from)).peekable();
        let mut reader = Reader::new(&self.bytes);
        while kept.end < self.end {
            let found = Struct::read(&mut reader, kept.end)?;
            kept.push_kept(&found, client, &mut ranges);
        }
        *self = kept;
        Ok(())
    }

    /// Puts a struct behind the others, the parts of it that lie in one of `ranges` as deleted.
    fn push_kept(
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

    /// The run from `clock` on; nothing when it ends there.
    ///
    /// # Errors
    ///
    /// [`Rejected`] when the run cannot be read back, which cannot be.
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

    /// Appends the whole run as a section of an update.
    pub(crate) fn write(&self, client: u64, out: &mut Vec<u8>) {
        put_length(out, self.count);
        put_number(out, client);
        put_number(out, 0_u32);
        out.extend_from_slice(&self.bytes);
    }
}

/// How many bytes a length takes.
fn length_bytes(length: usize) -> usize {
    let bits = usize::BITS.saturating_sub(length.leading_zeros()).max(1);
    usize::try_from(bits.div_ceil(7)).unwrap_or(usize::MAX)
}
