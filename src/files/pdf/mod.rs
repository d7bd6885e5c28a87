//! PDF: typeset A4, with the fonts embedded as subsets, and reviews as numbered notes beside the text.
//!
//! [`pages`] writes each page as soon as it is full, so the memory of a build is that of the compressed
//! file and of one page. The same document gives the same bytes: the file names no time of its build.

pub mod font_files;
pub mod fonts;
mod notes;
mod pages;
mod rich;
mod typeset;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use krilla::metadata::Metadata;

use crate::build_progress::BuildProgress;
use crate::pdf::fonts::Fonts;
use crate::pdf::pages::{NARROW, Pages, WIDE};
use crate::pdf::rich::{Ink, Rich, Role};
use crate::pdf::typeset::{Column, Measure, Typesetter};
use crate::render_model::{Edge, Location, Note, RenderModel};
use galley_domain::export::ExportFailure;

/// Sizes and leadings of the fonts, in points.
const TITLE: (f32, f32) = (21.0, 29.0);
const BYLINE: (f32, f32) = (10.0, 15.0);
const TEXT: (f32, f32) = (10.5, 18.5);
const HEADING: (f32, f32) = (13.0, 20.0);
const NOTE: (f32, f32) = (9.5, 15.0);
/// Room for a heading and the begin of a note.
const HEADING_ROOM: f32 = 80.0;
const NOTE_SPACE: f32 = 9.0;
/// Space below the title, and above a heading.
const SPACE: f32 = 22.0;

pub fn render(
    model: &RenderModel,
    fonts: &Fonts,
    progress: &BuildProgress,
) -> Result<Vec<u8>, ExportFailure> {
    // A font may be damaged where no sample shows it.
    let rendered =
        catch_unwind(AssertUnwindSafe(|| PdfRenderer::new(model, fonts, progress).run()));
    rendered.unwrap_or_else(|_panic| {
        tracing::error!("a PDF cannot be built: is a file of exports.fonts damaged?");
        Err(ExportFailure::Unavailable)
    })
}

struct PdfRenderer<'a> {
    model: &'a RenderModel,
    pages: Pages<'a>,
    typesetter: Typesetter<'a>,
    progress: &'a BuildProgress,
    column: Column,
    line: Rich,
    /// The notes whose range covers the current position.
    covering: BTreeSet<usize>,
    is_deleted: bool,
}

impl<'a> PdfRenderer<'a> {
    fn new(model: &'a RenderModel, fonts: &'a Fonts, progress: &'a BuildProgress) -> Self {
        let is_beside = |note: &Note| matches!(note.location, Location::Range(_));
        Self {
            model,
            pages: Pages::new(model, fonts, progress),
            typesetter: Typesetter::new(fonts, model.labels.lang),
            progress,
            column: if model.notes.iter().any(is_beside) { NARROW } else { WIDE },
            line: Rich::default(),
            covering: BTreeSet::new(),
            is_deleted: false,
        }
    }

    fn run(mut self) -> Result<Vec<u8>, ExportFailure> {
        self.paragraph(&Rich::of(&self.model.title, Role::Text), TITLE, 0.0)?;
        self.paragraph(&Rich::of(&self.model.writer, Role::Soft), BYLINE, 0.0)?;
        self.pages.skip(SPACE);
        self.text()?;
        self.rest()?;
        let RenderModel { title, writer, labels, .. } = self.model;
        let metadata = Metadata::new()
            .title(title.clone())
            .authors(vec![writer.clone()])
            .language(labels.lang.to_owned())
            .creator("Galley".to_owned());
        self.pages.finish(metadata)
    }

    fn text(&mut self) -> Result<(), ExportFailure> {
        let mut from = 0;
        for (at, edge) in self.model.edges() {
            self.piece(from, at)?;
            from = at;
            self.edge(edge)?;
        }
        self.piece(from, self.model.text.len())?;
        self.end_line()
    }

    /// A part of the text without an edge in it.
    fn piece(&mut self, from: usize, to: usize) -> Result<(), ExportFailure> {
        let model = self.model;
        self.progress.passed(from, model.text.len());
        let role = if self.is_deleted { Role::Deleted } else { Role::Text };
        let ink = Ink { role, is_marked: !self.covering.is_empty() };
        self.push(model.text.get(from..to).unwrap_or_default(), ink, from)
    }

    fn push(&mut self, text: &str, ink: Ink, from: usize) -> Result<(), ExportFailure> {
        let mut at = from;
        for (number, line) in text.split('\n').enumerate() {
            if number != 0 {
                self.end_line()?;
                self.progress.passed(at, self.model.text.len());
            }
            self.line.push(line, ink);
            at = at.saturating_add(line.len()).saturating_add(1);
        }
        Ok(())
    }

    fn edge(&mut self, edge: Edge) -> Result<(), ExportFailure> {
        match edge {
            Edge::NoteBegins(index) => {
                self.covering.insert(index);
            }
            Edge::ChangeBegins(_) => self.is_deleted = true,
            Edge::ChangeEnds(index) => {
                self.is_deleted = false;
                self.insertion(index)?;
            }
            Edge::NoteEnds(index) => {
                self.covering.remove(&index);
                self.line.push_number(index);
            }
            Edge::Point(index) => {
                self.insertion(index)?;
                self.line.push_number(index);
            }
        }
        Ok(())
    }

    fn insertion(&mut self, index: usize) -> Result<(), ExportFailure> {
        let model = self.model;
        let note = model.notes.get(index).filter(|note| note.is_change);
        let Some(suggestion) = note.and_then(|note| note.suggestion.as_deref()) else {
            return Ok(());
        };
        let ink = Ink { role: Role::Added, is_marked: !self.covering.is_empty() };
        self.push(suggestion, ink, 0)
    }

    fn end_line(&mut self) -> Result<(), ExportFailure> {
        let line = std::mem::take(&mut self.line);
        self.paragraph(&line, TEXT, 0.0)
    }

    fn paragraph(
        &mut self,
        rich: &Rich,
        (size, leading): (f32, f32),
        indent: f32,
    ) -> Result<(), ExportFailure> {
        if rich.is_empty() {
            self.pages.skip(leading);
            return Ok(());
        }
        let column = self.column;
        let measure = Measure { size, leading, width: column.width, indent };
        let pages = &mut self.pages;
        self.typesetter.lines(rich, measure, &mut |line| {
            let notes = rich.notes_in(line.range.clone());
            pages.put(column, line, notes)
        })
    }

    fn rest(&mut self) -> Result<(), ExportFailure> {
        let RenderModel { notes, labels, .. } = self.model;
        let left_over = self.pages.take_left_over();
        let left_over = left_over.into_iter().filter_map(|index| notes.get(index)).collect();
        self.section(labels.reviews, left_over)?;
        self.model.sections().try_for_each(|(heading, notes)| self.section(heading, notes))
    }

    fn section(&mut self, heading: &str, notes: Vec<&Note>) -> Result<(), ExportFailure> {
        if notes.is_empty() {
            return Ok(());
        }
        self.pages.skip(SPACE);
        self.pages.need(HEADING_ROOM)?;
        self.paragraph(&Rich::of(heading, Role::Text), HEADING, 0.0)?;
        for note in notes {
            self.pages.skip(NOTE_SPACE);
            for (rich, indent) in notes::paragraphs(note, &self.model.labels) {
                self.paragraph(&rich, NOTE, indent)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
