//! All structs of one client, one after the other, as bytes.

use crate::sync::error::Rejected;
use crate::sync::lib0::{Reader, put_length, put_number};
use crate::sync::structs::{Content, Id, Struct, TrimmedStruct};

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

/// A struct of text at the end of a run.
#[derive(Clone, Copy, Debug)]
struct Tail {
    right_origin: Option<Id>,
    /// Where the length of its text stands.
    length_at: usize,
    /// Where its text begins.
    text_at: usize,
}

/// How much is read in vain at most to find a clock.
const MARK_EVERY: usize = 4096;
/// Longest text that is still continued. When its length needs one more byte the text is moved,
/// so this is also the most that an append moves.
const TAIL_MAX: usize = 4096;

/// A place in a run from where it can be copied.
pub(crate) struct Cut<'a> {
    first: TrimmedStruct<'a>,
    rest: &'a [u8],
    /// How many structs there are, the first one included.
    pub(crate) count: usize,
    pub(crate) clock: u32,
}

impl Cut<'_> {
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

    /// Puts the part of `found` that is new behind the others. `client` is whose run this is.
    pub(crate) fn push(&mut self, found: &Struct<'_>, client: u64) {
        let Some(end) = found.end().filter(|end| self.end < *end) else { return };
        debug_assert!(found.clock <= self.end, "a gap (Y2)");
        let new = found.without(self.end.saturating_sub(found.clock), client);
        if !self.continue_tail(&new, client) {
            self.push_struct(&new);
        }
        self.end = end;
    }

    fn push_struct(&mut self, new: &TrimmedStruct<'_>) {
        let at = self.bytes.len();
        if self.marks.last().is_none_or(|mark| MARK_EVERY <= at.saturating_sub(mark.at)) {
            self.marks.push(Mark { clock: new.whole.clock, at, before: self.count });
        }
        let length_at = new.write(&mut self.bytes);
        self.count = self.count.saturating_add(1);
        self.tail = match (length_at, new.whole.content) {
            (Some(length_at), Content::Text(text)) if !new.begins_broken => Some(Tail {
                right_origin: new.whole.right_origin,
                length_at,
                text_at: self.bytes.len().saturating_sub(text.len()),
            }),
            _ => None,
        };
    }

    /// Puts text that was typed right behind the last text into the same struct.
    ///
    /// Two structs are one when the second stands right of the first's last unit and both were
    /// made left of the same unit: split at any unit, the one falls into the two again.
    fn continue_tail(&mut self, new: &TrimmedStruct<'_>, client: u64) -> bool {
        let (Some(tail), Content::Text(text)) = (self.tail, new.whole.content) else {
            return false;
        };
        let before = Some(Id { client, clock: self.end.saturating_sub(1) });
        let continues = new.whole.origin == before && new.whole.right_origin == tail.right_origin;
        let length = self.bytes.len().saturating_sub(tail.text_at).saturating_add(text.len());
        if !continues || new.begins_broken || TAIL_MAX < length {
            return false;
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.rewrite_length(tail, length);
        true
    }

    fn rewrite_length(&mut self, tail: Tail, length: usize) {
        // TAIL_MAX takes two bytes; the buffer is a vector only because the writer wants one.
        let mut prefix = Vec::with_capacity(2);
        put_length(&mut prefix, length);
        let text_at = tail.length_at.saturating_add(prefix.len());
        self.bytes.splice(tail.length_at..tail.text_at, prefix);
        self.tail = Some(Tail { text_at, ..tail });
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
        let mut before = mark.before;
        let mut next = mark.clock;
        loop {
            let found = Struct::read(&mut reader, next)?;
            next = found.clock.saturating_add(found.length);
            if clock < next {
                let skipped = clock.saturating_sub(found.clock);
                let rest = self.bytes.len().saturating_sub(reader.left());
                return Ok(Some(Cut {
                    first: found.without(skipped, client),
                    rest: self.bytes.get(rest..).unwrap_or_default(),
                    count: self.count.saturating_sub(before),
                    clock: found.clock.saturating_add(skipped),
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
