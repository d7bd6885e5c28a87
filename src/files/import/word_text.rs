//! The text of a Word document: paragraphs with the labels of their lists, tables and tabs, with insertions
//! and without deletions. Notes stand behind the text.
//!
//! The parts are read as streams from the archive, and each has a bound of inflated bytes (G12, G13). What
//! Word shows is text or counted: `word_elements` has the table.

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use crate::error::ImportError;
use crate::import::changes::ImportChanges;
use crate::import::word_elements::Element;
use crate::import::word_equations::EquationParts;
use crate::import::word_fields::Fields;
use crate::import::word_formats::{Format, Formats};
use crate::import::word_parts::Parts;
use crate::import::word_symbols::symbol;
use crate::import::word_xml::{Step, is_on, value, walk};
use crate::zip::{Inflated, ZipReader};
use galley_domain::limits::LABEL_CHARS_MAX;

/// Footnotes and endnotes of an imported Word document. A dissertation has a thousand.
pub(super) const IMPORT_NOTES_MAX: usize = 10_000;

const NO_DOCUMENT: ImportError = ImportError::Unreadable("it contains no Word document");
/// Columns of a table in Word.
const COLUMNS_MAX: usize = 63;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub text: String,
    pub heading: Option<String>,
    pub changes: ImportChanges,
}

pub(crate) fn read(bytes: &[u8], text_max: usize) -> Result<Imported, ImportError> {
    let zip = ZipReader::open(bytes)?;
    let parts = Parts::read(&zip)?;
    let formats = Formats::read(parts.properties("/styles")?, parts.properties("/numbering")?)?;
    let mut reading = Reading { formats, ..Reading::default() };
    reading.read(parts.main()?.ok_or(NO_DOCUMENT)?, text_max)?;
    for kind in ["/footnotes", "/endnotes"] {
        parts.notes(kind)?.map_or(Ok(()), |notes| reading.read(notes, text_max))?;
    }
    reading.leave_out("headers", parts.headers_with_words());
    reading.finish()
}

#[derive(Default)]
struct Reading {
    text: String,
    has_body: bool,
    /// The open elements of each kind.
    open: OpenElements,
    /// The text of the open element of text, and whether its edges stay.
    run_text: String,
    has_spaces: bool,
    paragraphs: Vec<Paragraph>,
    rows: Vec<Row>,
    /// The next text is set apart: from a paragraph or table in the same cell, or from a box or an equation
    /// that has a line of its own.
    is_apart: bool,
    formats: Formats,
    heading: Option<String>,
    notes: HashMap<NoteId, Note>,
    notes_bytes: usize,
    numbered_notes: usize,
    /// The open note, and the length of the text before it.
    note: (Option<NoteId>, usize),
    /// The reading of the open ruby, and the length of the text before it.
    reading: (String, usize),
    fields: Fields,
    equation: EquationParts,
    /// The run is hidden; the text before it was.
    is_hidden: bool,
    was_hidden: bool,
    changes: ImportChanges,
    /// The kind of the last tracked change, until other text follows.
    change: Option<Element>,
}

/// How many elements of each kind are open.
struct OpenElements([usize; 64]);

impl Default for OpenElements {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl OpenElements {
    fn count(&mut self, element: Element) -> Option<&mut usize> {
        self.0.get_mut(element as usize)
    }

    fn of(&self, element: Element) -> usize {
        self.0.get(element as usize).copied().unwrap_or_default()
    }
}

/// The id of a note, and whether it is an endnote.
type NoteId = (bool, i64);

#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    order: usize,
    /// `None`: the text has a mark of its own.
    number: Option<usize>,
    text: String,
}

#[derive(Default)]
struct Row {
    cells: usize,
    /// The length of the text before the row, and before its last cell.
    from: usize,
    cell_from: usize,
    /// A tracked deletion of the row, or of its last cell.
    is_deleted: bool,
    is_cell_deleted: bool,
}

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
                Step::Text(text) if self.is_in(Element::Text) => self.run_text.push_str(text),
                Step::Text(text) if self.is_in(Element::Instruction) => self.fields.instruct(text),
                Step::Text(_) => {}
            }
            if self.notes.len() > IMPORT_NOTES_MAX {
                return Err(ImportError::TooLarge("it has too many notes"));
            }
            // The mark of the last paragraph is no part of the text.
            let length = self.text.len().saturating_sub(1).saturating_add(self.notes_bytes);
            let length = length.saturating_add(self.run_text.len());
            if length <= text_max { Ok(()) } else { Err(ImportError::TextTooLong) }
        })
    }

    fn is_in(&self, element: Element) -> bool {
        self.open.of(element) != 0
    }

    fn begins(&mut self, element: Element, start: &BytesStart<'_>) {
        if let Some(open) = self.open.count(element) {
            *open = open.saturating_add(1);
        }
        match element {
            Element::Body => self.has_body = true,
            Element::Paragraph => self.paragraphs.push(Paragraph::default()),
            Element::Run => self.is_hidden = false,
            Element::Text => {
                self.run_text.clear();
                self.has_spaces = value::<String>(start, b"space").as_deref() == Some("preserve");
            }
            // Inside the properties of a paragraph it is about the mark at its end.
            Element::Insertion | Element::Deletion if self.is_in(Element::ParagraphProperties) => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.mark = paragraph.mark.max(Some(element));
                }
            }
            Element::Insertion | Element::Deletion | Element::CellDeletion => self.track(element),
            Element::Table => {
                self.changes.tables += 1;
                if self.rows.is_empty() {
                    self.is_apart = true;
                    self.separate();
                }
            }
            Element::Comment => self.changes.comments_left += 1,
            Element::Row => self.rows.push(Row { from: self.text.len(), ..Row::default() }),
            Element::ColumnsBefore if !self.is_in(Element::Properties) && self.rows.len() == 1 => {
                let columns = value(start, b"val").unwrap_or_default();
                self.text.extend(std::iter::repeat_n('\t', COLUMNS_MAX.min(columns)));
            }
            Element::Cell => self.begin_cell(),
            Element::Note => self.note = (id_of(start), self.text.len()),
            Element::Other if self.is_in(Element::ParagraphProperties) => {
                let is_former = self.is_in(Element::Properties);
                if let Some(paragraph) = self.paragraphs.last_mut().filter(|_| !is_former) {
                    paragraph.format.take(start);
                }
            }
            element => self.begin_content(element, start),
        }
    }

    /// The content of a run or a paragraph.
    fn begin_content(&mut self, element: Element, start: &BytesStart<'_>) {
        match element {
            Element::Tab | Element::Break | Element::Hyphen => self.sign(element),
            Element::Symbol if self.is_read() => {
                let [font, char] = [&b"font"[..], b"char"].map(|name| value::<String>(start, name));
                match symbol(font.as_deref().unwrap_or_default(), &char.unwrap_or_default()) {
                    Some(c) => self.write(c.encode_utf8(&mut [0; 4])),
                    None => self.leave_out("symbols", 1),
                }
            }
            Element::Vanish if self.is_run_property() => self.is_hidden = is_on(start),
            Element::RunStyle if self.is_run_property() => {
                let style: Option<String> = value(start, b"val");
                self.is_hidden |= style.is_some_and(|style| self.formats.hides(&style));
            }
            Element::FieldMark => {
                let is_lost = self.fields.mark(start, self.text.len());
                self.leave_out("fields", is_lost.into());
            }
            Element::SimpleField => self.fields.begin(start, self.text.len()),
            Element::Reference if self.is_read() => self.refer(start),
            Element::Ruby | Element::Equation if self.is_shown() => {
                self.is_apart |= self.is_in(Element::EquationLines);
                self.begin_text();
                self.changes.equations += usize::from(element == Element::Equation);
            }
            Element::Reading => self.reading.1 = self.text.len(),
            Element::EquationPart => self.equation.begins(start, self.text.len()),
            Element::Box => self.is_apart = true,
            Element::Picture if !self.is_in(Element::Object) => self.leave_out("pictures", 1),
            Element::Object if self.open.of(element) == 1 => self.leave_out("objects", 1),
            Element::Value => self.leave_out("fields", 1),
            _ => {}
        }
    }

    fn ends(&mut self, element: Element) {
        if let Some(open) = self.open.count(element) {
            *open = open.saturating_sub(1);
        }
        match element {
            Element::Paragraph => self.end_paragraph(),
            Element::ParagraphProperties => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    self.formats.complete(&mut paragraph.format);
                }
            }
            Element::Text => {
                // Word shows a line feed of the file as a space, and no space at an edge.
                let text = std::mem::take(&mut self.run_text).replace(['\n', '\r'], " ");
                self.write(if self.has_spaces { &text } else { text.trim_ascii() });
            }
            Element::SimpleField => {
                let is_lost = self.fields.end(self.text.len());
                self.leave_out("fields", is_lost.into());
            }
            Element::Reading => self.reading.0 = self.text.split_off(self.reading.1),
            Element::Ruby => {
                let reading = std::mem::take(&mut self.reading.0);
                if !reading.trim().is_empty() {
                    self.write(&format!("({})", reading.trim()));
                }
            }
            Element::EquationPart => self.equation.ends(&mut self.text),
            Element::EquationLines => self.is_apart |= self.is_shown(),
            // It moves behind all text, unless the text has no mark of it.
            Element::Note => {
                let (id, from) = std::mem::take(&mut self.note);
                let note = id.and_then(|id| self.notes.get_mut(&id));
                if let Some(note) = note.filter(|note| note.text.is_empty()) {
                    self.text.get(from..).unwrap_or_default().trim().clone_into(&mut note.text);
                    self.notes_bytes = self.notes_bytes.saturating_add(note.text.len());
                }
                self.text.truncate(from);
            }
            Element::Cell => {
                if let Some(row) = self.rows.last_mut().filter(|row| row.is_cell_deleted) {
                    row.is_cell_deleted = false;
                    self.text.truncate(row.cell_from);
                }
            }
            Element::Row => {
                let row = self.rows.pop().unwrap_or_default();
                self.is_apart = !self.rows.is_empty();
                if row.is_deleted {
                    self.text.truncate(row.from);
                } else if self.rows.is_empty() {
                    self.text.push('\n');
                }
            }
            _ => {}
        }
    }

    /// A tab sets the cells of a row apart, and a space those of a table in a cell.
    fn begin_cell(&mut self) {
        let is_inner = self.rows.len() > 1;
        let Some(row) = self.rows.last_mut() else { return };
        row.cell_from = self.text.len();
        row.cells = row.cells.saturating_add(1);
        if !is_inner && row.cells > 1 {
            self.text.push('\t');
        }
        self.is_apart = is_inner;
    }

    fn end_paragraph(&mut self) {
        let Some(Paragraph { mark, format, from }) = self.paragraphs.pop() else { return };
        // Word numbers an empty item too, unless it ends in the next paragraph.
        if from.is_none() && mark != Some(Element::Deletion) && self.is_shown() {
            let label = self.formats.label(&format);
            let label = if self.rows.is_empty() { label.trim_end() } else { label.trim() };
            if !label.is_empty() {
                self.separate();
                self.text.push_str(label);
            }
        }
        if self.heading.is_none() && format.is_heading == Some(true) {
            let text = from.and_then(|from| self.text.get(from..)).unwrap_or_default().trim();
            let heading: String = text.chars().take(LABEL_CHARS_MAX).collect();
            self.heading = Some(heading).filter(|heading| !heading.is_empty());
        }
        self.fields.show();
        self.is_apart = !self.rows.is_empty();
        if self.rows.is_empty() && mark != Some(Element::Deletion) {
            self.text.push('\n');
        }
        match mark {
            Some(kind) => self.change(kind),
            None => self.change = None,
        }
    }

    /// A tracked change of words, of a row or of a cell; in other properties it is about those.
    fn track(&mut self, element: Element) {
        let is_cell = element == Element::CellDeletion;
        if self.is_in(Element::Properties) && !is_cell {
            return;
        }
        self.change(if is_cell { Element::Deletion } else { element });
        let is_row = self.is_in(Element::RowProperties) && element == Element::Deletion;
        if let Some(row) = self.rows.last_mut() {
            row.is_deleted |= is_row;
            row.is_cell_deleted |= is_cell;
        }
    }

    /// Counts a tracked change. Pieces of one kind without other text between them are one change.
    fn change(&mut self, kind: Element) {
        if self.change.replace(kind) != Some(kind) {
            self.changes.changes_applied += 1;
        }
    }

    fn leave_out(&mut self, kind: &'static str, count: usize) {
        if 0 < count && self.is_shown() {
            *self.changes.left_out.entry(kind).or_default() += count;
        }
    }

    /// The mark of a note. A mark of its own follows as text.
    fn refer(&mut self, start: &BytesStart<'_>) {
        let Some(id) = id_of(start) else { return };
        let is_custom = value::<String>(start, b"customMarkFollows");
        let is_custom = is_custom.is_some_and(|it| !matches!(&*it, "0" | "false" | "off"));
        let order = self.notes.len();
        let number = (!is_custom).then(|| self.numbered_notes.saturating_add(1));
        let note = self.notes.entry(id).or_insert(Note { order, number, text: String::new() });
        self.numbered_notes = self.numbered_notes.max(note.number.unwrap_or_default());
        if let Some(number) = note.number.filter(|_| !is_custom) {
            self.write(&format!("[{number}]"));
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

    /// Whether the content of this position is shown: no property, deletion or instruction of a field.
    fn is_shown(&self) -> bool {
        use Element::{Deletion, ParagraphProperties, Properties};
        let is_skipped = |element| self.is_in(element);
        !([Properties, ParagraphProperties, Deletion].into_iter().any(is_skipped)
            || self.fields.hide()
            || self.rows.iter().any(|row| row.is_deleted || row.is_cell_deleted))
    }

    /// Whether the content of this position is text.
    fn is_read(&self) -> bool {
        self.is_in(Element::Run) && self.is_shown()
    }

    /// Not of the mark of a paragraph, and no former one.
    fn is_run_property(&self) -> bool {
        let is_current = self.open.of(Element::Properties) == 1;
        is_current && self.is_in(Element::Run) && !self.is_in(Element::ParagraphProperties)
    }

    /// Ends the line, or in a cell the word, before a text that is set apart.
    fn separate(&mut self) {
        let is_in_cell = !self.rows.is_empty();
        let (space, spaces) =
            if is_in_cell { (' ', &['\t', '\n', ' '][..]) } else { ('\n', &['\n'][..]) };
        let is_apart = std::mem::take(&mut self.is_apart) && !self.text.is_empty();
        if is_apart && !self.text.ends_with(spaces) {
            self.text.push(space);
        }
    }

    /// Begins the paragraph of the next text with its label.
    fn begin_text(&mut self) {
        self.separate();
        let is_in_cell = !self.rows.is_empty();
        let Some(paragraph) = self.paragraphs.last_mut().filter(|it| it.from.is_none()) else {
            return;
        };
        // Behind a deleted mark of a paragraph the line goes on.
        if is_in_cell || self.text.is_empty() || self.text.ends_with('\n') {
            let label = self.formats.label(&paragraph.format);
            self.text.push_str(if is_in_cell { label.trim_start() } else { &label });
        }
        paragraph.from = Some(self.text.len());
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() || !self.is_read() {
            return;
        }
        self.begin_text();
        self.text.push_str(text);
        let is_hidden = self.is_hidden
            || self.paragraphs.last().is_some_and(|it| it.format.is_hidden == Some(true));
        let was_hidden = std::mem::replace(&mut self.was_hidden, is_hidden);
        self.changes.hidden_passages += usize::from(is_hidden && !was_hidden);
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
        self.changes.number_formats = std::mem::take(&mut self.formats.replaced);
        let mut notes: Vec<_> = self.notes.into_values().collect();
        notes.sort_unstable();
        for Note { order, number, text } in notes {
            self.text.push_str(if order == 0 { "\n\n" } else { "\n" });
            let number = number.map(|number| format!("[{number}] "));
            self.text.extend([number.as_deref().unwrap_or_default(), &text]);
        }
        Ok(Imported { text: self.text, heading: self.heading, changes: self.changes })
    }
}

fn id_of(note: &BytesStart<'_>) -> Option<NoteId> {
    Some((note.local_name().as_ref().starts_with(b"endnote"), value(note, b"id")?))
}
