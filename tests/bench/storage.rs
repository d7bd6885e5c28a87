//! The cost of storing keystrokes, in groups of the sizes of a quiet and a busy server, on both
//! engines.
//!
//! Each update is 30 bytes, under the fence of a seat and a known client id, and each group is one
//! commit with fsync. The references run beside it, on the same disk and in the same run: `fsync`
//! of one page; and in the same PostgreSQL, over the same kind of socket, one connection that
//! inserts a row of 30 bytes and commits.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{Seek, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use galley::domain::fence::Fence;
use galley::domain::ids::{DocumentId, SessionId, ShareLinkId};
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::storage::Storage;
use galley::storage::documents::NewDocument;
use galley::storage::guard::FenceGuard;
use galley::storage::links::NewShareLink;
use galley::storage::log::Append;
use sqlx::{Connection, PgConnection};
use tokio::runtime::Runtime;

/// Rounds of each kind for the median.
const ROUNDS: usize = 501;

/// A keystroke by the writer of a document of its own.
async fn keystroke(storage: &Storage) -> Append {
    let now: DateTime<Utc> = DateTime::from_timestamp_millis(1_800_000_000_000).unwrap();
    let user = User { id: "kim".parse().unwrap(), name: "Kim".to_owned() };
    let document = NewDocument {
        external_id: None,
        id: DocumentId::generate(),
        title: "A letter".to_owned(),
        owner: user.clone(),
        update: Bytes::new(),
        characters: 0,
        sections: Vec::new(),
        now,
    };
    storage.create_document(&document).await.unwrap();
    let link = NewShareLink {
        id: ShareLinkId::generate(),
        document_id: document.id,
        invite_hash: [0; 32],
        now,
    };
    storage.find_or_create_link(&link).await.unwrap();
    let guard = FenceGuard { seat: Seat::new(link.id, Role::Writer), fence: Fence(1) };
    let session = SessionId::generate();
    storage.ratify(guard.seat, guard.fence, session, &user.id, now).await.unwrap();
    Append {
        document: document.id,
        guard: Some(guard),
        update: Bytes::from_static(&[7; 30]),
        clients: vec![1],
        user: Some(user.id),
        expected_seq: None,
        after: 0,
        now,
    }
}

fn main() {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = format!("sqlite://{}", folder.path().join("galley.db").display());
    let postgres = support::postgres_server::Server::start();
    let name = runtime.block_on(postgres.empty());
    for (engine, url) in [("SQLite", file), ("PostgreSQL", postgres.url(&name))] {
        let storage = runtime.block_on(Storage::open(&url)).unwrap();
        // Documents and updates: one writer; a burst of one writer; a server with many writers.
        for (documents, updates) in [(1, 1), (1, 16), (16, 16), (1, 256), (256, 256)] {
            let mut strokes = Vec::new();
            for _ in 0..documents {
                strokes.push(runtime.block_on(keystroke(&storage)));
            }
            let batch: Vec<Append> = strokes.iter().cycle().take(updates).cloned().collect();
            measure(&format!("{engine}, {updates} of {documents}"), || {
                runtime.block_on(storage.append(&batch)).unwrap();
            });
        }
        runtime.block_on(storage.close());
    }
    insert(&runtime, &runtime.block_on(postgres.empty()), &postgres);
    fsync();
}

/// Prints the median time of a round.
fn measure(what: &str, mut round: impl FnMut()) {
    let mut times = [Duration::ZERO; ROUNDS];
    for time in &mut times {
        let began = Instant::now();
        round();
        *time = began.elapsed();
    }
    times.sort_unstable();
    println!("{what}: {:.3} ms", times[ROUNDS / 2].as_secs_f64() * 1_000.0);
}

/// The limit of PostgreSQL: one row and one commit only.
fn insert(runtime: &Runtime, name: &str, postgres: &support::postgres_server::Server) {
    let mut connection = runtime.block_on(postgres.stranger(name));
    let make = "CREATE TABLE bare (document_id text, seq bigint, bytes bytea, \
                PRIMARY KEY (document_id, seq))";
    runtime.block_on(sqlx::raw_sql(make).execute(&mut connection)).unwrap();
    let mut seq = 0;
    measure("PostgreSQL, a bare insert", || {
        seq += 1;
        runtime.block_on(insert_one(&mut connection, seq));
    });
    runtime.block_on(connection.close()).unwrap();
}

async fn insert_one(connection: &mut PgConnection, seq: i64) {
    sqlx::query("INSERT INTO bare VALUES ($1, $2, $3)")
        .bind("doc_00000000000000000000000000000000")
        .bind(seq)
        .bind([7_u8; 30].as_slice())
        .execute(connection)
        .await
        .unwrap();
}

/// The limit: fsync of one page only.
fn fsync() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut file = File::create(folder.path().join("page")).unwrap();
    measure("fsync of a page", || {
        file.rewind().unwrap();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
    });
}
