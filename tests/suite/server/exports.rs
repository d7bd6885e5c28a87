//! `/api/share-links/{id}/export`: one build for all callers on any number of servers, and the same bytes for each.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sqlx::SqliteConnection;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};

use crate::server::many_servers::Cluster;
use crate::server::set_back::waits_for_a_lock;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server::{self, TEST_TIMEOUT};
use crate::support::rest_client::{Desk, Person};

/// A text whose build takes some hundred milliseconds.
const LONG: usize = 500_000;

/// The answer to a request for a file.
pub(crate) struct Download {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Download {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|it| it.to_str().expect("ASCII")).unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("JSON")
    }
}

pub(crate) async fn request(
    server: &Server,
    who: &Person,
    desk: &Desk,
    query: &str,
    tag: Option<&str>,
) -> Download {
    let url = format!("{}/api/share-links/{}/export?{query}", server.url, desk.link);
    let mut request = server.http.get(url).bearer_auth(&who.token);
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.expect("a body").to_vec();
    Download { status, headers, bytes }
}

/// Asks until the file is there.
pub(crate) async fn download(server: &Server, who: &Person, desk: &Desk, query: &str) -> Download {
    let began = Instant::now();
    loop {
        let answer = request(server, who, desk, query, None).await;
        if answer.status != 202 {
            return answer;
        }
        assert_eq!(answer.header("retry-after"), "1");
        let body = answer.json();
        assert_eq!(body["status"], "building");
        assert!(body["progress"].as_u64().is_some_and(|progress| progress < 100), "{body}");
        assert!(began.elapsed() < TEST_TIMEOUT, "no file in time");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Builds of these servers with this outcome, over all formats.
pub(crate) async fn builds(servers: &[&Server], outcome: &str) -> f64 {
    let mut builds = 0.0;
    for server in servers {
        for format in ["docx", "html", "md", "pdf", "txt"] {
            let name = format!("galley_exports_total{{format=\"{format}\",outcome=\"{outcome}\"}}");
            builds += server.metric(&name).await.expect("a metric");
        }
    }
    builds
}

/// Reviews the text: a comment with a reply, and a suggestion.
pub(crate) async fn review(
    server: &Server,
    desk: &Desk,
    quote: &str,
    body: &str,
    put_in: Option<&str>,
) {
    let text = server.text(&desk.writer, &desk.document).await;
    let units = |bytes: usize| text[..bytes].encode_utf16().count();
    let start = text.find(quote).expect("the quote");
    let anchor =
        json!({ "start": units(start), "end": units(start + quote.len()), "quote": quote });
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let mut review = json!({ "anchor": anchor, "body": body });
    if let Some(put_in) = put_in {
        review["suggestion"] = json!(put_in);
    }
    server.post(&desk.reviewer, &path, review).await.ok(201);
}

/// A hundred requests of both members at once on these servers, twice with a change in between.
async fn a_hundred_requests_make_one_build(servers: &[&Server]) {
    let desk = servers[0].desk(&"나는 글을 쓴다.\n".repeat(10_000)).await;
    for round in 1..=2 {
        let answers = join_all((0..100).map(|number| {
            let who = if number % 2 == 0 { &desk.writer } else { &desk.reviewer };
            download(servers[number % servers.len()], who, &desk, "format=docx")
        }));
        let answers = answers.await;
        let tags: BTreeSet<_> = answers.iter().map(|answer| answer.header("etag")).collect();
        let files: BTreeSet<_> = answers.iter().map(|answer| &answer.bytes).collect();
        let failed = answers.iter().filter(|answer| answer.status != 200);
        let failed: Vec<_> =
            failed.map(|it| (it.status, String::from_utf8_lossy(&it.bytes))).collect();
        assert!(failed.is_empty(), "round {round}: {failed:?}");
        assert_eq!((tags.len(), files.len()), (1, 1), "round {round}");
        assert_eq!(builds(servers, "built").await, f64::from(round));
        assert_eq!(builds(servers, "lost").await + builds(servers, "failed").await, 0.0);
        // A new title changes the name of the file and its properties.
        let path = format!("/api/documents/{}", desk.document);
        let title = json!({ "title": format!("제목 {round}") });
        servers[0].call(&desk.writer, "PATCH", &path, Some(title)).await.ok(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_hundred_requests_for_an_export_make_one_build_on_one_server() {
    let server = Server::start().await;
    a_hundred_requests_make_one_build(&[&server]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_hundred_requests_for_an_export_make_one_build_on_three_servers() {
    let redis = redis_server::Server::start().await;
    let postgres = postgres_server::shared();
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let settings = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let one = Server::in_folder(folder, &settings).await;
    let (two, three) = (one.beside().await, one.beside().await);
    a_hundred_requests_make_one_build(&[&one, &two, &three]).await;
}

/// Goal: a file may show an edit that is not stored yet. Its server dies before the commit: another server
/// builds the file again, and does not serve it as the state of the document.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_file_with_an_unsaved_edit_is_built_again() {
    let redis = redis_server::Server::start().await;
    let postgres = postgres_server::shared();
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let settings = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let mut one = Server::in_folder(folder, &settings).await;
    let two = one.beside().await;
    let desk = one.desk("stored").await;
    let writer = one.writer(&desk).await;
    let mut stranger = postgres_server::locked_row(&database, &desk.document).await;
    writer.append(" and lost");
    writer.event("problem").await;
    let file = download(&one, &desk.reviewer, &desk, "format=txt").await;
    assert!(String::from_utf8_lossy(&file.bytes).contains("stored and lost"), "{}", file.status);

    one.kill().await;
    // A write that waits for the row when its client dies goes on when the row is free, and is stored.
    let mut watcher = postgres_server::stranger(&database).await;
    until("no write waits", async || !waits_for_a_lock(&mut watcher).await).await;
    sqlx::raw_sql("COMMIT").execute(&mut stranger).await.expect("it is free");
    let file = download(&two, &desk.reviewer, &desk, "format=txt").await;
    let text = String::from_utf8_lossy(&file.bytes).into_owned();
    assert!(text.contains("stored") && !text.contains("lost"), "{text}");
}

/// The rows of a table of exports.
async fn rows(database: &mut SqliteConnection, table: &'static str) -> usize {
    let sql = match table {
        "exports" => "SELECT count(*) FROM exports",
        _ => "SELECT count(*) FROM export_builds",
    };
    let rows: i64 = sqlx::query_scalar(sql).fetch_one(database).await.expect("a number");
    usize::try_from(rows).expect("a number")
}

/// Waits until a server has begun this many builds.
async fn begun(database: &mut SqliteConnection, wanted: usize) {
    until("the builds", async || wanted <= rows(database, "export_builds").await).await;
}

/// Goal: one `-9` kills twenty builds, each at a point of its own. Each is replaced within its lease, on
/// other servers, and no file is stored twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_builds_of_a_killed_server_are_replaced_and_none_is_stored_twice() {
    const DESKS: usize = 20;
    let mut cluster = Cluster::start().await;
    let three = cluster.one.beside().await;
    let text = "나는 글을 쓴다.\n".repeat(LONG / 22 / 5);
    let desks = join_all((0..DESKS).map(|_| cluster.two.desk(&text))).await;
    let mut database = cluster.two.database().await;
    let http = cluster.one.http.clone();
    let urls = desks.iter().map(|desk| {
        let url = format!("{}/api/share-links/{}/export?format=docx", cluster.one.url, desk.link);
        http.get(url).bearer_auth(&desk.writer.token).send()
    });
    let mut pending: JoinSet<_> = urls.collect();
    begun(&mut database, DESKS).await;
    cluster.one.kill().await;
    pending.abort_all();
    let stored = rows(&mut database, "exports").await;
    assert!(stored < DESKS, "the kill came too late");

    let began = Instant::now();
    let files = join_all(desks.iter().enumerate().map(async |(number, desk)| {
        let server = if number % 2 == 0 { &cluster.two } else { &three };
        let file = download(server, &desk.writer, desk, "format=docx").await;
        assert_eq!(file.status, 200);
        let other = download(&cluster.two, &desk.reviewer, desk, "format=docx").await;
        assert_eq!(file.bytes, other.bytes);
    }));
    files.await;
    // The lease is six seconds; the builds themselves take turns.
    assert!(began.elapsed() < TEST_TIMEOUT);
    let servers = [&cluster.two, &three];
    let built = u32::try_from(DESKS - stored).expect("a number");
    assert_eq!(builds(&servers, "built").await, f64::from(built));
    assert_eq!(builds(&servers, "lost").await, 0.0);
    assert_eq!(rows(&mut database, "exports").await, DESKS);
}

/// Goal: a server is frozen during a build for longer than its lease. Another one builds the file; the
/// first one, awake again, stores nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_build_frozen_beyond_its_lease_stores_nothing() {
    let cluster = Cluster::start().await;
    let text = "나는 글을 쓴다.\n".repeat(3 * LONG / 22);
    let mut database = cluster.two.database().await;
    for attempt in 1.. {
        let desk = cluster.two.desk(&text).await;
        let url = format!("{}/api/share-links/{}/export?format=docx", cluster.one.url, desk.link);
        let pending = cluster.one.http.get(url).bearer_auth(&desk.writer.token).send();
        let _pending: JoinSet<_> = [pending].into_iter().collect();
        begun(&mut database, attempt).await;
        // From then on the builder does not look for a stored file, in which it would find the other one's.
        until("a rendering", async || {
            cluster.one.metric("galley_exports_held").await == Some(1.0)
                || rows(&mut database, "exports").await == attempt
        })
        .await;
        cluster.one.freeze().await;
        if rows(&mut database, "exports").await == attempt {
            // The build ended before the freeze.
            assert!(attempt < 10, "no freeze came in time");
            cluster.one.thaw().await;
            continue;
        }
        let file = download(&cluster.two, &desk.reviewer, &desk, "format=docx").await;
        assert_eq!(file.status, 200);
        cluster.one.thaw().await;
        if builds(&[&cluster.two], "built").await == 0.0 {
            // The database had the statement that stores the file when the server froze.
            assert!(attempt < 10, "no freeze came in time");
            continue;
        }
        cluster.one.has("galley_exports_total{format=\"docx\",outcome=\"lost\"}", 1).await;
        assert_eq!(builds(&[&cluster.two], "built").await, 1.0);
        let again = download(&cluster.one, &desk.writer, &desk, "format=docx").await;
        assert_eq!((again.header("etag"), &again.bytes), (file.header("etag"), &file.bytes));
        return;
    }
}

#[tokio::test]
async fn a_file_has_a_tag_and_a_name_and_changes_with_the_document() {
    let server = Server::start().await;
    let desk = server.desk("나는 글을 쓴다").await;
    let (writer, _reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let get = async |query: &str| download(&server, &desk.reviewer, &desk, query).await;
    let file = get("format=txt").await;
    assert_eq!(file.bytes, "나는 글을 쓴다".as_bytes());
    assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(file.header("cache-control"), "private, no-cache");
    let named = "attachment; filename=\"document.txt\"; \
                 filename*=UTF-8''%EC%9E%90%EA%B8%B0%EC%86%8C%EA%B0%9C%EC%84%9C.txt";
    assert_eq!(file.header("content-disposition"), named);
    let tag = file.header("etag").to_owned();
    assert!(tag.starts_with('"') && tag.len() == 34, "{tag}");
    for tags in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let same = request(&server, &desk.writer, &desk, "format=txt", Some(&tags)).await;
        assert_eq!((same.status, same.header("etag"), same.bytes.len()), (304, &*tag, 0));
    }
    review(&server, &desk, "글을", "어떤 글?", None).await;
    let reviewed = request(&server, &desk.writer, &desk, "format=txt", Some(&tag)).await;
    assert_eq!(reviewed.status, 200);
    let text = String::from_utf8(reviewed.bytes).expect("UTF-8");
    assert!(text.starts_with("나는 글을[1] 쓴다\n") && text.contains("어떤 글?"), "{text}");
    assert_eq!(get("format=txt&reviews=0").await.bytes, file.bytes);
    writer.append("!");
    writer.saved().await;
    assert_eq!(get("format=md&reviews=0").await.bytes, "나는 글을 쓴다!".as_bytes());
    let page = String::from_utf8(get("format=html").await.bytes).expect("UTF-8");
    assert!(page.contains("<mark>글을</mark>") && page.contains("쓴다!"), "{page}");
    assert_eq!(builds(&[&server], "built").await, 5.0);
}

/// A reader in Seoul reads times of Seoul, and the file of another zone does not answer them.
#[tokio::test]
async fn times_are_those_of_the_zone_and_two_zones_are_two_files() {
    let server = Server::start().await;
    let desk = server.desk("나는 글을 쓴다").await;
    let _reviewer = server.reviewer(&desk).await;
    review(&server, &desk, "글을", "", Some("")).await;
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let list = server.get(&desk.writer, &path).await.ok(200);
    let at = list["reviews"][0]["created_at"].as_str().expect("a time");
    let at: DateTime<Utc> = at.parse().expect("a time");
    let time = |hours: i64, zone: &str| {
        (at + TimeDelta::hours(hours)).format(&format!("%Y-%m-%d %H:%M {zone}")).to_string()
    };
    for format in ["txt", "md", "html"] {
        let get = async |zone: &str| {
            let query = format!("format={format}{zone}");
            let file = download(&server, &desk.reviewer, &desk, &query).await;
            let tag = file.header("etag").to_owned();
            (tag, String::from_utf8(file.bytes).expect("UTF-8"))
        };
        let (utc, seoul) = (get("").await, get("&zone=Asia/Seoul").await);
        assert!(utc.1.contains(&time(0, "UTC")), "{}", utc.1);
        assert!(seoul.1.contains(&time(9, "KST")) && !seoul.1.contains("UTC"), "{}", seoul.1);
        assert_ne!(utc.0, seoul.0);
        assert_eq!(get("&zone=Asia/Seoul").await, seoul);
        // The first time of a file is the minute of its build.
        let after_build_time = |text: &str| text.split_once(" UTC").expect("a time").1.to_owned();
        assert_eq!(after_build_time(&get("&zone=UTC").await.1), after_build_time(&utc.1));
    }
    assert_eq!(builds(&[&server], "built").await, 9.0);
    for zone in ["", "Seoul", "UTC%2B9", "../etc/localtime"] {
        let query = format!("format=txt&zone={zone}");
        let answer = request(&server, &desk.writer, &desk, &query, None).await;
        assert_eq!((answer.status, &answer.json()["type"]), (422, &json!("/problems/invalid")));
    }
}

#[tokio::test]
async fn g14_members_alone_export_and_bad_requests_are_typed() {
    let server = Server::with(&[("EXPORTS__FONTS", "/none.ttf")]).await;
    let desk = server.desk("text").await;
    let mallory = server.guest("Mallory").await;
    let get = async |who: &Person, query: &str| {
        let path = format!("/api/share-links/{}/export{query}", desk.link);
        server.get(who, &path).await
    };
    get(&mallory, "?format=docx").await.problem(404, "not-found");
    get(&mallory, "?format=pdf").await.problem(404, "not-found");
    for query in ["", "?format=", "?format=doc", "?format=DOCX", "?format=txt&reviews=2"] {
        get(&desk.writer, query).await.problem(422, "unknown-format");
    }
    let pdf = get(&desk.writer, "?format=pdf").await;
    assert!(pdf.json["remedy"].as_str().is_some_and(|remedy| remedy.contains("print")));
    pdf.problem(501, "format-not-available");
    let unknown = "/api/share-links/shr_00000000000000000000000000000000/export?format=txt";
    server.get(&desk.writer, unknown).await.problem(404, "not-found");
    assert_eq!(download(&server, &desk.writer, &desk, "format=txt").await.status, 200);
    let path = format!("/api/share-links/{}", desk.link);
    assert_eq!(server.call(&desk.writer, "DELETE", &path, None).await.status, 204);
    get(&desk.writer, "?format=txt").await.problem(404, "not-found");
    assert_eq!(builds(&[&server], "built").await, 1.0);
}

#[tokio::test]
async fn g17_one_user_starts_a_bounded_number_of_builds() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let mut built = 0;
    let refused = loop {
        let path = format!("/api/documents/{}", desk.document);
        let title = json!({ "title": format!("{built}") });
        server.call(&desk.writer, "PATCH", &path, Some(title)).await.ok(200);
        let answer = request(&server, &desk.writer, &desk, "format=txt", None).await;
        if answer.status == 429 {
            break answer;
        }
        built += 1;
        assert!(built < 500, "no request is refused");
    };
    assert!(30 <= built, "{built}");
    assert_eq!(refused.json()["type"], "/problems/too-many-requests");
    assert!(!refused.header("retry-after").is_empty());
    // The other member has builds of their own.
    assert_eq!(download(&server, &desk.reviewer, &desk, "format=txt").await.status, 200);
}

/// Goal: a writer who types does not keep a caller from a file.
#[tokio::test]
async fn g16_a_document_that_changes_all_the_time_is_exported() {
    let server = Server::start().await;
    let desk = server.desk(&"나는 글을 쓴다.\n".repeat(LONG / 22)).await;
    let writer = server.writer(&desk).await;
    let typing = async {
        loop {
            writer.append("x");
            sleep(Duration::from_millis(20)).await;
        }
    };
    let file = tokio::select! {
        () = typing => unreachable!("it types for ever"),
        file = download(&server, &desk.reviewer, &desk, "format=docx") => file,
    };
    assert_eq!(file.status, 200);
}

/// Goal: files that wait for a slow database have a bound of memory, and all of them are stored later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_few_rendered_files_wait_for_a_slow_database() {
    let postgres = postgres_server::shared();
    let database = postgres.url(&postgres.empty().await);
    let server = Server::with(&[("DATABASE__URL", database.as_str())]).await;
    let desks = join_all((0..8).map(|_| server.desk("글"))).await;
    let mut stranger = postgres_server::stranger(&database).await;
    let lock = "BEGIN; LOCK TABLE exports IN EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut stranger).await.expect("locked");
    let files =
        join_all(desks.iter().map(|desk| request(&server, &desk.writer, desk, "format=txt", None)));
    assert!(files.await.iter().all(|answer| answer.status == 202));
    let begun: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM export_builds")
        .fetch_one(&mut stranger)
        .await
        .expect("a count");
    assert_eq!(begun, 8);
    server.has("galley_exports_held", 3).await;
    // The other builds had their turn meanwhile.
    assert_eq!(server.text(&desks[0].writer, &desks[0].document).await, "글");
    assert_eq!(server.metric("galley_exports_held").await, Some(3.0));
    // Builds of more than five seconds are an alarm.
    server.has("galley_lock_alarm{class=\"export\",alarm=\"hold\"}", 1).await;
    sqlx::raw_sql("COMMIT").execute(&mut stranger).await.expect("unlocked");
    for desk in &desks {
        assert_eq!(download(&server, &desk.writer, desk, "format=txt").await.status, 200);
    }
    server.has("galley_exports_held", 0).await;
}
