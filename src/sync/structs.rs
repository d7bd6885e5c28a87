//! One struct of a Yjs update: read, judged, and written again.
//!
//! A document has one root `Y.Text`, so of the dozen kinds of content that Yjs knows, four may
//! occur: text, formatting, text that was deleted, and structs that were collected. Everything
//! else is refused here, by its kind, before its bytes are looked at.

use crate::sync::ROOT;
use crate::sync::error::Rejected;
use crate::sync::json::{self, JsonFault};
use crate::sync::lib0::{Reader, put_block, put_number};
use crate::sync::utf16::{self, Place};

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

/// What a parent says it is: a root type, by its name.
const PARENT_IS_ROOT: u64 = 1;
const PARENT_IS_STRUCT: u64 = 0;

/// Names one unit of the document: the client that made it, and how many it had made before.
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

/// What a struct brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// Nothing, and nobody remembers where.
    Collected,
    /// Text that was deleted.
    Deleted,
    /// Text.
    Text(&'a str),
    /// The beginning or end of formatting. Takes one unit and no room.
    Format {
        /// Which formatting.
        key: &'a str,
        /// Its value, in JSON.
        value: &'a str,
    },
}

/// A run of units that one client made in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Struct<'a> {
    /// The clock of its first unit.
    pub(crate) clock: u32,
    /// How many units it has; at least one.
    pub(crate) length: u32,
    /// The unit to its left when it was made.
    pub(crate) origin: Option<Id>,
    /// The unit to its right when it was made.
    pub(crate) right_origin: Option<Id>,
    /// What it brings.
    pub(crate) content: Content<'a>,
}

impl<'a> Struct<'a> {
    /// Reads the struct whose first unit has `clock`.
    ///
    /// # Errors
    ///
    /// [`Rejected`] when it is none, or one that does not belong into a document.
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

    /// The first text of an empty document.
    pub(crate) fn first(text: &'a str) -> Self {
        let length = utf16::length(text);
        Self { clock: 0, length, origin: None, right_origin: None, content: Content::Text(text) }
    }

    /// The clock of the unit after its last, or nothing if clocks do not reach that far.
    pub(crate) fn end(&self) -> Option<u32> {
        self.clock.checked_add(self.length)
    }

    /// The same struct without its first `skipped` units, as Yjs would send it to someone who has
    /// those: it then stands right of them. `client` is who made it.
    pub(crate) fn without(&self, skipped: u32, client: u64) -> TrimmedStruct<'a> {
        if skipped == 0 {
            return TrimmedStruct { whole: *self, begins_broken: false };
        }
        let mut whole = *self;
        whole.clock = self.clock.saturating_add(skipped);
        whole.length = self.length.saturating_sub(skipped);
        let mut begins_broken = false;
        match self.content {
            Content::Collected => return TrimmedStruct { whole, begins_broken },
            Content::Deleted | Content::Format { .. } => {}
            Content::Text(text) => {
                let (rest, broken) = cut(text, skipped);
                whole.content = Content::Text(rest);
                begins_broken = broken;
            }
        }
        whole.origin = Some(Id { client, clock: whole.clock.saturating_sub(1) });
        TrimmedStruct { whole, begins_broken }
    }
}

/// A struct, perhaps one that begins with the second half of a surrogate pair. What Yjs puts
/// there is U+FFFD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrimmedStruct<'a> {
    pub(crate) whole: Struct<'a>,
    pub(crate) begins_broken: bool,
}

impl TrimmedStruct<'_> {
    /// Appends the struct. For text, says where the length of the text stands.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Option<usize> {
        let made = &self.whole;
        let (kind, bare) = match made.content {
            Content::Collected => (GC, true),
            Content::Deleted => (DELETED, false),
            Content::Text(_) => (STRING, false),
            Content::Format { .. } => (FORMAT, false),
        };
        let flag = |id: Option<Id>, bit: u8| if id.is_some() { bit } else { 0 };
        out.push(kind | flag(made.origin, HAS_ORIGIN) | flag(made.right_origin, HAS_RIGHT_ORIGIN));
        for id in [made.origin, made.right_origin].into_iter().flatten() {
            id.write(out);
        }
        if !bare && made.origin.is_none() && made.right_origin.is_none() {
            put_number(out, PARENT_IS_ROOT);
            put_block(out, ROOT.as_bytes());
        }
        match made.content {
            Content::Collected | Content::Deleted => {
                put_number(out, made.length);
                None
            }
            Content::Text(text) => {
                let length_at = out.len();
                if self.begins_broken {
                    put_block(out, ["\u{FFFD}", text].concat().as_bytes());
                } else {
                    put_block(out, text.as_bytes());
                }
                Some(length_at)
            }
            Content::Format { key, value } => {
                put_block(out, key.as_bytes());
                put_block(out, value.as_bytes());
                None
            }
        }
    }
}

/// Refuses kinds that a document has no place for, and flags that its kind does not carry.
fn check_kind(info: u8) -> Result<(), Rejected> {
    match info & KIND {
        GC if info != GC => return Err(Rejected::Malformed("a collected struct has flags")),
        GC | DELETED | STRING | FORMAT => {}
        JSON | BINARY | ANY => return Err(Rejected::Forbidden("contain values other than text")),
        EMBED => return Err(Rejected::Forbidden("embed objects")),
        TYPE => return Err(Rejected::Forbidden("contain nested types")),
        DOCUMENT => return Err(Rejected::Forbidden("contain documents")),
        MOVE => return Err(Rejected::Forbidden("move structs")),
        // Stands for structs that its sender lacks, too.
        SKIP => return Err(Rejected::Gap),
        _ => return Err(Rejected::Malformed("a struct has unknown content")),
    }
    if info & HAS_PARENT_KEY != 0 {
        return Err(Rejected::Forbidden("set attributes of the document"));
    }
    Ok(())
}

/// A struct with no neighbours names its parent. With neighbours, it has theirs.
fn check_parent(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    match reader.number()? {
        PARENT_IS_ROOT if reader.text()? == ROOT => Ok(()),
        PARENT_IS_ROOT => Err(Rejected::Forbidden("write outside of the text")),
        PARENT_IS_STRUCT => Err(Rejected::Forbidden("contain nested types")),
        _ => Err(Rejected::Malformed("a parent is neither a root nor a struct")),
    }
}

fn read_content<'a>(reader: &mut Reader<'a>, kind: u8) -> Result<(Content<'a>, u32), Rejected> {
    match kind {
        GC => Ok((Content::Collected, reader.clock()?)),
        DELETED => Ok((Content::Deleted, reader.clock()?)),
        STRING => {
            let text = reader.text()?;
            Ok((Content::Text(text), utf16::length(text)))
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

/// `text` from unit `units` on, and whether its first unit is half a character that is left out.
fn cut(text: &str, units: u32) -> (&str, bool) {
    match utf16::place(text, units) {
        Place::At(byte) => (text.get(byte..).unwrap_or_default(), false),
        Place::Inside(byte) => {
            let mut rest = text.get(byte..).unwrap_or_default().chars();
            rest.next();
            (rest.as_str(), true)
        }
        Place::Beyond => ("", false),
    }
}
