//! Small files that other programs write (`tests/data/files`), and the elements of runs and paragraphs.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::error::ImportError;
use crate::import::changes::ImportChanges;
use crate::import::word_text::Imported;
use crate::import::word_text_tests::{imported, item, notes, text_of};
use crate::import::{ImportFormat, read};

const CASES: &str = include_str!("../../../tests/data/files/cases.json");

/// `=` before the whole text, `!refuse` a refusal, a list: pieces in this order.
#[test]
fn files_of_other_programs_are_read_as_they_are_shown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/files");
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("JSON");
    assert!(cases.len() > 20);
    for case in cases {
        let name = case["file"].as_str().expect("a name");
        let bytes = std::fs::read(folder.join(name)).expect("a file");
        let format = ImportFormat::of(None, Some(name)).expect("a format");
        let found = read(format, &bytes, usize::MAX).map(|file| file.text);
        match &case["want"] {
            Value::String(want) if want == "!refuse" => {
                assert!(matches!(found, Err(ImportError::Encoding(_))), "{name}: {found:?}");
            }
            Value::String(want) => {
                let want = want.strip_prefix('=').expect("a whole text");
                assert_eq!(found.as_deref(), Ok(want), "{name}");
            }
            pieces => {
                let found = found.expect("a text");
                let pieces = pieces.as_array().expect("pieces").iter().filter_map(Value::as_str);
                let mut rest = Some(found.as_str());
                for piece in pieces {
                    rest = rest.and_then(|rest| Some(rest.split_once(piece)?.1));
                    assert!(rest.is_some(), "{name}: {piece:?} of {found:?}");
                }
            }
        }
    }
}

fn run(content: &str) -> String {
    format!("<w:r>{content}</w:r>")
}

fn t(text: &str) -> String {
    run(&format!("<w:t xml:space=\"preserve\">{text}</w:t>"))
}

#[track_caller]
fn assert_text(content: &str, expected: &str) {
    assert_eq!(text_of(&format!("<w:p>{content}</w:p>")).as_deref(), Ok(expected), "{content}");
}

#[test]
fn the_first_form_that_the_reader_understands_is_read() {
    let either = |choices: &str, fallback: &str| {
        run(&format!(
            "<mc:AlternateContent>{choices}<mc:Fallback><w:t>{fallback}</w:t></mc:Fallback></mc:AlternateContent>"
        ))
    };
    let choice = |requires: &str, text: &str| {
        format!("<mc:Choice Requires=\"{requires}\"><w:t>{text}</w:t></mc:Choice>")
    };
    assert_text(&either(&choice("w14", "a"), "b"), "a");
    assert_text(&either(&choice("x", "a"), "b"), "b");
    assert_text(&either(&choice("w14 x", "a"), "b"), "b");
    assert_text(&either(&choice("none", "a"), "b"), "b");
    assert_text(&either(&(choice("x", "a") + &choice("w14", "c") + &choice("w14", "d")), "b"), "c");
    assert_text(&either("", "b"), "b");
    let inner = either(&choice("x", "a"), "b");
    let outer = format!(
        "<mc:AlternateContent><mc:Choice Requires=\"w14\">{inner}</mc:Choice></mc:AlternateContent>"
    );
    assert_text(&outer, "b");
    // An element of a later version that a reader may skip, and one that it passes through.
    assert_text(&format!("<y:z>{}</y:z><x:z>{}</x:z>", t("a"), t("b")), "b");
}

#[test]
fn signs_of_a_run_are_text() {
    assert_text(
        &run(
            "<w:sym w:font=\"Wingdings\" w:char=\"F0E0\"/><w:sym w:font=\"Symbol\" w:char=\"F061\"/>",
        ),
        "→α",
    );
    assert_text(&run("<w:sym w:font=\"MS Gothic\" w:char=\"2612\"/>"), "☒");
    assert_text(&(t("a") + &run("<w:ptab w:alignment=\"right\"/>") + &t("b")), "a\tb");
    let ruby = "<w:ruby><w:rubyPr/><w:rt><w:r><w:t>かん</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby>";
    assert_text(&(t("a") + &run(ruby) + &t("z")), "a漢(かん)z");
    assert_text(
        "<w:dir w:val=\"rtl\"><w:r><w:t>a</w:t></w:r></w:dir><w:smartTag><w:r><w:t>b</w:t></w:r></w:smartTag>",
        "ab",
    );
}

#[test]
fn white_space_of_the_file_is_no_white_space_of_the_text() {
    assert_text(&run("<w:t>\n  한\n줄 </w:t>"), "한 줄");
    assert_text(&(t(" a\r\n b ") + &run("<w:t> c </w:t>")), " a  b c");
}

#[test]
fn the_result_of_a_field_is_text_and_its_instruction_is_not() {
    let mark = |kind: &str| run(&format!("<w:fldChar w:fldCharType=\"{kind}\"/>"));
    let field = |instruction: &str, result: Option<&str>| {
        let instruction = format!("<w:instrText>{instruction}</w:instrText>");
        let result = result.map(|it| mark("separate") + it).unwrap_or_default();
        mark("begin") + &run(&instruction) + &result + &mark("end")
    };
    assert_text(&field(" DATE ", Some(&t("오늘"))), "오늘");
    let inner = field("MERGEFIELD x", Some(&t("inner")));
    let instruction = format!("IF </w:instrText></w:r>{inner}<w:r><w:instrText> = 1");
    assert_text(&field(&instruction, Some(&t("result"))), "result");
    // An instruction without an end hides no further paragraph.
    let open = mark("begin") + &run("<w:instrText>IF</w:instrText>");
    let text = text_of(&format!("<w:p>{open}</w:p><w:p>{}</w:p>", field("PAGE", Some(&t("3")))));
    assert_eq!(text.as_deref(), Ok("\n3"));
    let counted = |content: &str| {
        imported(&format!("<w:p>{content}</w:p>"), &[]).changes.left_out.get("fields").copied()
    };
    assert_eq!(counted(&field(" page \\* MERGEFORMAT", None)), Some(1));
    assert_eq!(counted(&field("XE \"word\"", None)), None);
    assert_eq!(counted(&field("REF x", Some(""))), None);
    assert_eq!(counted("<w:fldSimple w:instr=\"AUTHOR\"/><w:r><w:dayLong/></w:r>"), Some(2));
}

#[test]
fn an_equation_is_a_line_of_text() {
    let r = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let part = |name: &str, text: &str| format!("<m:{name}>{text}</m:{name}>");
    let fraction = |a: &str, b: &str| part("f", &(part("num", a) + &part("den", b)));
    let power = |e: &str, n: &str| part("sSup", &(part("e", e) + &part("sup", n)));
    let root = part("rad", &format!("<m:radPr/>{}{}", part("deg", ""), part("e", &r("b-4ac"))));
    let sum = part(
        "nary",
        &[
            "<m:naryPr><m:chr m:val=\"∑\"/></m:naryPr>",
            &part("sub", &r("i=1")),
            &part("sup", &r("n")),
            &part("e", &r("i")),
        ]
        .concat(),
    );
    let brackets = part(
        "d",
        &[
            "<m:dPr><m:begChr m:val=\"[\"/><m:endChr m:val=\")\"/></m:dPr>",
            &part("e", &r("a")),
            &part("e", &r("b")),
        ]
        .concat(),
    );
    for (equation, expected) in [
        (r("F=ma"), "F=ma"),
        (fraction(&(r("-b±") + &root), &r("2a")), "(-b±√(b-4ac))/2a"),
        (power(&r("x"), &r("2")) + &r("+1"), "x^2+1"),
        (sum, "∑_(i=1)^n i"),
        (brackets, "[a|b)"),
        (part("func", &(part("fName", &r("sin")) + &part("e", &r("x")))), "sin x"),
        (
            part(
                "m",
                &(part("mr", &(part("e", &r("1")) + &part("e", &r("0"))))
                    + &part("mr", &part("e", &r("2")))),
            ),
            "1 0; 2",
        ),
    ] {
        let equation = format!("<m:oMath>{equation}</m:oMath>");
        assert_text(&(t("식 ") + &equation + &t(" 끝")), &format!("식 {expected} 끝"));
        let displayed =
            format!("{}<m:oMathPara>{equation}{equation}</m:oMathPara>{}", t("앞"), t("뒤"));
        assert_text(&displayed, &format!("앞\n{expected}\n{expected}\n뒤"));
    }
    let deleted = format!("<w:del><m:oMath>{}</m:oMath></w:del>", fraction(&r("a"), &r("b")));
    let file = imported(&format!("<w:p>{deleted}<m:oMath>{}</m:oMath></w:p>", r("x")), &[]);
    assert_eq!((&*file.text, file.changes.equations), ("x", 1));
}

#[test]
fn content_that_is_no_text_is_counted_by_its_kind() {
    let picture = "<w:drawing><pic:pic/></w:drawing>";
    let object =
        "<w:object><v:imagedata xmlns:v=\"urn:schemas-microsoft-com:vml\"/><w:control/></w:object>";
    let hidden = "<w:rPr><w:vanish/></w:rPr><w:t>h</w:t>";
    let unknown = "<w:sym w:font=\"Own\" w:char=\"F0FF\"/>";
    let header = format!(
        "<w:hdr xmlns:w=\"{}\"><w:p><w:r><w:t>머리글</w:t></w:r></w:p></w:hdr>",
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    );
    let footer = header.replace("머리글", "- 1 -");
    let body = [
        "<w:p>",
        &run(picture),
        &run(picture),
        &run(object),
        &run(unknown),
        &run(hidden),
        &run(hidden),
        &t("a"),
        &run("<w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>b</w:t>"),
        &format!("<w:del>{}</w:del>", run(picture)),
        "</w:p><w:altChunk/>",
    ];
    let parts = [("word/header.xml", &*header), ("word/footer.xml", &footer)];
    let Imported { text, changes, .. } = imported(&body.concat(), &parts);
    assert_eq!(text, "hhab");
    let left_out =
        BTreeMap::from([("headers", 1), ("objects", 2), ("pictures", 2), ("symbols", 1)]);
    let expected =
        ImportChanges { hidden_passages: 1, changes_applied: 1, left_out, ..Default::default() };
    assert_eq!(changes, expected);
}

#[test]
fn cells_rows_and_boxes_stay_apart() {
    let cell = |content: &str| format!("<w:tc><w:tcPr/>{content}</w:tc>");
    let row = |cells: &[&str]| {
        format!("<w:tr>{}</w:tr>", cells.iter().map(|it| cell(it)).collect::<String>())
    };
    let p = |text: &str| item("", text);
    let table = |rows: &[String]| format!("<w:tbl><w:tblPr/>{}</w:tbl>", rows.concat());
    let inner =
        table(&[row(&[&p("1"), &p("2")]), row(&[&p("3"), &table(&[row(&[&p("4"), &p("5")])])])]);
    let body =
        table(&[row(&[&(p("월") + &inner + &p("")), &p("화")]), row(&[&inner, &p("")])]) + &p("끝");
    assert_eq!(text_of(&body).as_deref(), Ok("월 1 2 3 4 5\t화\n1 2 3 4 5\t\n끝"));
    let boxed = |content: &str| {
        run(&format!("<w:pict><x:box><w:txbxContent>{content}</w:txbxContent></x:box></w:pict>"))
    };
    let sentence = |content: &str| format!("<w:p>{}{}{}</w:p>", t("앞"), boxed(content), t("뒤"));
    assert_eq!(text_of(&sentence(&p("상자"))).as_deref(), Ok("앞\n상자\n뒤"));
    assert_eq!(text_of(&table(&[row(&[&sentence(&p("상자"))])])).as_deref(), Ok("앞 상자 뒤"));
    assert_eq!(
        text_of(&sentence(&table(&[row(&[&p("1"), &p("2")])]))).as_deref(),
        Ok("앞\n1\t2\n뒤")
    );
    let before = "<w:trPr><w:gridBefore w:val=\"2\"/><w:trPrChange><w:trPr><w:gridBefore w:val=\"5\"/></w:trPr></w:trPrChange></w:trPr>";
    let rows =
        [row(&[&p("a")]), row(&[&p("b"), &p("c")]).replace("<w:tr>", &format!("<w:tr>{before}"))];
    assert_eq!(text_of(&table(&rows)).as_deref(), Ok("a\n\t\tb\tc"));
    let deleted = [
        row(&[&p("a"), &p("b")]).replace("<w:tr>", "<w:tr><w:trPr><w:del/></w:trPr>"),
        row(&[&p("c"), &p("d")]).replacen("<w:tcPr/>", "<w:tcPr><w:cellDel/></w:tcPr>", 1),
        row(&[&p("e"), &p("f")]).replace("<w:tr>", "<w:tr><w:trPr><w:ins/></w:trPr>"),
    ];
    assert_eq!(text_of(&table(&deleted)).as_deref(), Ok("\td\ne\tf"));
}

#[test]
fn a_note_with_its_own_mark_has_no_number() {
    let reference = |more: &str, id: u8, mark: &str| {
        run(&format!("<w:footnoteReference {more} w:id=\"{id}\"/>{mark}"))
    };
    let custom = "w:customMarkFollows=\"1\"";
    let body =
        [t("가"), reference(custom, 2, "<w:t>*</w:t>"), t("나"), reference("", 3, ""), t("다")];
    let footnotes = notes("footnote", &[(2, "* 하나"), (3, "둘")]);
    let file =
        imported(&format!("<w:p>{}</w:p>", body.concat()), &[("word/footnotes.xml", &footnotes)]);
    assert_eq!(file.text, "가*나[1]다\n\n* 하나\n[1] 둘");
}
