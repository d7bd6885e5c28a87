//! How a connection is opened: where to, and with which settings of its session.
//!
//! The settings follow the connection as one statement. A pooler rejects settings in the start-up
//! message; told to ignore them, it drops them without an error, and edits wait for locks without a
//! bound.

use std::fmt::Write as _;
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};

use crate::storage::error::StorageError;

/// What all connections have in common. It stands over what role and database have set.
const COMMON: [(&str, &str); 6] = [
    // Each commit reaches the disk, and the standbys that the server waits for, before it is answered
    // (D4).
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    // All statements are small and always the same: planned once, never compiled.
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
    // A plan is kept, and the one for an empty table would be to read all of it.
    ("enable_seqscan", "off"),
];

/// Where a connection leads and the settings of its session.
#[derive(Clone)]
pub(super) struct Parameters {
    options: PgConnectOptions,
    /// `SET` statements.
    settings: String,
}

impl Parameters {
    /// For the database that `url` names.
    pub(super) fn of(url: &str) -> Result<Self, StorageError> {
        // The error may repeat what it could not read, which may be a password.
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

    /// With one more setting, which replaces an earlier one of that name.
    #[must_use]
    pub(super) fn and(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let _infallible = write!(self.settings, "SET {name} = '{value}';");
        self
    }

    /// A connection with these settings.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.connect_plainly().await?;
        self.apply(&mut connection).await?;
        Ok(connection)
    }

    /// A connection with the settings of role and database.
    pub(super) async fn connect_plainly(&self) -> Result<PgConnection, sqlx::Error> {
        self.options.connect().await
    }

    /// Gives these settings to a connection.
    pub(super) async fn apply(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        // Names and values are constants of this program.
        let settings = AssertSqlSafe(self.settings.clone());
        sqlx::raw_sql(settings).execute(connection).await?;
        Ok(())
    }
}
