//! One struct of a Yjs update: parsing, validation and encoding.
//!
//! A document has one root `Y.Text`, so only four of the dozen Yjs content kinds may occur: text,
//! formatting, deleted text, and garbage-collected structs. The parser rejects every other kind by
//! its number, before it reads the content.

use crate::ROOT;
use crate::error::Rejected;
use crate::json::{self, JsonFault};
use crate::lib0::{Reader, put_block, put_length, put_number};
use crate::utf16::{self, Utf16Position};

const HAS_ORIGIN: u8 = 0x80;
const HAS_RIGHT_ORIGIN: u8 = 0x40;
const HAS_PARENT_KEY: u8 = 0x20;
const KIND: u8 = 0x1f;

const GC: u8 = 0;
const DELETED: u8 = 1;
const JSON: u8 = 2;
const BINARY: u8 = 3;
const STRING: u8 = 4;
const EMBED: u8 = 5;
const FORMAT: u8 = 6;
const TYPE: u8 = 7;
const ANY: u8 = 8;
const DOCUMENT: u8 = 9;
const SKIP: u8 = 10;
const MOVE: u8 = 11;

/// Marks a parent as a root type, given by its name.
const PARENT_IS_ROOT: u64 = 1;
const PARENT_IS_STRUCT: u64 = 0;

/// Identifies one unit of the document: its client, and the number of that client's earlier units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) client: u64,
    pub(crate) clock: u32,
}

impl Id {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Rejected> {
        Ok(Self { client: reader.number()?, clock: reader.clock()? })
    }

    fn write(self, out: &mut Vec<u8>) {
        put_number(out, self.client);
        put_number(out, self.clock);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// Garbage-collected: neither content nor position is left.
    Collected,
    Deleted,
    Text(Piece<'a>),
    /// The beginning or end of formatting. Takes one unit, and no space in the text.
    Format {
        key: &'a str,
        value: &'a str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Struct<'a> {
    /// The clock of its first unit.
    pub(crate) clock: u32,
    /// Its number of units; at least one.
    pub(crate) length: u32,
    /// The unit to its left at its creation.
    pub(crate) origin: Option<Id>,
    /// The unit to its right at its creation.
    pub(crate) right_origin: Option<Id>,
    pub(crate) content: Content<'a>,
}

impl<'a> Struct<'a> {
    /// Reads the struct whose first unit has `clock`. Fails with [`Rejected`] when the bytes are no
    /// struct, or a document may not contain the struct.
    pub(crate) fn read(reader: &mut Reader<'a>, clock: u32) -> Result<Self, Rejected> {
        let info = reader.byte()?;
        check_kind(info)?;
        let (mut origin, mut right_origin) = (None, None);
        if info & HAS_ORIGIN != 0 {
            origin = Some(Id::read(reader)?);
        }
        if info & HAS_RIGHT_ORIGIN != 0 {
            right_origin = Some(Id::read(reader)?);
        }
        if info & KIND != GC && origin.is_none() && right_origin.is_none() {
            check_parent(reader)?;
        }
        let (content, length) = read_content(reader, info & KIND)?;
        if length == 0 {
            return Err(Rejected::Malformed("a struct is empty"));
        }
        Ok(Self { clock, length, origin, right_origin, content })
    }

    pub(crate) fn first(text: &'a str) -> Self {
        let length = utf16::length(text);
        let content = Content::Text(Piece::whole(text));
        Self { clock: 0, length, origin: None, right_origin: None, content }
    }

    /// The clock after its last unit, or `None` beyond the range of clocks.
    pub(crate) fn end(&self) -> Option<u32> {
        self.clock.checked_add(self.length)
    }

    /// The units from clock `from` on, encoded as Yjs sends them to a client that has the earlier
    /// ones: their origin is the unit before them. `client` is the struct's client.
    pub(crate) fn starting(&self, from: u32, client: u64) -> Self {
        let skipped = from.saturating_sub(self.clock).min(self.length);
        if skipped == 0 {
            return *self;
        }
        let mut rest = *self;
        rest.clock = self.clock.saturating_add(skipped);
        rest.length = self.length.saturating_sub(skipped);
        if let Content::Text(piece) = self.content {
            rest.content = Content::Text(piece.split(skipped).1);
        }
        if self.content != Content::Collected {
            rest.origin = Some(Id { client, clock: rest.clock.saturating_sub(1) });
        }
        rest
    }

    pub(crate) fn ending(&self, to: u32) -> Self {
        let left = to.saturating_sub(self.clock).min(self.length);
        if left == self.length {
            return *self;
        }
        let mut first = *self;
        first.length = left;
        if let Content::Text(piece) = self.content {
            first.content = Content::Text(piece.split(left).0);
        }
        first
    }

    /// Cuts a text longer than `bytes` after the last character that ends within them. `None`: the
    /// struct is no text of that length.
    pub(crate) fn cut_text(&self, bytes: usize, client: u64) -> Option<(Self, Self)> {
        let Content::Text(piece) = self.content else { return None };
        let (first, rest) = piece.cut(bytes)?;
        let length = first.units();
        let clock = self.clock.checked_add(length)?;
        let origin = Some(Id { client, clock: clock.saturating_sub(1) });
        let content = Content::Text(rest);
        let rest =
            Self { clock, length: self.length.saturating_sub(length), origin, content, ..*self };
        Some((Self { length, content: Content::Text(first), ..*self }, rest))
    }

    /// These units, deleted.
    pub(crate) fn deleted(mut self) -> Self {
        if self.content != Content::Collected {
            self.content = Content::Deleted;
        }
        self
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let flag = |id: Option<Id>, bit: u8| if id.is_some() { bit } else { 0 };
        let flags = flag(self.origin, HAS_ORIGIN) | flag(self.right_origin, HAS_RIGHT_ORIGIN);
        out.push(flags | self.kind());
        for id in [self.origin, self.right_origin].into_iter().flatten() {
            id.write(out);
        }
        if flags == 0 && self.content != Content::Collected {
            put_number(out, PARENT_IS_ROOT);
            put_block(out, ROOT.as_bytes());
        }
        match self.content {
            Content::Collected | Content::Deleted => put_number(out, self.length),
            Content::Text(piece) => {
                put_length(out, piece.bytes());
                piece.write(out);
            }
            Content::Format { key, value } => {
                put_block(out, key.as_bytes());
                put_block(out, value.as_bytes());
            }
        }
    }

    fn kind(&self) -> u8 {
        match self.content {
            Content::Collected => GC,
            Content::Deleted => DELETED,
            Content::Text(_) => STRING,
            Content::Format { .. } => FORMAT,
        }
    }
}

/// A piece of text, cut at UTF-16 units. A cut inside a surrogate pair leaves half of it on each
/// side; Yjs replaces each half by U+FFFD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    begins_cut: bool,
    text: &'a str,
    ends_cut: bool,
}

const HALF: &str = "\u{FFFD}";

impl<'a> Piece<'a> {
    fn whole(text: &'a str) -> Self {
        Self { begins_cut: false, text, ends_cut: false }
    }

    pub(crate) fn bytes(self) -> usize {
        let halves = usize::from(self.begins_cut).saturating_add(usize::from(self.ends_cut));
        self.text.len().saturating_add(halves.saturating_mul(HALF.len()))
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let half = |cut: bool| if cut { HALF.as_bytes() } else { &[] };
        out.extend_from_slice(half(self.begins_cut));
        out.extend_from_slice(self.text.as_bytes());
        out.extend_from_slice(half(self.ends_cut));
    }

    pub(crate) fn push_to(self, text: &mut String) {
        let half = |cut: bool| if cut { HALF } else { "" };
        text.push_str(half(self.begins_cut));
        text.push_str(self.text);
        text.push_str(half(self.ends_cut));
    }

    fn units(self) -> u32 {
        let halves = u32::from(self.begins_cut).saturating_add(u32::from(self.ends_cut));
        utf16::length(self.text).saturating_add(halves)
    }

    /// The longest part of at most `bytes`, and the rest; `None` if all of it fits. The cut never
    /// splits a surrogate pair.
    fn cut(self, bytes: usize) -> Option<(Self, Self)> {
        if self.bytes() <= bytes {
            return None;
        }
        let half = if self.begins_cut { HALF.len() } else { 0 };
        let at = self.text.floor_char_boundary(bytes.saturating_sub(half));
        let (first, rest) = self.text.split_at_checked(at)?;
        let is_part = !first.is_empty() && (self.ends_cut || !rest.is_empty());
        is_part.then_some((
            Self { text: first, ends_cut: false, ..self },
            Self { text: rest, begins_cut: false, ..self },
        ))
    }

    /// The first `units`, of which there is at least one, and the rest.
    fn split(self, units: u32) -> (Self, Self) {
        let (end, start, is_cut) =
            match utf16::position(self.text, units.saturating_sub(self.begins_cut.into())) {
                Utf16Position::At(byte) => (byte, byte, false),
                Utf16Position::Inside(byte) => (byte, byte.saturating_add(PAIR_BYTES), true),
                Utf16Position::Beyond => (self.text.len(), self.text.len(), false),
            };
        let (first, rest) = (self.text.get(..end), self.text.get(start..));
        (
            Self { text: first.unwrap_or_default(), ends_cut: is_cut, ..self },
            Self { text: rest.unwrap_or_default(), begins_cut: is_cut, ..self },
        )
    }
}

/// Bytes in UTF-8 of a character of two UTF-16 units.
const PAIR_BYTES: usize = 4;

/// Rejects kinds that a document may not contain, and flags that the kind does not have.
fn check_kind(info: u8) -> Result<(), Rejected> {
    match info & KIND {
        GC if info != GC => return Err(Rejected::Malformed("a collected struct has flags")),
        GC | DELETED | STRING | FORMAT => {}
        JSON | BINARY | ANY => return Err(Rejected::Unsupported("contain values other than text")),
        EMBED => return Err(Rejected::Unsupported("embed objects")),
        TYPE => return Err(Rejected::Unsupported("contain nested types")),
        DOCUMENT => return Err(Rejected::Unsupported("contain documents")),
        MOVE => return Err(Rejected::Unsupported("move structs")),
        // A skip stands for structs that the sender lacks.
        SKIP => return Err(Rejected::Gap),
        _ => return Err(Rejected::Malformed("a struct has unknown content")),
    }
    if info & HAS_PARENT_KEY != 0 {
        return Err(Rejected::Unsupported("set attributes of the document"));
    }
    Ok(())
}

/// A struct without neighbours names its parent. A struct with neighbours inherits theirs.
fn check_parent(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    match reader.number()? {
        PARENT_IS_ROOT if reader.text()? == ROOT => Ok(()),
        PARENT_IS_ROOT => Err(Rejected::Forbidden("write outside of the text")),
        PARENT_IS_STRUCT => Err(Rejected::Unsupported("contain nested types")),
        _ => Err(Rejected::Malformed("a parent is neither a root nor a struct")),
    }
}

fn read_content<'a>(reader: &mut Reader<'a>, kind: u8) -> Result<(Content<'a>, u32), Rejected> {
    match kind {
        GC => Ok((Content::Collected, reader.clock()?)),
        DELETED => Ok((Content::Deleted, reader.clock()?)),
        STRING => {
            let text = reader.text()?;
            Ok((Content::Text(Piece::whole(text)), utf16::length(text)))
        }
        FORMAT => {
            let (key, value) = (reader.text()?, reader.text()?);
            match json::check_for_yrs(value) {
                Ok(()) => Ok((Content::Format { key, value }, 1)),
                Err(JsonFault::TooDeep) => Err(Rejected::TooDeep),
                Err(JsonFault::Invalid) => Err(Rejected::Malformed("a format is not JSON")),
            }
        }
        _ => Err(Rejected::Malformed("a struct has unknown content")),
    }
}
