//! Opening: new files, known files, and files that are not for us.

use std::str::FromStr;

use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::storage::error::StorageError;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::task::JoinSet;

use crate::harness::{Desk, append_one, at, edit, url, user, within};

/// A connection that knows nothing of Galley.
async fn stranger(url: &str) -> SqliteConnection {
    let options = SqliteConnectOptions::from_str(url).unwrap().create_if_missing(true);
    options.connect().await.unwrap()
}

#[tokio::test]
async fn a_missing_file_is_made_with_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/b/김.db");
    for url in [format!("sqlite://{}", file.display()), format!("sqlite:{}", file.display())] {
        let storage = Storage::open(&url).await.unwrap();
        storage.check().await.unwrap();
        storage.close().await;
        assert!(file.exists());
    }
}

#[tokio::test]
async fn opening_again_changes_nothing() {
    let desk = Desk::open().await;
    let document = desk.document().await;
    let again = desk.another().await;
    assert!(again.document(document).await.unwrap().is_some());
    desk.storage.close().await;
    again.close().await;
    let third = desk.another().await;
    assert!(third.document(document).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_a_new_file_may_be_opened_by_many_at_once() {
    let folders: Vec<_> = (0..12).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut tasks = JoinSet::new();
    for number in 0..96 {
        let url = url(&folders[number / 8]);
        tasks.spawn(async move { Storage::open(&url).await });
    }
    for opened in within(tasks.join_all()).await {
        opened.unwrap().check().await.unwrap();
    }
}

#[tokio::test]
async fn a_url_that_is_not_understood_is_refused_in_one_clear_line() {
    let cases = [
        ("data/galley.db", "no scheme"),
        ("postgres://kim:secret@db/galley", "PostgreSQL"),
        ("postgresql://kim:secret@db/galley", "PostgreSQL"),
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

#[tokio::test]
async fn a_file_that_is_no_database_is_said_to_be_damaged_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("galley.db");
    let letter = "Dear Sir or Madam, ".repeat(300);
    std::fs::write(&file, &letter).unwrap();
    let error = Storage::open(&url(&folder)).await.unwrap_err();
    assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains("galley.db"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), letter);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = stranger(&url(&folder)).await;
    sqlx::raw_sql("CREATE TABLE users (id INTEGER)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let before = std::fs::read(folder.path().join("galley.db")).unwrap();
    let error = Storage::open(&url(&folder)).await.unwrap_err();
    assert!(matches!(error, StorageError::Unsupported(_)), "{error:?}");
    assert!(error.to_string().contains("belongs to another program"), "{error}");
    assert_eq!(std::fs::read(folder.path().join("galley.db")).unwrap(), before);
}

#[tokio::test]
async fn a_newer_or_altered_schema_is_refused() {
    for statement in [
        "INSERT INTO _sqlx_migrations VALUES (999, 'later', CURRENT_TIMESTAMP, TRUE, x'00', 0)",
        "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1",
    ] {
        let desk = Desk::open().await;
        desk.storage.close().await;
        let mut later = stranger(&url(&desk.folder)).await;
        sqlx::raw_sql(statement).execute(&mut later).await.unwrap();
        later.close().await.unwrap();
        let error = Storage::open(&url(&desk.folder)).await.unwrap_err();
        assert!(matches!(error, StorageError::Unsupported(_)), "{error:?}");
        assert!(error.to_string().contains("use the galley that wrote it"), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_page_is_an_error_and_not_a_panic() {
    let desk = Desk::open().await;
    let document = desk.document().await;
    for _ in 0..500 {
        append_one(&desk.storage, edit(document, vec![b'x'; 100])).await;
    }
    desk.storage.close().await;
    let file = desk.folder.path().join("galley.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // All but the page with the schema.
    let rest = bytes.get_mut(3 * 4096..).unwrap();
    rest.fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    let result = match Storage::open(&url(&desk.folder)).await {
        Ok(storage) => storage.log(document).await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(matches!(result, Err(StorageError::Corrupt(_))), "{result:?}");
}

#[tokio::test]
async fn what_stands_in_a_column_and_cannot_be_is_an_error() {
    let desk = Desk::open().await;
    let document = desk.document().await;
    let mut other = stranger(&url(&desk.folder)).await;
    let tamper = "UPDATE documents SET created_at = 9223372036854775807";
    sqlx::raw_sql(tamper).execute(&mut other).await.unwrap();
    let read = desk.storage.document(document).await;
    assert!(matches!(read, Err(StorageError::Corrupt(_))), "{read:?}");
}

#[tokio::test]
async fn a_closed_storage_is_unavailable() {
    let desk = Desk::open().await;
    desk.storage.close().await;
    let read = desk.storage.document(DocumentId::generate()).await;
    assert!(matches!(read, Err(StorageError::Unavailable(_))), "{read:?}");
    let write = desk.storage.save_user(&user("kim"), at(0)).await;
    assert!(matches!(write, Err(StorageError::Unavailable(_))), "{write:?}");
    assert!(desk.storage.check().await.is_err());
}

#[tokio::test]
async fn a_lock_held_elsewhere_delays_a_write_and_held_too_long_makes_it_unavailable() {
    let desk = Desk::open().await;
    let document = desk.document().await;
    let mut other = stranger(&url(&desk.folder)).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();

    let refused = within(desk.storage.append(&[edit(document, "x")])).await;
    assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
    // Readers do not wait.
    assert_eq!(desk.text(document).await, b"");

    let batch = [edit(document, "y")];
    let waiting = desk.storage.append(&batch);
    let freeing = sqlx::raw_sql("COMMIT").execute(&mut other);
    let (stored, freed) = within(async { tokio::join!(waiting, freeing) }).await;
    freed.unwrap();
    stored.unwrap();
    assert_eq!(desk.text(document).await, b"y");
}
