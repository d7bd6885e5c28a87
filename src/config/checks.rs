//! The rules that no type tells: the forms of single texts, and keys that depend on each other.

use std::collections::HashSet;

use secrecy::ExposeSecret;

use crate::config::{AuthSettings, Settings, TokenSecretFile};
use crate::domain::lease::LeaseTerms;
use crate::http::host;
use crate::locks::redis_client::{self, EndpointError};
use crate::outgoing::destination::{Destination, HostScope};
use crate::setting::{FoundFaults, is_printable, with_password};
use crate::storage::Storage;
use crate::telemetry::logs;

/// Minimum length of an admin token in bytes: that of the signing secret. Attackers try tokens from
/// outside, and the rate limit alone does not protect a short one.
const ADMIN_TOKEN_BYTES_MIN: usize = 32;
/// Maximum length of the sign-in address in bytes: browsers and proxies reject much longer ones.
const SIGN_IN_URL_BYTES_MAX: usize = 2_048;
/// Secrets of tokens: the present one, the next one, and former ones whose tokens are valid.
const TOKEN_SECRETS_MAX: usize = 8;
const TOKEN_SECRET_NAME_BYTES_MAX: usize = 64;

pub(super) fn check(all: &Settings, faults: &mut FoundFaults) {
    stores(all, faults);
    texts(all, faults);
    relations(all, faults);
    provider(&all.auth, faults);
    if let Some(oidc) = &all.auth.oidc {
        oidc.check(faults);
        faults.unless(
            all.auth.sign_in_url.is_none(),
            &["auth.sign_in_url", "auth.oidc"],
            "must be left out with auth.oidc, whose sign-in the page uses",
        );
        faults.unless(
            all.auth.issuer.as_ref().is_none_or(|issuer| *issuer == oidc.issuer),
            &["auth.oidc.issuer", "auth.issuer"],
            "must be auth.issuer, where both are set: one `sub` of two providers would be one user",
        );
    }
    token_secrets(&all.auth, faults);
    all.push.check(faults);
    all.notify.check(faults);
}

/// The faults of these omit the URL, which may contain a password.
fn stores(all: &Settings, faults: &mut FoundFaults) {
    let database = &all.database.url;
    let fault = database_fault(database).map(str::to_owned);
    if let Some(fault) = fault.or_else(|| Storage::url_fault(database)) {
        faults.unless(false, &["database.url"], &fault);
    }
    let locks = &all.locks.url;
    if locks != "memory:"
        && let Err(error) = redis_client::target(locks)
    {
        let fault = match error {
            EndpointError::Url(fault) => fault.to_string(),
            EndpointError::Client(error) => format!("is invalid: {error}"),
        };
        faults.unless(false, &["locks.url"], &fault);
    }
    for (section, url, file, is_remote) in [
        ("database", database, &all.database.password_file, database.starts_with("postgres")),
        ("locks", locks, &all.locks.password_file, locks != "memory:"),
    ] {
        let has_none = is_remote && with_password(url, "") == *url;
        faults.unless(
            file.is_none() || has_none,
            &[&format!("{section}.password_file"), &format!("{section}.url")],
            &format!("needs a {section}.url of a server, without a password in it"),
        );
    }
    // A database file has one server, unless its operator sets `database.shared_sqlite`.
    let is_alone = !all.database.url.starts_with("sqlite:") || locks == "memory:";
    faults.unless(
        is_alone || all.database.shared_sqlite,
        &["locks.url", "database.url", "database.shared_sqlite"],
        "several servers share a Redis, and they would not share this SQLite file; set database.url \
         to a PostgreSQL, or database.shared_sqlite = true if all servers run on this host",
    );
}

fn database_fault(url: &str) -> Option<&'static str> {
    match url.split_once("://") {
        Some(("sqlite", path)) if !path.is_empty() => None,
        Some(("postgres" | "postgresql", rest)) => postgres_fault(rest),
        _ => Some(
            "must be sqlite://PATH, like sqlite://data/galley.db, or \
             postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE",
        ),
    }
}

/// Checks the part after `postgres://`; `None` if it is valid.
fn postgres_fault(rest: &str) -> Option<&'static str> {
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = address.split_once('/').unwrap_or((address, ""));
    // A password with a slash would end the authority, and `show` would print it as part of the path.
    if database.contains(['@', '/']) || parameters.contains('@') {
        return Some("holds an @ or a / too many; in a password write %40 and %2F");
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') || database.is_empty() {
        return Some("must be postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE");
    }
    // The driver accepts more, but the server sets those itself, or they would hide a password from
    // `without_password`.
    let mut names = parameters.split('&').map(|one| one.split('=').next().unwrap_or_default());
    names
        .any(|name| !matches!(name, "" | "sslmode" | "sslrootcert" | "sslcert" | "sslkey"))
        .then_some("may have no parameters other than sslmode, sslrootcert, sslcert, sslkey")
}

fn texts(all: &Settings, faults: &mut FoundFaults) {
    let has_form = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    let name = &all.server.name;
    faults.unless(
        name.len() <= 64 && name.chars().all(has_form),
        &["server.name"],
        "must be 1 to 64 of A–Z a–z 0–9 . _ - (empty: the name of the host)",
    );
    faults.unless(
        all.server.hosts.iter().all(|name| host::is_name(name)),
        &["server.hosts"],
        "must be names of hosts, like galley.internal, without a scheme and a path",
    );
    let AuthSettings { secret_file, sign_in_url, .. } = &all.auth;
    let has_file = !secret_file.as_os_str().is_empty();
    faults.unless(has_file, &["auth.secret_file"], "must not be empty");
    faults.unless(
        sign_in_url.as_deref().is_none_or(is_link),
        &["auth.sign_in_url"],
        "must be an http:// or https:// address, like \
         https://app.example.com/sign-in?next={return}",
    );
    let has_file = !all.admin.token_file.as_os_str().is_empty();
    faults.unless(has_file, &["admin.token_file"], "must not be empty");
    let token = all.admin.token.as_ref().map(ExposeSecret::expose_secret);
    // The token travels in a header.
    faults.unless(
        token.is_none_or(|it| it.len() >= ADMIN_TOKEN_BYTES_MIN && is_printable(it)),
        &["admin.token"],
        "must be at least 32 bytes of printable ASCII without spaces; make one with `openssl rand \
         -hex 32`, or leave the setting out, and the first start makes one",
    );
    if let Some(fault) = logs::fault(&all.log.level) {
        faults.unless(false, &["log.level"], &format!("{fault} (as in info,galley::seats=debug)"));
    }
}

/// The address becomes a link of the page, so another scheme (`javascript:`) is a fault.
fn is_link(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    has_host && is_printable(url) && url.len() <= SIGN_IN_URL_BYTES_MAX
}

/// Without issuer and audience any application of the provider could sign its users in here.
fn provider(auth: &AuthSettings, faults: &mut FoundFaults) {
    let AuthSettings { jwks_url, issuer, audience, name_claims, .. } = auth;
    let set = [jwks_url, issuer, audience].map(Option::is_some);
    faults.unless(
        matches!(set, [true, true, true] | [false, false, false]),
        &["auth.jwks_url", "auth.issuer", "auth.audience"],
        "is set together with auth.issuer and auth.audience: all three, or none",
    );
    if let Some(Err(error)) =
        jwks_url.as_ref().map(|it| Destination::parse(it, HostScope::Authentic))
    {
        let fault = format!(
            "must be an https:// address, or http:// of this host (127.0.0.1, localhost): {error}"
        );
        faults.unless(false, &["auth.jwks_url"], &fault);
    }
    for (key, text) in [("auth.issuer", issuer), ("auth.audience", audience)] {
        let is_text = text.as_deref().is_none_or(|it| !it.is_empty() && is_printable(it));
        faults.unless(is_text, &[key], "must be printable ASCII without spaces");
    }
    let is_named = !name_claims.is_empty();
    faults.unless(is_named, &["auth.name_claims"], "must name a claim, like name");
}

fn token_secrets(auth: &AuthSettings, faults: &mut FoundFaults) {
    let is_bounded = auth.token_secrets.len() <= TOKEN_SECRETS_MAX;
    let most = format!("must be at most {TOKEN_SECRETS_MAX} secrets");
    faults.unless(is_bounded, &["auth.token_secrets"], &most);
    let mut names = HashSet::new();
    for (index, TokenSecretFile { kid, file }) in auth.token_secrets.iter().enumerate() {
        let at = |key: &str| format!("auth.token_secrets[{index}].{key}");
        let is_name = (1..=TOKEN_SECRET_NAME_BYTES_MAX).contains(&kid.len()) && is_printable(kid);
        let fault = "must be 1 to 64 bytes of printable ASCII without spaces";
        faults.unless(is_name, &[&at("kid")], fault);
        faults.unless(names.insert(kid), &[&at("kid")], "is that of another secret");
        faults.unless(!file.as_os_str().is_empty(), &[&at("file")], "must not be empty");
    }
}

fn relations(all: &Settings, faults: &mut FoundFaults) {
    let Settings { seats, history, limits, .. } = all;
    if let Err(error) = LeaseTerms::new(*seats.lease, *seats.renew_every) {
        let fault = format!("{error} (seats.renew_every)");
        faults.unless(false, &["seats.lease", "seats.renew_every"], &fault);
    }
    faults.unless(
        *seats.renew_every < *seats.client_timeout,
        &["seats.client_timeout", "seats.renew_every"],
        "must be longer than seats.renew_every, which is also the interval of the heartbeat",
    );
    faults.unless(
        *history.pause <= *history.longest,
        &["history.longest", "history.pause"],
        "must be at least history.pause: only edits without such a pause reach this interval",
    );
    faults.unless(
        *limits.message_bytes <= *limits.document_bytes,
        &["limits.document_bytes", "limits.message_bytes"],
        "must be at least limits.message_bytes: a whole document may come in one message",
    );
    let (address, user) = (*limits.buffered_bytes_per_address, *limits.buffered_bytes_per_user);
    faults.unless(
        (user..=*limits.buffered_bytes / 4).contains(&address),
        &[
            "limits.buffered_bytes_per_address",
            "limits.buffered_bytes_per_user",
            "limits.buffered_bytes",
        ],
        "must be at least limits.buffered_bytes_per_user, and at most a quarter of \
         limits.buffered_bytes: no address holds more than it leaves to others",
    );
    faults.unless(
        limits.body_bytes.max(*limits.message_bytes) <= user / 2,
        &["limits.buffered_bytes_per_user", "limits.body_bytes", "limits.message_bytes"],
        "must be at least twice limits.body_bytes and limits.message_bytes: one of them may be in \
         transfer while a response is",
    );
}
