//! The parameters of a connection: its address, and the settings of its session.
//!
//! The settings follow the connection as one statement. A pooler rejects settings in the start-up
//! message. A pooler configured to ignore them drops them without an error, and edits wait for locks
//! without a bound.

use std::fmt::Write as _;
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};

use crate::storage::error::StorageError;

/// The settings of all connections. They override those of the role and the database.
const COMMON: [(&str, &str); 6] = [
    // The commit reaches the disk, and the synchronous standbys, before PostgreSQL confirms it (D4).
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    // All statements are small and constant: PostgreSQL plans each once, and compiles none.
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
    // PostgreSQL caches a plan, and the plan for an empty table would be a full scan.
    ("enable_seqscan", "off"),
];

#[derive(Clone)]
pub(crate) struct Parameters {
    options: PgConnectOptions,
    settings: String,
}

impl Parameters {
    pub(crate) fn of(url: &str) -> Result<Self, StorageError> {
        // The parser's error may repeat a part of the URL, which may be a password.
        let refused = |_| {
            let what = "database.url is not understood; write \
                        postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE";
            StorageError::Unsupported(what.to_owned())
        };
        let options = PgConnectOptions::from_str(url).map_err(refused)?;
        // A pooler rejects `extra_float_digits` in the start-up message. No column is a float.
        let options =
            options.application_name("galley").extra_float_digits(None).disable_statement_logging();
        let parameters = Self { options, settings: String::new() };
        Ok(COMMON.iter().fold(parameters, |it, (name, value)| it.and(name, value)))
    }

    /// Adds a setting, which replaces an earlier one of that name.
    #[must_use]
    pub(super) fn and(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let _infallible = write!(self.settings, "SET {name} = '{value}';");
        self
    }

    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.connect_plainly().await?;
        self.apply(&mut connection).await?;
        Ok(connection)
    }

    /// Opens a connection with the settings of role and database.
    pub(super) async fn connect_plainly(&self) -> Result<PgConnection, sqlx::Error> {
        self.options.connect().await
    }

    pub(super) async fn apply(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        // Names and values are constants of this program.
        let settings = AssertSqlSafe(self.settings.clone());
        sqlx::raw_sql(settings).execute(connection).await?;
        Ok(())
    }
}
