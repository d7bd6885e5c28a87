//! The settings: merged from four sources and validated as a whole.
//!
//! Compiled-in defaults (`config/default.toml`, which is also the manual) ← the file of `--config` ←
//! environment `GALLEY_<SECTION>__<KEY>` ← flags. The server infers no value. Unknown keys, values out
//! of range and contradictions between keys stop the start, and all of them are listed at once, one line
//! each. The module reads the `--config` file and touches no other file. Variables that only share the
//! prefix are no settings ([`ignored`]).
//!
//! The manual says what each key means. [`checks`] holds the rules that no type of a [section](crate::setting)
//! of the core tells.

mod checks;
mod environment;
mod limits;
mod sources;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::config::sources::Source;
use crate::domain::lease::LeaseTerms;
use crate::exports::settings::ExportSettings;
use crate::http::host::Proxies;
use crate::http::origin::Origin;
use crate::oidc::settings::OidcSettings;
use crate::push::settings::PushSettings;
use crate::reminders::settings::JobSettings;
use crate::setting::{DAY, Lasting, MINUTE, hidden, list, without_password, words};
use crate::telemetry::logs::Format;
use crate::webhooks::settings::NotifySettings;

pub use crate::config::environment::ignored;
pub use crate::config::limits::LimitSettings;
pub use crate::setting::parse_duration;

/// The defaults, which are also the manual.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub listen: Option<String>,
    pub database_url: Option<String>,
    pub locks_url: Option<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Faults(pub Vec<String>);

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub server: ServerSettings,
    pub database: DatabaseSettings,
    pub locks: LocksSettings,
    pub seats: SeatSettings,
    pub history: HistorySettings,
    pub auth: AuthSettings,
    pub admin: AdminSettings,
    pub audit: AuditSettings,
    pub push: PushSettings,
    pub jobs: JobSettings,
    pub exports: ExportSettings,
    pub notify: NotifySettings,
    pub limits: LimitSettings,
    pub log: LogSettings,
    pub metrics: MetricsSettings,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    pub listen: SocketAddr,
    pub public_url: Option<Origin>,
    pub linger: Lasting<0, { 10 * MINUTE }>,
    #[serde(deserialize_with = "list")]
    pub hosts: Vec<String>,
    pub page_url: Option<Origin>,
    #[serde(deserialize_with = "words")]
    pub allowed_origins: Vec<Origin>,
    #[serde(deserialize_with = "words")]
    pub frame_ancestors: Vec<Origin>,
    pub trusted_proxies: Proxies,
    pub drain: Lasting<0, { 10 * MINUTE }>,
    pub assets: Assets,
    /// Empty: that of the host.
    pub name: String,
}

/// The pages are in the program. The setting has had another value, so its files and variables exist.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Assets {
    Bundle,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `sqlite://PATH` or `postgres://…`; may contain a password.
    #[serde(serialize_with = "without_password")]
    pub url: String,
    /// The password of `url`, which then has none.
    pub password_file: Option<PathBuf>,
    pub shared_sqlite: bool,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LocksSettings {
    /// `memory:`, `redis://…`, `redis+sentinel://…` or `redis+cluster://…`; may contain a password.
    #[serde(serialize_with = "without_password")]
    pub url: String,
    /// The password of `url`, which then has none.
    pub password_file: Option<PathBuf>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeatSettings {
    pub lease: Lasting<150, { 10 * MINUTE }>,
    pub renew_every: Lasting<50, { 10 * MINUTE }>,
    pub client_timeout: Lasting<50, { 10 * MINUTE }>,
    pub resume_grace: Lasting<0, { 10 * MINUTE }>,
    pub idle_release: Lasting<0, DAY>,
}

impl SeatSettings {
    /// The terms of a lease, which [`checks`] has validated.
    #[must_use]
    pub fn terms(&self) -> LeaseTerms {
        LeaseTerms { ttl: *self.lease, renew_every: *self.renew_every }
    }
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HistorySettings {
    pub pause: Lasting<50, { 10 * MINUTE }>,
    pub longest: Lasting<50, DAY>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuthSettings {
    pub guests: bool,
    pub secret_file: PathBuf,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_secrets: Vec<TokenSecretFile>,
    pub jwks_url: Option<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    #[serde(deserialize_with = "list")]
    pub name_claims: Vec<String>,
    pub sign_in_url: Option<String>,
    pub oidc: Option<OidcSettings>,
    pub session: Lasting<MINUTE, { 29 * DAY }>,
}

/// A secret of tokens: its name in their headers, and its file.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenSecretFile {
    pub kid: String,
    pub file: PathBuf,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AdminSettings {
    /// Bearer token for `/api/admin`. Without it the token is in `token_file`.
    #[serde(serialize_with = "hidden", skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretString>,
    pub token_file: PathBuf,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    pub retention: Lasting<DAY, { 3_650 * DAY }>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub level: String,
    pub format: Format,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
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
mod oidc_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod webhook_tests;
