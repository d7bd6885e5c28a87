//! The settings: gathered from four places, checked as a whole.
//!
//! Compiled-in defaults (`config/default.toml`, which is also the manual) ← the file of `--config`
//! ← environment `GALLEY_<SECTION>__<KEY>` ← flags. Nothing is guessed: unknown keys, values out of
//! range and keys that contradict each other stop the start, all of them named at once, one line
//! each. Nothing here touches a disk except to read the file that was asked for. Variables that only
//! share the prefix are no settings ([`ignored`]).

mod display;
mod duration;
mod environment;
mod parse;
mod parse_fault;
mod validate;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::config::builder::DefaultState;
use ::config::{Config, ConfigBuilder, Environment, File, FileFormat};
use secrecy::SecretString;

use crate::domain::lease::LeaseTerms;
use crate::http::host::Proxies;
use crate::http::origin::Origin;
use crate::telemetry::logs::Format;

pub use crate::config::environment::ignored;

/// The defaults and the manual in one.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// What the command line may override.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config FILE`
    pub config: Option<PathBuf>,
    /// `--listen ADDR`
    pub listen: Option<String>,
    /// `--database-url URL`
    pub database_url: Option<String>,
    /// `--locks-url URL`
    pub locks_url: Option<String>,
}

/// Everything that is wrong with the settings, one line each.
#[derive(Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Faults {}

/// All settings, valid.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub server: ServerSettings,
    /// Where documents are kept.
    pub database: DatabaseSettings,
    /// Where seats are held.
    pub locks: LocksSettings,
    /// For how long.
    pub seats: SeatSettings,
    /// When versions are kept.
    pub history: HistorySettings,
    /// Who may enter.
    pub auth: AuthSettings,
    /// Who may look behind the scenes.
    pub admin: AdminSettings,
    /// How much of everything.
    pub limits: LimitSettings,
    /// What is logged.
    pub log: LogSettings,
    /// Whether figures are kept.
    pub metrics: MetricsSettings,
}

/// `[server]`
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// The origin under which browsers come; from `listen` when not set.
    pub public_url: Option<Origin>,
    /// How long a stopping server announces that before it closes its listener.
    pub linger: Duration,
    /// More names under which the server answers.
    pub hosts: Vec<String>,
    /// Proxies that name the client.
    pub trusted_proxies: Proxies,
    /// How long the closes of a stopping server are spread over.
    pub drain: Duration,
}

/// `[database]`
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `sqlite://PATH` or `postgres://…`; may hold a password.
    pub url: String,
    /// Whether several servers may share a `SQLite` file.
    pub shared_sqlite: bool,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("url", &display::without_password(&self.url))
            .field("shared_sqlite", &self.shared_sqlite)
            .finish()
    }
}

/// `[locks]`
#[derive(Clone)]
pub struct LocksSettings {
    /// `memory:`, `redis://…`, `redis+sentinel://…` or `redis+cluster://…`; may hold a password.
    pub url: String,
}

impl fmt::Debug for LocksSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocksSettings").field("url", &display::without_password(&self.url)).finish()
    }
}

/// `[seats]`
#[derive(Clone, Debug)]
pub struct SeatSettings {
    /// `lease` and `renew_every`.
    pub terms: LeaseTerms,
    /// Silence after which a client's seat is released.
    pub client_timeout: Duration,
    /// How long a seat is kept for a holder whose socket died.
    pub resume_grace: Duration,
    /// Idleness after which a seat is released; `None` is never.
    pub idle_release: Option<Duration>,
}

/// `[history]`
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// Rest in the writing after which a version is kept.
    pub pause: Duration,
    /// How often one is kept while the writing does not rest.
    pub longest: Duration,
}

/// `[auth]`
#[derive(Clone, Debug)]
pub struct AuthSettings {
    /// Whether anybody may enter under a name.
    pub guests: bool,
    /// Where the HS256 secret is.
    pub secret_file: PathBuf,
    /// Where a page sends users who have no sign-in; `{return}` stands for the page's address.
    pub sign_in_url: Option<String>,
}

/// `[admin]`
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// Bearer for `/api/admin`; made on the first start when not set.
    pub token: Option<SecretString>,
}

/// `[limits]`
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Longest websocket message.
    pub message_bytes: u32,
    /// Largest document, with the marks that deleted text leaves.
    pub document_bytes: u32,
    /// Longest request body.
    pub body_bytes: u32,
    /// Websocket messages of a session, on average.
    pub messages_per_second: u32,
    /// Websocket messages of a session, at once.
    pub message_burst: u32,
    /// Open connections.
    pub connections: u32,
    /// Open connections of an address: the setting, or its part of all if that is less.
    pub connections_per_address: u32,
    /// Bytes held in memory for clients.
    pub buffered_bytes: u32,
    /// The same, for an address.
    pub buffered_bytes_per_address: u32,
    /// The same, for a user.
    pub buffered_bytes_per_user: u32,
    /// Guests that enter from an address, on average.
    pub guests_per_second: u32,
    /// Guests that enter from an address, at once.
    pub guest_burst: u32,
    /// Requests of a user, on average.
    pub requests_per_second: u32,
    /// Requests of a user, at once.
    pub request_burst: u32,
    /// Websockets that a user opens, on average.
    pub joins_per_second: u32,
    /// Websockets that a user opens, at once.
    pub join_burst: u32,
    /// Documents of a user.
    pub user_documents: u32,
    /// Bytes of a user's documents.
    pub user_bytes: u64,
    /// Bytes that the guests of an address store in an hour.
    pub guest_bytes_per_hour: u32,
    /// Bytes of the whole database, beyond which nothing new is stored.
    pub stored_bytes: u64,
}

/// `[log]`
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// A level, or directives by module.
    pub level: String,
    /// For people or for collectors.
    pub format: Format,
}

/// `[metrics]`
#[derive(Clone, Debug)]
pub struct MetricsSettings {
    /// Whether `GET /metrics` answers.
    pub enabled: bool,
}

impl Settings {
    /// Gathers the settings from all four places. `environment` is what the process was given.
    ///
    /// # Errors
    ///
    /// [`Faults`]: everything that is wrong, one line each.
    pub fn gather(flags: &Flags, environment: HashMap<String, String>) -> Result<Self, Faults> {
        let mut sources = Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(path) = &flags.config {
            sources = sources.add_source(File::from(path.as_path()).format(FileFormat::Toml));
        }
        let merged = sources
            .add_source(
                Environment::with_prefix("GALLEY")
                    // Not "__" here, or GALLEY_SERVER__LISTEN would silently be ignored.
                    .prefix_separator("_")
                    .separator("__")
                    .ignore_empty(true)
                    .source(Some(environment::settings(environment))),
            )
            .set_override_option("server.listen", flags.listen.clone())
            .and_then(|sources| {
                sources.set_override_option("database.url", flags.database_url.clone())
            })
            .and_then(|sources| sources.set_override_option("locks.url", flags.locks_url.clone()))
            .and_then(ConfigBuilder::<DefaultState>::build)
            .map_err(|error| Faults(vec![parse_fault::line(&error)]))?;
        validate::settings(&merged.cache).map_err(Faults)
    }

    /// The settings in force, as a file that could be given back, secrets as `***`.
    #[must_use]
    pub fn show(&self) -> String {
        display::settings(self)
    }
}

/// Reads a duration as settings have it: `"250ms"`, `"12s"`, `"30m"`, `"1h"`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    duration::parse(text)
}

#[cfg(test)]
mod tests;
