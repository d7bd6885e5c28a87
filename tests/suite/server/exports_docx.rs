//! A Word export as another program reads it: `LibreOffice` opens it, converts it, and has each comment
//! and tracked change.

use std::path::Path;
use std::process::Stdio;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Duration, timeout};

use crate::server::exports::{download, review};
use crate::server::imports::{DOCX, import};
use crate::support::galley_process::Server;

/// Starting `LibreOffice` for the first time takes seconds on a busy machine.
const OFFICE_TIMEOUT: Duration = Duration::from_secs(120);

/// Converts a file beside it.
async fn convert(folder: &Path, file: &str, to: &str) {
    let profile = format!("-env:UserInstallation=file://{}/profile", folder.display());
    let mut office = Command::new("soffice");
    office.args([&profile, "--headless", "--convert-to", to, "--outdir", ".", file]);
    office.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let run = timeout(OFFICE_TIMEOUT, office.output()).await.expect("in time");
    let output = run.expect("LibreOffice (apt-get install libreoffice-writer-nogui)");
    assert!(output.status.success(), "{output:?}");
}

/// The text of each element of a flat file whose tag begins so, without the tags in it.
fn texts(xml: &str, element: &str) -> Vec<String> {
    let name = element.trim_end_matches([' ', '>']);
    let (open, close) = (format!("<{element}"), format!("</{name}>"));
    let parts = xml.split(&open).skip(1).filter_map(|rest| rest.split_once(&close));
    let text = |(inner, _): (&str, &str)| -> String {
        inner.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text).collect()
    };
    parts.map(text).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The text of each tracked change of this kind by the reviewer, without the comments in it.
fn changes(xml: &str, kind: &str) -> Vec<String> {
    let regions = xml.split("<text:changed-region ").skip(1);
    let regions = regions.filter(|region| {
        let inner = region.split("</text:changed-region>").next().unwrap_or_default();
        inner.contains(&format!("<{kind}>")) && inner.contains("<dc:creator>Lee</dc:creator>")
    });
    let ids = regions.filter_map(|region| region.split("text:id=\"").nth(1)?.split('"').next());
    let text = |id: &str| {
        let (_, rest) = xml.split_once(&format!("<text:change-start text:change-id=\"{id}\"/>"))?;
        let (inner, _) = rest.split_once(&format!("<text:change-end text:change-id=\"{id}\"/>"))?;
        let pieces = inner.split("<office:annotation ").map(|piece| {
            piece.split_once("</office:annotation>").map_or(piece, |(_, behind)| behind)
        });
        let pieces = pieces.flat_map(|piece| piece.split('<'));
        let texts = pieces.map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
        Some(texts.map(str::trim_end).collect::<String>())
    };
    ids.filter_map(text).collect()
}

#[tokio::test]
async fn a_word_export_has_its_comments_and_changes_in_libreoffice() {
    let server = Server::start().await;
    let desk = server.desk("지원동기\n나는 글을 쓴다.\n매일 조금씩 나아진다.\n끝").await;
    let (_writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    review(&server, &desk, "지원동기", "제목을 더 구체적으로", None).await;
    review(&server, &desk, "글을", "", Some("소설을")).await;
    review(&server, &desk, "씩 나아진다.\n끝", "한 문장으로", Some("씩 나아간다.")).await;
    review(&server, &desk, "매일", "언제?", None).await;
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let list = server.get(&desk.writer, &reviews).await.ok(200);
    let id = |number: usize| list["reviews"][number]["id"].as_str().expect("an id").to_owned();
    let path = format!("{reviews}/{}/replies", id(0));
    server.post(&desk.writer, &path, json!({ "body": "네, 고칠게요" })).await.ok(201);
    let path = format!("{reviews}/{}/resolve", id(3));
    server.post(&desk.writer, &path, json!({})).await.ok(200);

    let query = "format=docx&zone=Asia/Seoul";
    let file = download(&server, &desk.writer, &desk, query).await;
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("file.docx"), &file.bytes).expect("a file");
    convert(folder.path(), "file.docx", "fodt").await;
    convert(folder.path(), "file.docx", "pdf").await;
    let xml = std::fs::read_to_string(folder.path().join("file.fodt")).expect("a file");
    let comments = texts(&xml, "office:annotation ");
    for (author, words) in [
        ("Lee", "제목을 더 구체적으로"),
        ("Kim", "네, 고칠게요"),
        ("Lee", "한 문장으로"),
        ("Lee", "[해결됨]"),
    ] {
        let has = |text: &String| text.starts_with(author) && text.contains(words);
        assert_eq!(comments.iter().filter(|text| has(text)).count(), 1, "{words}: {comments:?}");
    }
    assert_eq!(comments.len(), 4, "{comments:?}");
    assert!(xml.contains("loext:resolved=\"true\""));
    // An office shows the time of day that the file says, without its offset.
    let at = list["reviews"][0]["created_at"].as_str().expect("a time");
    let at = at.parse::<DateTime<Utc>>().expect("a time") + TimeDelta::hours(9);
    assert!(xml.contains(&at.format("<dc:date>%Y-%m-%dT%H:%M:%S<").to_string()), "{at}");
    assert_eq!(changes(&xml, "text:deletion"), ["글을", "씩 나아진다.끝"]);
    assert_eq!(changes(&xml, "text:insertion"), ["소설을", "씩 나아간다."]);

    let mut pdf = Command::new("pdftotext");
    pdf.args(["file.pdf", "-"]).current_dir(folder.path());
    let text = pdf.output().await.expect("pdftotext (apt-get install poppler-utils)");
    let text = String::from_utf8(text.stdout).expect("UTF-8");
    for words in ["지원동기", "소설을", "매일", "나아간다."] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Footnotes and the marks of lists were gone without a word, and the title was the name of the file.
#[tokio::test]
async fn a_word_file_of_libreoffice_is_imported_with_its_notes_lists_and_title() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let folder = TempDir::new().expect("a folder");
    let letter = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/letter.fodt");
    std::fs::copy(letter, folder.path().join("letter.fodt")).expect("a copy");
    convert(folder.path(), "letter.fodt", "docx").await;
    let file = std::fs::read(folder.path().join("letter.docx")).expect("a file");
    let made = import(&server, &kim, "?name=letter.docx", DOCX, file).await.ok(201);
    assert_eq!(made["title"], "지원동기");
    let found = json!({ "tables": 1, "footnotes": 2, "comments_left": 1, "changes_applied": 2 });
    assert_eq!(made["import"], found);
    let text = "지원동기\n각주가 있는 문장[1]입니다.\n- 하나\n  - 안쪽\n- 둘\n1. first\n2. second\n가\t나\n\
                끝새로운 말[2]\n\n[1] 각주의 내용\n[2] 미주";
    let id = made["id"].as_str().expect("an id");
    assert_eq!(server.text(&kim, id).await, text);
}
