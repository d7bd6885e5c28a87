//! A text file under construction, with a bound.

use crate::EXPORT_BYTES_MAX;
use crate::render_model::{Edge, RenderModel};
use galley_domain::export::ExportFailure;

/// Longest piece of a text that a format escapes at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Cuts a text into pieces, so that its escaped form is never in memory as a whole.
pub(crate) fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = text.floor_char_boundary(PIECE_BYTES);
        let (piece, rest) = text.split_at_checked(end)?;
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[derive(Debug, Default)]
pub(crate) struct BoundedText(String);

impl BoundedText {
    pub(crate) fn push(&mut self, text: &str) -> Result<(), ExportFailure> {
        if self.0.len().saturating_add(text.len()) > EXPORT_BYTES_MAX {
            return Err(ExportFailure::TooLarge);
        }
        self.0.push_str(text);
        Ok(())
    }

    /// Appends the text of the document, with the mark of each review behind its passage. A passage that
    /// ends with its line feed has the mark before it: at the begin of the next line it would hide a
    /// heading or an item of Markdown.
    pub(crate) fn push_text(
        &mut self,
        model: &RenderModel,
        mark: impl Fn(usize) -> String,
    ) -> Result<(), ExportFailure> {
        let text = &model.text;
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let (mut done, mut searched) = (0, 0);
        // The end of the last character that is no line feed. Each edge searches the text since the one
        // before it: many edges may stand behind megabytes of line feeds.
        let mut last = 0;
        for (at, edge) in model.edges() {
            let words = part(searched, at).trim_end_matches('\n').len();
            if words != 0 {
                last = searched + words;
            }
            searched = at;
            let to = match edge {
                Edge::Point(_) => at,
                _ => last.max(done),
            };
            self.push(part(done, to))?;
            done = to;
            if let Edge::NoteEnds(index) | Edge::Point(index) = edge {
                self.push(&mark(index.saturating_add(1)))?;
            }
        }
        self.push(part(done, text.len()))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    pub(crate) fn ends_with(&self, end: char) -> bool {
        self.0.ends_with(end)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::render_model::tests::{model, review};
    use galley_domain::anchor::{Anchor, AnchorState};
    use galley_domain::review::Review;

    /// A comment on a line feed of a text of line feeds.
    fn on_line_feed(at: u32) -> Review {
        let (quote, prefix, suffix) = ("\n".to_owned(), String::new(), String::new());
        let anchor = Anchor {
            state: AnchorState::Exact,
            start: at,
            end: at + 1,
            quote,
            prefix,
            suffix,
            relative: None,
        };
        Review { anchor: Some(anchor), ..review("", None, "?") }
    }

    /// Each edge walked back over all line feeds, 8.5 s for 500 comments behind 8 MB of them.
    #[test]
    fn g13_the_time_of_a_text_with_comments_behind_line_feeds_is_linear() {
        const LINES: u32 = 400_000;
        let text = format!("글{}", "\n".repeat(LINES as usize));
        let model = model(&text, (1..=2_000).map(|number| on_line_feed(LINES - number)).collect());
        let began = Instant::now();
        let mut output = BoundedText::default();
        output.push_text(&model, |number| format!("[{number}]")).expect("a short text");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert!(output.0.starts_with("글[1][2]"));
        assert_eq!(output.0.matches('\n').count(), LINES as usize);
    }
}
