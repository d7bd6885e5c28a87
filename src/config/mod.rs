//! The settings: merged from four sources and validated as a whole.
//!
//! Compiled-in defaults (`config/default.toml`, which is also the manual) ← the file of `--config` ←
//! environment `GALLEY_<SECTION>__<KEY>` ← flags. The server infers no value. Unknown keys, values out
//! of range and contradictions between keys stop the start, and all of them are listed at once, one line
//! each. The module reads the `--config` file and touches no other file. Variables that only share the
//! prefix are no settings ([`ignored`]).
//!
//! A section is a struct of `serde`: its fields are the keys, with type and range. [`checks`] holds the
//! rules that no type tells.

mod checks;
mod environment;
mod limits;
mod sources;
mod values;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use humantime::parse_duration;

use crate::config::sources::Source;
use crate::config::values::{
    DAY, HOUR, Lasting, MINUTE, hidden, list, without_password, without_query,
};
use crate::domain::lease::LeaseTerms;
use crate::domain::limits::JOB_TICKS;
use crate::domain::webhook::WebhookEvent;
use crate::http::assets::Assets;
use crate::http::host::Proxies;
use crate::http::origin::Origin;
use crate::telemetry::logs::Format;

pub use crate::config::environment::ignored;
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
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Faults(pub Vec<String>);

/// All settings, validated.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
    pub notify: NotifySettings,
    /// Limits and rates.
    pub limits: LimitSettings,
    /// Level and format of the log.
    pub log: LogSettings,
    /// The metrics endpoint.
    pub metrics: MetricsSettings,
}

/// `[server]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// The origin under which browsers reach the server; derived from `listen` when not set.
    pub public_url: Option<Origin>,
    /// How long a stopping server announces its stop before it closes its listener.
    pub linger: Lasting<0, { 10 * MINUTE }>,
    /// Further names under which the server answers.
    #[serde(deserialize_with = "list")]
    pub hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` the server trusts.
    pub trusted_proxies: Proxies,
    /// The period over which a stopping server spreads the closes of its sockets.
    pub drain: Lasting<0, { 10 * MINUTE }>,
    /// Where the server reads the pages and their files.
    pub assets: Assets,
}

/// `[database]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `sqlite://PATH` or `postgres://…`; may contain a password.
    #[serde(serialize_with = "without_password")]
    pub url: String,
    /// Whether several servers may share a `SQLite` file.
    pub shared_sqlite: bool,
}

/// `[locks]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LocksSettings {
    /// `memory:`, `redis://…`, `redis+sentinel://…` or `redis+cluster://…`; may contain a password.
    #[serde(serialize_with = "without_password")]
    pub url: String,
}

/// `[seats]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeatSettings {
    /// TTL of a seat's key.
    pub lease: Lasting<150, { 10 * MINUTE }>,
    /// Period of the renewal.
    pub renew_every: Lasting<50, { 10 * MINUTE }>,
    /// Silence of a client after which its seat is released.
    pub client_timeout: Lasting<50, { 10 * MINUTE }>,
    /// How long a seat stays reserved after its holder's socket broke.
    pub resume_grace: Lasting<0, { 10 * MINUTE }>,
    /// Idle time after which a seat is released; zero is never.
    pub idle_release: Lasting<0, DAY>,
}

impl SeatSettings {
    /// The terms of a lease, which [`checks`] has validated.
    #[must_use]
    pub fn terms(&self) -> LeaseTerms {
        LeaseTerms { ttl: *self.lease, renew_every: *self.renew_every }
    }
}

/// `[history]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HistorySettings {
    /// Pause in the edits after which a version is recorded.
    pub pause: Lasting<50, { 10 * MINUTE }>,
    /// Interval of versions while the edits do not pause.
    pub longest: Lasting<50, DAY>,
}

/// `[auth]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuthSettings {
    /// Whether a user without an account may enter under a name.
    pub guests: bool,
    /// The file of the HS256 secret.
    pub secret_file: PathBuf,
    /// Where the page sends users who have no sign-in; the page replaces `{return}` by its own address.
    pub sign_in_url: Option<String>,
}

/// `[admin]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AdminSettings {
    /// Bearer token for `/api/admin`; the first start creates one when it is not set.
    #[serde(serialize_with = "hidden", skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretString>,
}

/// `[push]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PushSettings {
    /// Whether browsers may subscribe, and the server sends pushes.
    pub enabled: bool,
    /// The file of the private key.
    pub key_file: PathBuf,
    /// The operator's contact: `mailto:` or `https:`.
    pub subject: Option<String>,
    /// The hosts of push services. Empty: every public host.
    #[serde(deserialize_with = "list")]
    pub hosts: Vec<String>,
    /// Whether push services may have private addresses, and no TLS.
    pub allow_private: bool,
}

/// The range of `jobs.tick`.
const _: () = assert!(JOB_TICKS.0.as_millis() == 100 && JOB_TICKS.1.as_millis() == HOUR as u128);

/// `[jobs]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobSettings {
    /// The interval of the ticks.
    pub tick: Lasting<100, HOUR>,
    /// How long a review waits for an answer before its writer is reminded.
    pub review_unanswered_after: Lasting<100, { 30 * DAY }>,
    /// How long a request waits for an answer before its receiver is reminded.
    pub request_unanswered_after: Lasting<100, { 30 * DAY }>,
}

/// `[exports]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExportSettings {
    /// The font files of PDFs, in order of preference.
    #[serde(deserialize_with = "list")]
    pub fonts: Vec<PathBuf>,
}

/// `[notify]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NotifySettings {
    /// Endpoints of webhooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookSettings>,
}

/// `[[notify.webhooks]]`
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// The address, which may contain a secret in its query.
    #[serde(serialize_with = "without_query")]
    pub url: String,
    /// The secret of the signatures.
    #[serde(serialize_with = "hidden")]
    pub secret: SecretString,
    /// The events that the endpoint wants.
    #[serde(deserialize_with = "list")]
    pub events: Vec<WebhookEvent>,
}

/// `[log]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// A level, or directives by module.
    pub level: String,
    /// Text for people, JSON for collectors.
    pub format: Format,
}

/// `[metrics]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Whether `GET /metrics` answers.
    pub enabled: bool,
}

/// Without secrets: no section has a [`fmt::Debug`] of its own.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

impl Settings {
    /// Merges and validates the four sources. `environment` holds the variables of the process. Fails
    /// with all faults, one line each.
    pub fn load(flags: &Flags, environment: HashMap<String, String>) -> Result<Self, Faults> {
        let flag = |section: &str, key: &str, text: &Option<String>| {
            text.clone().map(|text| [section.to_owned(), key.to_owned(), text])
        };
        let of_flags = [
            flag("server", "listen", &flags.listen),
            flag("database", "url", &flags.database_url),
            flag("locks", "url", &flags.locks_url),
        ];
        let texts = [
            Ok(Source::of_texts("the environment", environment::settings(environment))),
            Ok(Source::of_texts("the command line", of_flags.into_iter().flatten())),
        ];
        let defaults = Source::parse("config/default.toml", DEFAULTS);
        let file = flags.config.iter().map(|path| Source::read(path));
        let all = std::iter::once(defaults).chain(file).chain(texts).collect::<Result<Vec<_>, _>>();
        sources::settings(&all.map_err(|line| Faults(vec![line]))?)
    }

    /// The settings in force, as TOML that a settings file may contain, with secrets as `***`.
    #[must_use]
    pub fn show(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| format!("# {error}\n"))
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod webhook_tests;
