//! Opens a database: checks PostgreSQL's version and settings, and migrates the schema.

use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection as _, PgConnection, Row as _, SqlSafeStr as _};
use tokio::time::timeout;

use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::hooks::Hooks;
use crate::storage::postgres::Postgres;
use crate::storage::postgres::parameters::Parameters;
use crate::storage::postgres::pool::{CALL_TIMEOUT, Connections};

/// Connections for groups of edits: one in use, and one in reserve if that one hangs.
const EDITS: u16 = 2;
const OTHERS: u16 = 8;
/// The bound that PostgreSQL sets on a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait of a statement for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait of a group of edits for a lock: all documents of the group wait with it (G16), and an edit
/// should be saved within a second. It exceeds the time for which Galley's own transactions lock a
/// document.
const EDIT_LOCK_TIMEOUT: Duration = Duration::from_millis(400);
/// The bound of opening, which includes the wait for another server's migration.
const OPEN_TIMEOUT: Duration = Duration::from_secs(600);
/// The oldest version that has all of the settings below.
const VERSION_MIN: i64 = 14;
/// The comment of the table of migrations, which identifies a schema of Galley.
const MARK: &str = "galley";
/// "GALY" twice: the advisory lock of a migration.
const MIGRATION_LOCK: i64 = 0x4741_4C59_4741_4C59;

const _: () = assert!(
    EDIT_LOCK_TIMEOUT.as_millis() < LOCK_TIMEOUT.as_millis()
        && LOCK_TIMEOUT.as_millis() < STATEMENT_TIMEOUT.as_millis()
        && STATEMENT_TIMEOUT.as_millis() < CALL_TIMEOUT.as_millis()
);

impl Postgres {
    /// Opens the database that `url` names, which must exist, and migrates it to the current schema.
    pub(crate) async fn open(url: &str) -> Result<Self, StorageError> {
        let parameters = Parameters::of(url)?;
        // A migration has no statement time-out.
        let patient = parameters.clone().and("statement_timeout", 0).and("lock_timeout", 0);
        // A start on an existing schema would log "relation … already exists, skipping".
        let patient = patient.and("client_min_messages", "warning");
        let opening = timeout(OPEN_TIMEOUT, prepare(&patient)).await;
        let late = |_| StorageError::Unavailable("opening timed out".to_owned());
        let schema = opening.map_err(late)??;
        let bounded = parameters
            .and("statement_timeout", STATEMENT_TIMEOUT.as_millis())
            .and("lock_timeout", LOCK_TIMEOUT.as_millis())
            .and("idle_in_transaction_session_timeout", CALL_TIMEOUT.as_millis())
            // PostgreSQL cancels a statement whose connection is closed.
            .and("client_connection_check_interval", STATEMENT_TIMEOUT.as_millis());
        let impatient = bounded.clone().and("lock_timeout", EDIT_LOCK_TIMEOUT.as_millis());
        let edits = Connections::new(impatient, EDITS);
        let reading = bounded.and("default_transaction_read_only", "on");
        let others = Connections::new(reading, OTHERS);
        Ok(Self { edits, others, hooks: Hooks::default(), schema })
    }
}

/// Examines the database without a change: server, rights, and the version of its schema.
pub(in crate::storage) async fn examine(url: &str) -> Result<String, StorageError> {
    let bounded = Parameters::of(url)?.and("statement_timeout", STATEMENT_TIMEOUT.as_millis());
    let mut connection = connect(&bounded).await?;
    let risk = look_at_server(&mut connection).await?;
    let is_empty = identify(&mut connection).await?;
    let may_migrate: Option<bool> = sqlx::query_scalar(
        "SELECT has_schema_privilege(current_schema(), 'CREATE') AND coalesce( \
           (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class \
            WHERE oid = to_regclass(quote_ident(current_schema()) || '._sqlx_migrations')), true)",
    )
    .fetch_one(&mut connection)
    .await?;
    if may_migrate != Some(true) {
        let what = "its user may not create tables or does not own them; as an administrator run ALTER \
                    DATABASE … OWNER TO, or name the owner in database.url";
        return Err(StorageError::Unsupported(what.to_owned()));
    }
    let found = match is_empty {
        true => None,
        false => {
            let query = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations");
            query.fetch_one(&mut connection).await?
        }
    };
    connection.close().await?;
    if let Some(risk) = risk {
        return Err(StorageError::Unsupported(risk));
    }
    Storage::about_schema(found, newest())
}

/// Returns the version of the schema.
async fn prepare(parameters: &Parameters) -> Result<i64, StorageError> {
    let mut connection = connect(parameters).await?;
    if let Some(risk) = look_at_server(&mut connection).await? {
        tracing::warn!("{risk}");
    }
    migrate(&mut connection).await?;
    connection.close().await?;
    Ok(newest())
}

async fn connect(parameters: &Parameters) -> Result<PgConnection, StorageError> {
    // Without settings: through a pooler in transaction mode they would reach other programs' sessions.
    let connecting = timeout(CALL_TIMEOUT, async {
        let mut connection = parameters.connect_plainly().await?;
        let mut another = parameters.connect_plainly().await?;
        refuse_a_shared_backend(&mut connection, &mut another).await?;
        another.close().await?;
        parameters.apply(&mut connection).await?;
        Ok::<_, StorageError>(connection)
    });
    let late = |_| StorageError::Unavailable("connecting timed out".to_owned());
    connecting.await.map_err(late)?
}

/// Rejects a pooler that assigns each transaction another backend. Such a pooler assigns the backend
/// that one connection has just used to the other, or changes the backend of the first. Settings and
/// prepared statements of a session belong to its backend.
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

/// Queries without a prepared statement: the backend may have one from another connection.
async fn backend_of(connection: &mut PgConnection) -> Result<i32, StorageError> {
    let row = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?;
    Ok(row.try_get(0)?)
}

/// Rejects a PostgreSQL that lacks a required feature, and returns a risk of data loss by its settings.
async fn look_at_server(connection: &mut PgConnection) -> Result<Option<String>, StorageError> {
    let (version, encoding, fsync, pages): (String, String, String, String) = sqlx::query_as(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding'), \
         current_setting('fsync'), current_setting('full_page_writes')",
    )
    .fetch_one(connection)
    .await?;
    let major = version.parse::<i64>().unwrap_or_default() / 10_000;
    if major < VERSION_MIN {
        let what =
            format!("it is PostgreSQL {major}; {VERSION_MIN} is the oldest that Galley supports");
        return Err(StorageError::Unsupported(what));
    }
    if encoding != "UTF8" {
        let what = format!("its encoding is {encoding}; create it with ENCODING 'UTF8'");
        return Err(StorageError::Unsupported(what));
    }
    let is_at_risk = fsync == "off" || pages == "off";
    Ok(is_at_risk.then(|| {
        format!(
            "this PostgreSQL may lose saved edits in a power cut: fsync is {fsync}, full_page_writes {pages}; \
             set both to on"
        )
    }))
}

const MIGRATIONS: [(i64, &str, &str); 29] = [
    (1, "initial", include_str!("migrations/0001_initial.sql")),
    (2, "versions", include_str!("migrations/0002_versions.sql")),
    (3, "review_bytes", include_str!("migrations/0003_review_bytes.sql")),
    (4, "review_changes", include_str!("migrations/0004_review_changes.sql")),
    (5, "decisions", include_str!("migrations/0005_decisions.sql")),
    (6, "talk", include_str!("migrations/0006_talk.sql")),
    (7, "bin", include_str!("migrations/0007_bin.sql")),
    (8, "identity", include_str!("migrations/0008_identity.sql")),
    (9, "partners", include_str!("migrations/0009_partners.sql")),
    (10, "offers", include_str!("migrations/0010_offers.sql")),
    (11, "push", include_str!("migrations/0011_push.sql")),
    (12, "webhooks", include_str!("migrations/0012_webhooks.sql")),
    (13, "jobs", include_str!("migrations/0013_jobs.sql")),
    (14, "exports", include_str!("migrations/0014_exports.sql")),
    (16, "reserved_handles", include_str!("migrations/0016_reserved_handles.sql")),
    (17, "open_reviews", include_str!("migrations/0017_open_reviews.sql")),
    (18, "reviews_of_grants", include_str!("migrations/0018_reviews_of_grants.sql")),
    (19, "export_pieces", include_str!("migrations/0019_export_pieces.sql")),
    (20, "guest_requests", include_str!("migrations/0020_guest_requests.sql")),
    (21, "sections", include_str!("migrations/0021_sections.sql")),
    (22, "suggestions", include_str!("migrations/0022_suggestions.sql")),
    (23, "spent_ids", include_str!("migrations/0023_spent_ids.sql")),
    (24, "traces", include_str!("migrations/0024_traces.sql")),
    (25, "root", include_str!("migrations/0025_root.sql")),
    (26, "audit", include_str!("migrations/0026_audit.sql")),
    (27, "revocations", include_str!("migrations/0027_revocations.sql")),
    (28, "user_deletions", include_str!("migrations/0028_user_deletions.sql")),
    (29, "forgotten_users", include_str!("migrations/0029_forgotten_users.sql")),
    (30, "external_ids", include_str!("migrations/0030_external_ids.sql")),
];

fn newest() -> i64 {
    MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or_default()
}

/// Migrates the database to the current schema, in one transaction under a lock. A second server
/// waits, and then has no migration left to run. If this server dies, the database rolls back.
async fn migrate(connection: &mut PgConnection) -> Result<(), StorageError> {
    let migrations = MIGRATIONS.into_iter().map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    // The lock of `sqlx` would outlive the transaction.
    migrator.set_locking(false);
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK).execute(&mut *tx).await?;
    identify(&mut tx).await?;
    // `run` makes a future that cannot move between threads (rust-lang/rust#100013).
    migrator.run_direct(None, &mut *tx, false).await?;
    tx.commit().await?;
    Ok(())
}

/// Rejects a schema with tables of another program, and returns whether it has none. Tables of an extension do
/// not count.
async fn identify(connection: &mut PgConnection) -> Result<bool, StorageError> {
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
        return Ok(tables == 0);
    }
    let message = "it belongs to another program; name another one in database.url";
    Err(StorageError::Unsupported(message.to_owned()))
}
