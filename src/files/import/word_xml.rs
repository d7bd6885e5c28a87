//! The XML of a Word document, read as a stream of UTF-8 or UTF-16.
//!
//! Its depth has a bound, and no entity is expanded but those of XML itself (G12, G13). Of the forms of a
//! content the first one passes that this reader understands (ECMA-376-3, markup compatibility).

use std::io::{self, BufRead as _, BufReader, Read};
use std::str::FromStr;

use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE};
use quick_xml::escape::unescape;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, QName, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use crate::error::ImportError;
use crate::import::word_elements::Element;
use crate::zip::Inflated;

/// Deepest nesting of XML in an import. Tables in tables in text boxes reach some fifty.
const IMPORT_DEPTH_MAX: usize = 256;
/// Namespaces of all open elements of an import. Word declares some forty at the root; the reader
/// searches them for each element.
const IMPORT_NAMESPACES_MAX: usize = 256;

const COMPATIBILITY: &str = "http://schemas.openxmlformats.org/markup-compatibility/2006";
/// The namespaces whose content may be required of a reader of a choice: text boxes, their groups and
/// places, and Word's later properties.
const UNDERSTOOD: [&str; 10] = [
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://schemas.microsoft.com/office/word/2010/wordml",
    "http://schemas.microsoft.com/office/word/2012/wordml",
    "http://schemas.microsoft.com/office/word/2010/wordprocessingDrawing",
    "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "http://schemas.microsoft.com/office/word/2010/wordprocessingGroup",
    "http://schemas.microsoft.com/office/word/2010/wordprocessingCanvas",
    "http://schemas.microsoft.com/office/drawing/2010/main",
    "urn:schemas-microsoft-com:vml",
];
const BROKEN: ImportError = ImportError::Unreadable("its XML is damaged");
const TOO_DEEP: ImportError = ImportError::Unreadable("its parts are nested too deep");

pub(super) enum Step<'a> {
    Begins(Element, &'a BytesStart<'a>),
    Ends(Element),
    Text(&'a str),
}

/// Reads a part and passes on its elements and texts.
pub(super) fn walk(
    part: Inflated<'_>,
    mut take: impl FnMut(Step<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let part = Utf8::new(part).map_err(|_| BROKEN)?;
    let mut reader = NsReader::from_reader(BufReader::new(part));
    reader.config_mut().expand_empty_elements = true;
    let mut buffer = Vec::new();
    let mut open = Open::default();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(|_| BROKEN)?;
        match event {
            Event::Start(element) => {
                if let Some(kind) = open.begins(&element, reader.resolver())? {
                    take(Step::Begins(kind, &element))?;
                }
            }
            Event::End(_) => {
                if let Some(kind) = open.ends() {
                    take(Step::Ends(kind))?;
                }
            }
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) if open.is_skipped() => {}
            Event::Text(text) => {
                take(Step::Text(&text.xml_content(XmlVersion::Explicit1_0).map_err(|_| BROKEN)?))?;
            }
            Event::CData(text) => take(Step::Text(&text.decode().map_err(|_| BROKEN)?))?,
            Event::GeneralRef(reference) => {
                let c = character(&reference)?;
                take(Step::Text(c.encode_utf8(&mut [0; 4])))?;
            }
            Event::DocType(_) => return Err(ImportError::Unreadable("it defines entities")),
            Event::Eof if open.elements.is_empty() => return Ok(()),
            Event::Eof => return Err(BROKEN),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

#[derive(Default)]
struct Open {
    elements: Vec<Opened>,
    namespaces: usize,
    /// Namespaces whose elements a reader without them skips.
    ignorable: Vec<Vec<u8>>,
}

struct Opened {
    /// How many namespaces it declares.
    declared: usize,
    form: Form,
}

enum Form {
    Passed(Element),
    /// `mc:AlternateContent`, and whether one of its forms has passed.
    Alternatives {
        has_passed: bool,
    },
    /// The form of a content that passes.
    Alternative,
    Skipped,
}

impl Open {
    /// The element, if it passes. Bounds the depth, and the open namespaces: the reader searches them for
    /// each element.
    fn begins(
        &mut self,
        element: &BytesStart<'_>,
        resolver: &NamespaceResolver,
    ) -> Result<Option<Element>, ImportError> {
        let mut attributes = element.attributes();
        let attributes = attributes.with_checks(false).filter_map(Result::ok);
        let declared = attributes.filter(|it| it.key.as_namespace_binding().is_some()).count();
        self.namespaces = self.namespaces.saturating_add(declared);
        let form = if self.is_skipped() { Form::Skipped } else { self.form(element, resolver) };
        let passed = if let Form::Passed(element) = form { Some(element) } else { None };
        self.elements.push(Opened { declared, form });
        let is_bounded =
            self.elements.len() <= IMPORT_DEPTH_MAX && self.namespaces <= IMPORT_NAMESPACES_MAX;
        is_bounded.then_some(passed).ok_or(TOO_DEEP)
    }

    fn form(&mut self, element: &BytesStart<'_>, resolver: &NamespaceResolver) -> Form {
        let namespace = |prefix: &str| {
            let name = format!("{prefix}:_");
            match resolver.resolve_element(QName(name.as_bytes())).0 {
                ResolveResult::Bound(Namespace(namespace)) => namespace.to_vec(),
                ResolveResult::Unbound | ResolveResult::Unknown(_) => Vec::new(),
            }
        };
        let is_understood =
            |namespace: &[u8]| UNDERSTOOD.iter().any(|it| it.as_bytes() == namespace);
        let ignorable = value::<String>(element, b"Ignorable").unwrap_or_default();
        for namespace in ignorable.split_whitespace().map(namespace) {
            let is_new = !namespace.is_empty() && !self.ignorable.contains(&namespace);
            let is_bounded = self.ignorable.len() < IMPORT_NAMESPACES_MAX;
            if is_new && is_bounded && !is_understood(&namespace) {
                self.ignorable.push(namespace);
            }
        }
        let (resolved, name) = resolver.resolve_element(element.name());
        let ResolveResult::Bound(Namespace(of)) = resolved else {
            return Form::Passed(Element::Other);
        };
        if self.ignorable.iter().any(|namespace| namespace == of) {
            return Form::Skipped;
        }
        if of != COMPATIBILITY.as_bytes() {
            return Form::Passed(Element::of(of, name.as_ref()));
        }
        let passes = match name.as_ref() {
            b"AlternateContent" => return Form::Alternatives { has_passed: false },
            b"Choice" => {
                let required: String = value(element, b"Requires").unwrap_or_default();
                required.split_whitespace().all(|prefix| is_understood(&namespace(prefix)))
            }
            b"Fallback" => true,
            _ => false,
        };
        match self.elements.last_mut().map(|opened| &mut opened.form) {
            Some(Form::Alternatives { has_passed }) if passes && !*has_passed => {
                *has_passed = true;
                Form::Alternative
            }
            _ => Form::Skipped,
        }
    }

    fn ends(&mut self) -> Option<Element> {
        let Opened { declared, form } = self.elements.pop()?;
        self.namespaces = self.namespaces.saturating_sub(declared);
        if let Form::Passed(element) = form { Some(element) } else { None }
    }

    fn is_skipped(&self) -> bool {
        matches!(self.elements.last(), Some(Opened { form: Form::Skipped, .. }))
    }
}

/// A part as UTF-8 (OPC §6.1.4: a part is UTF-8 or UTF-16).
struct Utf8<'a> {
    part: BufReader<Inflated<'a>>,
    /// `None` behind the end.
    decoder: Option<Decoder>,
}

impl<'a> Utf8<'a> {
    fn new(part: Inflated<'a>) -> io::Result<Self> {
        let mut part = BufReader::new(part);
        let encoding = match part.fill_buf()? {
            [0xFF, 0xFE, ..] | [b'<', 0, ..] => UTF_16LE,
            [0xFE, 0xFF, ..] | [0, b'<', ..] => UTF_16BE,
            _ => UTF_8,
        };
        Ok(Self { part, decoder: Some(encoding.new_decoder_with_bom_removal()) })
    }
}

impl Read for Utf8<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let bytes = self.part.fill_buf()?;
            let is_end = bytes.is_empty();
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(bytes, buffer, is_end);
            self.part.consume(read);
            match result {
                DecoderResult::Malformed(..) => return Err(io::ErrorKind::InvalidData.into()),
                DecoderResult::InputEmpty if is_end => self.decoder = None,
                DecoderResult::InputEmpty | DecoderResult::OutputFull => {}
            }
            if 0 < written {
                return Ok(written);
            }
        }
        Ok(0)
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
    unescape(std::str::from_utf8(&attribute.value).ok()?).ok()?.parse().ok()
}

/// Whether a property that may be switched off is on.
pub(super) fn is_on(element: &BytesStart<'_>) -> bool {
    value::<String>(element, b"val").is_none_or(|it| !matches!(&*it, "0" | "false" | "off"))
}
