//! `galley doctor`: the checks of a start and one request through the proxy, without a change.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures_util::future::BoxFuture;

use crate::app::host_keys::{KeySource, oidc_of};
use crate::app::names::origins;
use crate::app::secrets::{self, SecretFile};
use crate::app::{open_files, readiness};
use crate::config::Settings;
use crate::domain::user::User;
use crate::http::auth::tokens::Tokens;
use crate::http::origin::Origin;
use crate::locks::Locks;
use crate::outgoing::Outgoing;
use crate::outgoing::destination::{Destination, HostScope};
use crate::outgoing::header::{COOKIE, HeaderMap, ORIGIN};
use crate::storage::Storage;
use crate::storage::error::StorageError;

/// The user of the request through the proxy, which changes nothing and leaves a line in the log.
const USER: &str = "galley-doctor";
/// Lifetime of the token of that request.
const TOKEN_TTL: Duration = Duration::from_secs(60);

/// A check: its setting, and a sentence about it, of a fault with the remedy.
type Check = (&'static str, Result<String, String>);

/// Why a request was not sent or not answered.
type Fault = Box<dyn Error + Send + Sync>;

/// Runs all checks. Returns a line of each, and the number of faults.
pub fn examine(settings: &Settings) -> BoxFuture<'_, (String, usize)> {
    Box::pin(async move {
        let secret = secrets::read(SecretFile("auth.secret_file", &settings.auth.secret_file));
        let file = settings.auth.secret_file.display();
        let of_secret = match &secret {
            Ok(Some(_)) => Ok(format!("{file} can be read")),
            Ok(None) => Ok(format!("{file} is missing; a start makes it")),
            Err(error) => Err(match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }),
        };
        let mut checks = vec![
            ("limits.connections", open_files::raise_bound(*settings.limits.connections)),
            ("auth.secret_file", of_secret),
            ("database.url", of_database(&settings.database.url).await),
        ];
        checks.extend(of_locks(&settings.locks.url).await);
        if let Some(source) = KeySource::of(&settings.auth) {
            let read = source.read().await.map(|keys| format!("keys of the provider: {keys}"));
            checks.push(("auth.jwks_url", read));
        }
        match oidc_of(&settings.auth, &origins(&settings.server, settings.server.listen)) {
            Ok(None) => {}
            Ok(Some(oidc)) => {
                let uri = oidc.redirect_uri().to_owned();
                let found = |keys| {
                    format!("keys of the provider: {keys}; its redirect URI for Galley is {uri}")
                };
                checks.push(("auth.oidc", oidc.read().await.map(found)));
            }
            Err(error) => checks.push(("auth.oidc", Err(error.to_string()))),
        }
        if let (Some(origin), Ok(Some(_))) = (&settings.server.public_url, &secret) {
            let passed = match secrets::tokens(&settings.auth) {
                Ok(tokens) => through_proxy(origin, &tokens).await,
                Err(error) => Err(error.into()),
            };
            checks.push(("server.public_url", passed.map_err(|fault| fault.to_string())));
        }
        let faults = checks.iter().filter(|(_, found)| found.is_err()).count();
        let line = |(name, found): &Check| match found {
            Ok(text) => format!("ok     {name}: {text}\n"),
            Err(text) => format!("FAULT  {name}: {text}\n"),
        };
        (checks.iter().map(line).collect(), faults)
    })
}

async fn of_database(url: &str) -> Result<String, String> {
    let examined = Storage::examine(url).await;
    examined.map(|schema| format!("the database {schema}")).map_err(|error| match error {
        StorageError::Unavailable(_) => format!("{error}; {}", readiness::remedy_of(&error)),
        _ => error.to_string(),
    })
}

async fn of_locks(url: &str) -> Vec<Check> {
    let fine = |text: &str| ("locks.url", Ok(text.to_owned()));
    let fault = |text: String| ("locks.url", Err(text));
    if url == "memory:" {
        return vec![fine("the locks stand in the memory of this one server")];
    }
    let locks = match Locks::connect(url).await {
        Ok(locks) => locks,
        Err(error) => return vec![fault(error.to_string())],
    };
    let mut checks = Vec::new();
    match locks.check().await {
        Ok(()) => checks.push(fine("Redis is a primary, of a fit version, policy and rights")),
        Err(error) => {
            let (cause, remedy) = (error.to_string(), readiness::locks_down(&error).remedy);
            let is_said = cause.contains(&remedy);
            checks.push(fault(if is_said { cause } else { format!("{cause}; {remedy}") }));
        }
    }
    match locks.warnings().as_slice() {
        [] if checks.iter().all(|(_, found)| found.is_ok()) => {
            let ahead = locks.clock_ahead().as_seconds_f64();
            checks
                .push(fine(&format!("the clock of Redis is {ahead} s ahead, and messages return")));
        }
        warnings => checks.extend(warnings.iter().map(|&warning| fault(warning.to_owned()))),
    }
    locks.close().await;
    checks
}

/// Sends the sign-out of a user of its own, as a browser does. The server demands its own host, its own origin
/// and its own secret.
async fn through_proxy(origin: &Origin, tokens: &Tokens) -> Result<String, Fault> {
    let user = User { id: USER.parse()?, name: USER.to_owned() };
    let signed = tokens.sign(&user, false, TOKEN_TTL, Utc::now())?;
    let mut headers = HeaderMap::new();
    headers.insert(COOKIE, format!("galley_token={}", signed.token).parse()?);
    headers.insert(ORIGIN, origin.to_string().parse()?);
    let to = Destination::parse(&format!("{origin}/api/auth/leave"), HostScope::Anywhere)?;
    let reply = Outgoing::default().post("doctor", &to, headers, Bytes::new()).await;
    let reply = reply.map_err(|error| {
        format!(
            "{error}: see whether {origin} leads to the proxy, and this host trusts its certificate"
        )
    })?;
    let remedy = match reply.status {
        204 => return Ok(format!("{origin} leads to a server with these settings")),
        401 => {
            "its server has another auth.secret_file or auth.token_secrets, or the proxy drops cookies"
        }
        403 => {
            "its server has another server.public_url; set that of the address bar on all servers"
        }
        421 => "the proxy passes another Host than the browser's; let it pass that one",
        502..=504 => {
            "the proxy reaches no server; start one, and see the addresses in the proxy's settings"
        }
        _ => "no Galley responds so; let the proxy lead to its servers",
    };
    Err(format!("{origin} responds with {}: {remedy}", reply.status).into())
}
