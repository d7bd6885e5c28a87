//! The XML of a Word document, read as a stream.
//!
//! Its depth has a bound, and no entity is expanded but those of XML itself (G12, G13).

use std::io::BufReader;
use std::str::FromStr;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use crate::error::ImportError;
use crate::zip::Inflated;

/// Deepest nesting of XML in an import. Tables in tables in text boxes reach some fifty.
const IMPORT_DEPTH_MAX: usize = 256;
/// Namespaces of all open elements of an import. Word declares some forty at the root; the reader
/// searches them for each element.
const IMPORT_NAMESPACES_MAX: usize = 256;

const WORD: [&[u8]; 2] = [
    b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    b"http://purl.oclc.org/ooxml/wordprocessingml/main",
];
const COMPATIBILITY: &[u8] = b"http://schemas.openxmlformats.org/markup-compatibility/2006";
const BROKEN: ImportError = ImportError::Unreadable("its XML is damaged");
const TOO_DEEP: ImportError = ImportError::Unreadable("its parts are nested too deep");

pub(super) enum Step<'a> {
    Begins(Element, &'a BytesStart<'a>),
    Ends(Element),
    Text(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    Body,
    Paragraph,
    ParagraphProperties,
    Properties,
    Run,
    Text,
    Tab,
    Break,
    Hyphen,
    /// A tracked change, of words or of the mark of a paragraph.
    Insertion,
    Deletion,
    Fallback,
    Table,
    Row,
    Cell,
    /// The mark of a comment.
    Comment,
    /// The mark of a footnote or endnote.
    Reference,
    /// The note itself, in a part of its own.
    Note,
    Other,
}

impl Element {
    fn of(namespace: &ResolveResult<'_>, name: &[u8]) -> Self {
        let ResolveResult::Bound(Namespace(namespace)) = namespace else { return Self::Other };
        if *namespace == COMPATIBILITY && name == b"Fallback" {
            return Self::Fallback;
        }
        if !WORD.contains(namespace) {
            return Self::Other;
        }
        match name {
            b"body" => Self::Body,
            b"p" => Self::Paragraph,
            b"pPr" => Self::ParagraphProperties,
            b"rPr" | b"pPrChange" | b"trPr" | b"tcPr" | b"tblPr" | b"sectPr" => Self::Properties,
            b"r" => Self::Run,
            b"t" => Self::Text,
            b"tab" => Self::Tab,
            b"br" | b"cr" => Self::Break,
            b"noBreakHyphen" => Self::Hyphen,
            b"ins" | b"moveTo" => Self::Insertion,
            b"del" | b"moveFrom" => Self::Deletion,
            b"tbl" => Self::Table,
            b"tr" => Self::Row,
            b"tc" => Self::Cell,
            b"commentReference" => Self::Comment,
            b"footnoteReference" | b"endnoteReference" => Self::Reference,
            b"footnote" | b"endnote" => Self::Note,
            _ => Self::Other,
        }
    }
}

/// Reads a part and passes on its elements and texts.
pub(super) fn walk(
    part: Inflated<'_>,
    mut take: impl FnMut(Step<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut reader = NsReader::from_reader(BufReader::new(part));
    let mut buffer = Vec::new();
    let mut open = Open::default();
    loop {
        buffer.clear();
        let (namespace, event) =
            reader.read_resolved_event_into(&mut buffer).map_err(|_| BROKEN)?;
        match event {
            Event::Start(element) => {
                open.begins(&element)?;
                let kind = Element::of(&namespace, element.local_name().as_ref());
                take(Step::Begins(kind, &element))?;
            }
            Event::Empty(element) => {
                open.begins(&element)?;
                open.ends();
                let kind = Element::of(&namespace, element.local_name().as_ref());
                take(Step::Begins(kind, &element))?;
                take(Step::Ends(kind))?;
            }
            Event::End(element) => {
                open.ends();
                take(Step::Ends(Element::of(&namespace, element.local_name().as_ref())))?;
            }
            Event::Text(text) => {
                take(Step::Text(&text.xml_content(XmlVersion::Explicit1_0).map_err(|_| BROKEN)?))?;
            }
            Event::CData(text) => take(Step::Text(&text.decode().map_err(|_| BROKEN)?))?,
            Event::GeneralRef(reference) => {
                let c = character(&reference)?;
                take(Step::Text(c.encode_utf8(&mut [0; 4])))?;
            }
            Event::DocType(_) => return Err(ImportError::Unreadable("it defines entities")),
            Event::Eof if open.declared.is_empty() => return Ok(()),
            Event::Eof => return Err(BROKEN),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

#[derive(Default)]
struct Open {
    /// The namespaces that each declares.
    declared: Vec<usize>,
    namespaces: usize,
}

impl Open {
    /// Bounds the depth, and the open namespaces: the reader searches them for each element.
    fn begins(&mut self, element: &BytesStart<'_>) -> Result<(), ImportError> {
        let mut attributes = element.attributes();
        let attributes = attributes.with_checks(false).filter_map(Result::ok);
        let declared = attributes.filter(|it| it.key.as_namespace_binding().is_some()).count();
        self.declared.push(declared);
        self.namespaces = self.namespaces.saturating_add(declared);
        let is_bounded =
            self.declared.len() <= IMPORT_DEPTH_MAX && self.namespaces <= IMPORT_NAMESPACES_MAX;
        is_bounded.then_some(()).ok_or(TOO_DEEP)
    }

    fn ends(&mut self) {
        let declared = self.declared.pop().unwrap_or_default();
        self.namespaces = self.namespaces.saturating_sub(declared);
    }
}

/// The character of a reference. A document has no entities of its own.
fn character(reference: &BytesRef<'_>) -> Result<char, ImportError> {
    if let Some(c) = reference.resolve_char_ref().map_err(|_| BROKEN)? {
        return Ok(c);
    }
    match &**reference {
        b"amp" => Ok('&'),
        b"lt" => Ok('<'),
        b"gt" => Ok('>'),
        b"quot" => Ok('"'),
        b"apos" => Ok('\''),
        _ => Err(BROKEN),
    }
}

pub(super) fn elements(
    part: Option<Inflated<'_>>,
    mut take: impl FnMut(&BytesStart<'_>),
) -> Result<(), ImportError> {
    let Some(part) = part else { return Ok(()) };
    walk(part, |step| {
        if let Step::Begins(_, element) = step {
            take(element);
        }
        Ok(())
    })
}

/// The value of an attribute, by its name without a prefix.
pub(super) fn value<T: FromStr>(element: &BytesStart<'_>, name: &[u8]) -> Option<T> {
    let mut attributes = element.attributes();
    let mut attributes = attributes.with_checks(false).filter_map(Result::ok);
    let attribute = attributes.find(|it| it.key.local_name().as_ref() == name)?;
    std::str::from_utf8(&attribute.value).ok()?.parse().ok()
}
