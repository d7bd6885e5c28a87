//! The log tells why a user lost a seat or got none: one line for each end of a session and each refused
//! claim.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::server::reminder_fixtures::admin;
use crate::server::set_back::OLDER_SQLITE;
use crate::support::fixtures::{NO_TICK, found, until};
use crate::support::galley_process::{Server, command_of};
use crate::support::raw_socket::open;
use crate::support::redis_server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

pub(crate) const ENDED: &str = "a session ended";
pub(crate) const REFUSED: &str = "a claim of a seat was refused";

/// The lines of these events so far.
fn lines(server: &Server) -> Vec<Value> {
    let log = server.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| [ENDED, REFUSED].contains(&line["message"].as_str().unwrap_or("")))
        .collect()
}

/// Waits for the line about the seat of `role`. It names all that an operator needs, and no token.
pub(crate) async fn logged(
    server: &Server,
    what: (&str, u16, &str),
    desk: &Desk,
    role: &str,
) -> Value {
    let (message, code, reason) = what;
    let seat = format!("share-link:lock:{}:{role}", desk.link);
    let line = found(async || {
        let lines = lines(server);
        let is_it = |line: &&Value| {
            line["seat"] == seat && line["code"] == code && line["reason"] == reason
        };
        lines.iter().find(is_it).cloned().ok_or((what.2, lines))
    })
    .await;
    assert_eq!((&line["message"], &line["peer"]), (&json!(message), &json!("127.0.0.1")));
    assert!(line["seconds"].is_u64() && line["server"].is_string(), "{line}");
    if message == ENDED {
        let user = if role == "writer" { &desk.writer.id } else { &desk.reviewer.id };
        assert_eq!((&line["user"], &line["document"]), (&json!(user), &json!(desk.document)));
        assert!(line["fence"].is_string() && line["session"].is_string(), "{line}");
    }
    for person in [&desk.writer, &desk.reviewer] {
        assert!(!line.to_string().contains(&person.token), "{line}");
    }
    line
}

async fn with(settings: &[(&str, &str)]) -> Server {
    Server::with(&[&[("LOG__FORMAT", "json")], settings].concat()).await
}

async fn with_token(server: &Server, desk: &Desk, ttl: &str) -> Peer {
    let made = command_of(env!("CARGO_BIN_EXE_galley").as_ref())
        .args(["token", "--sub", &desk.writer.id, "--name", "Kim", "--ttl", ttl])
        .current_dir(server.folder())
        .output();
    let token = String::from_utf8(made.await.expect("the binary").stdout).expect("text");
    Peer::connect(&server.url, &desk.link, "writer", token.trim(), "events=1").await
}

/// Goal: the cause of each end is in the log: the client's, the user's, the owner's and the administrator's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one paragraph for each way")]
async fn each_end_of_a_session_is_one_line_of_the_log() {
    let redis = redis_server::Server::start().await;
    let url = redis.url();
    let settings = [
        ("LOCKS__URL", url.as_str()),
        ("DATABASE__SHARED_SQLITE", "true"),
        ("SEATS__LEASE", "3s"),
        ("SEATS__RENEW_EVERY", "1s"),
        ("SEATS__CLIENT_TIMEOUT", "2s"),
        ("SEATS__RESUME_GRACE", "0s"),
        ("LIMITS__MESSAGES_PER_SECOND", "10"),
        ("LIMITS__MESSAGE_BURST", "50"),
    ];
    let server = with(&settings).await;
    let seat = async || {
        let desk = server.desk("text").await;
        let writer = server.writer(&desk).await;
        (desk, writer)
    };
    let link = |desk: &Desk| format!("/api/share-links/{}", desk.link);
    let ended = async |desk: &Desk, code, reason| {
        logged(&server, (ENDED, code, reason), desk, "writer").await;
    };

    let (desk, writer) = seat().await;
    writer.leave().await;
    ended(&desk, 1000, "left").await;

    let (desk, writer) = seat().await;
    drop(writer);
    ended(&desk, 1006, "connection-broke").await;

    let (desk, _writer) = seat().await;
    let _other = server.seated(&desk, "writer", "events=1&takeover=1").await;
    ended(&desk, 4410, "taken_over").await;

    let (desk, _writer) = seat().await;
    let key = format!("share-link:lock:{}:writer", desk.link);
    let session: String = redis.run(&format!("GET {key}")).await;
    let session = format!("/api/admin/sessions/{session}");
    server.call(&admin(&server), "DELETE", &session, None).await.ok(204);
    ended(&desk, 4410, "evicted").await;

    let (desk, _writer) = seat().await;
    let key = format!("share-link:lock:{}:writer", desk.link);
    let _: redis::Value = redis.run(&format!("SET {key} another-program")).await;
    ended(&desk, 4410, "expired").await;

    let desk = server.desk("text").await;
    let _silent = open(&server, &desk, "writer", "").await;
    ended(&desk, 4410, "client-silent").await;

    let (desk, _writer) = seat().await;
    server.call(&desk.writer, "DELETE", &link(&desk), None).await.ok(204);
    ended(&desk, 4404, "revoked").await;

    let (desk, _writer) = seat().await;
    let document = format!("/api/documents/{}", desk.document);
    server.call(&desk.writer, "DELETE", &document, None).await;
    ended(&desk, 4404, "deleted").await;

    let (desk, _writer) = seat().await;
    let _reviewer = server.reviewer(&desk).await;
    server.call(&desk.writer, "DELETE", &format!("{}/reviewer", link(&desk)), None).await;
    logged(&server, (ENDED, 4403, "removed"), &desk, "reviewer").await;

    let desk = server.desk("text").await;
    let reviewer = server.claim_seat(&desk, "reviewer", "").await;
    reviewer.reads("text").await;
    reviewer.append("no writer");
    logged(&server, (ENDED, 4403, "not-the-writer"), &desk, "reviewer").await;

    let desk = server.desk("text").await;
    let _short = with_token(&server, &desk, "3s").await;
    ended(&desk, 4401, "token-expired").await;

    let (desk, writer) = seat().await;
    writer.send(vec![0, 9, 9]);
    ended(&desk, 4400, "frame").await;

    let (desk, writer) = seat().await;
    let long = vec![7; 20_000];
    writer.send([vec![1, 0xa0, 0x9c, 1], long].concat());
    ended(&desk, 4413, "awareness").await;

    let (desk, writer) = seat().await;
    for _ in 0..100 {
        writer.send(vec![3]);
    }
    ended(&desk, 4529, "too-many-messages").await;

    let (desk, _writer) = seat().await;
    server.signal("-INT").await;
    ended(&desk, 1012, "draining").await;
}

#[tokio::test]
async fn the_log_names_the_end_of_an_idle_session() {
    let settings = [("SEATS__RENEW_EVERY", "100ms"), ("SEATS__IDLE_RELEASE", "2s")];
    let server = with(&settings).await;
    let desk = server.desk("text").await;
    let _idle = server.writer(&desk).await;
    let line = logged(&server, (ENDED, 4411, "idle"), &desk, "writer").await;
    assert!(line["seconds"].as_u64().is_some_and(|seconds| 1 <= seconds), "{line}");
}

/// Goal: the cause of each refused claim is in the log, with the user if the server knows the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refused_claim_is_one_line_of_the_log() {
    let mut redis = redis_server::Server::start().await;
    let url = redis.url();
    let limits = [
        ("LOCKS__URL", url.as_str()),
        ("DATABASE__SHARED_SQLITE", "true"),
        ("LIMITS__JOINS_PER_SECOND", "1"),
        ("LIMITS__JOIN_BURST", "5"),
        ("SERVER__LINGER", "10m"),
    ];
    let server = with(&limits).await;
    let refused = async |desk: &Desk, code, reason| {
        logged(&server, (REFUSED, code, reason), desk, "writer").await
    };
    let desk = server.desk("text").await;
    let _writer = server.writer(&desk).await;
    server.claim_seat(&desk, "writer", "events=1").await;
    let line = refused(&desk, 4409, "seat-taken-by-the-same-user").await;
    let named = [&line["user"], &line["document"]];
    assert_eq!(named, [&json!(desk.writer.id), &json!(desk.document)]);
    let _waiter = server.claim_seat(&desk, "writer", "events=1&wait=1").await;
    refused(&desk, 4408, "seat-not-free").await;
    let waiter = server.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    drop(waiter);
    refused(&desk, 1000, "left").await;

    let desk = server.desk("text").await;
    let key = format!("share-link:lock:{}:writer", desk.link);
    let _: redis::Value = redis.run(&format!("SET {key} another-program")).await;
    server.claim_seat(&desk, "writer", "events=1").await;
    refused(&desk, 4409, "seat-taken").await;

    let desk = server.desk("text").await;
    let third = server.guest("Park").await;
    let come = async |token: &str, query: &str| {
        Peer::connect(&server.url, &desk.link, "writer", token, query).await;
    };
    come(&third.token, "").await;
    let line = refused(&desk, 4403, "not-your-role").await;
    assert_eq!(line["user"], third.id);
    come("no.such.token", "").await;
    let line = refused(&desk, 4401, "token-not-valid").await;
    assert_eq!(line.get("user"), None);
    // An administrator's token names no user.
    come(&server.admin_token(), "").await;
    refused(&desk, 4401, "no-token").await;
    come(&desk.writer.token, "wait=x").await;
    refused(&desk, 4400, "wait").await;
    let link = format!("/api/share-links/{}", desk.link);
    server.call(&desk.writer, "DELETE", &link, None).await.ok(204);
    come(&desk.writer.token, "").await;
    refused(&desk, 4404, "no-such-link").await;

    let desk = server.desk("text").await;
    for _ in 0..8 {
        server.claim_seat(&desk, "writer", "").await;
    }
    refused(&desk, 4529, "too-many-joins").await;

    let desk = server.desk("text").await;
    redis.stop().await;
    server.claim_seat(&desk, "writer", "").await;
    refused(&desk, 4503, "locks").await;

    let desk = server.desk("text").await;
    server.signal("-TERM").await;
    let ready = format!("{}/readyz", server.url);
    until("the server drains", async || {
        server.http.get(&ready).send().await.expect("an answer").status() == 503
    })
    .await;
    server.claim_seat(&desk, "writer", "").await;
    refused(&desk, 1012, "draining").await;
}

/// Goal: the same for the causes in the database. A statement makes each, and no tick comes between it and
/// the claim or the edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_of_the_database_is_one_line_of_the_log() {
    let server = with(&NO_TICK).await;
    let run = async |statement: String| {
        let run = sqlx::raw_sql(AssertSqlSafe(statement));
        run.execute(&mut server.database().await).await.expect("it runs");
    };
    for (fault, reason) in [("ABORT, 'a fault'", "storage"), ("IGNORE", "seat-contended")] {
        let desk = server.desk("text").await;
        let body = format!("BEGIN SELECT RAISE({fault}); END");
        run(format!("CREATE TRIGGER fault BEFORE INSERT ON seats {body}")).await;
        let _claim = server.claim_seat(&desk, "writer", "").await;
        logged(&server, (REFUSED, 4503, reason), &desk, "writer").await;
        run("DROP TRIGGER fault".to_owned()).await;
    }
    let spoiled = async |fault: &str, code, reason| {
        let desk = server.desk("one").await;
        let writer = server.writer(&desk).await;
        let reader = server.claim_seat(&desk, "reviewer", "").await;
        for word in [" two", " three", " four"] {
            writer.append(word);
            writer.saved().await;
        }
        reader.reads("one two three four").await;
        run(fault.to_owned()).await;
        writer.append("!");
        logged(&server, (ENDED, code, reason), &desk, "reviewer").await;
        desk
    };
    spoiled(OLDER_SQLITE, 1012, "database-set-back").await;
    let newer = "UPDATE seats SET fence = fence + 100 WHERE role = 'writer'";
    spoiled(newer, 4410, "document-reset").await;
    let damage = "UPDATE seats SET fence = -1 WHERE role = 'writer'";
    let desk = spoiled(damage, 4403, "document-damaged").await;
    logged(&server, (ENDED, 1012, "document-reset"), &desk, "writer").await;
    let _claim = server.claim_seat(&desk, "writer", "").await;
    logged(&server, (REFUSED, 4403, "document-damaged"), &desk, "writer").await;
}

/// Goal: a flood of refused claims writes a bounded number of lines, and the metrics count each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g17_a_flood_of_refused_claims_is_counted_exactly_and_fills_no_log() {
    const CLAIMS: usize = 1_000;
    let server = with(&[]).await;
    let desk = server.desk("text").await;
    let floods = (0..20).map(|_| async {
        for _ in 0..CLAIMS / 20 {
            let claim = Peer::connect(&server.url, &desk.link, "writer", "no.such.token", "").await;
            claim.closed().await;
        }
    });
    futures_util::future::join_all(floods).await;
    let metrics = server.metrics().await;
    let sum = |name: &str| {
        let series = metrics.lines().filter(|line| line.starts_with(name));
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        values.sum::<usize>()
    };
    assert_eq!(sum("galley_seat_denials_total"), CLAIMS);
    assert_eq!(sum("galley_sockets_closed_total"), CLAIMS);
    let lines = lines(&server);
    // A minute's budget for each of the codes 4401 and 4529, and what it gains meanwhile.
    assert!((1..=240).contains(&lines.len()), "{} lines", lines.len());
    let omitted = lines.iter().filter_map(|line| line["omitted"].as_u64()).sum::<u64>();
    assert!(lines.len() as u64 + omitted <= CLAIMS as u64, "{omitted} lines omitted");
}
