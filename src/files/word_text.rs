//! The text of a Word document: paragraphs with the marks of their lists, tables and tabs, with insertions
//! and without deletions. Notes stand behind the text.
//!
//! The parts are read as streams from the archive, and each has a bound of inflated bytes (G12, G13).

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use crate::error::ImportError;
use crate::word_formats::{Format, Formats};
use crate::word_xml::{Element, Step, elements, value, walk};
use crate::zip::{Inflated, ZipReader};
use galley_domain::limits::LABEL_CHARS_MAX;

/// Bytes of an imported part after decompression. The server reads it as a stream.
const IMPORT_INFLATED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// An imported part may inflate to a megabyte, and beyond it by this factor. Deflate reaches 1,032 with
/// one repeated byte; prose in XML stays far below this.
const IMPORT_RATIO_MAX: u64 = 200;
/// Footnotes and endnotes of an imported Word document. A dissertation has a thousand.
pub(super) const IMPORT_NOTES_MAX: usize = 10_000;

/// The main part in nearly every file.
pub(super) const MAIN_PART: &str = "word/document.xml";
/// The parts that are read, by the end of the type of their relation.
const KINDS: [&str; 5] = ["/officeDocument", "/styles", "/numbering", "/footnotes", "/endnotes"];
/// Longest part of relations, styles or lists, in bytes: their content is held in memory.
const PROPERTIES_BYTES_MAX: u64 = 4 * 1024 * 1024;
const NOTES_BYTES_MAX: u64 = IMPORT_INFLATED_BYTES_MAX / 4;

const NO_DOCUMENT: ImportError = ImportError::Unreadable("it contains no Word document");

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub text: String,
    pub heading: Option<String>,
    pub changes: ImportChanges,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportChanges {
    /// The cells are separated by tabs.
    pub tables: usize,
    /// Footnotes and endnotes stand behind the text.
    pub footnotes: usize,
    /// Comments are left out.
    pub comments_left: usize,
    /// Tracked changes are taken as accepted.
    pub changes_applied: usize,
}

pub(super) fn read(bytes: &[u8], text_max: usize) -> Result<Imported, ImportError> {
    let zip = ZipReader::open(bytes)?;
    let mut names = HashMap::new();
    relate(&zip, "", &mut names)?;
    let main = names.remove("/officeDocument").unwrap_or_else(|| MAIN_PART.to_owned());
    relate(&zip, &main, &mut names)?;
    let part = |kind: &str, max| {
        let name = names.get(kind).map_or("", String::as_str);
        zip.entry(name, max, IMPORT_RATIO_MAX)
    };
    let lists = part("/numbering", PROPERTIES_BYTES_MAX)?;
    let formats = Formats::read(part("/styles", PROPERTIES_BYTES_MAX)?, lists)?;
    let mut reading = Reading { formats, ..Reading::default() };
    let body = zip.entry(&main, IMPORT_INFLATED_BYTES_MAX, IMPORT_RATIO_MAX)?;
    reading.read(body.ok_or(NO_DOCUMENT)?, text_max)?;
    for kind in ["/footnotes", "/endnotes"] {
        part(kind, NOTES_BYTES_MAX)?.map_or(Ok(()), |notes| reading.read(notes, text_max))?;
    }
    reading.finish()
}

/// Names the parts to which a part refers, by their kinds. The package itself is the part `""`.
fn relate(
    zip: &ZipReader<'_>,
    part: &str,
    names: &mut HashMap<&'static str, String>,
) -> Result<(), ImportError> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let path = |name: &str| format!("{folder}/{name}").trim_start_matches('/').to_owned();
    let relations = path(&format!("_rels/{name}.rels"));
    elements(zip.entry(&relations, PROPERTIES_BYTES_MAX, IMPORT_RATIO_MAX)?, |element| {
        let kind: Option<String> = value(element, b"Type");
        let kind = kind.and_then(|kind| KINDS.into_iter().find(|end| kind.ends_with(end)));
        if let Some((kind, target)) = kind.zip(value::<String>(element, b"Target")) {
            let absolute = target.strip_prefix('/').map(str::to_owned);
            names.insert(kind, absolute.unwrap_or_else(|| path(&target)));
        }
    })
}

#[derive(Default)]
struct Reading {
    text: String,
    has_body: bool,
    /// The open elements of each kind.
    open: [usize; 32],
    paragraphs: Vec<Paragraph>,
    /// For each open row: the number of its cells so far.
    rows: Vec<usize>,
    /// A paragraph of a cell has ended; the next text in the cell is set apart from it.
    is_apart: bool,
    formats: Formats,
    heading: Option<String>,
    /// The numbers and texts of the notes.
    notes: HashMap<NoteId, (usize, String)>,
    notes_bytes: usize,
    /// The open note, and the length of the text before it.
    note: (Option<NoteId>, usize),
    changes: ImportChanges,
    /// The kind of the last tracked change, until other text follows.
    change: Option<Element>,
}

/// The id of a note, and whether it is an endnote.
type NoteId = (bool, i64);

#[derive(Default)]
struct Paragraph {
    /// The mark at its end is inserted or deleted.
    mark: Option<Element>,
    format: Format,
    from: Option<usize>,
}

impl Reading {
    fn read(&mut self, part: Inflated<'_>, text_max: usize) -> Result<(), ImportError> {
        walk(part, |step| {
            match step {
                Step::Begins(element, start) => self.begins(element, start),
                Step::Ends(element) => self.ends(element),
                Step::Text(text) if self.is_in(Element::Text) => self.write(text),
                Step::Text(_) => {}
            }
            if self.notes.len() > IMPORT_NOTES_MAX {
                return Err(ImportError::TooLarge("it has too many notes"));
            }
            // The mark of the last paragraph is no part of the text.
            let length = self.text.len().saturating_sub(1).saturating_add(self.notes_bytes);
            if length <= text_max { Ok(()) } else { Err(ImportError::TextTooLong) }
        })
    }

    fn is_in(&self, element: Element) -> bool {
        self.open.get(element as usize).is_some_and(|open| *open != 0)
    }

    fn begins(&mut self, element: Element, start: &BytesStart<'_>) {
        if let Some(open) = self.open.get_mut(element as usize) {
            *open = open.saturating_add(1);
        }
        match element {
            Element::Body => self.has_body = true,
            Element::Paragraph => self.paragraphs.push(Paragraph::default()),
            // Inside the properties of a paragraph it is about the mark at its end.
            Element::Insertion | Element::Deletion if self.is_in(Element::ParagraphProperties) => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.mark = paragraph.mark.max(Some(element));
                }
            }
            Element::Insertion | Element::Deletion if self.is_in(Element::Properties) => {}
            Element::Insertion | Element::Deletion => self.change(element),
            // The second form of a drawing repeats its tables.
            _ if self.is_in(Element::Fallback) => {}
            Element::Table => self.changes.tables += 1,
            Element::Comment => self.changes.comments_left += 1,
            Element::Row => self.rows.push(0),
            Element::Cell => {
                let cells = self.rows.last_mut().map(|cells| {
                    *cells = cells.saturating_add(1);
                    *cells
                });
                self.is_apart = false;
                if cells.is_some_and(|cells| cells > 1) {
                    self.text.push('\t');
                }
            }
            Element::Tab | Element::Break | Element::Hyphen => self.sign(element),
            Element::Reference if self.is_read() => {
                let Some(id) = id_of(start) else { return };
                let next = (self.notes.len().saturating_add(1), String::new());
                let number = self.notes.entry(id).or_insert(next).0;
                self.write(&format!("[{number}]"));
            }
            Element::Note => self.note = (id_of(start), self.text.len()),
            Element::Other if self.is_in(Element::ParagraphProperties) => {
                let is_former = self.is_in(Element::Properties);
                if let Some(paragraph) = self.paragraphs.last_mut().filter(|_| !is_former) {
                    paragraph.format.take(start);
                }
            }
            _ => {}
        }
    }

    fn ends(&mut self, element: Element) {
        if let Some(open) = self.open.get_mut(element as usize) {
            *open = open.saturating_sub(1);
        }
        match element {
            Element::Paragraph => self.end_paragraph(),
            Element::ParagraphProperties => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    self.formats.complete(&mut paragraph.format);
                }
            }
            // It moves behind all text, unless the text has no mark of it.
            Element::Note => {
                let (id, from) = std::mem::take(&mut self.note);
                let note = id.and_then(|id| self.notes.get_mut(&id));
                if let Some((_, note)) = note.filter(|(_, note)| note.is_empty()) {
                    self.text.get(from..).unwrap_or_default().trim().clone_into(note);
                    self.notes_bytes = self.notes_bytes.saturating_add(note.len());
                }
                self.text.truncate(from);
            }
            Element::Row if !self.is_in(Element::Fallback) => {
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
        let Some(Paragraph { mark, format, from }) = self.paragraphs.pop() else { return };
        if self.is_in(Element::Fallback) {
            return;
        }
        if self.heading.is_none() && format.is_heading == Some(true) {
            let text = from.and_then(|from| self.text.get(from..)).unwrap_or_default().trim();
            let heading: String = text.chars().take(LABEL_CHARS_MAX).collect();
            self.heading = Some(heading).filter(|heading| !heading.is_empty());
        }
        match self.rows.is_empty() {
            false => self.is_apart = true,
            true if mark == Some(Element::Deletion) => {}
            true => self.text.push('\n'),
        }
        match mark {
            Some(kind) => self.change(kind),
            None => self.change = None,
        }
    }

    /// Counts a tracked change. Pieces of one kind without other text between them are one change.
    fn change(&mut self, kind: Element) {
        if !self.is_in(Element::Fallback) && self.change.replace(kind) != Some(kind) {
            self.changes.changes_applied += 1;
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

    /// Whether the content of this position is text: no property, deletion or second form of a drawing.
    fn is_read(&self) -> bool {
        use Element::{Deletion, Fallback, ParagraphProperties, Properties, Run};
        let skipped = [Properties, ParagraphProperties, Deletion, Fallback];
        self.is_in(Run) && !skipped.into_iter().any(|element| self.is_in(element))
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() || !self.is_read() {
            return;
        }
        let is_in_cell = !self.rows.is_empty();
        if self.is_apart && is_in_cell && !self.text.ends_with(['\t', '\n', ' ']) {
            self.text.push(' ');
        }
        self.is_apart = false;
        if let Some(paragraph) = self.paragraphs.last_mut().filter(|it| it.from.is_none()) {
            let mark = self.formats.mark(&paragraph.format);
            // Behind a deleted mark of a paragraph the line goes on.
            if is_in_cell {
                self.text.push_str(mark.trim_start());
            } else if self.text.is_empty() || self.text.ends_with('\n') {
                self.text.push_str(&mark);
            }
            paragraph.from = Some(self.text.len());
        }
        self.text.push_str(text);
        if !self.is_in(Element::Insertion) {
            self.change = None;
        }
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if !self.has_body {
            return Err(NO_DOCUMENT);
        }
        // The mark of the last paragraph ends no line.
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        self.changes.footnotes = self.notes.len();
        let mut notes: Vec<_> = self.notes.into_values().collect();
        notes.sort_unstable();
        for (number, note) in notes {
            let line_break = if number == 1 { "\n\n" } else { "\n" };
            self.text.push_str(&format!("{line_break}[{number}] {note}"));
        }
        Ok(Imported { text: self.text, heading: self.heading, changes: self.changes })
    }
}

fn id_of(note: &BytesStart<'_>) -> Option<NoteId> {
    Some((note.local_name().as_ref().starts_with(b"endnote"), value(note, b"id")?))
}
