//! A text file under construction, with a bound.

use crate::domain::export::ExportFailure;
use crate::domain::limits::EXPORT_BYTES_MAX;
use crate::exports::paper::{Edge, Paper};

/// The text of a file.
#[derive(Debug, Default)]
pub(crate) struct Sheet(String);

impl Sheet {
    /// Appends a text.
    ///
    /// # Errors
    ///
    /// [`ExportFailure::TooLarge`] beyond the bound of a file.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), ExportFailure> {
        if EXPORT_BYTES_MAX < self.0.len().saturating_add(text.len()) {
            return Err(ExportFailure::TooLarge);
        }
        self.0.push_str(text);
        Ok(())
    }

    /// Appends the text of the document, with the mark of each review behind its passage. `mark`
    /// renders the number of a review. A passage that ends with its line feed has the mark before it: at
    /// the begin of the next line it would hide a heading or an item of Markdown.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub(crate) fn push_text(
        &mut self,
        paper: &Paper,
        mark: impl Fn(usize) -> String,
    ) -> Result<(), ExportFailure> {
        let text = &paper.text;
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let mut done = 0;
        for (at, edge) in paper.edges() {
            let to = match edge {
                Edge::Point(_) => at,
                _ => part(0, at).trim_end_matches('\n').len().max(done),
            };
            self.push(part(done, to))?;
            done = to;
            if let Edge::NoteEnds(index) | Edge::Point(index) = edge {
                self.push(&mark(index.saturating_add(1)))?;
            }
        }
        self.push(part(done, text.len()))
    }

    /// The bytes of the file.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    /// Whether the text ends with `end`.
    pub(crate) fn ends_with(&self, end: char) -> bool {
        self.0.ends_with(end)
    }
}
