//! Data that an older server wrote: this server reads all of it, and its users write on.
//!
//! `tests/upgrade/make.mjs` made the data with the server of that revision: for SQLite the folder of a
//! killed server, whose journal has rows and whose write-ahead log is not merged, and for PostgreSQL a
//! dump. Of SQLite's migrations cc9abb8 has three, 824fb2a five and a6bfa34 all 24 of its time: each release adds
//! a revision, and its migrations stay as they are (`storage::migrations`).

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tempfile::TempDir;

use crate::server::auth::signed;
use crate::storage::database::Stranger;
use crate::storage::files;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::{Desk, Person};

const REVISIONS: [&str; 3] = ["cc9abb8", "824fb2a", "a6bfa34"];

/// Tables that a tick of the jobs may change.
const OF_JOBS: [&str; 3] = ["absent_waiters", "job_runs", "jobs"];

/// Columns of `documents` that the journal of SQLite supplements.
const JOURNALED: [&str; 2] = ["last_seq", "updated_at"];

fn data(revision: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/upgrade").join(revision).join(file)
}

fn unpacked(revision: &str, file: &str) -> String {
    let mut text = String::new();
    let packed = fs::File::open(data(revision, file)).expect("a fixture");
    GzDecoder::new(packed).read_to_string(&mut text).expect("text");
    text
}

/// A folder with the data folder of a killed server.
fn unpacked_folder(revision: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let archive = data(revision, "sqlite.tar.gz");
    let unpacked =
        Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(unpacked.expect("tar is installed").success());
    folder
}

/// The tables of an older schema, with the columns whose values an upgrade leaves.
async fn tables(database: &mut Stranger) -> Vec<(String, String)> {
    let columns = match database {
        Stranger::Sqlite(_) => {
            "SELECT t.name || ' ' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
             WHERE t.type = 'table'"
        }
        Stranger::Postgres(_) => {
            "SELECT table_name || ' ' || column_name FROM information_schema.columns \
             WHERE table_schema = 'public'"
        }
    };
    let is_sqlite = matches!(database, Stranger::Sqlite(_));
    let mut tables: Vec<(String, String)> = Vec::new();
    for row in rows(database, columns.to_owned()).await {
        let (table, column) = row.split_once(' ').expect("two names");
        let is_moved = is_sqlite
            && (["journal", "updates"].contains(&table)
                || (table == "documents" && JOURNALED.contains(&column)));
        if table == "_sqlx_migrations" || OF_JOBS.contains(&table) || is_moved {
            continue;
        }
        let quoted = format!("{}({column})", if is_sqlite { "quote" } else { "quote_nullable" });
        match tables.iter_mut().find(|(name, _)| name == table) {
            Some((_, all)) => *all = format!("{all} || ' ' || {quoted}"),
            None => tables.push((table.to_owned(), quoted)),
        }
    }
    if is_sqlite {
        let columns = "quote(id) || quote(last_seq) || quote(updated_at)";
        tables.push(("documents_now".to_owned(), columns.to_owned()));
        let all = "(SELECT * FROM updates UNION ALL SELECT document_id, seq, bytes FROM journal)";
        let columns = "quote(document_id) || quote(seq) || quote(bytes)";
        tables.push((all.to_owned(), columns.to_owned()));
    }
    tables
}

/// The texts that a query selects, sorted.
async fn rows(database: &mut Stranger, sql: String) -> Vec<String> {
    let sql = AssertSqlSafe(sql);
    let rows = match database {
        Stranger::Sqlite(connection) => sqlx::query_scalar(sql).fetch_all(connection).await,
        Stranger::Postgres(connection) => sqlx::query_scalar(sql).fetch_all(connection).await,
    };
    let mut rows: Vec<String> = rows.expect("readable");
    rows.sort();
    rows
}

/// All rows of these tables.
async fn content(database: &mut Stranger, tables: &[(String, String)]) -> Vec<Vec<String>> {
    let mut content = Vec::new();
    for (table, columns) in tables {
        content.push(rows(database, format!("SELECT {columns} FROM {table}")).await);
    }
    content
}

/// Holds that `new` has all that `old` has. A later version may add fields.
#[track_caller]
fn has_all_of(old: &Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().for_each(|(name, value)| has_all_of(value, &new[name]));
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{old:?} {new:?}");
            old.iter().zip(new).for_each(|(old, new)| has_all_of(old, new));
        }
        _ => assert_eq!(old, new),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// Compares the responses of this server with those of the older one. Returns the documents.
async fn compare(server: &Server, facts: &Value) -> Vec<Desk> {
    let user =
        |user: &Value| -> Person { signed(server, text(&user["id"]), text(&user["name"]), 0) };
    let mut desks = Vec::new();
    let mut seen = BTreeSet::new();
    for facts in facts["desks"].as_array().expect("a list") {
        let desk = Desk {
            document: text(&facts["document"]["id"]).to_owned(),
            link: text(&facts["link"]).to_owned(),
            invite: String::new(),
            writer: user(&facts["owner"]),
            reviewer: user(&facts["reviewer"]),
        };
        let path = format!("/api/documents/{}", desk.document);
        let mut document = facts["document"].clone();
        // Maintenance counts the characters after a pause, which the killed server did not have.
        document.as_object_mut().expect("an object").remove("characters");
        has_all_of(&document, &server.get(&desk.writer, &path).await.ok(200));
        assert_eq!(server.text(&desk.writer, &desk.document).await, text(&facts["text"]));
        let reviews = format!("/api/share-links/{}/reviews", desk.link);
        let reviews = server.get(&desk.reviewer, &reviews).await.ok(200);
        has_all_of(&facts["reviews"], &reviews["reviews"]);
        for review in reviews["reviews"].as_array().expect("a list") {
            seen.insert(text(&review["status"]).to_owned());
        }
        let listed = server.get(&desk.writer, &format!("{path}/versions")).await.ok(200);
        let listed = listed["versions"].as_array().expect("a list").len();
        let versions = facts["versions"].as_array().expect("a list");
        assert_eq!(listed, versions.len());
        for version in versions {
            seen.insert(text(&version["kind"]).to_owned());
            let path = format!("{path}/versions/{}", text(&version["id"]));
            has_all_of(version, &server.get(&desk.writer, &path).await.ok(200));
        }
        desks.push(desk);
    }
    let all = ["accepted", "decision", "named", "open", "pause", "rejected", "resolved", "restore"];
    assert!(all.iter().all(|one| seen.contains(*one)), "the fixture has too little: {seen:?}");
    desks
}

/// The users of a document write and review on.
async fn write_on(server: &Server, desk: &Desk) {
    let old = server.text(&desk.writer, &desk.document).await;
    let (writer, reviewer) = tokio::join!(server.writer(desk), server.reviewer(desk));
    reviewer.reads(&old).await;
    writer.append("그리고 more 🙂");
    let new = format!("{old}그리고 more 🙂");
    reviewer.reads(&new).await;
    writer.saved().await;
    let start = old.encode_utf16().count();
    let anchor = json!({ "start": start, "end": start + 3, "quote": "그리고" });
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let body = json!({ "anchor": anchor, "body": "새 의견", "suggestion": "또" });
    let review = server.post(&desk.reviewer, &path, body).await.ok(201);
    let path = format!("{path}/{}/accept", text(&review["id"]));
    server.post(&desk.writer, &path, json!({})).await.ok(200);
    let new = format!("{old}또 more 🙂");
    writer.reads(&new).await;
    let path = format!("/api/documents/{}/versions", desk.document);
    server.post(&desk.writer, &path, json!({ "label": "after" })).await.ok(201);
    assert_eq!(server.text(&desk.writer, &desk.document).await, new);
}

/// Compares, writes on, and compares what the users wrote after a restart.
async fn survives(mut server: Server, revision: &str, engine: &str) {
    let facts = unpacked(revision, &format!("{engine}.json.gz"));
    let facts: Value = serde_json::from_str(&facts).expect("JSON");
    let desks = compare(&server, &facts).await;
    assert_eq!(desks.len(), 3);
    let mut texts = Vec::new();
    for desk in &desks {
        write_on(&server, desk).await;
        texts.push(server.text(&desk.writer, &desk.document).await);
    }
    server.kill().await;
    server.start_again().await;
    for (desk, text) in desks.iter().zip(&texts) {
        assert_eq!(server.text(&desk.writer, &desk.document).await, *text, "{revision}");
    }
}

/// Goal: this server starts on the SQLite file of an older one with every row, also those of the journal
/// and of a write-ahead log that is not merged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_this_server_opens_a_sqlite_file_of_an_older_version_with_every_row() {
    let open = async |folder: &TempDir| {
        let file = folder.path().join("data/galley.db");
        Stranger::Sqlite(files::stranger(&format!("sqlite://{}", file.display())).await)
    };
    for revision in REVISIONS {
        // To read the file is to merge its log, so the server gets a copy of its own.
        let copy = unpacked_folder(revision);
        let mut old = open(&copy).await;
        let journaled = rows(&mut old, "SELECT document_id FROM journal".to_owned()).await.len();
        assert!(0 < journaled, "{revision}: the journal of the fixture is empty");
        let tables = tables(&mut old).await;
        let before = content(&mut old, &tables).await;
        let folder = Arc::new(unpacked_folder(revision));
        let server = Server::in_folder(Arc::clone(&folder), &[]).await;
        let after = content(&mut open(&folder).await, &tables).await;
        for ((table, before), after) in tables.iter().zip(before).zip(after) {
            assert_eq!(after, before, "{revision}: {table:?}");
        }
        survives(server, revision, "sqlite").await;
    }
}

/// Goal: this server starts on the PostgreSQL database of an older one with every row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_this_server_opens_a_postgresql_database_of_an_older_version_with_every_row() {
    let postgres = postgres_server::shared();
    for revision in REVISIONS {
        let name = postgres.empty().await;
        let sql = AssertSqlSafe(unpacked(revision, "postgres.sql.gz"));
        let mut loading = postgres.stranger(&name).await;
        sqlx::raw_sql(sql).execute(&mut loading).await.expect("the dump loads");
        let mut database = Stranger::Postgres(postgres.stranger(&name).await);
        let tables = tables(&mut database).await;
        let before = content(&mut database, &tables).await;
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let secret = folder.path().join("data/secret");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        fs::copy(data(revision, "postgres.secret"), &secret).expect("copied");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("a mode");
        let url = postgres.url(&name);
        let server = Server::in_folder(folder, &[("DATABASE__URL", url.as_str())]).await;
        let after = content(&mut database, &tables).await;
        for ((table, before), after) in tables.iter().zip(before).zip(after) {
            assert_eq!(after, before, "{revision}: {table:?}");
        }
        survives(server, revision, "postgres").await;
    }
}
