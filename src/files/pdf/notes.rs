//! The paragraphs of a note: its head, the suggestion as old → new, the comment and the replies.

use crate::labels::Labels;
use crate::pdf::rich::{Ink, Rich, Role};
use crate::pdf::typeset::{Column, Line, Measure, Typesetter};
use crate::render_model::{Location, Note, RenderModel};
use galley_domain::export::ExportFailure;

pub(super) const NOTES: Column = Column { left: 409.0, width: 136.0 };
/// A note beside the text: size and leading.
const BESIDE: (f32, f32) = (7.8, 11.6);
/// Longest note beside the text, in bytes: more fills a column in any script.
const BESIDE_BYTES_MAX: usize = 6 * 1024;
/// Characters of a passage or suggestion that a note repeats from the text.
const REPEATED_CHARS: usize = 40;
const REPLY_INDENT: f32 = 8.0;

/// None: the note is too long to stand beside the text.
pub(super) fn beside(
    typesetter: &mut Typesetter<'_>,
    model: &RenderModel,
    index: usize,
) -> Result<Vec<Line>, ExportFailure> {
    let mut lines = Vec::new();
    let Some(note) = model.notes.get(index).filter(|note| is_short(note)) else { return Ok(lines) };
    let (size, leading) = BESIDE;
    for (rich, indent) in paragraphs(note, &model.labels) {
        let measure = Measure { size, leading, width: NOTES.width, indent };
        typesetter.lines(&rich, measure, &mut |line| {
            lines.push(line);
            Ok(())
        })?;
    }
    Ok(lines)
}

fn is_short(note: &Note) -> bool {
    let own = [&note.author, &note.quote, &note.body].into_iter().chain(&note.suggestion);
    let replies = note.replies.iter().flat_map(|reply| [&reply.author.name, &reply.body]);
    own.chain(replies).map(String::len).sum::<usize>() <= BESIDE_BYTES_MAX
}

pub(super) fn paragraphs(note: &Note, labels: &Labels) -> Vec<(Rich, f32)> {
    let mut writing = Writing::default();
    let status = labels.status(note.status).map(|it| format!(" · {it}")).unwrap_or_default();
    writing.text(&format!("{} ", note.number), Role::Head);
    writing.head(&note.author, &format!("{}{status}", labels.time(note.at)));
    if !matches!(note.location, Location::Range(_)) && !note.quote.is_empty() {
        writing.text(&format!("“{}”", note.quote), Role::Soft);
        writing.end();
    }
    if let Some(suggestion) = &note.suggestion {
        writing.suggestion(note, suggestion, labels);
    }
    if !note.body.is_empty() {
        writing.text(&note.body, Role::Text);
        writing.end();
    }
    writing.indent = REPLY_INDENT;
    for reply in &note.replies {
        writing.head(&reply.author.name, &labels.time(reply.created_at));
        writing.text(&reply.body, Role::Text);
        writing.end();
    }
    writing.done
}

#[derive(Default)]
struct Writing {
    done: Vec<(Rich, f32)>,
    current: Rich,
    indent: f32,
}

impl Writing {
    /// Appends text, whose lines are paragraphs.
    fn text(&mut self, text: &str, role: Role) {
        for (number, line) in text.split('\n').enumerate() {
            if number != 0 {
                self.end();
            }
            self.current.push(line, Ink::from(role));
        }
    }

    fn end(&mut self) {
        if self.current.is_empty() {
            // An empty line has its height, too.
            self.current.push(" ", Ink::default());
        }
        self.done.push((std::mem::take(&mut self.current), self.indent));
    }

    fn head(&mut self, author: &str, behind: &str) {
        self.text(author, Role::Text);
        self.end();
        self.text(behind, Role::Soft);
        self.end();
    }

    /// The old words and the new ones. A change stands in the text, too, so both are shortened here.
    fn suggestion(&mut self, note: &Note, suggestion: &str, labels: &Labels) {
        let shown = |text: &str| if note.is_change { shortened(text) } else { text.to_owned() };
        self.text(&format!("{}: ", labels.suggested(suggestion)), Role::Soft);
        let quote = shown(&note.quote);
        if note.is_deletion() {
            self.text(&format!("“{quote}”"), Role::Deleted);
        } else {
            self.text(&quote, Role::Deleted);
            self.text(if quote.is_empty() { "" } else { " → " }, Role::Soft);
            self.text(&shown(suggestion), Role::Added);
        }
        self.end();
    }
}

fn shortened(text: &str) -> String {
    let mut chars = text.char_indices().skip(REPEATED_CHARS);
    match chars.next() {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
