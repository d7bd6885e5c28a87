//! The pages of a PDF: a column of text and, beside it, a column of notes.
//!
//! Lines arrive one by one, and a page is written as soon as it is full. A note stands beside the line of
//! its number, below the notes before it, and may continue on the next page. A note that finds no place
//! there is [left over](Pages::take_left_over), for the end of the text.

use std::collections::VecDeque;

use krilla::document::Document;
use krilla::metadata::Metadata;
use krilla::page::PageSettings;

use crate::EXPORT_BYTES_MAX;
use crate::build_progress::BuildProgress;
use crate::pdf::fonts::Fonts;
use crate::pdf::notes::{self, NOTES};
use crate::pdf::rich::{Rich, Role};
use crate::pdf::typeset::{Column, Line, Measure, Typesetter, fill_box};
use crate::render_model::RenderModel;
use galley_domain::export::ExportFailure;

/// Pages of a PDF: the longest text of a document, set with notes beside it, takes 3,500. Lines of few
/// characters take more; each page costs 3 KiB of memory besides its text.
pub(super) const PDF_PAGES_MAX: usize = 5_000;

/// A4, in points.
const PAGE: (f32, f32) = (595.28, 841.89);
/// The first and the last point of both columns.
const TOP: f32 = 68.0;
const BOTTOM: f32 = 768.0;
const FOOT: f32 = 793.0;
const NOTE_GAP: f32 = 7.0;
/// The line beside a note: its distance and its colour.
const NOTE_RULE: (f32, (u8, u8, u8)) = (7.0, (0xC9, 0xC2, 0xB3));
/// Fewest lines of a note that stand alone at the end of a page.
const NOTE_LINES_MIN: usize = 3;

pub(super) const WIDE: Column = Column { left: 72.0, width: 451.28 };
pub(super) const NARROW: Column = Column { left: 56.0, width: 326.0 };

struct PlacedLine {
    left: f32,
    top: f32,
    line: Line,
}

struct Waiting {
    index: usize,
    /// The page of its number.
    page: usize,
    /// Its lines, once it is the first one: each later number tries again to place it.
    lines: Option<VecDeque<Line>>,
}

pub(super) struct Pages<'a> {
    model: &'a RenderModel,
    /// Sets the notes: the text has a typesetter of its own, which is in use meanwhile.
    typesetter: Typesetter<'a>,
    document: Document,
    progress: &'a BuildProgress,
    /// The pages before the current one.
    written: usize,
    text: Vec<PlacedLine>,
    notes: Vec<PlacedLine>,
    /// The next free point of each column.
    text_top: f32,
    notes_top: f32,
    rest: VecDeque<Line>,
    waiting: VecDeque<Waiting>,
    left_over: Vec<usize>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        model: &'a RenderModel,
        fonts: &'a Fonts,
        progress: &'a BuildProgress,
    ) -> Self {
        Self {
            model,
            typesetter: Typesetter::new(fonts, model.labels.lang),
            document: Document::new(),
            progress,
            written: 0,
            text: Vec::new(),
            notes: Vec::new(),
            text_top: TOP,
            notes_top: TOP,
            rest: VecDeque::new(),
            waiting: VecDeque::new(),
            left_over: Vec::new(),
        }
    }

    /// Begins as if there were pages before.
    #[cfg(test)]
    pub(super) fn begin_at(&mut self, pages: usize) {
        self.written = pages;
    }

    /// Appends a line of text, and the notes whose numbers stand in it.
    pub(super) fn put(
        &mut self,
        column: Column,
        line: Line,
        notes: impl Iterator<Item = usize>,
    ) -> Result<(), ExportFailure> {
        if self.text_top + line.height > BOTTOM {
            self.next_page()?;
        }
        let top = self.text_top;
        self.text_top += line.height;
        self.text.push(PlacedLine { left: column.left, top, line });
        for index in notes {
            self.waiting.push_back(Waiting { index, page: self.written, lines: None });
            self.put_notes(top)?;
        }
        Ok(())
    }

    /// Leaves an empty space, which ends with its page: empty lines make no empty pages.
    pub(super) fn skip(&mut self, height: f32) {
        if self.text.is_empty() && self.written > 0 {
            return;
        }
        self.text_top = (self.text_top + height).min(BOTTOM);
    }

    /// Begins a new page unless this height is free.
    pub(super) fn need(&mut self, height: f32) -> Result<(), ExportFailure> {
        if self.text_top + height > BOTTOM { self.next_page() } else { Ok(()) }
    }

    /// The notes that found no place beside the text, which ends here. Their order is that of the text.
    pub(super) fn take_left_over(&mut self) -> Vec<usize> {
        self.left_over.extend(self.waiting.drain(..).map(|note| note.index));
        self.left_over.sort_unstable();
        std::mem::take(&mut self.left_over)
    }

    /// Places the waiting notes in order, not above `least`, as long as there is room.
    fn put_notes(&mut self, least: f32) -> Result<(), ExportFailure> {
        while self.rest.is_empty()
            && let Some(note) = self.waiting.front_mut()
        {
            let index = note.index;
            let lines = match &note.lines {
                Some(lines) => lines,
                None => note
                    .lines
                    .insert(notes::beside(&mut self.typesetter, self.model, index)?.into()),
            };
            let height: f32 = lines.iter().map(|line| line.height).sum();
            if lines.is_empty() || height > BOTTOM - TOP {
                self.left_over.push(index);
                self.waiting.pop_front();
                continue;
            }
            // A note at the end of the page moves up as far as there is room.
            let top = self.notes_top.max(least.min(BOTTOM - height));
            let mut room = BOTTOM - top;
            let fitting = lines
                .iter()
                .take_while(|line| {
                    room -= line.height;
                    room >= 0.0
                })
                .count();
            if fitting < lines.len().min(NOTE_LINES_MIN) {
                return Ok(());
            }
            let first = self.waiting.pop_front();
            self.notes_top = top;
            let mut lines = first.and_then(|note| note.lines).unwrap_or_default();
            let rest = lines.split_off(fitting);
            self.put_lines(lines);
            self.rest = rest;
        }
        Ok(())
    }

    fn put_lines(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            let top = self.notes_top;
            self.notes_top += line.height;
            self.notes.push(PlacedLine { left: NOTES.left, top, line });
        }
        self.notes_top += NOTE_GAP;
    }

    fn next_page(&mut self) -> Result<(), ExportFailure> {
        self.write()?;
        if self.written >= PDF_PAGES_MAX {
            return Err(ExportFailure::TooLarge);
        }
        (self.text_top, self.notes_top) = (TOP, TOP);
        if !self.rest.is_empty() {
            // A note is no longer than a column, so its rest fits.
            let rest = std::mem::take(&mut self.rest);
            self.put_lines(rest);
        }
        self.put_notes(TOP)?;
        // A note stands at most one page behind its number.
        let page = self.written;
        while let Some(note) = self.waiting.pop_front_if(|note| note.page < page) {
            self.left_over.push(note.index);
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), ExportFailure> {
        self.progress.check()?;
        self.written = self.written.saturating_add(1);
        let mut number = None;
        let measure = Measure { size: 9.0, leading: 12.0, width: PAGE.0, indent: 0.0 };
        let rich = Rich::of(&self.written.to_string(), Role::Soft);
        self.typesetter.lines(&rich, measure, &mut |line| {
            number = Some(line);
            Ok(())
        })?;
        let settings = PageSettings::from_wh(PAGE.0, PAGE.1).ok_or(ExportFailure::Unavailable)?;
        let mut page = self.document.start_page_with(settings);
        let mut surface = page.surface();
        // The order of a reader: the text, its notes, the number of the page.
        for placed in self.text.drain(..) {
            placed.line.draw(&mut surface, placed.left, placed.top);
        }
        for placed in self.notes.drain(..) {
            let rule = (placed.left - NOTE_RULE.0, placed.top);
            fill_box(&mut surface, NOTE_RULE.1, rule, (0.7, placed.line.height));
            placed.line.draw(&mut surface, placed.left, placed.top);
        }
        if let Some(number) = number {
            number.draw(&mut surface, (PAGE.0 - number.width()) / 2.0, FOOT);
        }
        surface.finish();
        page.finish();
        Ok(())
    }

    pub(super) fn finish(mut self, metadata: Metadata) -> Result<Vec<u8>, ExportFailure> {
        while !self.rest.is_empty() {
            self.next_page()?;
        }
        self.write()?;
        self.progress.check()?;
        self.document.set_metadata(metadata);
        let file = self.document.finish().map_err(|error| {
            tracing::error!(%error, "a PDF cannot be written");
            ExportFailure::Unavailable
        })?;
        if file.len() > EXPORT_BYTES_MAX { Err(ExportFailure::TooLarge) } else { Ok(file) }
    }
}
