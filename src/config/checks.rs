//! The rules that no type tells: the forms of single texts, and keys that depend on each other.

use std::collections::HashSet;

use secrecy::ExposeSecret;

use crate::config::{AuthSettings, Found, PushSettings, Settings, WebhookSettings};
use crate::domain::lease::LeaseTerms;
use crate::domain::limits::{
    WEBHOOK_ENDPOINTS_MAX, WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_URL_BYTES_MAX,
};
use crate::locks::redis_client::url::RedisUrl;
use crate::outgoing::destination::{Destination, Scope};
use crate::telemetry::logs;

/// Minimum length of an admin token in bytes: that of the signing secret. Attackers try tokens from
/// outside, and the rate limit alone does not protect a short one.
const ADMIN_TOKEN_BYTES_MIN: usize = 32;
/// Maximum length of the sign-in address in bytes: browsers and proxies reject much longer ones.
const SIGN_IN_URL_BYTES_MAX: usize = 2_048;
/// The secrets of the examples in the README and the manual. Every reader of these knows them.
pub(super) const EXAMPLE_SECRETS: [&str; 2] =
    ["32 random bytes as hexadecimal digits", "a random text of 16 bytes or more"];

pub(super) fn check(all: &Settings, faults: &mut Found) {
    stores(all, faults);
    texts(all, faults);
    relations(all, faults);
    endpoints(&all.notify.webhooks, faults);
}

/// The faults of these omit the URL, which may contain a password.
fn stores(all: &Settings, faults: &mut Found) {
    if let Some(fault) = database_fault(&all.database.url) {
        faults.unless(false, &["database.url"], fault);
    }
    let locks = &all.locks.url;
    let redis = if locks == "memory:" { Ok(()) } else { RedisUrl::parse(locks).map(drop) };
    if let Err(fault) = redis {
        faults.unless(false, &["locks.url"], &fault.to_string());
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

fn texts(all: &Settings, faults: &mut Found) {
    let AuthSettings { secret_file, sign_in_url, .. } = &all.auth;
    let PushSettings { key_file, subject, hosts, .. } = &all.push;
    let empty = "must not be empty";
    faults.unless(!secret_file.as_os_str().is_empty(), &["auth.secret_file"], empty);
    faults.unless(!key_file.as_os_str().is_empty(), &["push.key_file"], empty);
    faults.unless(
        sign_in_url.as_deref().is_none_or(is_link),
        &["auth.sign_in_url"],
        "must be an http:// or https:// address, like \
         https://app.example.com/sign-in?next={return}",
    );
    let token = all.admin.token.as_ref().map(ExposeSecret::expose_secret);
    // The token travels in a header.
    faults.unless(
        token.is_none_or(|it| ADMIN_TOKEN_BYTES_MIN <= it.len() && is_printable(it)),
        &["admin.token"],
        "must be at least 32 bytes of printable ASCII without spaces; make one with `openssl rand \
         -hex 32`, or leave the setting out, and the first start makes one",
    );
    faults.unless(
        subject.as_deref().is_none_or(is_contact),
        &["push.subject"],
        "must be a contact, like mailto:ops@example.com, or an https:// address, of at most 256 \
         characters",
    );
    faults.unless(
        hosts.iter().all(|host| is_host_rule(host)),
        &["push.hosts"],
        "must be names of hosts separated by commas, like fcm.googleapis.com, *.push.apple.com",
    );
    faults.unless(
        logs::is_level(&all.log.level),
        &["log.level"],
        "must be error, warn, info, debug or trace, or directives by module like \
         info,galley::seats=debug",
    );
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The address becomes a link of the page, so another scheme (`javascript:`) is a fault.
fn is_link(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    has_host && is_printable(url) && url.len() <= SIGN_IN_URL_BYTES_MAX
}

/// Whether a push service can show the text as the operator's contact (RFC 8292 §2.1).
fn is_contact(text: &str) -> bool {
    const CHARACTERS_MAX: usize = 256;
    let rest = text.strip_prefix("mailto:").filter(|rest| rest.contains('@'));
    let rest = rest.or_else(|| text.strip_prefix("https://"));
    text.len() <= CHARACTERS_MAX && is_printable(text) && rest.is_some_and(|it| !it.is_empty())
}

fn is_host_rule(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(is_label)
}

fn relations(all: &Settings, faults: &mut Found) {
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

/// The faults of these omit the values: an address or a secret may be in the wrong place.
fn endpoints(all: &[WebhookSettings], faults: &mut Found) {
    let most = format!("must be at most {WEBHOOK_ENDPOINTS_MAX} endpoints");
    faults.unless(all.len() <= WEBHOOK_ENDPOINTS_MAX, &["notify.webhooks"], &most);
    let mut urls = HashSet::new();
    for (index, WebhookSettings { url, secret, events }) in all.iter().enumerate() {
        let at = |key: &str| format!("notify.webhooks[{index}].{key}");
        let at_url = at("url");
        let long = format!("must have at most {WEBHOOK_URL_BYTES_MAX} bytes");
        faults.unless(url.len() <= WEBHOOK_URL_BYTES_MAX, &[&at_url], &long);
        if let Err(error) = Destination::parse(url, Scope::Anywhere) {
            let fault = format!("must be an https:// or http:// address: {error}");
            faults.unless(false, &[&at_url], &fault);
        }
        faults.unless(urls.insert(url), &[&at_url], "is that of another endpoint");
        let secret = secret.expose_secret();
        let is_secret = WEBHOOK_SECRET_BYTES_MIN <= secret.len();
        let fault = format!(
            "must be at least {WEBHOOK_SECRET_BYTES_MIN} bytes, and no example of the manual; make \
             one with `openssl rand -hex 32`"
        );
        faults.unless(is_secret && !EXAMPLE_SECRETS.contains(&secret), &[&at("secret")], &fault);
        faults.unless(!events.is_empty(), &[&at("events")], "is empty");
    }
}
