//! Claims of review offers, reminders, and exports.
//!
//! - `claims`: 100 users claim the 100 places of an offer at once over REST, at one server with Redis and
//!   PostgreSQL. The limit: 100 tasks send a bare conditional `UPDATE` of one row to the same database
//!   over [`CONNECTIONS`] connections, each its own commit with fsync. The contenders take turns, and the
//!   ratio is the median of the ratios of single rounds.
//! - `reminders`: one batch reminds [`RECEIVERS`] users of a request, from the first push to the last at a
//!   push service on this machine, on PostgreSQL. The limit: as many tasks at a time insert a bare row,
//!   each its own commit, and post as many bytes to the same push service, each on a new connection.
//! - `exports`: one file of each format of a text of one megabyte with 500 reviews, at a server on SQLite
//!   that was started for it, from the first request until the file is there. The reference is the text
//!   of the same document over REST. `peak` is the peak of the memory of that process.
//!
//! ```text
//! cargo bench --features pdf --bench together
//! ```

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use galley::reminders::REMINDERS_AT_ONCE;
use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::measure::{Bar, Table, median, ratio};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::push_service::{Browser, PushService, Received};
use crate::support::redis_server;
use crate::support::rest_client::{Desk, Person};

const CLAIMANTS: usize = 100;
const ROUNDS: usize = 15;
/// Connections of the contender; the default of Galley's own pool.
const CONNECTIONS: u32 = 10;
/// Bytes of the exported text.
const TEXT_BYTES: usize = 1_000_000;
const REVIEWS: usize = 500;
/// Users with a request without answer; those of one sender.
const RECEIVERS: usize = 400;
const RECEIVERS_PER_SENDER: usize = 20;
/// A PDF needs the feature `pdf` and a font.
const FORMATS: &[&str] = if cfg!(feature = "pdf") {
    &["txt", "md", "html", "docx", "pdf"]
} else {
    &["txt", "md", "html", "docx"]
};
/// Builds of one format: the median is reported.
const BUILDS: usize = 5;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        claims().await;
        reminders().await;
        exports().await;
    });
}

async fn claims() {
    let redis = redis_server::Server::start().await;
    let postgres = postgres_server::Server::start();
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let settings = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let server = Server::with(&settings).await;
    let owner = server.guest("Kim").await;
    let names: Vec<_> = (0..CLAIMANTS).map(|number| format!("Guest {number}")).collect();
    let guests = join_all(names.iter().map(|name| server.guest(name))).await;
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&database).await;
    let pool = pool.expect("a pool");
    let make = "CREATE TABLE bare (id bigint PRIMARY KEY, claimed bigint, capacity bigint)";
    sqlx::raw_sql(make).execute(&pool).await.expect("made");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 2 {
        let rates = (claimed(&server, &owner, &guests).await, updated(&pool, round).await);
        // The first rounds warm up.
        if 2 <= round {
            ours.push(rates.0);
            theirs.push(rates.1);
        }
    }
    let mut table = Table::new("Claims of an offer; a ratio is of the claims in a second");
    let [galley, bare] = [&ours, &theirs].map(|rates| format!("{:.0} a second", median(rates)));
    let what = "100 claims at once, against a bare UPDATE";
    table.row(what, (galley, bare), ratio(&ours, &theirs), Bar::None);
    table.print();
}

/// Claims in a second.
async fn claimed(server: &Server, owner: &Person, guests: &[Person]) -> f64 {
    let body = json!({ "title": "첨삭 백 편", "capacity": CLAIMANTS });
    let offer = server.post(owner, "/api/review-offers", body).await.ok(201);
    let offer = offer["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/review-offers/{offer}/claims");
    let began = Instant::now();
    let answers = join_all(guests.iter().map(|guest| server.post(guest, &path, json!({})))).await;
    let took = began.elapsed();
    for answer in answers {
        answer.ok(201);
    }
    let close = format!("/api/review-offers/{offer}/close");
    server.post(owner, &close, json!({})).await.ok(200);
    CLAIMANTS as f64 / took.as_secs_f64()
}

/// Conditional updates in a second.
async fn updated(pool: &PgPool, round: usize) -> f64 {
    let (id, capacity) = (round as i64, CLAIMANTS as i64);
    let insert = sqlx::query("INSERT INTO bare VALUES ($1, 0, $2)").bind(id).bind(capacity);
    insert.execute(pool).await.expect("inserted");
    let update = || {
        sqlx::query("UPDATE bare SET claimed = claimed + 1 WHERE id = $1 AND claimed < capacity")
            .bind(id)
            .execute(pool)
    };
    let began = Instant::now();
    let updates = join_all((0..CLAIMANTS).map(|_| update())).await;
    let took = began.elapsed();
    assert!(updates.into_iter().all(|done| done.expect("updated").rows_affected() == 1));
    CLAIMANTS as f64 / took.as_secs_f64()
}

async fn reminders() {
    let postgres = postgres_server::Server::start();
    let database = postgres.url(&postgres.empty().await);
    let service = PushService::start().await;
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let settings = [("DATABASE__URL", database.as_str()), ("PUSH__ALLOW_PRIVATE", "true")];
    let mut server = Server::in_folder(Arc::clone(&folder), &settings).await;
    for sender in 0..RECEIVERS / RECEIVERS_PER_SENDER {
        let kim = server.guest(&format!("Sender {sender}")).await;
        for receiver in 0..RECEIVERS_PER_SENDER {
            let lee = server.guest(&format!("Receiver {receiver}")).await;
            let subscription = Browser::new().subscription(&service);
            server.post(&lee, "/api/push-subscriptions", subscription).await.ok(201);
            let address = server.get(&lee, "/api/me/address").await.ok(200);
            let request = json!({ "to": address["link"]["token"], "as": "writer" });
            server.post(&kim, "/api/review-requests", request).await.ok(201);
        }
    }
    // Each request is itself a push.
    let before = service.has(RECEIVERS).await.len();
    server.stop().await;
    let mut settings = settings.to_vec();
    settings.extend([("JOBS__TICK", "1s"), ("JOBS__REQUEST_UNANSWERED_AFTER", "100ms")]);
    let _server = Server::in_folder(folder, &settings).await;
    let received = service.has(before + RECEIVERS).await;
    let ours = rate(&received[before..]);
    let bytes = received[before].body.len();
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&database).await;
    let pool = pool.expect("a pool");
    let make = "CREATE TABLE bare (id bigint PRIMARY KEY)";
    sqlx::raw_sql(make).execute(&pool).await.expect("made");
    let before = received.len();
    let sending = stream::iter(0..RECEIVERS as i64).map(|id| {
        let (pool, url) = (&pool, format!("{}/push/bare", service.url));
        async move {
            let insert = sqlx::query("INSERT INTO bare VALUES ($1)").bind(id).execute(pool);
            insert.await.expect("inserted");
            // A client of its own opens a connection of its own.
            let client = reqwest::Client::new();
            let sent = client.post(url).body(vec![7; bytes]).send().await.expect("an answer");
            assert_eq!(sent.status(), 201);
        }
    });
    sending.buffer_unordered(REMINDERS_AT_ONCE).collect::<Vec<()>>().await;
    let theirs = rate(&service.has(before + RECEIVERS).await[before..]);
    let mut table = Table::new("Reminders of one batch; a ratio is of the reminders in a second");
    let [galley, bare] = [ours, theirs].map(|rate| format!("{rate:.0} a second"));
    let what = format!("{RECEIVERS} reminders, against a loop that inserts and sends");
    table.row(what, (galley, bare), ours / theirs, Bar::None);
    table.print();
}

/// Requests in a second.
fn rate(received: &[Received]) -> f64 {
    let times = || received.iter().map(|request| request.at);
    let took = times().max().zip(times().min()).map(|(last, first)| last - first);
    (received.len() - 1) as f64 / took.expect("requests").as_secs_f64()
}

async fn exports() {
    let mut server = Server::start().await;
    let line = "나는 이 회사에서 오래 일하고 싶다. I would like to work here.\n";
    let desk = server.desk(&line.repeat(TEXT_BYTES / line.len())).await;
    let units = line.encode_utf16().count();
    let reviewer = server.reviewer(&desk).await;
    for number in 0..REVIEWS {
        review(&server, &desk, number * 20 * units, number).await;
    }
    reviewer.leave().await;
    let mut table = Table::new("Exports of 1 MB with 500 reviews; a ratio is of the time");
    for &format in FORMATS {
        server.stop().await;
        server.start_again().await;
        let (mut ours, mut theirs, mut bytes) = (Vec::new(), Vec::new(), 0);
        let before = server.resident();
        for build in 0..BUILDS {
            // A new title needs a new file.
            let path = format!("/api/documents/{}", desk.document);
            let title = json!({ "title": format!("{format} {build}") });
            server.call(&desk.writer, "PATCH", &path, Some(title)).await.ok(200);
            let began = Instant::now();
            server.text(&desk.writer, &desk.document).await;
            theirs.push(began.elapsed().as_secs_f64());
            let began = Instant::now();
            bytes = download(&server, &desk, format).await;
            ours.push(began.elapsed().as_secs_f64());
        }
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (before, peak) = (mib(before), mib(server.peak()));
        let what =
            format!("{format}, {bytes} bytes, memory {before:.0} MiB before, peak {peak:.0}");
        let [galley, text] = [&ours, &theirs].map(|times| format!("{:.2} s", median(times)));
        table.row(what, (galley, text), ratio(&ours, &theirs), Bar::None);
    }
    table.print();
}

async fn review(server: &Server, desk: &Desk, at: usize, number: usize) {
    let anchor = json!({ "start": at, "end": at + 6, "quote": "나는 이 회" });
    let mut review = json!({ "anchor": anchor, "body": format!("{number}: 왜 이 회사인가요?") });
    if number.is_multiple_of(2) {
        review["suggestion"] = json!("저는 귀사");
    }
    let path = format!("/api/share-links/{}/reviews", desk.link);
    loop {
        let answer = server.post(&desk.reviewer, &path, review.clone()).await;
        if answer.status == 201 {
            return;
        }
        // A user writes a bounded number of reviews in a second.
        let wait =
            answer.retry_after.unwrap_or_else(|| panic!("{}: {}", answer.status, answer.json));
        sleep(Duration::from_secs(wait)).await;
    }
}

/// The length of the file.
async fn download(server: &Server, desk: &Desk, format: &str) -> usize {
    let url = format!("{}/api/share-links/{}/export?format={format}", server.url, desk.link);
    loop {
        let request = server.http.get(&url).bearer_auth(&desk.writer.token);
        let response = request.send().await.expect("an answer");
        if response.status() == 200 {
            return response.bytes().await.expect("a body").len();
        }
        assert_eq!(response.status(), 202);
        sleep(Duration::from_millis(20)).await;
    }
}
