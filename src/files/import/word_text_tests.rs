//! Tests of the text of Word documents.

use crate::docx;
use crate::error::ImportError;
use crate::import::changes::ImportChanges;
use crate::import::word_parts::MAIN_PART;
use crate::import::word_text::{IMPORT_NOTES_MAX, Imported, read};
use crate::render_model::tests::{model, reply, review, suggestion};
use crate::zip::tests::archive;

pub(crate) const OPEN: &str = "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" \
                    xmlns:mc=\"http://schemas.openxmlformats.org/markup-compatibility/2006\" \
                    xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\" \
                    xmlns:w14=\"http://schemas.microsoft.com/office/word/2010/wordml\" \
                    xmlns:pic=\"http://schemas.openxmlformats.org/drawingml/2006/picture\" \
                    xmlns:x=\"urn:later\" xmlns:y=\"urn:later:still\" mc:Ignorable=\"w14 y\" \
                    xmlns:a=\"urn:drawing\"><w:body>";

fn whole(file: &[u8]) -> Result<String, ImportError> {
    read(file, usize::MAX).map(|file| file.text)
}

pub(crate) fn text_of(body: &str) -> Result<String, ImportError> {
    read_up_to(usize::MAX, body)
}

fn read_up_to(text_max: usize, body: &str) -> Result<String, ImportError> {
    let part = format!("{OPEN}{body}</w:body></w:document>");
    read(&archive(&[(MAIN_PART, &part)]), text_max).map(|file| file.text)
}

#[test]
fn g13_the_text_of_a_file_has_a_bound() {
    let body = "<w:p><w:r><w:t>four</w:t></w:r></w:p>".repeat(3);
    assert_eq!(read_up_to(14, &body).as_deref(), Ok("four\nfour\nfour"));
    assert_eq!(read_up_to(13, &body), Err(ImportError::TextTooLong));
}

#[test]
fn an_export_without_reviews_is_imported_as_the_same_text() {
    let rare = "a\u{301} \u{1100}\u{1161} 👩‍👩‍👧 & < > \" ' \t\tx  y ";
    for text in ["", "나는\n글을 쓴다", "\n\na\n\n", rare, "]]>&amp;&#65;"] {
        let file = docx::render(&model(text, vec![])).expect("a file");
        assert_eq!(whole(&file).as_deref(), Ok(text));
    }
}

#[test]
fn tracked_changes_are_taken_as_accepted() {
    let text = "xa\nby\n끝";
    let mut comment = review(text, Some("끝"), "왜?");
    comment.replies.push(reply("그냥"));
    for (put_in, expected) in
        [("c\nd", "xc\ndy\n끝"), ("", "xy\n끝"), ("z", "xzy\n끝"), ("1\n2\n3", "x1\n2\n3y\n끝")]
    {
        let reviews = vec![suggestion(text, "a\nb", put_in), comment.clone()];
        let file = docx::render(&model(text, reviews)).expect("a file");
        let Imported { text, changes, .. } = read(&file, usize::MAX).expect("a text");
        assert_eq!(text, expected);
        // Word shows a replacement as two changes, over however many paragraphs it goes.
        let changes_applied = if put_in.is_empty() { 1 } else { 2 };
        let counted = ImportChanges { comments_left: 2, changes_applied, ..Default::default() };
        assert_eq!(changes, counted, "{put_in:?}");
    }
}

#[test]
fn tables_tabs_breaks_and_second_forms_are_read_once() {
    let cell =
        |text: &str| format!("<w:tc><w:tcPr/><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>");
    let row = format!("<w:tr>{}{}</w:tr>", cell("가"), cell("나"));
    let table = format!("<w:tbl><w:tblPr/>{row}{row}</w:tbl>");
    for (body, expected) in [
        (format!("{table}<w:p/>"), "가\t나\n가\t나\n"),
        (
            "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:br/>\
             <w:noBreakHyphen/><w:cr/></w:r></w:p>"
                .to_owned(),
            "a\t\n-\n",
        ),
        (
            "<w:p><w:r><mc:AlternateContent><mc:Choice><w:t>one</w:t></mc:Choice>\
             <mc:Fallback><w:p><w:r><w:t>two</w:t></w:r></w:p><w:tbl><w:tr><w:tc/><w:tc/></w:tr></w:tbl></mc:Fallback>\
             </mc:AlternateContent><a:t>drawn</a:t><w:instrText>PAGE</w:instrText></w:r></w:p>"
                .to_owned(),
            "one",
        ),
        (
            "<w:p><w:moveFrom><w:r><w:t>old</w:t></w:r></w:moveFrom><w:moveTo><w:r>\
             <w:t>n&#xE9;w &amp; &lt;<![CDATA[<b>]]></w:t></w:r></w:moveTo></w:p>"
                .to_owned(),
            "néw & <<b>",
        ),
    ] {
        assert_eq!(text_of(&body).as_deref(), Ok(expected), "{body}");
    }
}

/// A file with further parts of the folder `word`.
pub(crate) fn file_of(body: &str, parts: &[(&'static str, &str)]) -> Vec<u8> {
    let relation = |(name, _): &(&'static str, &str)| {
        let kind = name.trim_start_matches("word/").trim_end_matches(".xml");
        format!("<Relationship Type=\"http://x/{kind}\" Target=\"{kind}.xml\"/>")
    };
    let relations: String = parts.iter().map(relation).collect();
    let relations = format!("<Relationships>{relations}</Relationships>");
    let body = format!("{OPEN}{body}</w:body></w:document>");
    let main = [(MAIN_PART, body.as_str()), ("word/_rels/document.xml.rels", &relations)];
    archive(&[&main[..], parts].concat())
}

pub(crate) fn imported(body: &str, parts: &[(&'static str, &str)]) -> Imported {
    read(&file_of(body, parts), usize::MAX).expect("a text")
}

/// A paragraph of the style and the list.
pub(crate) fn item(format: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{format}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

pub(crate) fn notes(tag: &str, notes: &[(i64, &str)]) -> String {
    let notes = notes.iter().map(|(id, text)| {
        let text = item("", &format!("</w:t><w:{tag}Ref/><w:tab/><w:t>{text}"));
        format!("<w:{tag} w:id=\"{id}\">{text}</w:{tag}>")
    });
    let main = OPEN.replace("document", &format!("{tag}s")).replace("<w:body>", "");
    format!("{main}{}</w:{tag}s>", notes.collect::<String>())
}

#[test]
fn notes_stand_behind_the_text_in_the_order_of_their_marks() {
    let mark = |tag: &str, id: i64| {
        format!("</w:t></w:r><w:r><w:{tag}Reference w:id=\"{id}\"/></w:r><w:r><w:t>")
    };
    let deleted = "<w:del><w:r><w:footnoteReference w:id=\"3\"/></w:r></w:del>";
    let body = [
        item("", &format!("각주가 있는 문장{}입니다", mark("footnote", 4))),
        item("", &format!("끝{}, 다시{}", mark("endnote", 2), mark("footnote", 4))),
        format!("<w:p>{deleted}<w:r><w:t>!{}</w:t></w:r></w:p>", mark("footnote", 9)),
    ];
    let footnotes =
        notes("footnote", &[(-1, "separator"), (2, "unused"), (3, "deleted"), (4, "각주의 내용")]);
    let endnotes = notes("endnote", &[(2, "미주</w:t><w:br/><w:t>둘째 줄"), (2, "twice")]);
    let parts = [("word/footnotes.xml", &*footnotes), ("word/endnotes.xml", &endnotes)];
    let file = imported(&body.concat(), &parts);
    let text = "각주가 있는 문장[1]입니다\n끝[2], 다시[1]\n![3]\n\n[1] 각주의 내용\n[2] 미주\n둘째 줄\n[3] ";
    assert_eq!(file.text, text);
    let changes = ImportChanges { footnotes: 3, changes_applied: 1, ..Default::default() };
    assert_eq!(file.changes, changes);
}

/// Goal: marks of notes do not multiply their text, and many of them are refused.
#[test]
fn g13_notes_have_a_bound() {
    let mark = |id: usize| format!("<w:r><w:footnoteReference w:id=\"{id}\"/></w:r>");
    let footnotes = notes("footnote", &[(1, &"각".repeat(1_000))]);
    let parts = [("word/footnotes.xml", &*footnotes)];
    let file = imported(&format!("<w:p>{}</w:p>", mark(1).repeat(500)), &parts);
    assert_eq!(file.text.matches('각').count(), 1_000);
    let one = file_of(&format!("<w:p>{}</w:p>", mark(1)), &parts);
    assert_eq!(read(&one, 3_002), Err(ImportError::TextTooLong));
    assert!(read(&one, 3_010).is_ok());
    let many: String = (0..=IMPORT_NOTES_MAX).map(mark).collect();
    let refused = read(&file_of(&format!("<w:p>{many}</w:p>"), &[]), usize::MAX);
    assert!(matches!(refused, Err(ImportError::TooLarge(_))), "{refused:?}");
}

#[test]
fn items_of_lists_keep_their_marks() {
    let level = |level: u8, format: &str, start: u8| {
        format!(
            "<w:lvl w:ilvl=\"{level}\"><w:start w:val=\"{start}\"/><w:numFmt w:val=\"{format}\"/>\
             <w:lvlText w:val=\"{}\"/></w:lvl>",
            if format == "none" { String::new() } else { format!("%{}.", level + 1) }
        )
    };
    let numbering = [
        format!("{OPEN}<w:abstractNum w:abstractNumId=\"7\">"),
        [level(0, "bullet", 1), level(1, "bullet", 1), level(2, "none", 1)].concat(),
        "</w:abstractNum><w:abstractNum w:abstractNumId=\"8\">".to_owned(),
        [level(0, "decimal", 1), level(1, "ganada", 3)].concat(),
        "</w:abstractNum><w:num w:numId=\"1\"><w:abstractNumId w:val=\"7\"/></w:num>\
         <w:num w:numId=\"2\"><w:abstractNumId w:val=\"8\"/></w:num>\
         <w:num w:numId=\"3\"><w:abstractNumId w:val=\"8\"/><w:lvlOverride w:ilvl=\"0\">\
         <w:startOverride w:val=\"5\"/></w:lvlOverride></w:num>\
         <w:num w:numId=\"4\"><w:abstractNumId w:val=\"8\"/></w:num></w:body></w:document>"
            .to_owned(),
    ];
    let styles = format!(
        "{OPEN}<w:style w:styleId=\"a\"><w:pPr><w:numPr><w:numId w:val=\"1\"/></w:numPr></w:pPr>\
         </w:style><w:style w:styleId=\"b\"><w:basedOn w:val=\"a\"/></w:style>\
         <w:style w:styleId=\"c\"><w:basedOn w:val=\"c\"/></w:style></w:body></w:document>"
    );
    let numbering = numbering.concat();
    let parts = [("word/numbering.xml", &*numbering), ("word/styles.xml", &styles)];
    let of = |list: u8, level: u8, text: &str| {
        let format = format!("<w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/>");
        item(&format!("<w:numPr>{format}</w:numPr>"), text)
    };
    let styled = |style: &str, more: &str, text: &str| {
        item(&format!("<w:pStyle w:val=\"{style}\"/>{more}"), text)
    };
    let outside = "<w:numPr><w:numId w:val=\"0\"/></w:numPr>";
    let body = [
        of(1, 0, "하나") + &of(1, 1, "안쪽") + &of(1, 2, "표시 없음") + &of(1, 0, ""),
        of(2, 0, "first") + &of(2, 1, "i") + &of(2, 1, "ii") + &of(4, 0, "second"),
        of(2, 1, "again") + &of(3, 0, "fifth") + &of(3, 0, "sixth") + &of(2, 0, "third"),
        styled("b", "", "by style") + &styled("b", outside, "no item") + &styled("c", "", "c"),
        of(9, 3, "no such list"),
        format!("<w:tbl><w:tr><w:tc>{}{}</w:tc></w:tr></w:tbl>", of(2, 1, "a"), of(1, 0, "b")),
        "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t xml:space=\"preserve\">joined </w:t></w:r></w:p>".to_owned(),
        of(1, 0, "line"),
    ];
    let expected = "- 하나\n  - 안쪽\n표시 없음\n-\n1. first\n  다. i\n  라. ii\n2. second\n  다. again\n\
                    5. fifth\n6. sixth\n7. third\n- by style\nno item\nc\nno such list\n\
                    다. a - b\njoined line";
    assert_eq!(imported(&body.concat(), &parts).text, expected);
}

#[test]
fn the_first_heading_with_a_word_is_the_title() {
    let styles = format!(
        "{OPEN}<w:style w:styleId=\"1\"><w:name w:val=\"heading 1\"/><w:pPr>\
         <w:outlineLvl w:val=\"0\"/></w:pPr></w:style><w:style w:styleId=\"a3\">\
         <w:name w:val=\"Title\"/></w:style><w:style w:styleId=\"TOC\"><w:name w:val=\"TOC Heading\"/>\
         <w:basedOn w:val=\"1\"/><w:pPr><w:outlineLvl w:val=\"9\"/></w:pPr></w:style>\
         <w:style w:styleId=\"own\"><w:basedOn w:val=\"1\"/></w:style></w:body></w:document>"
    );
    let of = |style: &str, text: &str| item(&format!("<w:pStyle w:val=\"{style}\"/>"), text);
    let plain = item("", "나는") + &of("TOC", "차례") + &of("1", " ");
    let outline = item("<w:outlineLvl w:val=\"2\"/>", "개요");
    for (heading, expected) in [
        (of("1", " 지원동기 "), Some("지원동기")),
        (of("a3", "자기소개서") + &of("1", "지원동기"), Some("자기소개서")),
        (of("own", "성장"), Some("성장")),
        (of("Heading2", "a style of no part"), Some("a style of no part")),
        (outline, Some("개요")),
        (String::new(), None),
    ] {
        let file = imported(&(plain.clone() + &heading), &[("word/styles.xml", &styles)]);
        assert_eq!(file.heading.as_deref(), expected);
        assert!(file.text.starts_with("나는\n차례\n"), "headings stay in the text");
    }
}

#[test]
fn the_package_names_its_main_part() {
    let relations = "<Relationships xmlns=\"urn:r\"><Relationship Type=\"urn:x/officeDocument\" \
                     Target=\"/word/document2.xml\"/></Relationships>";
    let body = format!("{OPEN}<w:p><w:r><w:t>글</w:t></w:r></w:p></w:body></w:document>");
    let file = archive(&[("_rels/.rels", relations), ("word/document2.xml", &body)]);
    assert_eq!(whole(&file).as_deref(), Ok("글"));
}

#[test]
fn g12_a_hostile_document_is_refused_with_its_reason() {
    let unreadable = |found: Result<String, ImportError>| {
        assert!(matches!(found, Err(ImportError::Unreadable(_))), "{found:?}");
    };
    let deep = "<w:x>".repeat(100_000);
    unreadable(text_of(&deep));
    let declarations: String = (0..100).map(|n| format!(" xmlns:n{n}=\"u\"")).collect();
    unreadable(text_of(&format!("<w:x{declarations}>").repeat(200)));
    unreadable(text_of("<w:p><w:r><w:t>&bomb;</w:t></w:r></w:p>"));
    unreadable(text_of("<w:p></w:r>"));
    unreadable(text_of("<w:p>\u{0}<"));
    unreadable(whole(&archive(&[(MAIN_PART, "<!DOCTYPE a [<!ENTITY b \"x\">]><a>&b;</a>")])));
    unreadable(whole(&archive(&[(MAIN_PART, OPEN)])));
    unreadable(whole(&archive(&[(MAIN_PART, "")])));
    unreadable(whole(&archive(&[(MAIN_PART, "<a/>")])));
    unreadable(whole(&archive(&[("other.xml", "<a/>")])));
    unreadable(whole(b"PK\x03\x04 but no archive"));
    unreadable(whole(b""));
    let bomb = " ".repeat(20 * 1024 * 1024);
    assert!(matches!(text_of(&bomb), Err(ImportError::TooLarge(_))));
}

#[test]
fn g12_no_cut_of_a_document_is_imported() {
    let file = docx::render(&model("나는 글을 쓴다", vec![])).expect("a file");
    for length in (0..file.len()).step_by(7) {
        assert!(whole(&file[..length]).is_err(), "{length}");
    }
}
