//! ZIP archives: the small part of the format that a Word document needs.
//!
//! The writer compresses each entry while its text is written, so a document of any length takes the
//! memory of its compressed file. The reader trusts no number of the archive: it checks each range
//! against the bytes, and bounds the entries and what an entry inflates to (G12, G13).

use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::EXPORT_BYTES_MAX;
use crate::error::ImportError;
use galley_domain::export::ExportFailure;

/// Bytes of all parts of a Word document before compression: eight million lines take 50 MiB.
const EXPORT_INFLATED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Parts of an imported Word document. A long one with pictures has some hundred.
const IMPORT_ENTRIES_MAX: usize = 2_000;

const LOCAL: u32 = 0x0403_4B50;
const CENTRAL: u32 = 0x0201_4B50;
const END: u32 = 0x0605_4B50;
const LOCAL_BYTES: usize = 30;
const CENTRAL_BYTES: usize = 46;
const END_BYTES: usize = 22;
/// Longest comment behind the last record.
const COMMENT_BYTES_MAX: usize = 0xFFFF;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// 1980-01-01, the first day of the format: the file's own properties have its time.
const DAY: u16 = 0x0021;
/// ZIP 2.0, for deflate.
const VERSION: u16 = 20;

#[derive(Debug, Default)]
pub(crate) struct ZipWriter {
    out: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
    /// Bytes of all entries before compression.
    inflated: usize,
}

#[derive(Debug)]
pub(crate) struct Entry {
    name: &'static str,
    crc: Crc,
    encoder: DeflateEncoder<Vec<u8>>,
    /// How many bytes this entry may have in all, and compressed.
    inflated_max: usize,
    deflated_max: usize,
}

impl Entry {
    pub(crate) fn push(&mut self, text: &str) -> Result<(), ExportFailure> {
        self.crc.update(text.as_bytes());
        let inflated = usize::try_from(self.encoder.total_in()).unwrap_or(usize::MAX);
        if self.inflated_max < inflated.saturating_add(text.len())
            || self.deflated_max < self.encoder.get_ref().len()
        {
            return Err(ExportFailure::TooLarge);
        }
        // Writing to memory does not fail.
        self.encoder.write_all(text.as_bytes()).map_err(|_| ExportFailure::Unavailable)
    }
}

impl ZipWriter {
    pub(crate) fn entry(&self, name: &'static str) -> Entry {
        Entry {
            name,
            crc: Crc::new(),
            encoder: DeflateEncoder::new(Vec::new(), Compression::default()),
            inflated_max: EXPORT_INFLATED_BYTES_MAX.saturating_sub(self.inflated),
            deflated_max: EXPORT_BYTES_MAX.saturating_sub(self.out.len()),
        }
    }

    pub(crate) fn finish(&mut self, entry: Entry) -> Result<(), ExportFailure> {
        let length = entry.encoder.total_in();
        let bytes = entry.encoder.finish().map_err(|_| ExportFailure::Unavailable)?;
        if entry.deflated_max < bytes.len() {
            return Err(ExportFailure::TooLarge);
        }
        self.inflated = self.inflated.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        // The bounds of a file are far below the range of these fields.
        let narrow = |number: usize| u32::try_from(number).map_err(|_| ExportFailure::TooLarge);
        let (offset, deflated) = (narrow(self.out.len())?, narrow(bytes.len())?);
        let length = u32::try_from(length).map_err(|_| ExportFailure::TooLarge)?;
        let name = u16::try_from(entry.name.len()).map_err(|_| ExportFailure::TooLarge)?;
        let mut shared = Vec::with_capacity(26);
        for field in [VERSION, 0, DEFLATED, 0, DAY] {
            shared.extend(field.to_le_bytes());
        }
        for field in [entry.crc.sum(), deflated, length] {
            shared.extend(field.to_le_bytes());
        }
        for field in [name, 0] {
            shared.extend(field.to_le_bytes());
        }
        self.out.extend(LOCAL.to_le_bytes());
        self.out.extend(&shared);
        self.out.extend(entry.name.as_bytes());
        self.out.extend(bytes);
        self.directory.extend(CENTRAL.to_le_bytes());
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(shared);
        // Comment, disk and attributes: none.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(entry.name.as_bytes());
        self.entries = self.entries.saturating_add(1);
        Ok(())
    }

    pub(crate) fn add(&mut self, name: &'static str, text: &str) -> Result<(), ExportFailure> {
        let mut entry = self.entry(name);
        entry.push(text)?;
        self.finish(entry)
    }

    pub(crate) fn into_bytes(self) -> Result<Vec<u8>, ExportFailure> {
        let Self { mut out, directory, entries, .. } = self;
        let narrow = |number: usize| u32::try_from(number).map_err(|_| ExportFailure::TooLarge);
        let (offset, length) = (narrow(out.len())?, narrow(directory.len())?);
        out.extend(directory);
        out.extend(END.to_le_bytes());
        out.extend([0; 4]);
        out.extend(entries.to_le_bytes());
        out.extend(entries.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.extend([0; 2]);
        Ok(out)
    }
}

pub(crate) struct ZipReader<'a> {
    bytes: &'a [u8],
    entries: Vec<Listed<'a>>,
}

struct Listed<'a> {
    name: &'a [u8],
    method: u16,
    crc: u32,
    deflated: usize,
    inflated: u64,
    offset: usize,
}

const BROKEN: ImportError = ImportError::Unreadable("it is no complete archive");
const PROTECTED: ImportError =
    ImportError::Unreadable("a password protects it; save it without one, and send it again");
const OLD: ImportError =
    ImportError::Unreadable("it is a file of Word 97 to 2003; save it as .docx, and send it again");
/// The first bytes of a compound file: a document of earlier versions, or one behind a password.
const COMPOUND: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
/// The stream of a protected document, in UTF-16.
const PACKAGE: &[u8] = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0";

impl<'a> ZipReader<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, ImportError> {
        if bytes.starts_with(COMPOUND) {
            let is_protected = bytes.windows(PACKAGE.len()).any(|it| it == PACKAGE);
            return Err(if is_protected { PROTECTED } else { OLD });
        }
        let end = Fields(bytes.get(end_of(bytes).ok_or(BROKEN)?..).ok_or(BROKEN)?);
        let count = usize::from(end.u16(10)?);
        // An archive of more than 65,534 entries or 4 GB has a record of its own.
        if count == 0xFFFF || count > IMPORT_ENTRIES_MAX {
            return Err(ImportError::TooLarge("it has too many parts"));
        }
        let mut at = end.usize(16)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let record = Fields(bytes.get(at..).ok_or(BROKEN)?);
            if record.u32(0)? != CENTRAL {
                return Err(BROKEN);
            }
            if record.u16(8)? & 1 != 0 {
                return Err(PROTECTED);
            }
            let name = usize::from(record.u16(28)?);
            let rest = usize::from(record.u16(30)?) + usize::from(record.u16(32)?);
            entries.push(Listed {
                name: record.0.get(CENTRAL_BYTES..CENTRAL_BYTES + name).ok_or(BROKEN)?,
                method: record.u16(10)?,
                crc: record.u32(16)?,
                deflated: record.usize(20)?,
                inflated: record.u32(24)?.into(),
                offset: record.usize(42)?,
            });
            at = at.saturating_add(CENTRAL_BYTES + name + rest);
        }
        Ok(Self { bytes, entries })
    }

    /// The reader fails beyond the bounds. `None`: there is no such entry.
    pub(crate) fn entry(
        &self,
        name: &str,
        max: u64,
        ratio_max: u64,
    ) -> Result<Option<Inflated<'a>>, ImportError> {
        // Names of parts differ by more than their case (OPC §6.2.2.3).
        let is_it = |entry: &&Listed<'_>| entry.name.eq_ignore_ascii_case(name.as_bytes());
        let Some(entry) = self.entries.iter().find(is_it) else { return Ok(None) };
        let record = Fields(self.bytes.get(entry.offset..).ok_or(BROKEN)?);
        if record.u32(0)? != LOCAL {
            return Err(BROKEN);
        }
        let head = LOCAL_BYTES + usize::from(record.u16(26)?) + usize::from(record.u16(28)?);
        let body = record.0.get(head..head.saturating_add(entry.deflated)).ok_or(BROKEN)?;
        let deflated = u64::try_from(entry.deflated).unwrap_or(u64::MAX);
        let max = max.min(deflated.saturating_mul(ratio_max).max(RATIO_FROM));
        if max < entry.inflated {
            return Err(ImportError::TooLarge("a part of it inflates beyond the limit"));
        }
        let source = match entry.method {
            STORED => Source::Stored(body),
            DEFLATED => Source::Deflated(DeflateDecoder::new(body)),
            _ => return Err(ImportError::Unreadable("it is compressed in an unknown way")),
        };
        Ok(Some(Inflated { source, crc: Crc::new(), expected: entry.crc, left: entry.inflated }))
    }
}

/// An entry may inflate to this many bytes at any ratio.
const RATIO_FROM: u64 = 1024 * 1024;

/// As many bytes as the directory says, with the sum that it says; any other content is an error.
pub(crate) struct Inflated<'a> {
    source: Source<'a>,
    crc: Crc,
    expected: u32,
    left: u64,
}

enum Source<'a> {
    Stored(&'a [u8]),
    Deflated(DeflateDecoder<&'a [u8]>),
}

impl Read for Inflated<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::Stored(bytes) => bytes.read(buffer)?,
            Source::Deflated(decoder) => decoder.read(buffer)?,
        };
        self.crc.update(buffer.get(..read).unwrap_or_default());
        let length = u64::try_from(read).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or(io::ErrorKind::InvalidData)?;
        let is_end = read == 0 && !buffer.is_empty();
        if is_end && (self.left != 0 || self.crc.sum() != self.expected) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(read)
    }
}

/// The position of the last record, which a comment may follow.
fn end_of(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_BYTES)?;
    let first = last.saturating_sub(COMMENT_BYTES_MAX);
    (first..=last)
        .rev()
        .find(|at| bytes.get(*at..).is_some_and(|rest| rest.starts_with(&END.to_le_bytes())))
}

/// Little-endian fields of a record.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> Result<u16, ImportError> {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk).ok_or(BROKEN)?;
        Ok(u16::from_le_bytes(*bytes))
    }

    fn u32(&self, at: usize) -> Result<u32, ImportError> {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk).ok_or(BROKEN)?;
        Ok(u32::from_le_bytes(*bytes))
    }

    fn usize(&self, at: usize) -> Result<usize, ImportError> {
        usize::try_from(self.u32(at)?).map_err(|_| BROKEN)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn archive(entries: &[(&'static str, &str)]) -> Vec<u8> {
        let mut zip = ZipWriter::default();
        for (name, text) in entries {
            zip.add(name, text).expect("an entry");
        }
        zip.into_bytes().expect("an archive")
    }

    pub(crate) fn unpacked(bytes: &[u8], name: &str) -> Option<String> {
        let zip = ZipReader::open(bytes).expect("an archive");
        let mut text = String::new();
        let entry = zip.entry(name, u64::MAX, u64::MAX).expect("a sound entry");
        entry?.read_to_string(&mut text).expect("UTF-8");
        Some(text)
    }

    #[test]
    fn an_archive_reads_back() {
        let long = "같은 말 ".repeat(100_000);
        let bytes = archive(&[("a.xml", "<a/>"), ("b/c.xml", &long), ("empty", "")]);
        assert!(bytes.len() < 20_000);
        assert_eq!(unpacked(&bytes, "a.xml").as_deref(), Some("<a/>"));
        assert_eq!(unpacked(&bytes, "b/c.xml"), Some(long));
        assert_eq!(unpacked(&bytes, "empty").as_deref(), Some(""));
        assert_eq!(unpacked(&bytes, "c.xml"), None);
        // A comment may follow the archive.
        let with_comment: Vec<_> = bytes.iter().copied().chain(*b"comment").collect();
        assert_eq!(unpacked(&with_comment, "a.xml").as_deref(), Some("<a/>"));
    }

    #[test]
    fn g12_no_damage_of_an_archive_is_read_as_its_content() {
        let bytes = archive(&[("a.xml", "<a>text</a>"), ("b.xml", "<b/>")]);
        let read = |bytes: &[u8]| -> Result<String, ()> {
            let zip = ZipReader::open(bytes).map_err(|_| ())?;
            let mut entry = zip.entry("a.xml", 1_000, 100).map_err(|_| ())?.ok_or(())?;
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(|_| ())?;
            Ok(text)
        };
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "cut to {length}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                // A change beside the content and its description is harmless.
                assert!(read(&changed).is_err() || read(&changed).as_deref() == Ok("<a>text</a>"));
            }
        }
    }

    #[test]
    fn a_protected_and_an_old_document_are_refused_by_their_names() {
        let refusal = |bytes: &[u8]| ZipReader::open(bytes).err();
        assert_eq!(
            refusal(&[COMPOUND, &[0; 1_000], PACKAGE, &[0; 1_000]].concat()),
            Some(PROTECTED)
        );
        assert_eq!(refusal(&[COMPOUND, &[0; 1_000]].concat()), Some(OLD));
        let mut bytes = archive(&[("a.xml", "<a/>")]);
        let directory = bytes.windows(4).rposition(|four| four == CENTRAL.to_le_bytes());
        bytes[directory.expect("a directory") + 8] |= 1;
        assert_eq!(refusal(&bytes), Some(PROTECTED));
    }

    #[test]
    fn g13_a_bomb_is_refused_before_and_while_it_inflates() {
        let zeros = "0".repeat(20 * 1024 * 1024);
        let mut bytes = archive(&[("a.xml", &zeros)]);
        let zip = ZipReader::open(&bytes).expect("an archive");
        assert!(matches!(zip.entry("a.xml", u64::MAX, 100), Err(ImportError::TooLarge(_))));
        assert!(matches!(zip.entry("a.xml", 1 << 20, u64::MAX), Err(ImportError::TooLarge(_))));
        // The directory claims less than the entry has.
        let directory = bytes.windows(4).rposition(|four| four == CENTRAL.to_le_bytes());
        let length = directory.expect("a directory") + 24;
        bytes[length..length + 4].copy_from_slice(&1_000_u32.to_le_bytes());
        let zip = ZipReader::open(&bytes).expect("an archive");
        let mut entry = zip.entry("a.xml", 1 << 20, 100).expect("an entry").expect("an entry");
        let mut read = Vec::new();
        assert!(entry.read_to_end(&mut read).is_err());
        assert!(read.len() < 64 * 1024);
    }

    #[test]
    fn g13_an_archive_of_ten_thousand_entries_is_refused() {
        let bytes = archive(&[("a.xml", "<a/>"); 10_000]);
        assert!(matches!(ZipReader::open(&bytes), Err(ImportError::TooLarge(_))));
    }
}
