//! Behaviour that the public interface does not show: settings of connections, a full disk, cancelled
//! calls.

use std::pin::pin;

use bytes::Bytes;
use futures_util::future::{join_all, join3};
use sqlx::{AssertSqlSafe, SqlitePool};
use tempfile::TempDir;

use super::*;
use crate::domain::ids::DocumentId;
use crate::domain::user::User;
use crate::storage::decisions::UPDATE_REVIEWS;
use crate::storage::documents::NewDocument;
use crate::storage::error::sqlite::classify;
use crate::storage::log::{Append, Appended};
use crate::storage::statement::render;
use crate::storage::{Engine, Storage};

async fn open() -> (TempDir, Sqlite, DocumentId) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("galley.db").display());
    let sqlite = Sqlite::open(&url).await.unwrap();
    let new = NewDocument {
        external_id: None,
        id: DocumentId::generate(),
        title: String::new(),
        owner: User { id: "kim".parse().unwrap(), name: "Kim".to_owned() },
        update: Bytes::new(),
        characters: 0,
        sections: Vec::new(),
        now: chrono::DateTime::UNIX_EPOCH,
    };
    Storage::of(Engine::Sqlite(sqlite.clone())).create_document(&new).await.unwrap();
    (folder, sqlite, new.id)
}

fn edit(document: DocumentId, bytes: usize) -> [Append; 1] {
    [Append {
        document,
        guard: None,
        update: vec![7; bytes].into(),
        clients: Vec::new(),
        user: None,
        expected_seq: None,
        after: 0,
        now: chrono::DateTime::UNIX_EPOCH,
    }]
}

async fn pragma(pool: &SqlitePool, name: &str) -> String {
    let sql = AssertSqlSafe(format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}"));
    let renamed = sql.0.replace("CAST(busy_timeout", "CAST(timeout");
    sqlx::query_scalar(AssertSqlSafe(renamed)).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn d4_every_connection_has_the_settings_that_durability_needs() {
    let (_folder, sqlite, _) = open().await;
    for pool in [&sqlite.writer, &sqlite.readers] {
        assert_eq!(pragma(pool, "journal_mode").await, "wal");
        // FULL.
        assert_eq!(pragma(pool, "synchronous").await, "2");
        assert_eq!(pragma(pool, "foreign_keys").await, "1");
        assert_eq!(pragma(pool, "busy_timeout").await, "5000");
        assert_eq!(pragma(pool, "application_id").await, "1195461721");
    }
    assert_eq!(pragma(&sqlite.writer, "query_only").await, "0");
    assert_eq!(pragma(&sqlite.readers, "query_only").await, "1");
    assert_eq!(pragma(&sqlite.writer, "journal_size_limit").await, "67108864");
    assert_eq!(sqlite.writer.options().get_max_connections(), 1);
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let (_folder, sqlite, _) = open().await;
    let refused = sqlx::query("DELETE FROM documents").execute(&sqlite.readers).await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn lists_and_checks_use_indexes() {
    let (_folder, sqlite, _) = open().await;
    for sql in [
        "SELECT id FROM documents WHERE owner_id = $1",
        "SELECT id FROM share_links WHERE reviewer_id = $1 AND revoked_at IS NULL",
        "SELECT id FROM share_links WHERE document_id = $1 AND revoked_at IS NULL",
        "SELECT id FROM reviews WHERE link_id = $1 ORDER BY created_at, id",
        "SELECT id FROM replies WHERE review_id = $1 ORDER BY version",
        "DELETE FROM documents WHERE id = $1",
        "WITH wanted (link_id, role) AS (VALUES ($1, $2), ($3, $4)) \
         SELECT s.fence FROM wanted w JOIN seats s ON s.link_id = w.link_id AND s.role = w.role",
    ] {
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(explain).fetch_all(&sqlite.writer).await.unwrap();
        for (_, _, _, step) in &plan {
            let of_the_group = step.contains("SCAN w");
            let is_good = !step.contains("SCAN") || step.contains("CONSTANT ROW") || of_the_group;
            assert!(is_good && !step.contains("TEMP B-TREE"), "{sql}\n{plan:?}");
        }
    }
}

/// A decision has up to 2,000 rows of JSON: SQLite scans them once, not once a review.
#[tokio::test]
async fn a_decision_finds_its_reviews_by_id() {
    let (_folder, sqlite, _) = open().await;
    let names = ["status", "at", "decision", "decided_by", "decided_at", "by", "rows", "link"];
    let statement = render(UPDATE_REVIEWS, &names, false);
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let plan: Vec<(i64, i64, i64, String)> =
        sqlx::query_as(explain).fetch_all(&sqlite.writer).await.unwrap();
    let steps: Vec<_> = plan.iter().map(|(.., step)| step.as_str()).collect();
    assert!(
        matches!(steps[..], [json, reviews]
        if json.starts_with("SCAN w") && reviews.contains("(id=?)")),
        "{plan:?}"
    );
}

#[tokio::test]
async fn a_full_disk_is_reported_loses_nothing_and_ends_when_there_is_space() {
    let (_folder, sqlite, document) = open().await;
    sqlite.append(&edit(document, 10)).await.unwrap();
    // SQLite can add no page, and reports it as it reports a full disk.
    let pages = pragma(&sqlite.writer, "page_count").await;
    let limit = AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::query(limit).execute(&sqlite.writer).await.unwrap();

    // SQLite rolls the transaction back; the next one needs a connection outside a transaction. That
    // is a new connection, without the page limit: hence one attempt under it.
    let full = sqlite.append(&edit(document, 50_000)).await;

    assert!(matches!(full, Err(StorageError::Full(_))), "{full:?}");
    let log = sqlite.log(document).await.unwrap().unwrap();
    assert_eq!((log.seq, log.parts.len()), (1, 1));
    let unlimited = "PRAGMA max_page_count = 1073741823";
    sqlx::query(unlimited).execute(&sqlite.writer).await.unwrap();
    for seq in 2..5 {
        let stored = sqlite.append(&edit(document, 50_000)).await.unwrap();
        assert_eq!(stored, [Appended::Stored { seq }]);
    }
}

/// The server drops a call at any moment: a socket closes, a time-out fires.
#[tokio::test]
async fn a_cancelled_call_leaves_its_connection_outside_a_transaction() {
    let (_folder, sqlite, document) = open().await;
    let mut stored = 0;
    for polls in 0..60 {
        let batch = edit(document, 100);
        let finished = poll_some(polls, sqlite.append(&batch)).await.is_some();
        stored += i64::from(finished);
        let next = sqlite.append(&edit(document, 1)).await.unwrap();
        stored += 1;
        let Some(Appended::Stored { seq }) = next.first() else { panic!("{next:?}") };
        // A cancelled commit stores all of its group or none of it.
        assert!(stored <= *seq);
        stored = *seq;
    }
    let log = sqlite.log(document).await.unwrap().unwrap();
    assert_eq!(i64::try_from(log.parts.len()), Ok(log.seq));
}

/// The result of a future that is dropped after that many polls.
async fn poll_some<T>(mut polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        if polls == 0 {
            return std::task::Poll::Ready(None);
        }
        polls -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[test]
fn an_error_code_maps_to_the_error_that_a_caller_can_handle() {
    #[derive(Debug)]
    struct Fault(i32);
    impl std::fmt::Display for Fault {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "fault {}", self.0)
        }
    }
    impl std::error::Error for Fault {}
    impl DatabaseError for Fault {
        fn message(&self) -> &str {
            "fault"
        }
        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.to_string().into())
        }
        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }
        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }
        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }
        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }
    let text = |code: i32| format!("fault {code}");
    // FULL; IOERR_SHMSIZE; BUSY, BUSY_SNAPSHOT, READONLY, IOERR_WRITE; NOTADB, CORRUPT_INDEX;
    // CONSTRAINT_UNIQUE.
    for code in [13, 4874] {
        assert_eq!(classify(&Fault(code)), StorageError::Full(text(code)));
    }
    for code in [5, 517, 8, 778] {
        assert_eq!(classify(&Fault(code)), StorageError::Unavailable(text(code)));
    }
    for code in [26, 779] {
        assert_eq!(classify(&Fault(code)), StorageError::Corrupt(text(code)));
    }
    assert_eq!(classify(&Fault(2067)), StorageError::Refused(text(2067)));
}

#[tokio::test]
async fn g17_a_short_write_overtakes_the_long_ones() {
    let (_folder, sqlite, _) = open().await;
    let held = sqlite.write().await.unwrap();
    let order = std::sync::Mutex::new(Vec::new());
    let write = async |name| {
        let tx = sqlite.write().await.unwrap();
        order.lock().unwrap().push(name);
        tx.commit().await.unwrap();
    };
    let long = async || {
        let _turn = sqlite.long_turn().await.unwrap();
        write("a long one").await;
    };
    let release = async { held.commit().await.unwrap() };
    join3(join_all((0..20).map(|_| long())), write("the short one"), release).await;
    let order = order.into_inner().unwrap();
    assert_eq!(order.iter().position(|one| *one == "the short one"), Some(1), "{order:?}");
}

#[tokio::test]
async fn g17_an_append_overtakes_the_writes_that_wait_for_the_writer() {
    let (_folder, sqlite, document) = open().await;
    let held = sqlite.write().await.unwrap();
    let order = std::sync::Mutex::new(Vec::new());
    let other = async || {
        let tx = sqlite.write().await.unwrap();
        order.lock().unwrap().push("another");
        tx.commit().await.unwrap();
    };
    let append = async {
        sqlite.append(&edit(document, 1)).await.unwrap();
        order.lock().unwrap().push("the append");
    };
    let release = async { held.commit().await.unwrap() };
    // These poll their futures in the order of the arguments: all others wait before the append.
    join3(join_all((0..20).map(|_| other())), append, release).await;
    let order = order.into_inner().unwrap();
    let before = order.iter().position(|one| *one == "the append").unwrap();
    assert!(before <= 1, "{order:?}");
}
