//! A PDF as another program reads it: `pdftotext` extracts its text, with each review once. Also
//! `/api/export-formats`.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use yrs::Text as _;

use crate::server::exports::{Download, download, request, review};
use crate::server::reminder_races::ShiftedServer;
use crate::support::galley_process::Server;
use crate::support::shifted_redis::clock_shim;
use crate::support::{postgres_server, redis_server};

const MIB: u64 = 1_024 * 1_024;
/// As in `config/default.toml`.
const FONT: &str = "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc";

/// The text of a PDF in the order of the file, without its line breaks.
async fn text_of(pdf: &Download) -> String {
    assert_eq!((pdf.status, pdf.header("content-type")), (200, "application/pdf"));
    let mut read = Command::new("pdftotext");
    read.args(["-raw", "-", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut read = read.spawn().expect("pdftotext (apt-get install poppler-utils)");
    let mut input = read.stdin.take().expect("a pipe");
    let writing = async move {
        input.write_all(&pdf.bytes).await.expect("written");
        // The end of the input, on which the program waits.
        drop(input);
    };
    let ((), output) = tokio::join!(writing, read.wait_with_output());
    let output = output.expect("an output");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_pdf_has_the_text_in_order_and_its_reviews_as_notes() {
    assert!(Path::new(FONT).exists(), "apt-get install fonts-noto-cjk");
    let server = Server::start().await;
    let desk = server.desk("지원동기\n나는 글을 쓴다.\n매일 조금씩 나아진다.\n끝").await;
    let (_writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    review(&server, &desk, "지원동기", "제목을 더 구체적으로", None).await;
    review(&server, &desk, "글을", "", Some("소설을")).await;
    let reviews = format!("/api/share-links/{}/reviews", desk.link);
    let list = server.get(&desk.writer, &reviews).await.ok(200);
    let path = format!("{reviews}/{}/replies", list["reviews"][0]["id"].as_str().expect("an id"));
    server.post(&desk.writer, &path, json!({ "body": "네, 고칠게요" })).await.ok(201);

    let formats = server.get(&desk.writer, "/api/export-formats").await.ok(200);
    assert_eq!(formats["formats"], json!(["docx", "html", "md", "txt", "pdf"]));
    let file = download(&server, &desk.writer, &desk, "format=pdf").await;
    let text = text_of(&file).await;
    for part in [
        "지원동기1 나는 글을소설을2 쓴다. 매일 조금씩 나아진다. 끝",
        "네, 고칠게요",
        "글을 → 소설을",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(file.header("content-disposition").ends_with(".pdf"));
    // The other member gets the stored bytes, or none at all.
    let again = download(&server, &desk.reviewer, &desk, "format=pdf").await;
    assert_eq!((again.header("etag"), &again.bytes), (file.header("etag"), &file.bytes));
    let tag = Some(file.header("etag"));
    assert_eq!(request(&server, &desk.reviewer, &desk, "format=pdf", tag).await.status, 304);
    let plain =
        text_of(&download(&server, &desk.writer, &desk, "format=pdf&reviews=0").await).await;
    assert!(plain.contains("지원동기 나는 글을 쓴다. 매일 조금씩 나아진다. 끝"), "{plain}");
    assert!(!plain.contains("구체적으로"));
    let built = server.metric("galley_exports_total{format=\"pdf\",outcome=\"built\"}").await;
    assert_eq!(built, Some(2.0));
}

/// Goal: a build holds its file and one page. The bound here is for a text of 1 MB; the text, its CRDT and
/// the reviews take most of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_a_megabyte_with_five_hundred_reviews_is_set_within_its_bound_of_memory() {
    const REVIEWS: usize = 500;
    let server = Server::start().await;
    let words: Vec<_> = (1..=REVIEWS).map(|number| format!("낱말{number}끝")).collect();
    let desk = server.desk(&words.join("\n")).await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let (mut from, mut ends) = (0, Vec::new());
    for (number, word) in (1..).zip(&words) {
        let end = from + word.encode_utf16().count();
        let anchor = json!({ "start": from, "end": end, "quote": word });
        let body = format!("의견-{number}. {}", "왜 이렇게 쓰셨나요? ".repeat(5));
        server.post(&desk.reviewer, &path, json!({ "anchor": anchor, "body": body })).await.ok(201);
        ends.push(u32::try_from(end).expect("a short text"));
        from = end + 1;
    }
    // The text grows afterwards: to find a quote in a megabyte takes long in a test build.
    let filling = format!(" {}", "나는 매일 조금씩 글을 쓴다. ".repeat(52));
    let update = writer.edit_offline(|content, transaction| {
        ends.iter().rev().for_each(|end| content.insert(transaction, *end, &filling));
    });
    writer.send(galley::yjs::protocol::update(&update));
    writer.saved().await;
    // The font counts once for a server, the objects of the text for each format.
    let small = server.desk("글").await;
    assert_eq!(download(&server, &small.writer, &small, "format=pdf").await.status, 200);
    assert_eq!(download(&server, &desk.writer, &desk, "format=docx").await.status, 200);
    let before = server.peak();
    let file = download(&server, &desk.writer, &desk, "format=pdf").await;
    let grew = server.peak().saturating_sub(before);
    let text = text_of(&file).await;
    for (number, word) in (1..=REVIEWS).zip(words) {
        assert_eq!(text.matches(&format!("의견-{number}.")).count(), 1, "the note {number}");
        assert_eq!(text.matches(&format!("{word}{number} ")).count(), 1, "the mark {number}");
    }
    assert!(1_000_000 < text.len(), "{}", text.len());
    let bytes = file.bytes.len();
    assert!(grew < 24 * MIB, "{} MiB for {bytes} bytes", grew / MIB);
}

/// Goal: a server without a font reports the build of another server, whose clock is behind, and serves its
/// file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_server_without_a_font_waits_for_the_pdf_of_another() {
    let (redis, postgres) = (redis_server::Server::start().await, postgres_server::shared());
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let mut settings = vec![("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let shim = clock_shim(folder.path());
    let own = |(name, value): &(&str, &str)| (format!("GALLEY_{name}"), (*value).to_owned());
    let environment: Vec<_> = settings.iter().map(own).collect();
    let shifted = ShiftedServer::start(&folder, &shim, "one", &environment).await;
    shifted.shift(-60_000);
    let one = &shifted.server;
    settings.push(("EXPORTS__FONTS", "/none.ttf"));
    let without = Server::in_folder(folder, &settings).await;
    let desk = one.desk(&"나는 글을 쓴다.\n".repeat(8_000)).await;
    let get =
        async |server: &Server| request(server, &desk.writer, &desk, "format=pdf", None).await;
    assert_eq!(get(&without).await.status, 501);
    // Each such answer was an ERROR line.
    assert!(!without.log().contains("ERROR"), "{}", without.log());
    assert_eq!(get(one).await.status, 202, "the build takes longer than a request waits");
    assert_eq!(get(&without).await.status, 202);
    let file = download(&without, &desk.reviewer, &desk, "format=pdf").await;
    assert_eq!(file.status, 200);
    let own = download(one, &desk.writer, &desk, "format=pdf").await;
    assert_eq!((own.header("etag"), &own.bytes), (file.header("etag"), &file.bytes));
}

#[tokio::test]
async fn a_server_without_a_usable_font_says_so_and_makes_every_other_format() {
    let folder = TempDir::new().expect("a folder");
    let broken = folder.path().join("broken.otf");
    std::fs::write(&broken, b"OTTO and no more").expect("a file");
    let fonts = format!("/none.ttf, {}", broken.display());
    let server = Server::with(&[("EXPORTS__FONTS", &fonts)]).await;
    let desk = server.desk("글").await;
    let refused = download(&server, &desk.writer, &desk, "format=pdf").await;
    assert_eq!(refused.status, 501);
    let formats = server.get(&desk.writer, "/api/export-formats").await.ok(200);
    assert_eq!(formats["formats"], json!(["docx", "html", "md", "txt"]));
    assert!(server.log().contains("broken.otf is damaged"), "{}", server.log());
    assert_eq!(download(&server, &desk.writer, &desk, "format=html").await.status, 200);
}
