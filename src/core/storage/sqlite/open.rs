//! Opens a file: rejects those of other programs, and migrates the schema.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlSafeStr, SqliteConnection, SqlitePool};
use tokio::fs::{DirBuilder, OpenOptions};
use tokio::time::Instant;

use crate::storage::Storage;
use crate::storage::batcher::Batcher;
use crate::storage::error::StorageError;
use crate::storage::hooks::Hooks;
use crate::storage::sqlite::log::LOGS_MAX;
use crate::storage::sqlite::write_cache::Memory;
use crate::storage::sqlite::{Sqlite, integrity, is_busy, journal};

/// The wait of a statement for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait of a call for a connection. It is longer than the wait of the previous call for its
/// lock.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(8);
/// Connections that read. Each costs a thread and about 2 MiB of cache.
const READERS: u32 = 4;
/// The wait for another process that opens the same new file. The switch to write-ahead logging
/// needs exclusive access, and `SQLite` does not wait for that.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const OPEN_RETRY: Duration = Duration::from_millis(20);
/// The size to which a checkpoint truncates the file of the write-ahead log.
const WAL_BYTES_MAX: &str = "67108864";
/// Pages in the write-ahead log at which SQLite moves them to the file: 16 MiB. The more pages, the
/// more changes of one page become a single write.
const WAL_PAGES: &str = "4000";
/// The bits of a file's mode that give rights to other users than its owner.
const OTHERS: u32 = 0o077;
/// Pages that a start checks: 256 MiB, in about a second.
const CHECKED_PAGES_MAX: i64 = 65_536;
/// The remedy of a damaged file.
const RESTORE: &str = "put a backup in its place with `galley restore FILE`";
/// "GALY", which the first migration writes into the file's header.
const APPLICATION_ID: i64 = 0x4741_4C59;

const _: () = assert!(BUSY_TIMEOUT.as_millis() < ACQUIRE_TIMEOUT.as_millis());

impl Sqlite {
    /// Opens the file that `url` names. A missing file is created, with its folder.
    pub(crate) async fn open(url: &str) -> Result<Self, StorageError> {
        let path = file_of(url)?;
        integrity::refuse_torn(&path)?;
        make_folder(&path).await?;
        make_private(&path).await;
        let plain = options(&path);
        let give_up_at = Instant::now() + OPEN_TIMEOUT;
        let memory = Memory::default();
        let writer = loop {
            match open_writer(&plain, &memory).await {
                Err(FileOpening::Busy(_)) if Instant::now() < give_up_at => {
                    tokio::time::sleep(OPEN_RETRY).await;
                }
                Err(FileOpening::Busy(error) | FileOpening::Failed(error)) => {
                    return Err(with_path(error, &path));
                }
                Ok(writer) => break writer,
            }
        };
        // A reader has no transaction that a full disk rolls back. The test would double a read's cost.
        let readers = pool(READERS).test_before_acquire(false);
        let readers = readers.connect_lazy_with(plain.pragma("query_only", "ON"));
        let sqlite = Self {
            writer,
            turn: Arc::default(),
            long_turn: Arc::default(),
            readers,
            memory,
            logs: Arc::new(Batcher::new(LOGS_MAX)),
            tails: Arc::new(Batcher::new(LOGS_MAX)),
            hooks: Hooks::default(),
        };
        // `SELECT 1` would not read the file.
        let check = sqlx::query("SELECT max(version) FROM _sqlx_migrations");
        let checked = check.execute(&sqlite.readers).await.map_err(StorageError::from);
        checked.map_err(|error| with_path(error, &path))?;
        Ok(sqlite)
    }
}

/// Examines the file without a change: its owner, pages, rights, and the version of its schema.
pub(in crate::storage) async fn examine(url: &str) -> Result<String, StorageError> {
    let path = file_of(url)?;
    integrity::refuse_torn(&path)?;
    if path.metadata().is_ok_and(|found| found.len() == 0) || !path.exists() {
        return Storage::about_schema(None, 0);
    }
    let examining = async {
        let mut connection = options(&path).connect().await?;
        identify(&mut connection).await?;
        integrity::examine(&mut connection, CHECKED_PAGES_MAX).await?;
        let found = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations");
        let found = found.fetch_one(&mut connection).await?;
        // Fails in a file that the process may not write.
        connection.begin_with("BEGIN IMMEDIATE").await?.rollback().await?;
        connection.close().await?;
        Ok::<_, FileOpening>(found)
    };
    let found = examining.await.map_err(|fault| with_path(fault.into(), &path))?;
    let newest = migrations().map(|migration| migration.version).max().unwrap_or_default();
    Storage::about_schema(found, newest)
}

pub(super) enum FileOpening {
    /// Another process has the file locked; `open` retries.
    Busy(StorageError),
    Failed(StorageError),
}

impl From<sqlx::Error> for FileOpening {
    fn from(error: sqlx::Error) -> Self {
        if is_busy(&error) { Self::Busy(error.into()) } else { Self::Failed(error.into()) }
    }
}

impl From<StorageError> for FileOpening {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

impl From<FileOpening> for StorageError {
    fn from(opening: FileOpening) -> Self {
        match opening {
            FileOpening::Busy(error) | FileOpening::Failed(error) => error,
        }
    }
}

async fn open_writer(
    plain: &SqliteConnectOptions,
    memory: &Memory,
) -> Result<SqlitePool, FileOpening> {
    // First a read-only check: a file of another program stays as it is.
    let mut connection = plain.clone().create_if_missing(true).connect().await?;
    identify(&mut connection).await?;
    integrity::examine(&mut connection, CHECKED_PAGES_MAX).await?;
    connection.close().await?;
    let durable = plain
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        // The commit reaches the disk before SQLite confirms it (D4).
        .synchronous(SqliteSynchronous::Full)
        // Deleted rows and free pages are overwritten.
        .pragma("secure_delete", "ON")
        .pragma("journal_size_limit", WAL_BYTES_MAX)
        .pragma("wal_autocheckpoint", WAL_PAGES);
    let mut connection = durable.connect().await?;
    migrate(&mut connection).await?;
    connection.close().await?;
    let memory = memory.clone();
    let writer = pool(1)
        .after_connect(move |connection, _| {
            let memory = memory.clone();
            Box::pin(async move { memory.connect(connection).await })
        })
        .connect_with(durable)
        .await?;
    // Each load of a document would scan the rows that the last process left in the journal.
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
    journal::clear(&mut tx, None).await?;
    tx.commit().await?;
    Ok(writer)
}

/// The settings of all connections. `sqlx` sets the busy time-out when it opens the file, before any
/// statement. `foreign_keys` deletes the rows that refer to a deleted document.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .disable_statement_logging()
}

fn pool(connections: u32) -> PoolOptions<sqlx::Sqlite> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        // SQLite rolls a transaction back when the disk is full. sqlx still counts it, and would
        // refuse `BEGIN IMMEDIATE` for ever; the pool opens a fresh connection instead. (The test
        // before this hook has waited for a queued rollback.)
        .test_before_acquire(true)
        .before_acquire(|connection: &mut SqliteConnection, _| {
            let at_rest = !connection.is_in_transaction();
            Box::pin(async move { Ok(at_rest) })
        })
}

/// Rejects a file that another program owns, and a file that is no database.
pub(super) async fn identify(connection: &mut SqliteConnection) -> Result<(), FileOpening> {
    // One transaction: between two reads, another process may create the tables.
    let mut tx = connection.begin().await?;
    let tables: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *tx).await?;
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *tx).await?;
    tx.commit().await?;
    if id == APPLICATION_ID || (id == 0 && tables == 0) {
        return Ok(());
    }
    let message = "it belongs to another program; name another file in database.url";
    Err(StorageError::Unsupported(message.to_owned()).into())
}

/// Migrates the file to the current schema, in one transaction: a second process waits, and then
/// has no migration left to run.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), FileOpening> {
    let migrator = Migrator::with_migrations(migrations().collect());
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    // `run` makes a future that cannot move between threads (rust-lang/rust#100013).
    migrator.run_direct(None, &mut *tx, false).await.map_err(StorageError::from)?;
    tx.commit().await?;
    Ok(())
}

pub(super) fn migrations() -> impl Iterator<Item = Migration> {
    let migrations = [
        (1, "initial", include_str!("migrations/0001_initial.sql")),
        (2, "versions", include_str!("migrations/0002_versions.sql")),
        (3, "journal", include_str!("migrations/0003_journal.sql")),
        (4, "review_bytes", include_str!("migrations/0004_review_bytes.sql")),
        (5, "review_changes", include_str!("migrations/0005_review_changes.sql")),
        (6, "decisions", include_str!("migrations/0006_decisions.sql")),
        (7, "talk", include_str!("migrations/0007_talk.sql")),
        (8, "bin", include_str!("migrations/0008_bin.sql")),
        (9, "identity", include_str!("migrations/0009_identity.sql")),
        (10, "partners", include_str!("migrations/0010_partners.sql")),
        (11, "offers", include_str!("migrations/0011_offers.sql")),
        (12, "push", include_str!("migrations/0012_push.sql")),
        (13, "webhooks", include_str!("migrations/0013_webhooks.sql")),
        (14, "jobs", include_str!("migrations/0014_jobs.sql")),
        (15, "exports", include_str!("migrations/0015_exports.sql")),
        (17, "reserved_handles", include_str!("migrations/0017_reserved_handles.sql")),
        (18, "open_reviews", include_str!("migrations/0018_open_reviews.sql")),
        (19, "reviews_of_grants", include_str!("migrations/0019_reviews_of_grants.sql")),
        (20, "export_pieces", include_str!("migrations/0020_export_pieces.sql")),
        (21, "guest_requests", include_str!("migrations/0021_guest_requests.sql")),
        (22, "sections", include_str!("migrations/0022_sections.sql")),
        (23, "suggestions", include_str!("migrations/0023_suggestions.sql")),
        (24, "spent_ids", include_str!("migrations/0024_spent_ids.sql")),
        (25, "traces", include_str!("migrations/0025_traces.sql")),
        (26, "root", include_str!("migrations/0026_root.sql")),
        (27, "audit", include_str!("migrations/0027_audit.sql")),
        (28, "revocations", include_str!("migrations/0028_revocations.sql")),
        (29, "user_deletions", include_str!("migrations/0029_user_deletions.sql")),
        (30, "forgotten_users", include_str!("migrations/0030_forgotten_users.sql")),
        (31, "external_ids", include_str!("migrations/0031_external_ids.sql")),
    ];
    migrations.into_iter().map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    })
}

pub fn file_of(url: &str) -> Result<PathBuf, StorageError> {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let refuse = |why: &str| Err(StorageError::Unsupported(why.to_owned()));
    if path.is_empty() {
        return refuse("database.url names no file; write sqlite://FILE");
    }
    if path.contains(":memory:") {
        return refuse("a database in memory would lose what it acknowledged; name a file");
    }
    if path.contains('?') {
        return refuse("database.url takes no parameters for sqlite; write sqlite://FILE");
    }
    Ok(PathBuf::from(path))
}

async fn make_folder(path: &Path) -> Result<(), StorageError> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    // Accessible to this user only, like secrets: the database contains the texts.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder).await;
    made.map_err(|error| {
        StorageError::Unavailable(format!("cannot make the folder {}: {error}", folder.display()))
    })
}

/// Creates a missing file with access for this user only, and warns if others can read an existing
/// one: it contains the texts. SQLite creates the files of its write-ahead log with the same mode.
async fn make_private(path: &Path) {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).await;
    match created {
        Ok(_file) => return,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // SQLite reports the cause with the first statement.
        Err(_) => return,
    }
    for suffix in ["", "-wal", "-shm"] {
        let name = integrity::beside(path, suffix);
        let Ok(found) = tokio::fs::metadata(&name).await else { continue };
        let mode = found.permissions().mode();
        if mode & OTHERS != 0 {
            tracing::warn!(
                file = %name.display(),
                mode = format_args!("{:o}", mode & 0o777),
                "other users of this machine can read the database; set its mode to 600"
            );
        }
    }
}

pub(super) fn with_path(error: StorageError, path: &Path) -> StorageError {
    let name = path.display();
    match error {
        StorageError::Unavailable(why) => StorageError::Unavailable(format!("{name}: {why}")),
        StorageError::Full(why) => StorageError::Full(format!("{name}: {why}")),
        StorageError::Corrupt(why) => StorageError::Corrupt(format!("{name}: {why}; {RESTORE}")),
        StorageError::Unsupported(why) => StorageError::Unsupported(format!("{name}: {why}")),
        StorageError::Refused(why) => StorageError::Refused(format!("{name}: {why}")),
        StorageError::Pooled(why) => StorageError::Pooled(format!("{name}: {why}")),
    }
}
