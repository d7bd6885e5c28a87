//! Prints the settings in force as TOML that a settings file may contain, with secrets as `***`.

use std::fmt::Display;

use crate::config::{Settings, WebhookSettings, duration, jobs, limits};
use crate::http::assets::Assets;
use crate::telemetry::logs::Format;

/// The text printed in place of a secret.
const HIDDEN: &str = "***";

/// All settings, section by section in the manual's order.
pub(super) fn settings(all: &Settings) -> String {
    let first = [server(all), database(all), seats(all), history(all), auth(all)];
    let rest = [
        push(all),
        table("jobs", &jobs::shown(&all.jobs)),
        exports(all),
        table("limits", &limits::shown(&all.limits)),
        log(all),
    ];
    let endpoints: Vec<_> = all.webhooks.iter().map(webhook).collect();
    [first.as_slice(), &rest, &endpoints].concat().join("\n")
}

/// `url` with its query, if any, replaced by `***`.
pub(super) fn without_query(url: &str) -> String {
    match url.split_once(['?', '#']) {
        Some((address, _)) => format!("{address}?{HIDDEN}"),
        None => url.to_owned(),
    }
}

fn webhook(endpoint: &WebhookSettings) -> String {
    let names: Vec<_> = endpoint.events.iter().map(|it| format!("{:?}", it.as_str())).collect();
    let events = plain("events", format!("[{}]", names.join(", ")));
    let lines = [text("url", without_query(&endpoint.url)), text("secret", HIDDEN), events];
    section("[notify.webhooks]", &lines)
}

/// `url` with its password, if any, replaced by `***`.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let Some((account, host)) = authority.rsplit_once('@') else { return url.to_owned() };
    let Some((user, _password)) = account.split_once(':') else { return url.to_owned() };
    format!("{scheme}://{user}:{HIDDEN}@{host}{path}")
}

fn section(name: &str, lines: &[String]) -> String {
    format!("[{name}]\n{}\n", lines.join("\n"))
}

fn table(name: &str, values: &[(&str, String)]) -> String {
    let lines: Vec<_> = values.iter().map(|(key, value)| plain(key, value)).collect();
    section(name, &lines)
}

/// TOML and Rust differ in some escapes, but escape printable text alike.
fn text(key: &str, value: impl Display) -> String {
    format!("{key} = {:?}", value.to_string())
}

fn plain(key: &str, value: impl Display) -> String {
    format!("{key} = {value}")
}

fn unset(key: &str, then: &str) -> String {
    format!("# {key} is not set: {then}")
}

fn server(all: &Settings) -> String {
    let server = &all.server;
    let public_url = match &server.public_url {
        Some(origin) => text("public_url", origin),
        None => unset("public_url", "http:// and the address listened on"),
    };
    let linger = text("linger", duration::show(server.linger));
    let hosts = text("hosts", server.hosts.join(", "));
    let proxies = text("trusted_proxies", &server.trusted_proxies);
    let drain = text("drain", duration::show(server.drain));
    let listen = text("listen", server.listen);
    let assets = match server.assets {
        Assets::Bundle => "bundle",
        Assets::Sources => "sources",
    };
    let assets = text("assets", assets);
    section("server", &[listen, public_url, hosts, proxies, linger, drain, assets])
}

fn database(all: &Settings) -> String {
    let database = section(
        "database",
        &[
            text("url", without_password(&all.database.url)),
            plain("shared_sqlite", all.database.shared_sqlite),
        ],
    );
    let locks = section("locks", &[text("url", without_password(&all.locks.url))]);
    [database, locks].join("\n")
}

fn seats(all: &Settings) -> String {
    let seats = &all.seats;
    let shown = |key, value| text(key, duration::show(value));
    section(
        "seats",
        &[
            shown("lease", seats.terms.ttl),
            shown("renew_every", seats.terms.renew_every),
            shown("client_timeout", seats.client_timeout),
            shown("resume_grace", seats.resume_grace),
            shown("idle_release", seats.idle_release.unwrap_or_default()),
        ],
    )
}

fn history(all: &Settings) -> String {
    let shown = |key, value| text(key, duration::show(value));
    let (pause, longest) = (all.history.pause, all.history.longest);
    section("history", &[shown("pause", pause), shown("longest", longest)])
}

fn auth(all: &Settings) -> String {
    let sign_in_url = match &all.auth.sign_in_url {
        Some(url) => text("sign_in_url", url),
        None => unset("sign_in_url", "a page without a sign-in offers no link"),
    };
    let auth = section(
        "auth",
        &[
            plain("guests", all.auth.guests),
            text("secret_file", all.auth.secret_file.display()),
            sign_in_url,
        ],
    );
    let token = match &all.admin.token {
        Some(_) => text("token", HIDDEN),
        None => unset("token", "it is in data/admin-token, made on the first start"),
    };
    [auth, section("admin", &[token])].join("\n")
}

fn push(all: &Settings) -> String {
    let push = &all.push;
    let subject = match &push.subject {
        Some(subject) => text("subject", subject),
        None => unset("subject", "server.public_url, if that is https"),
    };
    section(
        "push",
        &[
            plain("enabled", push.enabled),
            text("key_file", push.key_file.display()),
            subject,
            text("hosts", push.hosts.join(", ")),
            plain("allow_private", push.allow_private),
        ],
    )
}

fn exports(all: &Settings) -> String {
    let fonts = all.exports.fonts.iter().map(|path| path.display().to_string());
    section("exports", &[plain("fonts", format!("{:?}", fonts.collect::<Vec<_>>()))])
}

fn log(all: &Settings) -> String {
    let format = match all.log.format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let log = section("log", &[text("level", &all.log.level), text("format", format)]);
    [log, section("metrics", &[plain("enabled", all.metrics.enabled)])].join("\n")
}
