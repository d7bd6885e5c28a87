//! Open and close of a database, schemas that Galley rejects, and locks of other connections.

use crate::storage::database::{Desk, Location, Stranger, append_one, at, edit, user, within};
use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::storage::error::StorageError;
use galley::storage::log::Appended;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    open:
    a_second_open_changes_nothing
    d1_concurrent_opens_of_a_database_succeed
    a_newer_schema_is_rejected
    an_altered_schema_is_rejected
    an_impossible_value_in_a_column_is_an_error
    a_closed_storage_is_unavailable
    a_foreign_lock_delays_a_write_until_its_timeout_rejects_it
}

pub(crate) async fn a_second_open_changes_nothing(desk: Desk) {
    let document = desk.document().await;
    let again = desk.another().await;
    assert!(again.document(document).await.unwrap().is_some());
    desk.storage.close().await;
    again.close().await;
    let third = desk.another().await;
    assert!(third.document(document).await.unwrap().is_some());
}

pub(crate) async fn d1_concurrent_opens_of_a_database_succeed(desk: Desk) {
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let url = desk.location.url();
        tasks.spawn(async move { Storage::open(&url).await });
    }
    for opened in within(tasks.join_all()).await {
        opened.unwrap().check().await.unwrap();
    }
}

pub(crate) async fn a_newer_schema_is_rejected(desk: Desk) {
    let insert = match desk.location {
        Location::Folder(_) => {
            "INSERT INTO _sqlx_migrations VALUES (999, 'later', CURRENT_TIMESTAMP, TRUE, x'00', 0)"
        }
        Location::Server(_) => {
            "INSERT INTO _sqlx_migrations VALUES (999, 'later', now(), TRUE, '\\x00', 0)"
        }
    };
    is_refused_after(desk, insert).await;
}

pub(crate) async fn an_altered_schema_is_rejected(desk: Desk) {
    let update = match desk.location {
        Location::Folder(_) => "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1",
        Location::Server(_) => "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1",
    };
    is_refused_after(desk, update).await;
}

async fn is_refused_after(desk: Desk, sql: &'static str) {
    desk.storage.close().await;
    desk.location.stranger().await.run(sql).await;
    let error = Storage::open(&desk.location.url()).await.unwrap_err();
    assert!(matches!(error, StorageError::Unsupported(_)), "{error:?}");
    assert!(error.to_string().contains("use the galley that wrote it"), "{error}");
}

pub(crate) async fn an_impossible_value_in_a_column_is_an_error(desk: Desk) {
    let document = desk.document().await;
    let tamper = match desk.location {
        Location::Folder(_) => "UPDATE documents SET created_at = 9223372036854775807",
        Location::Server(_) => "UPDATE documents SET created_at = 'infinity'",
    };
    desk.location.stranger().await.run(tamper).await;
    let read = desk.storage.document(document).await;
    assert!(matches!(read, Err(StorageError::Corrupt(_))), "{read:?}");
}

pub(crate) async fn a_closed_storage_is_unavailable(desk: Desk) {
    desk.storage.close().await;
    let read = desk.storage.document(DocumentId::generate()).await;
    assert!(matches!(read, Err(StorageError::Unavailable(_))), "{read:?}");
    let write = desk.storage.save_user(&user("kim"), at(0)).await;
    assert!(matches!(write, Err(StorageError::Unavailable(_))), "{write:?}");
    assert!(desk.storage.check().await.is_err());
}

pub(crate) async fn a_foreign_lock_delays_a_write_until_its_timeout_rejects_it(desk: Desk) {
    let document = desk.document().await;
    let mut other = desk.location.stranger().await;
    let lock = match other {
        Stranger::Sqlite(_) => "BEGIN IMMEDIATE",
        Stranger::Postgres(_) => "BEGIN; SELECT 1 FROM documents FOR UPDATE",
    };
    other.run(lock).await;

    let refused = within(desk.storage.append(&[edit(document, "x")])).await;
    match other {
        Stranger::Sqlite(_) => {
            assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
        }
        // PostgreSQL locks one row: that document alone is busy.
        Stranger::Postgres(_) => assert_eq!(refused, Ok(vec![Appended::Busy])),
    }
    // Reads wait for no lock.
    assert_eq!(desk.text(document).await, b"");

    let waiting = append_one(&desk.storage, edit(document, "y"));
    let freeing = other.run("COMMIT");
    let (stored, _rows) = within(async { tokio::join!(waiting, freeing) }).await;
    assert_eq!(stored, Appended::Stored { seq: 1 });
    assert_eq!(desk.text(document).await, b"y");
}

#[tokio::test]
async fn an_invalid_url_is_rejected_in_one_line() {
    let cases = [
        ("data/galley.db", "no scheme"),
        ("postgres://kim:secret@db:port/galley", "is not understood"),
        ("postgresql://kim:secret@db/galley?sslmode=secret", "is not understood"),
        ("mysql://kim:secret@db/galley", "\"mysql\""),
        ("sqlite://", "names no file"),
        ("sqlite::memory:", "in memory"),
        ("sqlite://x.db?mode=ro", "no parameters"),
    ];
    for (url, expected) in cases {
        let error = Storage::open(url).await.unwrap_err();
        assert!(matches!(error, StorageError::Unsupported(_)), "{url}: {error:?}");
        let line = error.to_string();
        assert!(line.contains(expected), "{url}: {line}");
        assert!(!line.contains('\n') && !line.contains("secret"), "{line}");
    }
}
