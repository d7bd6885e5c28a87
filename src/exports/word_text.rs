//! The text of a Word document: paragraphs, tables and tabs, with insertions and without deletions.
//!
//! The XML is read as a stream from the archive. Its depth and its inflated bytes have a bound, and
//! no entity is expanded but those of XML itself (G12, G13).

use std::io::BufReader;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use crate::domain::limits::{
    IMPORT_DEPTH_MAX, IMPORT_INFLATED_BYTES_MAX, IMPORT_NAMESPACES_MAX, IMPORT_RATIO_MAX,
};
use crate::exports::error::ImportError;
use crate::exports::zip::{Inflated, ZipReader};

const WORD: [&[u8]; 2] = [
    b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    b"http://purl.oclc.org/ooxml/wordprocessingml/main",
];
const COMPATIBILITY: &[u8] = b"http://schemas.openxmlformats.org/markup-compatibility/2006";
/// The main part in nearly every file.
const MAIN_PART: &str = "word/document.xml";
/// Longest list of the package's parts, in bytes.
const RELATIONS_BYTES_MAX: u64 = 256 * 1024;

const BROKEN: ImportError = ImportError::Unreadable("its XML is damaged");
const TOO_DEEP: ImportError = ImportError::Unreadable("its parts are nested too deep");
const NO_DOCUMENT: ImportError = ImportError::Unreadable("it contains no Word document");

/// Reads the text.
///
/// # Errors
///
/// [`ImportError`].
pub(super) fn read(bytes: &[u8], text_max: usize) -> Result<String, ImportError> {
    let zip = ZipReader::open(bytes)?;
    let named = |name: &str| zip.entry(name, IMPORT_INFLATED_BYTES_MAX, IMPORT_RATIO_MAX);
    let part = match main_part(&zip)? {
        Some(name) => named(&name)?,
        None => named(MAIN_PART)?,
    };
    let mut reading = Reading::default();
    walk(part.ok_or(NO_DOCUMENT)?, |step| {
        reading.take(&step);
        // The mark of the last paragraph is no part of the text.
        if text_max < reading.text.len().saturating_sub(1) {
            return Err(ImportError::TextTooLong);
        }
        Ok(())
    })?;
    reading.finish()
}

/// The name of the main part, as the package says.
fn main_part(zip: &ZipReader<'_>) -> Result<Option<String>, ImportError> {
    let Some(part) = zip.entry("_rels/.rels", RELATIONS_BYTES_MAX, IMPORT_RATIO_MAX)? else {
        return Ok(None);
    };
    let mut found = None;
    walk(part, |event| {
        let Step::Begins(_, element) = event else { return Ok(()) };
        let value = |name: &[u8]| {
            let attribute = element.try_get_attribute(name).ok().flatten()?;
            String::from_utf8(attribute.value.into_owned()).ok()
        };
        if value(b"Type").is_some_and(|kind| kind.ends_with("/officeDocument")) {
            found = value(b"Target").map(|target| target.trim_start_matches('/').to_owned());
        }
        Ok(())
    })?;
    Ok(found)
}

/// A part of the XML.
enum Step<'a> {
    /// An element begins.
    Begins(Element, &'a BytesStart<'a>),
    /// An element ends.
    Ends(Element),
    Text(&'a str),
}

/// An element of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Body,
    Paragraph,
    ParagraphProperties,
    Properties,
    Run,
    Text,
    Tab,
    Break,
    Hyphen,
    Deletion,
    Fallback,
    Row,
    Cell,
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
            b"del" | b"moveFrom" => Self::Deletion,
            b"tr" => Self::Row,
            b"tc" => Self::Cell,
            _ => Self::Other,
        }
    }
}

/// Reads a part and passes on its elements and texts.
fn walk(
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

/// The open elements.
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

/// The text under construction.
#[derive(Default)]
struct Reading {
    text: String,
    has_body: bool,
    /// Open runs, and the texts in them.
    runs: usize,
    texts: usize,
    /// Open elements whose content is not text: properties, deletions, second forms of a drawing.
    properties: usize,
    deletions: usize,
    fallbacks: usize,
    /// For each open paragraph: its properties are open; its mark is deleted.
    paragraphs: Vec<(bool, bool)>,
    /// For each open row: the number of its cells so far.
    rows: Vec<usize>,
    /// A paragraph of a cell has ended; the next text in the cell is set apart from it.
    is_apart: bool,
}

impl Reading {
    fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::Begins(element, _) => self.begins(*element),
            Step::Ends(element) => self.ends(*element),
            Step::Text(text) => {
                if self.texts != 0 {
                    self.write(text);
                }
            }
        }
    }

    fn begins(&mut self, element: Element) {
        match element {
            Element::Body => self.has_body = true,
            Element::Paragraph => self.paragraphs.push((false, false)),
            Element::ParagraphProperties => {
                if let Some((is_open, _)) = self.paragraphs.last_mut() {
                    *is_open = true;
                }
            }
            Element::Properties => self.properties = self.properties.saturating_add(1),
            Element::Run => self.runs = self.runs.saturating_add(1),
            Element::Text => self.texts = self.texts.saturating_add(1),
            Element::Fallback => self.fallbacks = self.fallbacks.saturating_add(1),
            Element::Deletion => {
                self.deletions = self.deletions.saturating_add(1);
                // Inside the properties of a paragraph it is about the mark at its end.
                if let Some((true, is_joined)) = self.paragraphs.last_mut() {
                    *is_joined = true;
                }
            }
            // The second form of a drawing repeats its tables.
            Element::Row | Element::Cell if self.fallbacks != 0 => {}
            Element::Row => self.rows.push(0),
            Element::Cell => {
                let cells = self.rows.last_mut().map(|cells| {
                    *cells = cells.saturating_add(1);
                    *cells
                });
                self.is_apart = false;
                if cells.is_some_and(|cells| 1 < cells) {
                    self.text.push('\t');
                }
            }
            Element::Tab | Element::Break | Element::Hyphen => self.sign(element),
            Element::Other => {}
        }
    }

    fn ends(&mut self, element: Element) {
        match element {
            Element::Paragraph => self.end_paragraph(),
            Element::ParagraphProperties => {
                if let Some((is_open, _)) = self.paragraphs.last_mut() {
                    *is_open = false;
                }
            }
            Element::Properties => self.properties = self.properties.saturating_sub(1),
            Element::Run => self.runs = self.runs.saturating_sub(1),
            Element::Text => self.texts = self.texts.saturating_sub(1),
            Element::Fallback => self.fallbacks = self.fallbacks.saturating_sub(1),
            Element::Deletion => self.deletions = self.deletions.saturating_sub(1),
            Element::Row if self.fallbacks != 0 => {}
            Element::Row => {
                self.rows.pop();
                self.is_apart = !self.rows.is_empty();
                if self.rows.is_empty() {
                    self.text.push('\n');
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        let is_joined = self.paragraphs.pop().is_some_and(|(_, is_joined)| is_joined);
        if self.fallbacks != 0 {
            return;
        }
        match self.rows.is_empty() {
            false => self.is_apart = true,
            true if is_joined => {}
            true => self.text.push('\n'),
        }
    }

    /// A tab, a line break or a hyphen of a run. Tab stops stand in properties.
    fn sign(&mut self, element: Element) {
        let is_in_cell = !self.rows.is_empty();
        self.write(match element {
            Element::Hyphen => "-",
            _ if is_in_cell => " ",
            Element::Tab => "\t",
            _ => "\n",
        });
    }

    fn write(&mut self, text: &str) {
        let is_skipped = self.properties != 0 || self.deletions != 0 || self.fallbacks != 0;
        let is_in_properties = self.paragraphs.last().is_some_and(|(is_open, _)| *is_open);
        if self.runs == 0 || is_skipped || is_in_properties {
            return;
        }
        if self.is_apart && !self.rows.is_empty() && !self.text.ends_with(['\t', '\n', ' ']) {
            self.text.push(' ');
        }
        self.is_apart = false;
        self.text.push_str(text);
    }

    fn finish(mut self) -> Result<String, ImportError> {
        if !self.has_body {
            return Err(NO_DOCUMENT);
        }
        // The mark of the last paragraph ends no line.
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        Ok(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::docx;
    use crate::exports::paper::tests::{paper, reply, review, suggestion};
    use crate::exports::zip::tests::archive;

    const OPEN: &str = "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" \
                        xmlns:mc=\"http://schemas.openxmlformats.org/markup-compatibility/2006\" \
                        xmlns:a=\"urn:drawing\"><w:body>";

    fn whole(file: &[u8]) -> Result<String, ImportError> {
        read(file, usize::MAX)
    }

    fn text_of(body: &str) -> Result<String, ImportError> {
        read_up_to(usize::MAX, body)
    }

    fn read_up_to(text_max: usize, body: &str) -> Result<String, ImportError> {
        let part = format!("{OPEN}{body}</w:body></w:document>");
        read(&archive(&[(MAIN_PART, &part)]), text_max)
    }

    #[test]
    fn g13_the_text_of_a_file_has_a_bound() {
        let body = "<w:p><w:r><w:t>four</w:t></w:r></w:p>".repeat(3);
        assert_eq!(read_up_to(14, &body).as_deref(), Ok("four\nfour\nfour"));
        assert_eq!(read_up_to(13, &body), Err(ImportError::TextTooLong));
    }

    #[test]
    fn an_export_without_reviews_is_imported_as_the_same_text() {
        let rare = "a\u{301} \u{1100}\u{1161} 👩‍👩‍👧 & < > \" ' \t\tx  y ";
        for text in ["", "나는\n글을 쓴다", "\n\na\n\n", rare, "]]>&amp;&#65;"] {
            let file = docx::render(&paper(text, vec![])).expect("a file");
            assert_eq!(whole(&file).as_deref(), Ok(text));
        }
    }

    #[test]
    fn tracked_changes_are_taken_as_accepted() {
        let text = "xa\nby\n끝";
        let mut comment = review(text, Some("끝"), "왜?");
        comment.replies.push(reply("그냥"));
        for (put_in, expected) in
            [("c\nd", "xc\ndy\n끝"), ("", "xy\n끝"), ("z", "xzy\n끝"), ("1\n2\n3", "x1\n2\n3y\n끝")]
        {
            let reviews = vec![suggestion(text, "a\nb", put_in), comment.clone()];
            let file = docx::render(&paper(text, reviews)).expect("a file");
            assert_eq!(whole(&file).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn tables_tabs_breaks_and_second_forms_are_read_once() {
        let cell =
            |text: &str| format!("<w:tc><w:tcPr/><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>");
        let row = format!("<w:tr>{}{}</w:tr>", cell("가"), cell("나"));
        let table = format!("<w:tbl><w:tblPr/>{row}{row}</w:tbl>");
        for (body, expected) in [
            (format!("{table}<w:p/>"), "가\t나\n가\t나\n"),
            (
                "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:br/>\
                 <w:noBreakHyphen/><w:cr/></w:r></w:p>"
                    .to_owned(),
                "a\t\n-\n",
            ),
            (
                "<w:p><w:r><mc:AlternateContent><mc:Choice><w:t>one</w:t></mc:Choice>\
                 <mc:Fallback><w:p><w:r><w:t>two</w:t></w:r></w:p><w:tbl><w:tr><w:tc/><w:tc/></w:tr></w:tbl></mc:Fallback>\
                 </mc:AlternateContent><a:t>drawn</a:t><w:instrText>PAGE</w:instrText></w:r></w:p>"
                    .to_owned(),
                "one",
            ),
            (
                "<w:p><w:moveFrom><w:r><w:t>old</w:t></w:r></w:moveFrom><w:moveTo><w:r>\
                 <w:t>n&#xE9;w &amp; &lt;<![CDATA[<b>]]></w:t></w:r></w:moveTo></w:p>"
                    .to_owned(),
                "néw & <<b>",
            ),
        ] {
            assert_eq!(text_of(&body).as_deref(), Ok(expected), "{body}");
        }
    }

    #[test]
    fn the_package_names_its_main_part() {
        let relations = "<Relationships xmlns=\"urn:r\"><Relationship Type=\"urn:x/officeDocument\" \
                         Target=\"/word/document2.xml\"/></Relationships>";
        let body = format!("{OPEN}<w:p><w:r><w:t>글</w:t></w:r></w:p></w:body></w:document>");
        let file = archive(&[("_rels/.rels", relations), ("word/document2.xml", &body)]);
        assert_eq!(whole(&file).as_deref(), Ok("글"));
    }

    #[test]
    fn g12_a_hostile_document_is_refused_with_its_reason() {
        let unreadable = |found: Result<String, ImportError>| {
            assert!(matches!(found, Err(ImportError::Unreadable(_))), "{found:?}");
        };
        let deep = "<w:x>".repeat(100_000);
        unreadable(text_of(&deep));
        let declarations: String = (0..100).map(|n| format!(" xmlns:n{n}=\"u\"")).collect();
        unreadable(text_of(&format!("<w:x{declarations}>").repeat(200)));
        unreadable(text_of("<w:p><w:r><w:t>&bomb;</w:t></w:r></w:p>"));
        unreadable(text_of("<w:p></w:r>"));
        unreadable(text_of("<w:p>\u{0}<"));
        unreadable(whole(&archive(&[(MAIN_PART, "<!DOCTYPE a [<!ENTITY b \"x\">]><a>&b;</a>")])));
        unreadable(whole(&archive(&[(MAIN_PART, OPEN)])));
        unreadable(whole(&archive(&[(MAIN_PART, "")])));
        unreadable(whole(&archive(&[(MAIN_PART, "<a/>")])));
        unreadable(whole(&archive(&[("other.xml", "<a/>")])));
        unreadable(whole(b"PK\x03\x04 but no archive"));
        unreadable(whole(b""));
        let bomb = " ".repeat(20 * 1024 * 1024);
        assert!(matches!(text_of(&bomb), Err(ImportError::TooLarge(_))));
    }

    #[test]
    fn g12_no_cut_of_a_document_is_imported() {
        let file = docx::render(&paper("나는 글을 쓴다", vec![])).expect("a file");
        for length in (0..file.len()).step_by(7) {
            assert!(whole(&file[..length]).is_err(), "{length}");
        }
    }
}
