//! HTML: one file with its style, ready for print. Reviews are numbered notes beside the text.
//!
//! Each text of a user is escaped, and the file's own policy forbids scripts and foreign files.

use std::collections::BTreeSet;

use crate::bounded_text::{BoundedText, pieces};
use crate::labels::Labels;
use crate::render_model::{Edge, Location, Note, RenderModel};
use galley_domain::export::ExportFailure;

/// Colours are those of the page (`static/css/base.css`).
const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8d867b;--mark:#fce8e4;--ins:#b3291f;--del:#625d55;--soft:#625d55}
@media(prefers-color-scheme:dark){:root{--line:#7f776c;--mark:#452a26;--ins:#ff9d90;--del:#b5aea4;--soft:#b5aea4}}
body{font:1rem/1.75 'Pretendard','Noto Sans KR','Malgun Gothic','맑은 고딕','Apple SD Gothic Neo',system-ui,sans-serif;
max-width:62rem;margin:2.5rem auto;padding:0 1.25rem;word-break:keep-all;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.3}h2{font-size:1.1rem;margin-top:2.5rem;border-top:1px solid var(--line);padding-top:1rem}
.by,time{color:var(--soft);font-size:.85rem}.by{margin-bottom:1.5rem}.note time{font-size:inherit}p{margin:0;min-height:1.75em;white-space:pre-wrap}
.has-notes main{padding-right:21rem}
.note{font-size:.85rem;line-height:1.5;border-left:2px solid var(--line);padding-left:.6rem;margin:0 0 .8rem}
main .note{float:right;clear:right;width:19rem;margin-right:-21rem}
.note p{min-height:0}.note .reply{margin:.4rem 0 0 .8rem}
blockquote{margin:.2rem 0;color:var(--soft);white-space:pre-wrap}
mark{background:var(--mark);color:inherit}ins{color:var(--ins)}del{color:var(--del)}
sup a{text-decoration:none;color:inherit;font-weight:600}
@media screen and (max-width:52rem){.has-notes main{padding-right:0}main .note{float:none;width:auto;margin:.3rem 0 .8rem 1rem}
.noted{display:flex;flex-direction:column}.noted>p{order:-1}}
@media print{:root{color-scheme:light}body{margin:0;max-width:none;padding:0;font-size:10.5pt}
.has-notes main{padding-right:6.2cm}main .note{width:5.6cm;margin-right:-6.2cm;font-size:8pt;break-inside:avoid}
mark{background:none;border-bottom:1px solid #8d867b}@page{size:A4;margin:2cm}}
";

pub fn render(model: &RenderModel) -> Result<Vec<u8>, ExportFailure> {
    let mut output = BoundedText::default();
    let title = escaped(&model.title);
    let class = if model.notes.is_empty() { "" } else { " class=\"has-notes\"" };
    output.push(&format!(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body{class}>\n\
         <header><h1>{title}</h1><div class=\"by\">{}, {}</div></header>\n<main>\n",
        model.labels.lang,
        escaped(&model.writer),
        model.labels.time(model.built_at),
    ))?;
    let (covering, is_deleted) = (BTreeSet::new(), false);
    Body { model, output: &mut output, covering, is_deleted }.write()?;
    output.push("</main>\n")?;
    for (heading, notes) in model.sections() {
        output.push(&format!("<h2>{heading}</h2>\n"))?;
        for note in notes {
            write_note(&mut output, note, &model.labels)?;
        }
    }
    output.push("</body>\n</html>\n")?;
    Ok(output.into_bytes())
}

/// The text under construction. The output takes each piece at once: no line is in memory beside it.
struct Body<'a> {
    model: &'a RenderModel,
    output: &'a mut BoundedText,
    /// The notes whose range covers the current position.
    covering: BTreeSet<usize>,
    is_deleted: bool,
}

impl Body<'_> {
    fn write(mut self) -> Result<(), ExportFailure> {
        let (model, edges) = (self.model, self.model.edges());
        let (mut later, mut from) = (edges.as_slice(), 0);
        for line in model.text.split('\n') {
            let end = from + line.len();
            let here = later.partition_point(|(at, _)| *at <= end);
            let (edges, rest) = later.split_at(here);
            later = rest;
            let end_line = self.begin_line(edges)?;
            for (at, edge) in edges {
                self.text(model.text.get(from..*at).unwrap_or_default())?;
                from = *at;
                self.edge(*edge)?;
            }
            self.text(model.text.get(from..end).unwrap_or_default())?;
            self.output.push(end_line)?;
            from = end + 1;
        }
        Ok(())
    }

    /// Begins a line, with the notes whose range ends in it. Returns its end.
    fn begin_line(&mut self, edges: &[(usize, Edge)]) -> Result<&'static str, ExportFailure> {
        let model = self.model;
        let ended = edges.iter().filter_map(|(_, edge)| match edge {
            Edge::NoteEnds(index) | Edge::Point(index) => model.notes.get(*index),
            Edge::NoteBegins(_) | Edge::ChangeBegins(_) | Edge::ChangeEnds(_) => None,
        });
        let mut ended = ended.peekable();
        if ended.peek().is_none() {
            self.output.push("<p>")?;
            return Ok("</p>\n");
        }
        self.output.push("<div class=\"noted\">")?;
        // A float begins at the line that follows it. In a narrow window the line comes first.
        for note in ended {
            write_note(self.output, note, &model.labels)?;
        }
        self.output.push("<p>")?;
        Ok("</p></div>\n")
    }

    fn text(&mut self, text: &str) -> Result<(), ExportFailure> {
        if text.is_empty() {
            return Ok(());
        }
        let (mark, end_mark) =
            if self.covering.is_empty() { ("", "") } else { ("<mark>", "</mark>") };
        let (del, end_del) = if self.is_deleted { ("<del>", "</del>") } else { ("", "") };
        self.output.push(mark)?;
        self.output.push(del)?;
        pieces(text).try_for_each(|piece| self.output.push(&escaped(piece)))?;
        self.output.push(end_del)?;
        self.output.push(end_mark)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), ExportFailure> {
        match edge {
            Edge::NoteBegins(index) => {
                self.covering.insert(index);
                Ok(())
            }
            Edge::ChangeBegins(_) => {
                self.is_deleted = true;
                Ok(())
            }
            Edge::ChangeEnds(index) => {
                self.is_deleted = false;
                self.insertion(index)
            }
            Edge::NoteEnds(index) => {
                self.covering.remove(&index);
                self.reference(index)
            }
            Edge::Point(index) => {
                self.insertion(index)?;
                self.reference(index)
            }
        }
    }

    fn insertion(&mut self, index: usize) -> Result<(), ExportFailure> {
        let note = self.model.notes.get(index).filter(|note| note.is_change);
        let suggestion = note.and_then(|note| note.suggestion.as_ref());
        match suggestion.filter(|suggestion| !suggestion.is_empty()) {
            Some(suggestion) => self.output.push(&format!("<ins>{}</ins>", escaped(suggestion))),
            None => Ok(()),
        }
    }

    fn reference(&mut self, index: usize) -> Result<(), ExportFailure> {
        let number = index.saturating_add(1);
        self.output.push(&format!(
            "<sup><a id=\"ref-{number}\" href=\"#note-{number}\">{number}</a></sup>"
        ))
    }
}

fn write_note(output: &mut BoundedText, note: &Note, labels: &Labels) -> Result<(), ExportFailure> {
    let number = note.number;
    let status = labels.status(note.status).map(|it| format!(" · {it}")).unwrap_or_default();
    output.push(&format!(
        "<aside class=\"note\" id=\"note-{number}\"><a href=\"#ref-{number}\">{number}</a> \
         <strong>{}</strong> <time>{}{status}</time>",
        escaped(&note.author),
        labels.time(note.at),
    ))?;
    if !matches!(note.location, Location::Range(_)) && !note.quote.is_empty() {
        output.push(&format!("<blockquote>{}</blockquote>", escaped(&note.quote)))?;
    }
    // The text shows a change itself, so its note repeats no words, unless the note would be empty.
    let is_shown = !note.is_change || note.body.is_empty();
    if let Some(suggestion) = note.suggestion.as_deref().filter(|_| is_shown) {
        let (label, quote) = (labels.suggested(suggestion), escaped(&note.quote));
        output.push(&match suggestion {
            "" => format!("<p>{label}: “<del>{quote}</del>”</p>"),
            new => format!("<p>{label}: <del>{quote}</del> <ins>{}</ins></p>", escaped(new)),
        })?;
    }
    if !note.body.is_empty() {
        output.push(&format!("<p>{}</p>", escaped(&note.body)))?;
    }
    for reply in &note.replies {
        output.push(&format!(
            "<div class=\"reply\"><strong>{}</strong> <time>{}</time><p>{}</p></div>",
            escaped(&reply.author.name),
            labels.time(reply.created_at),
            escaped(&reply.body)
        ))?;
    }
    output.push("</aside>\n")
}

/// The text with the characters of markup escaped. HTML has no other control character than tab and
/// line feed.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            // The line feed behind it breaks the line.
            '\r' => {}
            c if c.is_control() => escaped.push('\u{FFFD}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EXPORT_BYTES_MAX;
    use crate::render_model::tests::{model, reply, review, suggestion};

    fn rendered(model: &RenderModel) -> String {
        String::from_utf8(render(model).expect("a file")).expect("UTF-8")
    }

    #[test]
    fn every_text_of_a_user_is_escaped() {
        let evil = "<script>alert('1')</script>&\r\"\u{1}";
        let mut one = review(evil, Some(evil), evil);
        evil.clone_into(&mut one.author.name);
        one.replies.push(reply(evil));
        let mut model = model(evil, vec![one, review(evil, Some("gone<b>"), "<i>")]);
        evil.clone_into(&mut model.title);
        evil.clone_into(&mut model.writer);
        let file = rendered(&model);
        assert!(
            !file.contains("<script") && !file.contains("<b>") && !file.contains("<i>"),
            "{file}"
        );
        let escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;\u{FFFD}";
        assert_eq!(file.matches(escaped).count(), 7, "{file}");
    }

    #[test]
    fn a_range_over_several_lines_is_marked_in_each() {
        let text = "하나\n둘\n셋";
        let file = rendered(&model(text, vec![suggestion(text, "나\n둘", "A\nB")]));
        let body = "<p>하<mark><del>나</del></mark></p>\n<div class=\"noted\"><aside class=\"note\" \
                    id=\"note-1\">";
        assert!(file.contains(body), "{file}");
        let body = "<p><mark><del>둘</del></mark><ins>A\nB</ins><sup><a id=\"ref-1\" \
                    href=\"#note-1\">1</a></sup></p></div>\n<p>셋</p>\n</main>";
        assert!(file.contains(body), "{file}");
    }

    /// A line of 8 MB of quotes took 48 MB, twice, before the bound of the file was tested.
    #[test]
    fn g13_a_long_line_takes_no_more_memory_than_the_file_may() {
        let fits = "\"".repeat(2_700_000);
        let file = rendered(&model(&fits, vec![]));
        assert_eq!(file.matches("&quot;").count(), fits.len());
        for text in [fits.repeat(3), "\"\n".repeat(2_000_000)] {
            let mut output = BoundedText::default();
            let body = model(&text, vec![]);
            let (covering, is_deleted) = (BTreeSet::new(), false);
            let written = Body { model: &body, output: &mut output, covering, is_deleted }.write();
            assert_eq!(written, Err(ExportFailure::TooLarge));
            // The output took the text piece by piece, up to its bound.
            let left = EXPORT_BYTES_MAX - output.into_bytes().len();
            assert!(left < 1_024 * 1_024, "{left}");
        }
    }

    /// The note of a deletion without a reason was empty.
    #[test]
    fn a_note_without_a_reason_shows_its_suggestion() {
        let text = "나는 글을 쓴다";
        let mut deletion = suggestion(text, "글을 ", "");
        let mut other = suggestion(text, "쓴다", "적는다");
        for (body, is_shown) in [("", true), ("왜?", false)] {
            body.clone_into(&mut deletion.body);
            body.clone_into(&mut other.body);
            let file = rendered(&model(text, vec![deletion.clone(), other.clone()]));
            for note in [
                "</time><p>삭제 제안: “<del>글을 </del>”</p></aside>",
                "</time><p>제안: <del>쓴다</del> <ins>적는다</ins></p></aside>",
            ] {
                assert_eq!(file.contains(note), is_shown, "{note}\n{file}");
            }
        }
    }

    #[test]
    fn the_file_needs_no_other_file() {
        let file = rendered(&model("글\n\n끝", vec![]));
        assert!(file.contains("<p>글</p>\n<p></p>\n<p>끝</p>\n</main>"));
        for foreign in ["http://", "https://", "src=", "<link", "@import", "url("] {
            assert!(!file.contains(foreign), "{foreign}");
        }
    }
}
