//! Tests of PDFs. `pdftotext` reads them again.
//!
//! `GALLEY_PDF_FOLDER=FOLDER cargo test --features pdf --lib exports::pdf` keeps the files, to look at.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::pdf::font_files::load;
use crate::pdf::pages::PDF_PAGES_MAX;
use crate::render_model::Heading;
use crate::render_model::tests::{at, model, reply, review, suggestion, user};
use galley_domain::review::{Reply, Review, ReviewStatus};

const FONT: &str = "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc";

fn fonts() -> Fonts {
    load(&[PathBuf::from(FONT)]).expect("a font (apt-get install fonts-noto-cjk)")
}

/// The file, whose name is for the eye.
fn rendered(name: &str, model: &RenderModel) -> Vec<u8> {
    let file = render(model, &fonts(), &BuildProgress::default()).expect("a file");
    if let Some(folder) = std::env::var_os("GALLEY_PDF_FOLDER") {
        std::fs::write(PathBuf::from(folder).join(name).with_extension("pdf"), &file)
            .expect("kept");
    }
    file
}

fn read(program: &str, options: &[&str], pdf: &[u8]) -> String {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("file.pdf"), pdf).expect("a file");
    let end: &[&str] = if program == "pdftotext" { &["file.pdf", "-"] } else { &["file.pdf"] };
    let output = Command::new(program).args(options).args(end).current_dir(folder.path()).output();
    let output = output.expect("poppler (apt-get install poppler-utils)");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The text in the order of the file, without its line breaks.
fn text_of(pdf: &[u8]) -> String {
    read("pdftotext", &["-raw"], pdf).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Comments on the words of a text, with bodies that name their numbers.
fn comments(text: &str, words: &[String], length: usize) -> Vec<Review> {
    let body = |number: usize| format!("의견-{number}. {}", "왜 그런가요? ".repeat(length));
    let all = words.iter().enumerate();
    all.map(|(number, word)| review(text, Some(word), &body(number + 1))).collect()
}

fn each_once(text: &str, reviews: usize) {
    for number in 1..=reviews {
        let body = format!("의견-{number}.");
        assert_eq!(text.matches(&body).count(), 1, "{body}");
    }
}

#[test]
fn a_text_is_set_in_order_on_numbered_pages_with_an_embedded_subset() {
    let text: String = (1..=120).map(|n| format!("{n}번째 줄: 나는 글을 쓴다.\n\n")).collect();
    let file = rendered("plain", &model(&text, vec![]));
    let found = read("pdftotext", &["-raw"], &file);
    assert!(found.starts_with("자기소개서\n김작가\n1번째 줄: 나는 글을 쓴다.\n2번째"), "{found}");
    let all = found.replace('\u{c}', "");
    let lines: Vec<_> = all.lines().filter(|line| line.ends_with("글을 쓴다.")).collect();
    let wanted: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, wanted);
    let pages: Vec<_> = found.split('\u{c}').map(|page| page.lines().last()).collect();
    assert_eq!(pages[..3], [Some("1"), Some("2"), Some("3")]);
    let fonts = read("pdffonts", &[], &file);
    let rows: Vec<_> = fonts.lines().skip(2).collect();
    assert!(rows.len() == 1 && rows[0].contains("+NotoSansCJKkr-Regular"), "{fonts}");
    assert!(rows[0].contains("yes yes yes"), "embedded, a subset, with Unicode: {fonts}");
    assert!(file.len() < 40_000, "{}", file.len());
}

#[test]
fn the_same_document_gives_the_same_bytes_whenever_it_is_built() {
    let text = "나는 글을 쓴다";
    let mut first = model(text, vec![review(text, Some("글을"), "왜?")]);
    let file = rendered("same", &first);
    first.built_at += chrono::TimeDelta::days(1);
    assert_eq!(file, rendered("same", &first));
    assert!(!file.windows(12).any(|part| part == b"CreationDate"));
}

#[test]
fn reviews_are_numbered_notes_with_their_replies_and_states() {
    let text = "지원동기\n나는 글을 쓴다.\n매일 조금씩 나아진다.";
    let mut decided = suggestion(text, "조금씩", "꾸준히");
    decided.status = ReviewStatus::Rejected;
    let mut first = review(text, Some("지원동기"), "제목을 더\n구체적으로");
    first.replies.push(reply("네, 고칠게요"));
    let mut quick = review(text, Some("매일"), "언제?");
    quick.status = ReviewStatus::Resolved;
    let reviews = vec![
        first,
        suggestion(text, "글을", "소설을"),
        quick,
        decided,
        suggestion(text, "나아진다.", ""),
        review(text, None, "전체적으로 좋아요"),
        review(text, Some("사라진 문장"), "어디 갔나요"),
    ];
    let found = text_of(&rendered("reviews", &model(text, reviews)));
    for part in [
        "지원동기1 나는 글을소설을2 쓴다. 매일3 조금씩4 나아진다.5",
        "1 이검토 2026-09-21 14:13 UTC 제목을 더 구체적으로 김작가 2026-09-21 14:14 UTC 네, 고칠게요",
        "2 이검토 2026-09-21 14:13 UTC 제안: 글을 → 소설을",
        "3 이검토 2026-09-21 14:13 UTC · 해결됨 언제?",
        "4 이검토 2026-09-21 14:13 UTC · 거절됨 제안: 조금씩 → 꾸준히",
        "5 이검토 2026-09-21 14:13 UTC 삭제 제안: “나아진다.”",
        "총평 6 이검토 2026-09-21 14:13 UTC 전체적으로 좋아요",
        "문장이 지워진 의견 7 이검토 2026-09-21 14:13 UTC “사라진 문장” 어디 갔나요",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
}

#[test]
fn an_english_text_has_english_words_and_breaks_between_its_own() {
    let text = "I have written since I was nine. \u{201c}Every day a page,\u{201d} said my teacher \u{2014} \
                and so I do.\n\nThis letter is an example of a paragraph that is long enough to be \
                broken into lines, with words of very different lengths, supercalifragilistic ones \
                and a-hyphenated-one; https://example.com/a/long/address?that=cannot&be=broken \
                ends it.\n\nYours faithfully";
    let mut reviews = vec![
        review(text, Some("Every day a page"), "Who said that?\nA name would help."),
        suggestion(text, "an example of a paragraph", "a paragraph"),
        review(text, None, "Lovely. Shorter, please."),
        review(text, Some("a sentence that is gone"), "Where is it?"),
    ];
    reviews.iter_mut().for_each(|review| review.author.name = "Lee".to_owned());
    reviews[0].replies.push(Reply { author: user("Kim"), ..reply("My teacher of Latin.") });
    let heading = Heading {
        title: "Letter".to_owned(),
        writer: "Kim".to_owned(),
        built_at: at(0),
        zone: "Asia/Seoul".parse().expect("a zone"),
    };
    let found = text_of(&rendered("english", &RenderModel::new(heading, text.to_owned(), reviews)));
    for part in [
        "Letter Kim I have written since",
        "Every day a page1",
        "1 Lee 2026-09-21 23:13 KST Who said that? A name would help. Kim",
        "Suggestion: an example of a paragraph \u{2192} a paragraph",
        "Overall comment 3 Lee",
        "whose passage is gone 4 Lee",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
}

#[test]
fn notes_that_overflow_their_column_are_all_there_once() {
    let words: Vec<_> = (1..=60).map(|number| format!("낱말{number}끝")).collect();
    let text = format!("{}\n{}", words.join(" "), "나는 글을 쓴다. ".repeat(400));
    // One page has room for some twenty; the longest fills a column by itself, and one is longer still.
    let mut reviews = comments(&text, &words, 8);
    reviews[3].body.push_str(&"제법 긴 의견입니다. ".repeat(40));
    reviews[5].body.push_str(&"기나긴 의견입니다. ".repeat(500));
    let found = text_of(&rendered("overflow", &model(&text, reviews)));
    each_once(&found, 60);
    assert_eq!(found.matches("기나긴").count(), 500);
    assert_eq!(found.matches("제법").count(), 40);
    assert!(found.contains("의견 6 이검토"), "the longest note stands under the heading: {found}");
    let mark = |number: usize| found.find(&format!("의견-{number}.")).expect("the note");
    assert!(mark(1) < mark(2) && mark(2) < mark(3), "notes beside the text follow its order");
}

#[test]
fn a_line_without_a_space_is_broken_and_loses_nothing() {
    let text: String =
        (0..30_000_u32).filter_map(|n| char::from_u32(0xAC00 + n % 11_172)).collect();
    let found = text_of(&rendered("endless", &model(&text, vec![])));
    let is_hangul = |c: &char| ('가'..='힣').contains(c);
    let set: String = found.chars().filter(is_hangul).collect();
    let set = set.strip_prefix("자기소개서김작가").expect("title and writer first");
    assert!(set == text, "{} of {} characters", set.chars().count(), text.chars().count());
}

#[test]
fn right_to_left_text_is_set_in_its_direction() {
    let file = rendered("bidi", &model("English, then שלום עולם and on.", vec![]));
    // The font has no Hebrew: its boxes still carry the text.
    assert!(text_of(&file).contains("English, then"));
}

#[test]
fn g12_no_text_is_too_strange_for_a_page() {
    let strange = [
        "\u{0}\u{1}\r\t\u{7f}\u{85}\u{2028}\u{2029}x",
        "\u{202e}\u{202d}\u{2066}\u{2069}\u{200f}\u{feff}\u{200b}\u{200d}",
        "e\u{301}\u{301}\u{301} 각\u{1112}\u{1161}\u{11ab} \u{fe0f}",
        "👩‍👩‍👧‍👦🏳️‍🌈🇰🇷 \u{10ffff}\u{e000}\u{fffe} 日本語 ไทย हिन्दी ﷽",
        "((((((\\)))))) <</Type>> endstream %%EOF",
    ];
    let mut text = strange.join("\n");
    text.push_str(&"\u{301}".repeat(20_000));
    text.push_str(&"\u{202e}a\u{202c}".repeat(3_000));
    let reviews = strange.iter().map(|it| review(&text, Some(it), it)).collect();
    let file = rendered("strange", &model(&text, reviews));
    assert!(read("pdfinfo", &[], &file).contains("Pages:"));
    let empty = rendered("empty", &model("", vec![]));
    assert!(read("pdfinfo", &[], &empty).contains("Pages:           1\n"));
}

#[test]
fn g13_empty_lines_make_no_pages_and_pages_have_a_bound() {
    let lines = format!("하나\n{}둘", "\n".repeat(1_000_000));
    let file = rendered("empty-lines", &model(&lines, vec![]));
    assert!(read("pdfinfo", &[], &file).contains("Pages:           2\n"));
    let text = "줄\n".repeat(100);
    let (model, fonts, progress) = (model(&text, vec![]), fonts(), BuildProgress::default());
    for (written, outcome) in [(3, None), (2, Some(ExportFailure::TooLarge))] {
        let mut renderer = PdfRenderer::new(&model, &fonts, &progress);
        renderer.pages.begin_at(PDF_PAGES_MAX - written);
        assert_eq!(renderer.run().err(), outcome);
    }
}

#[test]
fn a_stopped_build_ends_at_its_next_page() {
    let text = "글\n".repeat(10_000);
    let progress = BuildProgress::default();
    progress.stop();
    let model = model(&text, vec![]);
    assert_eq!(render(&model, &fonts(), &progress), Err(ExportFailure::Unavailable));
    assert!(progress.percent() < 2, "{}", progress.percent());
}

#[test]
fn a_damaged_font_is_a_clear_fault_and_a_later_font_serves() {
    let folder = TempDir::new().expect("a folder");
    let whole = std::fs::read(FONT).expect("a font (apt-get install fonts-noto-cjk)");
    let path = folder.path().join("font.ttc");
    for length in [3, 4, 12, 100, 5_000, whole.len() / 2] {
        std::fs::write(&path, &whole[..length]).expect("a file");
        let fault = load(std::slice::from_ref(&path)).expect_err("a fault");
        assert!(fault.contains("font.ttc"), "{length}: {fault}");
    }
    let mut garbled = whole;
    garbled.iter_mut().skip(60).step_by(7).for_each(|byte| *byte ^= 0x5A);
    std::fs::write(&path, &garbled).expect("a file");
    assert!(load(std::slice::from_ref(&path)).is_err());
    let fonts = load(&[path, PathBuf::from("/none"), PathBuf::from(FONT)]).expect("one");
    assert_eq!(fonts.families(), ["Noto Sans CJK KR"]);
    assert!(load(&[]).is_err_and(|fault| fault.contains("no file")));
}

#[test]
fn a_thousand_notes_on_a_long_text_are_all_there_once() {
    let words: Vec<_> = (1..=1_000).map(|number| format!("낱말{number}끝")).collect();
    let text = words.iter().map(|word| format!("{word} {}\n", "나는 글을 쓴다. ".repeat(6)));
    let text = text.collect::<String>();
    let found = text_of(&rendered("thousand", &model(&text, comments(&text, &words, 2))));
    each_once(&found, 1_000);
    for word in words {
        assert_eq!(found.matches(&format!("{word} ")).count(), 0, "its number follows");
        assert_eq!(found.matches(&word).count(), 1);
    }
}
