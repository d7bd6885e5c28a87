//! The settings: merged from four sources and validated as a whole.
//!
//! Compiled-in defaults (`config/default.toml`, which is also the manual) ← the file of `--config` ←
//! environment `GALLEY_<SECTION>__<KEY>` ← flags. The server infers no value. Unknown keys, values out
//! of range and contradictions between keys stop the start, and all of them are listed at once, one line
//! each. The module reads the `--config` file and touches no other file. Variables that only share the
//! prefix are no settings ([`ignored`]).

#[macro_use]
mod section;

mod display;
mod duration;
mod environment;
mod jobs;
mod limits;
mod parse;
mod parse_fault;
mod push;
mod validate;
mod webhooks;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::config::builder::DefaultState;
use ::config::{Config, ConfigBuilder, Environment, File, FileFormat};
use secrecy::SecretString;

use crate::domain::lease::LeaseTerms;
use crate::domain::webhook::WebhookEvent;
use crate::http::assets::Assets;
use crate::http::host::Proxies;
use crate::http::origin::Origin;
use crate::telemetry::logs::Format;

pub use crate::config::environment::ignored;
pub use crate::config::jobs::JobSettings;
pub use crate::config::limits::LimitSettings;

/// The defaults, which are also the manual.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// The settings that the command line overrides.
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

/// All faults of the settings, one line each.
#[derive(Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Faults {}

/// All settings, validated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address, origin, proxies and stop.
    pub server: ServerSettings,
    /// The store of documents.
    pub database: DatabaseSettings,
    /// The lock service.
    pub locks: LocksSettings,
    /// Lease, timeouts and grace periods of seats.
    pub seats: SeatSettings,
    /// When versions are recorded.
    pub history: HistorySettings,
    /// Authentication.
    pub auth: AuthSettings,
    /// The admin API.
    pub admin: AdminSettings,
    /// Web Push.
    pub push: PushSettings,
    /// The tick of jobs, and when users are reminded.
    pub jobs: JobSettings,
    /// The fonts of exports.
    pub exports: ExportSettings,
    /// Endpoints of webhooks.
    pub webhooks: Vec<WebhookSettings>,
    /// Limits and rates.
    pub limits: LimitSettings,
    /// Level and format of the log.
    pub log: LogSettings,
    /// The metrics endpoint.
    pub metrics: MetricsSettings,
}

/// `[server]`
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// The origin under which browsers reach the server; derived from `listen` when not set.
    pub public_url: Option<Origin>,
    /// How long a stopping server announces its stop before it closes its listener.
    pub linger: Duration,
    /// Further names under which the server answers.
    pub hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` the server trusts.
    pub trusted_proxies: Proxies,
    /// The period over which a stopping server spreads the closes of its sockets.
    pub drain: Duration,
    /// Where the server reads the pages and their files.
    pub assets: Assets,
}

/// `[database]`
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `sqlite://PATH` or `postgres://…`; may contain a password.
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
    /// `memory:`, `redis://…`, `redis+sentinel://…` or `redis+cluster://…`; may contain a password.
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
    /// Silence of a client after which its seat is released.
    pub client_timeout: Duration,
    /// How long a seat stays reserved after its holder's socket broke.
    pub resume_grace: Duration,
    /// Idle time after which a seat is released; `None` is never.
    pub idle_release: Option<Duration>,
}

/// `[history]`
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// Pause in the edits after which a version is recorded.
    pub pause: Duration,
    /// Interval of versions while the edits do not pause.
    pub longest: Duration,
}

/// `[auth]`
#[derive(Clone, Debug)]
pub struct AuthSettings {
    /// Whether a user without an account may enter under a name.
    pub guests: bool,
    /// The file of the HS256 secret.
    pub secret_file: PathBuf,
    /// Where the page sends users who have no sign-in; the page replaces `{return}` by its own address.
    pub sign_in_url: Option<String>,
}

/// `[admin]`
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// Bearer token for `/api/admin`; the first start creates one when it is not set.
    pub token: Option<SecretString>,
}

/// `[push]`
#[derive(Clone, Debug)]
pub struct PushSettings {
    /// Whether browsers may subscribe, and the server sends pushes.
    pub enabled: bool,
    /// The file of the private key.
    pub key_file: PathBuf,
    /// The operator's contact: `mailto:` or `https:`.
    pub subject: Option<String>,
    /// The hosts of push services. Empty: every public host.
    pub hosts: Vec<String>,
    /// Whether push services may have private addresses, and no TLS.
    pub allow_private: bool,
}

/// `[exports]`
#[derive(Clone, Debug)]
pub struct ExportSettings {
    /// The font files of PDFs, in order of preference.
    pub fonts: Vec<PathBuf>,
}

/// `[[notify.webhooks]]`
#[derive(Clone)]
pub struct WebhookSettings {
    /// The address, which may contain a secret in its query.
    pub url: String,
    /// The secret of the signatures.
    pub secret: SecretString,
    /// The events that the endpoint wants.
    pub events: Vec<WebhookEvent>,
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings")
            .field("url", &display::without_query(&self.url))
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// `[log]`
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// A level, or directives by module.
    pub level: String,
    /// Text for people, JSON for collectors.
    pub format: Format,
}

/// `[metrics]`
#[derive(Clone, Debug)]
pub struct MetricsSettings {
    /// Whether `GET /metrics` answers.
    pub enabled: bool,
}

impl Settings {
    /// Merges and validates the four sources. `environment` holds the variables of the process.
    ///
    /// # Errors
    ///
    /// [`Faults`]: all faults, one line each.
    pub fn load(flags: &Flags, environment: HashMap<String, String>) -> Result<Self, Faults> {
        let mut sources = Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(path) = &flags.config {
            sources = sources.add_source(File::from(path.as_path()).format(FileFormat::Toml));
        }
        let merged = sources
            .add_source(
                Environment::with_prefix("GALLEY")
                    // Not "__" here: the crate would then ignore GALLEY_SERVER__LISTEN without an error.
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

    /// The settings in force, as TOML that a settings file may contain, with secrets as `***`.
    #[must_use]
    pub fn show(&self) -> String {
        display::settings(self)
    }
}

/// Parses a duration in the form of the settings: `"250ms"`, `"12s"`, `"30m"`, `"1h"`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    duration::parse(text)
}

#[cfg(test)]
mod tests;
