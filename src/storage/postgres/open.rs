//! Opening a database: which one, whose is it, and which schema has it?

use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection as _, PgConnection, Row as _, SqlSafeStr as _};
use tokio::time::timeout;

use crate::storage::error::StorageError;
use crate::storage::postgres::parameters::Parameters;
use crate::storage::postgres::pool::Connections;
use crate::storage::postgres::{CALL_TIMEOUT, Postgres};

/// Connections for groups of edits: one at work, one to take over when that one hangs.
const EDITS: u16 = 2;
/// Connections for everything else.
const OTHERS: u16 = 8;
/// What the server lets a statement take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a statement waits for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for a group of edits: all documents of the group wait with it (G16), and typing is to be
/// saved within a second. Longer than any transaction of Galley's own holds a document.
const EDIT_LOCK_TIMEOUT: Duration = Duration::from_millis(400);
/// How long opening may take, which may be another server's migration.
const OPEN_TIMEOUT: Duration = Duration::from_secs(600);
/// The oldest server with all that the settings below name.
const VERSION_MIN: i64 = 14;
/// What the table of migrations is called in its comment, so that we know it for ours.
const MARK: &str = "galley";
/// "GALY" twice: the advisory lock under which the schema is changed.
const MIGRATION_LOCK: i64 = 0x4741_4C59_4741_4C59;

const _: () = assert!(
    EDIT_LOCK_TIMEOUT.as_millis() < LOCK_TIMEOUT.as_millis()
        && LOCK_TIMEOUT.as_millis() < STATEMENT_TIMEOUT.as_millis()
        && STATEMENT_TIMEOUT.as_millis() < CALL_TIMEOUT.as_millis()
);

impl Postgres {
    /// Opens the database that `url` names, which must be there, and brings it to the current
    /// schema.
    pub(in crate::storage) async fn open(url: &str) -> Result<Self, StorageError> {
        let parameters = Parameters::of(url)?;
        // A migration takes as long as it takes.
        let patient = parameters.clone().and("statement_timeout", 0).and("lock_timeout", 0);
        let opening = timeout(OPEN_TIMEOUT, prepare(&patient)).await;
        let late = |_| StorageError::Unavailable("opening it took too long".to_owned());
        opening.map_err(late)??;
        let bounded = parameters
            .and("statement_timeout", STATEMENT_TIMEOUT.as_millis())
            .and("lock_timeout", LOCK_TIMEOUT.as_millis())
            .and("idle_in_transaction_session_timeout", CALL_TIMEOUT.as_millis())
            // A statement whose caller is gone ends.
            .and("client_connection_check_interval", STATEMENT_TIMEOUT.as_millis());
        let impatient = bounded.clone().and("lock_timeout", EDIT_LOCK_TIMEOUT.as_millis());
        let edits = Connections::new(impatient, EDITS);
        Ok(Self { edits, others: Connections::new(bounded, OTHERS) })
    }
}

async fn prepare(parameters: &Parameters) -> Result<(), StorageError> {
    // No settings yet: through a pooler in transaction mode they reach the sessions of other programs.
    let connecting = timeout(CALL_TIMEOUT, async {
        let mut connection = parameters.connect_plainly().await?;
        let mut another = parameters.connect_plainly().await?;
        refuse_a_shared_backend(&mut connection, &mut another).await?;
        another.close().await?;
        parameters.apply(&mut connection).await?;
        Ok::<_, StorageError>(connection)
    });
    let late = |_| StorageError::Unavailable("connecting took too long".to_owned());
    let mut connection = connecting.await.map_err(late)??;
    look_at_server(&mut connection).await?;
    migrate(&mut connection).await?;
    Ok(connection.close().await?)
}

/// Refuses a pooler that gives each transaction another backend. Such a pooler hands the backend that
/// one connection has just used to the other, or changes the backend of the first. Settings and prepared
/// statements of a session belong to its backend.
async fn refuse_a_shared_backend(
    one: &mut PgConnection,
    other: &mut PgConnection,
) -> Result<(), StorageError> {
    let first = backend_of(one).await?;
    let shares = first == backend_of(other).await?;
    if shares || first != backend_of(one).await? {
        return Err(StorageError::Pooled("connections share their backends".to_owned()));
    }
    Ok(())
}

/// Asked without a prepared statement, which the backend may have from another connection.
async fn backend_of(connection: &mut PgConnection) -> Result<i32, StorageError> {
    let row = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?;
    Ok(row.try_get(0)?)
}

/// Refuses a server that cannot do what we promise, and warns of one set not to.
async fn look_at_server(connection: &mut PgConnection) -> Result<(), StorageError> {
    let (version, encoding, fsync, pages): (String, String, String, String) = sqlx::query_as(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding'), \
         current_setting('fsync'), current_setting('full_page_writes')",
    )
    .fetch_one(connection)
    .await?;
    let major = version.parse::<i64>().unwrap_or_default() / 10_000;
    if major < VERSION_MIN {
        let what = format!("it is PostgreSQL {major}; {VERSION_MIN} is the oldest that will do");
        return Err(StorageError::Unsupported(what));
    }
    if encoding != "UTF8" {
        let what = format!("its encoding is {encoding}; create it with ENCODING 'UTF8'");
        return Err(StorageError::Unsupported(what));
    }
    if fsync == "off" || pages == "off" {
        tracing::warn!(
            fsync,
            full_page_writes = pages,
            "this PostgreSQL may lose in a power cut what was said to be saved"
        );
    }
    Ok(())
}

/// Brings the database to the current schema. All of it is one transaction under a lock, so that
/// a second server waits, and then finds nothing left to do; if this one dies, nothing is left.
async fn migrate(connection: &mut PgConnection) -> Result<(), StorageError> {
    let migrations = [
        ("initial", include_str!("migrations/0001_initial.sql")),
        ("versions", include_str!("migrations/0002_versions.sql")),
        ("review_bytes", include_str!("migrations/0003_review_bytes.sql")),
        ("review_changes", include_str!("migrations/0004_review_changes.sql")),
    ];
    let migrations = (1..).zip(migrations).map(|(version, (name, sql))| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    // Its own lock would outlive the transaction.
    migrator.set_locking(false);
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK).execute(&mut *tx).await?;
    identify(&mut tx).await?;
    // `run` makes a future that cannot move between threads (rust-lang/rust#100013).
    migrator.run_direct(None, &mut *tx, false).await?;
    Ok(tx.commit().await?)
}

/// Refuses a schema with tables that are not ours. What an extension brings does not count.
async fn identify(connection: &mut PgConnection) -> Result<(), StorageError> {
    let (tables, mark): (i64, Option<String>) = sqlx::query_as(
        "SELECT count(*), \
           obj_description(to_regclass(quote_ident(current_schema()) || '._sqlx_migrations')) \
         FROM pg_class c WHERE c.relkind IN ('r', 'p') \
           AND c.relnamespace = to_regnamespace(quote_ident(current_schema())) \
           AND NOT EXISTS (SELECT 1 FROM pg_depend d \
             WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')",
    )
    .fetch_one(connection)
    .await?;
    if tables == 0 || mark.as_deref() == Some(MARK) {
        return Ok(());
    }
    let message = "it belongs to another program; name another one in database.url";
    Err(StorageError::Unsupported(message.to_owned()))
}
