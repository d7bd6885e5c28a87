//! `/api/documents/import`: a Word, Markdown or text file becomes a document; a hostile file becomes nothing.

use serde_json::{Value, json};

use crate::server::exports::{download, review};
use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Person};
use crate::support::zip_archive::archive;

pub(crate) const DOCX: &str =
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

pub(crate) async fn import(
    server: &Server,
    who: &Person,
    query: &str,
    kind: &str,
    body: Vec<u8>,
) -> Answer {
    let url = format!("{}/api/documents/import{query}", server.url);
    let send = async || {
        let request = server.http.post(&url).bearer_auth(&who.token).header("content-type", kind);
        request.body(body.clone()).send().await
    };
    // The server answers a long body at its head and closes the connection. A client that still writes may
    // lose that answer (RFC 9112 §9.6) and asks again; on a busy machine it may lose several.
    let mut sent = send().await;
    for _ in 0..5 {
        if sent.as_ref().is_err_and(reqwest::Error::is_request) {
            sent = send().await;
        }
    }
    let response = sent.expect("an answer");
    let status = response.status();
    let json = serde_json::from_slice(&response.bytes().await.expect("a body"));
    Answer { status, etag: None, retry_after: None, json: json.unwrap_or(Value::Null) }
}

fn changes(comments: u8, tracked: u8) -> Value {
    json!({ "tables": 0, "footnotes": 0, "comments_left": comments, "changes_applied": tracked })
}

async fn documents(server: &Server, who: &Person) -> usize {
    let list = server.get(who, "/api/documents").await.ok(200);
    list["documents"].as_array().expect("rows").len()
}

#[tokio::test]
async fn a_file_of_each_kind_becomes_a_document() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let utf16: Vec<u8> = "\u{FEFF}나는\r\n쓴다".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (query, kind, body, title, text) in [
        ("?name=%EA%B8%80.txt", "text/plain", "나는\r\n쓴다".into(), "글", "나는\n쓴다"),
        ("?title=t&name=x", "text/markdown; charset=utf-8", b"# a\n*b*".to_vec(), "t", "# a\n*b*"),
        ("", "text/plain", b"\xB3\xAA\xB4\xC2".to_vec(), "나는", "나는"),
        ("?name=a.TXT", "application/octet-stream", utf16, "a", "나는\n쓴다"),
        ("", "text/plain", Vec::new(), "Untitled", ""),
    ] {
        let made = import(&server, &kim, query, kind, body).await.ok(201);
        assert_eq!(made["title"], title);
        assert_eq!(made["owner"]["id"], kim.id);
        assert_eq!(made["import"], changes(0, 0));
        let id = made["id"].as_str().expect("an id");
        assert_eq!(server.text(&kim, id).await, text);
    }
    assert_eq!(documents(&server, &kim).await, 5);
}

#[tokio::test]
async fn an_exported_word_file_is_imported_with_its_suggestions_accepted() {
    let server = Server::start().await;
    let desk = server.desk("지원동기 & <성장>\n\n\t나는 글을\n쓴다 👩‍👩‍👧\n").await;
    let _reviewer = server.reviewer(&desk).await;
    review(&server, &desk, "글을\n쓴다", "", Some("책을\n\n읽는다")).await;
    review(&server, &desk, "성장", "왜?", None).await;
    for (query, text, found) in [
        ("format=docx&reviews=0", "지원동기 & <성장>\n\n\t나는 글을\n쓴다 👩‍👩‍👧\n", changes(0, 0)),
        ("format=docx", "지원동기 & <성장>\n\n\t나는 책을\n\n읽는다 👩‍👩‍👧\n", changes(1, 2)),
    ] {
        let file = download(&server, &desk.writer, &desk, query).await;
        let made = import(&server, &desk.reviewer, "?name=a.docx", DOCX, file.bytes).await.ok(201);
        assert_eq!((&made["title"], &made["import"]), (&json!("a"), &found));
        let id = made["id"].as_str().expect("an id");
        assert_eq!(server.text(&desk.reviewer, id).await, text);
    }
}

#[tokio::test]
async fn an_import_names_what_it_changes_and_why_it_refuses() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let word = "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" \
                xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\"><w:body><w:p><w:r>\
                <w:t>식 </w:t><w:object/><w:pgNum/></w:r><m:oMath><m:r><m:t>F=ma</m:t></m:r></m:oMath></w:p>\
                </w:body></w:document>";
    let file = archive("word/document.xml", word.as_bytes(), None, 1);
    let made = import(&server, &kim, "", DOCX, file).await.ok(201);
    let mut expected = changes(0, 0);
    expected["equations"] = json!(1);
    expected["left_out"] = json!({ "objects": 1, "fields": 1 });
    assert_eq!(made["import"], expected);
    let protected = [
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".as_slice(),
        b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0",
    ];
    let refused = import(&server, &kim, "?name=a.docx", DOCX, protected.concat()).await;
    assert!(
        refused.json["detail"].as_str().is_some_and(|it| it.contains("password")),
        "{}",
        refused.json
    );
    refused.problem(422, "import-unreadable");
    let refused = import(&server, &kim, "", "text/plain", b"I\x92m a nurse.\n".to_vec()).await;
    assert_eq!(refused.json["encoding"], "windows-1252");
    assert!(
        refused.json["detail"].as_str().is_some_and(|it| it.contains("windows-1252")),
        "{}",
        refused.json
    );
    refused.problem(422, "import-unreadable");
}

#[tokio::test]
async fn g12_a_hostile_file_is_a_typed_problem_and_nothing_is_stored() {
    const PART: &str = "word/document.xml";
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let word = "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body>";
    let end = "</w:body></w:document>";
    let sound = archive(PART, format!("{word}<w:p/>{end}").as_bytes(), None, 1);
    let part = |body: &str| archive(PART, format!("{word}{body}{end}").as_bytes(), None, 1);
    let bomb = [word.as_bytes(), &vec![b' '; 80 * 1024 * 1024], end.as_bytes()].concat();
    let cases = [
        ("a bomb", archive(PART, &bomb, None, 1), 413, "import-too-large"),
        ("a lying bomb", archive(PART, &bomb, Some(1_000), 1), 422, "import-unreadable"),
        ("many parts", archive(PART, b"<a/>", None, 10_000), 413, "import-too-large"),
        ("a long file", vec![b'a'; 16 * 1024 * 1024 + 1], 413, "import-too-large"),
        ("deep XML", part(&"<w:x>".repeat(50_000)), 422, "import-unreadable"),
        ("an entity", part("<w:p><w:r><w:t>&x;</w:t></w:r></w:p>"), 422, "import-unreadable"),
        ("no document", archive("other.xml", b"<a/>", None, 1), 422, "import-unreadable"),
        ("another document", archive(PART, b"<a/>", None, 1), 422, "import-unreadable"),
        ("a cut file", sound[..sound.len() / 2].to_vec(), 422, "import-unreadable"),
        ("no archive", b"PK\x03\x04".to_vec(), 422, "import-unreadable"),
        ("nothing", Vec::new(), 422, "import-unreadable"),
    ];
    for (name, body, status, problem) in cases {
        let answer = import(&server, &kim, "", DOCX, body).await;
        assert_eq!((name, answer.status.as_u16()), (name, status), "{}", answer.json);
        answer.problem(status, problem);
    }
    for (query, kind, body, status, problem) in [
        ("", "text/plain", b"\x80\x81\xFF".to_vec(), 422, "import-unreadable"),
        ("", "text/plain", b"a\0b".to_vec(), 422, "import-unreadable"),
        ("?name=a.hwp", "application/x-hwp", b"x".to_vec(), 415, "import-format"),
        ("?name=docx", "application/pdf", b"x".to_vec(), 415, "import-format"),
        ("?title=%00", "text/plain", b"x".to_vec(), 422, "invalid"),
        ("?title=", "text/plain", b"x".to_vec(), 422, "invalid"),
        ("", "text/plain", vec![b'a'; 9 * 1024 * 1024], 413, "too-large"),
    ] {
        import(&server, &kim, query, kind, body).await.problem(status, problem);
    }
    assert_eq!(documents(&server, &kim).await, 0);
    // The same file without a fault is imported.
    import(&server, &kim, "", DOCX, sound).await.ok(201);
    assert_eq!(documents(&server, &kim).await, 1);
}

#[tokio::test]
async fn g17_an_import_counts_towards_the_quota_of_its_user() {
    let server = Server::with(&[("LIMITS__USER_DOCUMENTS", "1")]).await;
    let kim = server.guest("Kim").await;
    import(&server, &kim, "", "text/plain", b"one".to_vec()).await.ok(201);
    import(&server, &kim, "", "text/plain", b"two".to_vec()).await.problem(409, "quota-spent");
    let stranger = Person { token: String::new(), ..kim.clone() };
    let refused = import(&server, &stranger, "", "text/plain", b"x".to_vec()).await;
    refused.problem(401, "unauthenticated");
    assert_eq!(documents(&server, &kim).await, 1);
}
