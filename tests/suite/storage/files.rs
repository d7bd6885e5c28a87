//! Opening of SQLite files: new, known, damaged and foreign ones.

use std::os::unix::fs::PermissionsExt as _;
use std::str::FromStr;

use crate::storage::database::{Desk, append_one, edit, url, within};
use galley::storage::Storage;
use galley::storage::error::StorageError;
use galley::storage::log::Appended;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::task::JoinSet;

/// A connection outside Galley's pool.
pub(crate) async fn stranger(url: &str) -> SqliteConnection {
    let options = SqliteConnectOptions::from_str(url).unwrap().create_if_missing(true);
    options.connect().await.unwrap()
}

#[tokio::test]
async fn a_missing_file_is_created_with_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/b/김.db");
    for url in [format!("sqlite://{}", file.display()), format!("sqlite:{}", file.display())] {
        let storage = Storage::open(&url).await.unwrap();
        storage.check().await.unwrap();
        storage.close().await;
        assert!(file.exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_concurrent_opens_create_a_new_file_once() {
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
async fn a_file_that_is_no_database_is_rejected_as_damaged_and_unchanged() {
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
async fn a_foreign_database_is_rejected_and_unchanged() {
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
async fn a_damaged_page_is_an_error_and_not_a_panic() {
    let desk = Desk::sqlite().await;
    let document = desk.document().await;
    for _ in 0..500 {
        append_one(&desk.storage, edit(document, vec![b'x'; 100])).await;
    }
    desk.storage.close().await;
    let file = desk.location.url().trim_start_matches("sqlite://").to_owned();
    let mut bytes = std::fs::read(&file).unwrap();
    // All pages except the ones with the schema.
    let rest = bytes.get_mut(3 * 4096..).unwrap();
    rest.fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    let result = match Storage::open(&desk.location.url()).await {
        Ok(storage) => storage.log(document).await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(matches!(result, Err(StorageError::Corrupt(_))), "{result:?}");
}

/// Goal: only the owner of a database reads its texts. The folder may be open to other users, and
/// the files of the write-ahead log are covered, too.
#[tokio::test]
async fn g14_the_files_of_a_new_database_are_readable_by_their_owner_only() {
    let desk = Desk::sqlite().await;
    append_one(&desk.storage, edit(desk.document().await, "x")).await;
    let file = desk.location.url().trim_start_matches("sqlite://").to_owned();
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{file}{suffix}");
        let mode = std::fs::metadata(&name).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// Goal: the server starts and commits despite journal rows whose document is gone or whose number
/// is taken. Other documents lose no edit.
#[tokio::test]
async fn g16_a_journal_row_that_cannot_be_moved_delays_no_other_row() {
    let desk = Desk::sqlite().await;
    let [gone, twice, sound] =
        [desk.document().await, desk.document().await, desk.document().await];
    for document in [gone, twice, sound] {
        append_one(&desk.storage, edit(document, "a")).await;
    }
    let mut other = stranger(&desk.location.url()).await;
    sqlx::query("DELETE FROM documents WHERE id = $1")
        .bind(gone.to_string())
        .execute(&mut other)
        .await
        .unwrap();
    sqlx::query("INSERT INTO updates (document_id, seq, bytes) VALUES ($1, 1, x'00')")
        .bind(twice.to_string())
        .execute(&mut other)
        .await
        .unwrap();
    // The foreign write invalidated the cache, so the group moves the journal to the updates first.
    let outcomes = desk.storage.append(&[edit(sound, "b")]).await.unwrap();
    assert_eq!(outcomes, [Appended::Stored { seq: 2 }]);
    desk.storage.close().await;
    let again = within(Storage::open(&desk.location.url())).await.unwrap();
    assert_eq!(append_one(&again, edit(sound, "c")).await, Appended::Stored { seq: 3 });
    let log = again.log(sound).await.unwrap().unwrap();
    assert_eq!((log.parts.concat(), log.hole()), (b"abc".to_vec(), None));
    assert!(again.log(twice).await.unwrap().unwrap().hole().is_some());
    assert_eq!(again.log(gone).await.unwrap(), None);
}
