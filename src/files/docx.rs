//! Word (OOXML): each line is a paragraph, reviews are comments, open suggestions are tracked changes.
//!
//! The body is compressed while it is written, and only the current paragraph is in memory. A document
//! of eight million empty lines would take gigabytes as a tree of paragraphs.

use crate::bounded_text::pieces;
use crate::docx_comments::{self, CommentIds, escaped, run};
use crate::docx_parts::{
    APPLICATION, CONTENT_TYPES, CORE_BEGINS, DOCUMENT_BEGINS, DOCUMENT_ENDS, DOCUMENT_RELATIONS,
    PACKAGE_RELATIONS, SETTINGS, STYLES,
};
use crate::render_model::{Edge, Location, Note, RenderModel};
use crate::zip::{Entry, ZipWriter};
use galley_domain::export::ExportFailure;

/// Longest paragraph, in bytes of XML: four times the text of a document. Tabs take twenty times theirs.
const PARAGRAPH_BYTES_MAX: usize = 32 * 1024 * 1024;

pub fn render(model: &RenderModel) -> Result<Vec<u8>, ExportFailure> {
    let mut zip = ZipWriter::default();
    zip.add("[Content_Types].xml", CONTENT_TYPES)?;
    zip.add("_rels/.rels", PACKAGE_RELATIONS)?;
    zip.add("docProps/core.xml", &core(model))?;
    zip.add("docProps/app.xml", APPLICATION)?;
    zip.add("word/_rels/document.xml.rels", DOCUMENT_RELATIONS)?;
    zip.add("word/styles.xml", STYLES)?;
    zip.add("word/settings.xml", SETTINGS)?;
    let ids = CommentIds::of(model);
    let mut body = Body::new(model, &ids, zip.entry("word/document.xml"));
    body.write()?;
    zip.finish(body.entry)?;
    docx_comments::write(model, &ids, &mut zip)?;
    zip.into_bytes()
}

fn core(model: &RenderModel) -> String {
    let at = model.labels.date(model.built_at);
    format!(
        "{CORE_BEGINS}<dc:title>{}</dc:title><dc:creator>{}</dc:creator>\
         <dcterms:created xsi:type=\"dcterms:W3CDTF\">{at}</dcterms:created>\
         <dcterms:modified xsi:type=\"dcterms:W3CDTF\">{at}</dcterms:modified>\
         </cp:coreProperties>",
        escaped(&model.title),
        escaped(&model.writer)
    )
}

/// The state of a paragraph's end: its mark joins it with the next paragraph when a reader accepts a
/// deletion or rejects an insertion.
#[derive(Clone, Copy)]
enum Mark {
    Plain,
    Deleted(usize),
    Inserted(usize),
}

struct Body<'a> {
    model: &'a RenderModel,
    ids: &'a CommentIds,
    entry: Entry,
    paragraph: String,
    style: &'static str,
    /// The note whose text is being deleted.
    deletes: Option<usize>,
    changes: usize,
}

impl<'a> Body<'a> {
    fn new(model: &'a RenderModel, ids: &'a CommentIds, entry: Entry) -> Self {
        let (paragraph, style) = (String::new(), "");
        Self { model, ids, entry, paragraph, style, deletes: None, changes: 0 }
    }

    fn write(&mut self) -> Result<(), ExportFailure> {
        self.entry.push(DOCUMENT_BEGINS)?;
        // A remark on the whole text is a comment on all of it.
        self.edges_of_whole(Self::begin_comments);
        let mut from = 0;
        for (at, edge) in self.model.edges() {
            self.text(self.model.text.get(from..at).unwrap_or_default())?;
            from = at;
            self.edge(edge)?;
        }
        self.text(self.model.text.get(from..).unwrap_or_default())?;
        self.edges_of_whole(Self::end_comments);
        self.end_paragraph(Mark::Plain)?;
        self.lost()?;
        self.entry.push(DOCUMENT_ENDS)
    }

    fn edges_of_whole(&mut self, write: impl Fn(&mut Self, usize)) {
        for (index, note) in self.model.notes.iter().enumerate() {
            if note.location == Location::Whole {
                write(self, index);
            }
        }
    }

    /// Reviews without a place: each is a comment on its quote, behind the text.
    fn lost(&mut self) -> Result<(), ExportFailure> {
        let notes = self.model.notes.iter().enumerate();
        let mut lost = notes.filter(|(_, note)| note.location == Location::Lost).peekable();
        if lost.peek().is_some() {
            self.style = "Section";
            self.paragraph.push_str(&run(self.model.labels.lost, false));
            self.end_paragraph(Mark::Plain)?;
        }
        for (index, note) in lost {
            self.style = "Quote";
            self.begin_comments(index);
            self.text(&note.quote)?;
            self.end_comments(index);
            self.end_paragraph(Mark::Plain)?;
        }
        Ok(())
    }

    fn edge(&mut self, edge: Edge) -> Result<(), ExportFailure> {
        match edge {
            Edge::NoteBegins(index) => self.begin_comments(index),
            Edge::ChangeBegins(index) => self.deletes = Some(index),
            Edge::ChangeEnds(index) => {
                self.deletes = None;
                self.insertion(index)?;
            }
            Edge::NoteEnds(index) => self.end_comments(index),
            Edge::Point(index) => {
                self.begin_comments(index);
                self.insertion(index)?;
                self.end_comments(index);
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), ExportFailure> {
        for (number, line) in text.split('\n').enumerate() {
            if number != 0 {
                let mark = self.deletes.map_or(Mark::Plain, Mark::Deleted);
                self.end_paragraph(mark)?;
            }
            pieces(line).try_for_each(|piece| self.piece(piece))?;
        }
        Ok(())
    }

    fn piece(&mut self, piece: &str) -> Result<(), ExportFailure> {
        match self.deletes {
            None => self.paragraph.push_str(&run(piece, false)),
            Some(index) => self.tracked("w:del", index, &run(piece, true)),
        }
        let is_bounded = self.paragraph.len() <= PARAGRAPH_BYTES_MAX;
        is_bounded.then_some(()).ok_or(ExportFailure::TooLarge)
    }

    fn insertion(&mut self, index: usize) -> Result<(), ExportFailure> {
        let model = self.model;
        let note = model.notes.get(index).filter(|note| note.is_change);
        let Some(suggestion) = note.and_then(|note| note.suggestion.as_ref()) else {
            return Ok(());
        };
        for (number, line) in suggestion.split('\n').enumerate() {
            if number != 0 {
                self.end_paragraph(Mark::Inserted(index))?;
            }
            if !line.is_empty() {
                self.tracked("w:ins", index, &run(line, false));
            }
        }
        Ok(())
    }

    fn begin_comments(&mut self, index: usize) {
        for id in self.ids.of_note(index) {
            self.paragraph.push_str(&format!("<w:commentRangeStart w:id=\"{id}\"/>"));
        }
    }

    fn end_comments(&mut self, index: usize) {
        for id in self.ids.of_note(index) {
            self.paragraph.push_str(&format!(
                "<w:commentRangeEnd w:id=\"{id}\"/><w:r><w:rPr><w:rStyle \
                 w:val=\"CommentReference\"/></w:rPr><w:commentReference w:id=\"{id}\"/></w:r>"
            ));
        }
    }

    fn tracked(&mut self, tag: &str, index: usize, content: &str) {
        let attributes = self.attributes(index);
        self.paragraph.push_str(&format!("<{tag}{attributes}>{content}</{tag}>"));
    }

    fn attributes(&mut self, index: usize) -> String {
        self.changes = self.changes.saturating_add(1);
        let labels = self.model.labels;
        let of = |note: &Note| (escaped(&note.author), labels.date(note.at));
        let (author, at) = self.model.notes.get(index).map(of).unwrap_or_default();
        format!(" w:id=\"{}\" w:author=\"{author}\" w:date=\"{at}\"", self.changes)
    }

    fn end_paragraph(&mut self, mark: Mark) -> Result<(), ExportFailure> {
        let mark = match mark {
            Mark::Plain => String::new(),
            Mark::Deleted(index) => format!("<w:rPr><w:del{}/></w:rPr>", self.attributes(index)),
            Mark::Inserted(index) => format!("<w:rPr><w:ins{}/></w:rPr>", self.attributes(index)),
        };
        let style = match self.style {
            "" => String::new(),
            style => format!("<w:pStyle w:val=\"{style}\"/>"),
        };
        let is_plain = mark.is_empty() && style.is_empty();
        if is_plain && self.paragraph.is_empty() {
            return self.entry.push("<w:p/>");
        }
        self.entry.push("<w:p>")?;
        if !is_plain {
            self.entry.push(&format!("<w:pPr>{style}{mark}</w:pPr>"))?;
        }
        self.entry.push(&self.paragraph)?;
        self.paragraph.clear();
        self.entry.push("</w:p>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::word_text;
    use crate::render_model::tests::{model, reply, review, suggestion};
    use crate::zip::tests::unpacked;
    use galley_domain::review::ReviewStatus;

    /// The content of the body, without times and styles of references.
    fn body(model: &RenderModel) -> String {
        let file = render(model).expect("a file");
        let xml = unpacked(&file, "word/document.xml").expect("a body");
        let xml = xml.strip_prefix(DOCUMENT_BEGINS).expect("a document");
        let xml = xml.strip_suffix(DOCUMENT_ENDS).expect("a document").to_owned();
        xml.replace(" w:date=\"2026-09-21T14:13:20Z\"", "")
            .replace(" xml:space=\"preserve\"", "")
            .replace("<w:rPr><w:rStyle w:val=\"CommentReference\"/></w:rPr>", "")
    }

    #[test]
    fn each_line_is_a_paragraph_and_all_text_is_escaped() {
        let text = "가 < & \" \u{1}\u{FFFE}\n\n\t끝";
        let expected = "<w:p><w:r><w:t>가 &lt; &amp; &quot; </w:t></w:r></w:p><w:p/>\
                        <w:p><w:r><w:tab/><w:t>끝</w:t></w:r></w:p>";
        assert_eq!(body(&model(text, vec![])), expected);
        assert_eq!(body(&model("", vec![])), "<w:p/>");
    }

    #[test]
    fn g13_a_long_line_has_several_runs_and_a_paragraph_has_a_bound() {
        let line = "가".repeat(50_000);
        let file = render(&model(&line, vec![])).expect("a file");
        assert_eq!(word_text::read(&file, usize::MAX).map(|file| file.text), Ok(line.clone()));
        assert!(1 < body(&model(&line, vec![])).matches("<w:r>").count());
        let tabs = "a\t".repeat(1_000_000);
        assert!(matches!(render(&model(&tabs, vec![])), Err(ExportFailure::TooLarge)));
    }

    #[test]
    fn a_review_is_a_comment_on_its_range_with_its_replies() {
        let text = "나는 글을\n쓴다";
        let mut one = review(text, Some("글을\n쓴"), "왜 <이> 글?");
        one.replies.push(reply("그냥"));
        one.status = ReviewStatus::Resolved;
        let model = model(text, vec![one]);
        let starts = "<w:commentRangeStart w:id=\"0\"/><w:commentRangeStart w:id=\"1\"/>";
        let end = |id: u8| {
            format!(
                "<w:commentRangeEnd w:id=\"{id}\"/><w:r><w:commentReference w:id=\"{id}\"/></w:r>"
            )
        };
        let expected = format!(
            "<w:p><w:r><w:t>나는 </w:t></w:r>{starts}<w:r><w:t>글을</w:t></w:r></w:p>\
             <w:p><w:r><w:t>쓴</w:t></w:r>{}{}<w:r><w:t>다</w:t></w:r></w:p>",
            end(0),
            end(1)
        );
        assert_eq!(body(&model), expected);
        let file = render(&model).expect("a file");
        let comments = unpacked(&file, "word/comments.xml").expect("comments");
        for part in [
            "w:id=\"0\" w:author=\"이검토\" w:date=\"2026-09-21T14:13:20Z\" w:initials=\"이\"",
            "[해결됨]",
            "w14:paraId=\"00000001\"",
            "왜 &lt;이&gt; 글?",
            "w:id=\"1\" w:author=\"김작가\" w:date=\"2026-09-21T14:14:20Z\" w:initials=\"김\"",
        ] {
            assert!(comments.contains(part), "{part}\n{comments}");
        }
        let extended = unpacked(&file, "word/commentsExtended.xml").expect("replies");
        let reply = "w15:paraId=\"00000002\" w15:paraIdParent=\"00000001\" w15:done=\"1\"";
        assert!(extended.contains(reply), "{extended}");
    }

    #[test]
    fn an_open_suggestion_is_a_deletion_and_an_insertion_over_its_paragraphs() {
        let text = "xa\nby";
        let expected = "<w:p><w:pPr><w:rPr><w:del w:id=\"2\" w:author=\"이검토\"/></w:rPr></w:pPr>\
             <w:r><w:t>x</w:t></w:r>\
             <w:del w:id=\"1\" w:author=\"이검토\"><w:r><w:delText>a</w:delText></w:r></w:del></w:p>\
             <w:p><w:pPr><w:rPr><w:ins w:id=\"5\" w:author=\"이검토\"/></w:rPr></w:pPr>\
             <w:del w:id=\"3\" w:author=\"이검토\"><w:r><w:delText>b</w:delText></w:r></w:del>\
             <w:ins w:id=\"4\" w:author=\"이검토\"><w:r><w:t>c</w:t></w:r></w:ins></w:p>\
             <w:p><w:ins w:id=\"6\" w:author=\"이검토\"><w:r><w:t>d</w:t></w:r></w:ins>\
             <w:r><w:t>y</w:t></w:r></w:p>";
        assert_eq!(body(&model(text, vec![suggestion(text, "a\nb", "c\nd")])), expected);
    }

    #[test]
    fn a_decided_suggestion_is_a_comment_and_a_lost_one_stands_behind_the_text() {
        let text = "나는 글을 쓴다";
        let mut decided = suggestion(text, "쓴다", "적는다");
        decided.status = ReviewStatus::Rejected;
        let (lost, whole) = (suggestion(text, "없다", ""), review(text, None, "!"));
        let file = model(text, vec![decided, lost, whole]);
        let body = body(&file);
        assert!(!body.contains("<w:del") && !body.contains("<w:ins"), "{body}");
        assert!(body.starts_with("<w:p><w:commentRangeStart w:id=\"1\"/>"), "{body}");
        let lost = "<w:commentRangeStart w:id=\"2\"/><w:r><w:t>없다</w:t></w:r>\
                    <w:commentRangeEnd w:id=\"2\"/>";
        assert!(body.contains(lost), "{body}");
        let rendered = render(&file).expect("a file");
        let comments = unpacked(&rendered, "word/comments.xml").expect("comments");
        assert!(comments.contains(">제안: 적는다<") && comments.contains(">삭제 제안: “없다”<"));
        // No word of this file's own becomes the title of an import.
        let imported = word_text::read(&rendered, usize::MAX).expect("a text");
        assert!(imported.text.ends_with("\n문장이 지워진 의견\n없다"), "{}", imported.text);
        assert_eq!(imported.heading, None);
    }

    #[test]
    fn g13_a_file_of_a_million_lines_is_small_in_memory_and_on_disk() {
        let text = "\n".repeat(1_000_000);
        let file = render(&model(&text, vec![])).expect("a file");
        assert!(file.len() < 100_000, "{}", file.len());
    }
}
