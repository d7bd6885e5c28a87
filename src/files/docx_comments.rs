//! The comments of a Word document: `comments.xml`, and `commentsExtended.xml` with replies and states.

use crate::docx_parts::{COMMENTS_BEGIN, COMMENTS_EXTENDED_BEGIN};
use crate::render_model::{Note, RenderModel};
use crate::zip::ZipWriter;
use galley_domain::export::ExportFailure;
use galley_domain::review::ReviewStatus;

/// The ids of the first comment of each note and of the one after the last; an empty range without a
/// comment.
#[derive(Debug)]
pub(super) struct CommentIds(Vec<(usize, usize)>);

impl CommentIds {
    /// Numbers the comments. A change without words needs none.
    pub(super) fn of(model: &RenderModel) -> Self {
        let mut next = 0_usize;
        let ids = model.notes.iter().map(|note| {
            let first = next;
            let is_wordless = note.is_change && note.body.is_empty() && note.replies.is_empty();
            if !is_wordless {
                next = next.saturating_add(note.replies.len()).saturating_add(1);
            }
            (first, next)
        });
        Self(ids.collect())
    }

    pub(super) fn of_note(&self, index: usize) -> std::ops::Range<usize> {
        let (first, end) = self.0.get(index).copied().unwrap_or_default();
        first..end
    }
}

/// Writes both parts.
pub(super) fn write(
    model: &RenderModel,
    ids: &CommentIds,
    zip: &mut ZipWriter,
) -> Result<(), ExportFailure> {
    let mut comments = zip.entry("word/comments.xml");
    let mut extended = String::from(COMMENTS_EXTENDED_BEGIN);
    comments.push(COMMENTS_BEGIN)?;
    for (index, note) in model.notes.iter().enumerate() {
        let mut ids = ids.of_note(index);
        let Some(first) = ids.next() else { continue };
        let at = model.labels.date(note.at);
        comments.push(&comment(first, &note.author, &at, &lines_of(note, model)))?;
        let done = u8::from(note.status != ReviewStatus::Open);
        let parent = paragraph_id(first);
        extended.push_str(&format!("<w15:commentEx w15:paraId=\"{parent}\" w15:done=\"{done}\"/>"));
        for (reply, id) in note.replies.iter().zip(ids) {
            let (at, lines) = (model.labels.date(reply.created_at), [reply.body.clone()]);
            comments.push(&comment(id, &reply.author.name, &at, &lines))?;
            let paragraph = paragraph_id(id);
            extended.push_str(&format!(
                "<w15:commentEx w15:paraId=\"{paragraph}\" w15:paraIdParent=\"{parent}\" \
                 w15:done=\"{done}\"/>"
            ));
        }
    }
    comments.push("</w:comments>")?;
    zip.finish(comments)?;
    extended.push_str("</w15:commentsEx>");
    zip.add("word/commentsExtended.xml", &extended)
}

fn lines_of(note: &Note, model: &RenderModel) -> Vec<String> {
    let labels = model.labels;
    let status = labels.status(note.status).map(|status| format!("[{status}]"));
    let suggestion = note.suggestion(&labels).filter(|_| !note.is_change);
    let body = Some(note.body.clone()).filter(|body| !body.is_empty());
    status.into_iter().chain(suggestion).chain(body).collect()
}

/// A comment. Its last paragraph has the id that the extended part refers to.
fn comment(id: usize, author: &str, at: &str, texts: &[String]) -> String {
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.split('\n')).collect();
    let last = lines.len().saturating_sub(1);
    let mut xml = format!(
        "<w:comment w:id=\"{id}\" w:author=\"{}\" w:date=\"{}\" w:initials=\"{}\">",
        escaped(author),
        at,
        escaped(&initials(author)),
    );
    // A comment without words has a paragraph all the same.
    for (number, line) in lines.iter().copied().chain(lines.is_empty().then_some("")).enumerate() {
        let paragraph = if number == last {
            format!(" w14:paraId=\"{}\"", paragraph_id(id))
        } else {
            String::new()
        };
        let reference = if number == 0 {
            "<w:r><w:rPr><w:rStyle w:val=\"CommentReference\"/></w:rPr><w:annotationRef/></w:r>"
        } else {
            ""
        };
        xml.push_str(&format!(
            "<w:p{paragraph}><w:pPr><w:pStyle w:val=\"CommentText\"/></w:pPr>{reference}"
        ));
        xml.push_str(&run(line, false));
        xml.push_str("</w:p>");
    }
    xml.push_str("</w:comment>");
    xml
}

/// The id of a paragraph, below 0x80000000 and not 0.
fn paragraph_id(comment: usize) -> String {
    format!("{:08X}", comment.saturating_add(1))
}

/// The first letters of a name: of 김민수 the first one, of Kim Min-su K and M.
fn initials(name: &str) -> String {
    name.split_whitespace().filter_map(|word| word.chars().next()).take(3).collect()
}

/// A run of one line, with its tabs. Empty for an empty text.
pub(super) fn run(line: &str, is_deleted: bool) -> String {
    if line.is_empty() {
        return String::new();
    }
    let tag = if is_deleted { "w:delText" } else { "w:t" };
    let mut xml = String::with_capacity(line.len() + 64);
    xml.push_str("<w:r>");
    for (number, piece) in line.split('\t').enumerate() {
        if number != 0 {
            xml.push_str("<w:tab/>");
        }
        if !piece.is_empty() {
            xml.extend(["<", tag, " xml:space=\"preserve\">", &escaped(piece), "</", tag, ">"]);
        }
    }
    xml.push_str("</w:r>");
    xml
}

/// The text with the characters of markup escaped, and without those that XML 1.0 does not allow.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' => escaped.push(' '),
            '\u{FFFE}' | '\u{FFFF}' => {}
            c if c.is_ascii_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}
