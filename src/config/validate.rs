//! Turns the merged sources into settings, and checks the keys against each other.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::config::Value;
use secrecy::SecretString;

use crate::config::jobs;
use crate::config::limits;
use crate::config::parse::Reader;
use crate::config::push;
use crate::config::webhooks;
use crate::config::{
    AdminSettings, AuthSettings, DatabaseSettings, ExportSettings, HistorySettings, LocksSettings,
    LogSettings, MetricsSettings, SeatSettings, ServerSettings, Settings,
};
use crate::domain::lease::LeaseTerms;
use crate::http::assets::Assets;
use crate::http::host::Proxies;
use crate::http::origin::Origin;
use crate::locks::redis_client::url::RedisUrl;
use crate::telemetry::logs::{self, Format};

/// Minimum length of an admin token in bytes: that of the signing secret. Attackers try tokens from
/// outside, and the rate limit alone does not protect a short one.
const ADMIN_TOKEN_BYTES_MIN: usize = 32;
/// Maximum length of the sign-in address in bytes: browsers and proxies reject much longer ones.
const SIGN_IN_URL_BYTES_MAX: usize = 2_048;

/// Reads and checks all keys.
///
/// # Errors
///
/// One line for each fault.
pub(super) fn settings(root: &Value) -> Result<Settings, Vec<String>> {
    let mut reader = Reader::new(root);
    let server = server(&mut reader);
    let database = database(&mut reader);
    let locks = locks(&mut reader);
    let seats = seats(&mut reader);
    let history = history(&mut reader);
    let auth = auth(&mut reader);
    let admin = admin(&mut reader);
    let push = push::settings(&mut reader);
    let jobs = jobs::settings(&mut reader);
    let fonts = reader.list("exports.fonts");
    let exports = fonts.map(|it| ExportSettings { fonts: it.iter().map(PathBuf::from).collect() });
    let webhooks = webhooks::settings(&mut reader);
    let limits = limits::settings(&mut reader);
    let log = log(&mut reader);
    let metrics = reader.switch("metrics.enabled").map(|enabled| MetricsSettings { enabled });
    if let (Some(database), Some(locks)) = (&database, &locks) {
        several_servers(&mut reader, database, locks);
    }
    let settings = (|| {
        Some(Settings {
            server: server?,
            database: database?,
            locks: locks?,
            seats: seats?,
            history: history?,
            auth: auth?,
            admin: admin?,
            push: push?,
            jobs: jobs?,
            exports: exports?,
            webhooks: webhooks?,
            limits: limits?,
            log: log?,
            metrics: metrics?,
        })
    })();
    let faults = reader.finish();
    settings.filter(|_| faults.is_empty()).ok_or(faults)
}

fn server(reader: &mut Reader) -> Option<ServerSettings> {
    let listen = reader.required("server.listen").and_then(|text| {
        let address = text.parse::<SocketAddr>();
        if address.is_err() {
            let expected = "must be an address and a port, like 127.0.0.1:8080 or [::]:8080";
            reader.fault("server.listen", expected);
        }
        address.ok()
    });
    let public_url = match reader.text("server.public_url") {
        None => Some(None),
        Some(text) => {
            let origin = Origin::parse(&text);
            if origin.is_none() {
                let expected = "must be an origin, like https://galley.example.com: scheme, host \
                                and port, nothing after it";
                reader.fault("server.public_url", expected);
            }
            origin.map(Some)
        }
    };
    let linger = reader.duration("server.linger", Duration::ZERO..=MINUTES_10);
    let hosts = reader.text("server.hosts").unwrap_or_default();
    let hosts = hosts.split(',').map(str::trim).filter(|name| !name.is_empty());
    let hosts = hosts.map(str::to_owned).collect();
    let proxies = Proxies::parse(&reader.text("server.trusted_proxies").unwrap_or_default());
    if proxies.is_none() {
        let expected = "must be addresses or networks separated by commas, like 10.0.0.0/8, ::1";
        reader.fault("server.trusted_proxies", expected);
    }
    let drain = reader.duration("server.drain", Duration::ZERO..=MINUTES_10);
    let choices = [("bundle", Assets::Bundle), ("sources", Assets::Sources)];
    let assets = reader.choice("server.assets", &choices);
    Some(ServerSettings {
        listen: listen?,
        public_url: public_url?,
        linger: linger?,
        hosts,
        trusted_proxies: proxies?,
        drain: drain?,
        assets: assets?,
    })
}

fn database(reader: &mut Reader) -> Option<DatabaseSettings> {
    let url = reader.required("database.url").and_then(|url| {
        let fault = match url.split_once("://") {
            Some(("sqlite", path)) if !path.is_empty() => return Some(url),
            Some(("postgres" | "postgresql", rest)) => match postgres_fault(rest) {
                None => return Some(url),
                Some(fault) => fault,
            },
            // The message omits the value, which may contain a password.
            _ => "must be sqlite://PATH, like sqlite://data/galley.db, or \
                  postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE"
                .to_owned(),
        };
        reader.fault("database.url", &fault);
        None
    });
    let shared_sqlite = reader.switch("database.shared_sqlite");
    Some(DatabaseSettings { url: url?, shared_sqlite: shared_sqlite? })
}

/// The accepted parameters of a PostgreSQL URL. The driver accepts more, but the server sets those
/// itself, or they would hide a password from `without_password`.
const POSTGRES_PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// Checks the part after `postgres://`; `None` if it is valid.
fn postgres_fault(rest: &str) -> Option<String> {
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = address.split_once('/').unwrap_or((address, ""));
    // A password with a slash would end the authority, and `show` would print it as part of the path.
    if database.contains(['@', '/']) || parameters.contains('@') {
        return Some("holds an @ or a / too many; in a password write %40 and %2F".to_owned());
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') || database.is_empty() {
        let expected = "must be postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE";
        return Some(expected.to_owned());
    }
    let names = parameters.split('&').map(|one| one.split('=').next().unwrap_or_default());
    let is_strange = |name: &&str| !name.is_empty() && !POSTGRES_PARAMETERS.contains(name);
    let strange = names.filter(is_strange).count();
    (0 < strange).then(|| {
        let taken = POSTGRES_PARAMETERS.join(", ");
        format!("may have no parameters other than {taken}")
    })
}

fn locks(reader: &mut Reader) -> Option<LocksSettings> {
    let url = reader.required("locks.url")?;
    if url != "memory:"
        && let Err(fault) = RedisUrl::parse(&url)
    {
        // The message omits the value, which may contain a password.
        reader.fault("locks.url", &fault.to_string());
        return None;
    }
    Some(LocksSettings { url })
}

/// A database file has one server, unless its operator sets `database.shared_sqlite`.
fn several_servers(reader: &mut Reader, database: &DatabaseSettings, locks: &LocksSettings) {
    let is_file = database.url.starts_with("sqlite:");
    if is_file && locks.url != "memory:" && !database.shared_sqlite {
        let what = "several servers share a Redis, and they would not share this SQLite file; set \
                    database.url to a PostgreSQL, or database.shared_sqlite = true if all servers \
                    run on this host";
        reader.fault("locks.url", what);
    }
}

fn seats(reader: &mut Reader) -> Option<SeatSettings> {
    let lease = reader.duration("seats.lease", Duration::from_millis(150)..=MINUTES_10);
    let renew_every = reader.duration("seats.renew_every", Duration::from_millis(50)..=MINUTES_10);
    let timeout = reader.duration("seats.client_timeout", Duration::from_millis(50)..=MINUTES_10);
    let resume_grace = reader.duration("seats.resume_grace", Duration::ZERO..=MINUTES_10);
    let idle = reader.duration("seats.idle_release", Duration::ZERO..=HOURS_24);
    let terms = match (lease, renew_every) {
        (Some(lease), Some(renew_every)) => {
            let terms = LeaseTerms::new(lease, renew_every);
            if let Err(error) = terms {
                reader.fault("seats.lease", &format!("{error} (seats.renew_every)"));
            }
            terms.ok()
        }
        (None, _) | (_, None) => None,
    };
    if let (Some(timeout), Some(renew_every)) = (timeout, renew_every)
        && timeout <= renew_every
    {
        let what = "must be longer than seats.renew_every, which is also the interval of the \
                    heartbeat";
        reader.fault("seats.client_timeout", what);
    }
    Some(SeatSettings {
        terms: terms?,
        client_timeout: timeout?,
        resume_grace: resume_grace?,
        idle_release: Some(idle?).filter(|idle| !idle.is_zero()),
    })
}

fn history(reader: &mut Reader) -> Option<HistorySettings> {
    let pause = reader.duration("history.pause", Duration::from_millis(50)..=MINUTES_10);
    let longest = reader.duration("history.longest", Duration::from_millis(50)..=HOURS_24);
    if let (Some(pause), Some(longest)) = (pause, longest)
        && longest < pause
    {
        let what = "must be at least history.pause: only edits without such a pause reach this \
                    interval";
        reader.fault("history.longest", what);
    }
    Some(HistorySettings { pause: pause?, longest: longest? })
}

fn auth(reader: &mut Reader) -> Option<AuthSettings> {
    for key in ["auth.jwks_url", "auth.issuer", "auth.audience"] {
        if reader.text(key).is_some() {
            let what = "the host application's own key set is not in this version; sign its tokens \
                        with auth.secret_file";
            reader.fault(key, what);
        }
    }
    let guests = reader.switch("auth.guests");
    let secret_file = reader.required("auth.secret_file").map(PathBuf::from);
    let sign_in_url = sign_in_url(reader);
    Some(AuthSettings { guests: guests?, secret_file: secret_file?, sign_in_url: sign_in_url? })
}

/// The address becomes a link of the page, so another scheme (`javascript:`) is a fault.
fn sign_in_url(reader: &mut Reader) -> Option<Option<String>> {
    let Some(url) = reader.text("auth.sign_in_url") else { return Some(None) };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    let is_printable = url.bytes().all(|byte| byte.is_ascii_graphic());
    if has_host && is_printable && url.len() <= SIGN_IN_URL_BYTES_MAX {
        return Some(Some(url));
    }
    let expected = "must be an http:// or https:// address, like \
                    https://app.example.com/sign-in?next={return}";
    reader.fault("auth.sign_in_url", expected);
    None
}

fn admin(reader: &mut Reader) -> Option<AdminSettings> {
    let token = reader.text("admin.token");
    if token.as_ref().is_some_and(|token| token.len() < ADMIN_TOKEN_BYTES_MIN) {
        let what = "must be at least 32 bytes; make one with `openssl rand -hex 32`, or leave the \
                    setting out, and the first start makes one";
        reader.fault("admin.token", what);
        return None;
    }
    // The token travels in a header.
    if token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
        reader.fault("admin.token", "must be printable ASCII without spaces");
        return None;
    }
    Some(AdminSettings { token: token.map(SecretString::from) })
}

fn log(reader: &mut Reader) -> Option<LogSettings> {
    let level = reader.required("log.level").filter(|level| {
        let valid = logs::is_level(level);
        if !valid {
            let what = "must be error, warn, info, debug or trace, or directives by module like \
                        info,galley::seats=debug";
            reader.fault("log.level", what);
        }
        valid
    });
    let formats = [("text", Format::Text), ("json", Format::Json)];
    let format = reader.choice("log.format", &formats);
    Some(LogSettings { level: level?, format: format? })
}

const MINUTES_10: Duration = Duration::from_secs(600);
const HOURS_24: Duration = Duration::from_secs(24 * 3_600);
