//! The parts of a Word document that the import reads, by their relations (OPC §6.5).

use crate::error::ImportError;
use crate::import::word_elements::Element;
use crate::import::word_xml::{Step, elements, value, walk};
use crate::zip::{Inflated, ZipReader};

/// Bytes of an imported part after decompression. The server reads it as a stream.
const IMPORT_INFLATED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// An imported part may inflate to a megabyte, and beyond it by this factor. Deflate reaches 1,032 with
/// one repeated byte; prose in XML stays far below this.
const IMPORT_RATIO_MAX: u64 = 200;

/// The main part in nearly every file.
pub(super) const MAIN_PART: &str = "word/document.xml";
/// The parts that are read, by the end of the type of their relation.
const KINDS: [&str; 7] =
    ["/officeDocument", "/styles", "/numbering", "/footnotes", "/endnotes", "/header", "/footer"];
/// Longest part of relations, styles or lists, in bytes: their content is held in memory.
const PROPERTIES_BYTES_MAX: u64 = 4 * 1024 * 1024;
const NOTES_BYTES_MAX: u64 = IMPORT_INFLATED_BYTES_MAX / 4;
/// Headers and footers that are searched for words. A document has three of each for a section.
const HEADERS_MAX: usize = 32;
const HEADER_BYTES_MAX: u64 = 256 * 1024;

pub(super) struct Parts<'a> {
    zip: &'a ZipReader<'a>,
    main: String,
    /// The kinds of the parts to which the main part refers, and their names.
    named: Vec<(&'static str, String)>,
}

type Part<'a> = Result<Option<Inflated<'a>>, ImportError>;

impl<'a> Parts<'a> {
    pub(super) fn read(zip: &'a ZipReader<'a>) -> Result<Self, ImportError> {
        let mut package = relations(zip, "")?.into_iter();
        let main = package.rfind(|(kind, _)| *kind == "/officeDocument");
        let main = main.map_or_else(|| MAIN_PART.to_owned(), |(_, name)| name);
        let named = relations(zip, &main)?;
        Ok(Self { zip, main, named })
    }

    pub(super) fn main(&self) -> Part<'a> {
        self.zip.entry(&self.main, IMPORT_INFLATED_BYTES_MAX, IMPORT_RATIO_MAX)
    }

    pub(super) fn properties(&self, kind: &str) -> Part<'a> {
        self.part(kind, PROPERTIES_BYTES_MAX)
    }

    pub(super) fn notes(&self, kind: &str) -> Part<'a> {
        self.part(kind, NOTES_BYTES_MAX)
    }

    fn part(&self, kind: &str, max: u64) -> Part<'a> {
        let name = self.named.iter().rfind(|(of, _)| *of == kind).map_or("", |(_, name)| name);
        self.zip.entry(name, max, IMPORT_RATIO_MAX)
    }

    /// The headers and footers that have more than numbers.
    pub(super) fn headers_with_words(&self) -> usize {
        let headers = self.named.iter().filter(|(kind, _)| matches!(*kind, "/header" | "/footer"));
        let parts = headers
            .take(HEADERS_MAX)
            .map(|(_, name)| self.zip.entry(name, HEADER_BYTES_MAX, IMPORT_RATIO_MAX));
        parts.filter_map(|part| has_words(part).then_some(())).count()
    }
}

/// Whether a part has a letter. One that cannot be read may have.
fn has_words(part: Part<'_>) -> bool {
    let (mut is_text, mut has_words) = (false, false);
    let read = part.and_then(|part| {
        let Some(part) = part else { return Ok(()) };
        walk(part, |step| {
            match step {
                Step::Begins(element, _) => is_text = element == Element::Text,
                Step::Ends(_) => is_text = false,
                Step::Text(text) => has_words |= is_text && text.contains(char::is_alphabetic),
            }
            Ok(())
        })
    });
    has_words || read.is_err()
}

/// The parts to which a part refers, with the kinds of the relations. The package itself is the part `""`.
fn relations(zip: &ZipReader<'_>, part: &str) -> Result<Vec<(&'static str, String)>, ImportError> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let source = resolved(folder, &format!("_rels/{name}.rels"));
    let mut parts = Vec::new();
    elements(zip.entry(&source, PROPERTIES_BYTES_MAX, IMPORT_RATIO_MAX)?, |element| {
        let kind: Option<String> = value(element, b"Type");
        let kind = kind.and_then(|kind| KINDS.into_iter().find(|end| kind.ends_with(end)));
        if let Some((kind, target)) = kind.zip(value::<String>(element, b"Target")) {
            parts.push((kind, resolved(folder, &target)));
        }
    })?;
    Ok(parts)
}

/// The part that a reference inside a folder names (RFC 3986 §5.2.4).
fn resolved(folder: &str, reference: &str) -> String {
    let folder = if reference.starts_with('/') { "" } else { folder };
    let mut path = Vec::new();
    for segment in folder.split('/').chain(reference.split('/')) {
        match segment {
            "" | "." => {}
            ".." => drop(path.pop()),
            segment => path.push(segment),
        }
    }
    path.join("/")
}
