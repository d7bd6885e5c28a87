//! Logs: one line an event, on standard error.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt, registry};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

/// The longest filter in bytes.
const FILTER_BYTES_MAX: usize = 1_024;
/// The crates of one module each.
const CRATES: &str = "domain files locks yjs";
/// The modules of the crate `galley-core`.
const CORE: &str = "accounts bounds outbox pubsub reviews rooms runtime seats sessions sharing storage \
                    tasks telemetry";
/// The modules of the crate `galley`.
const OWN: &str = "admin app config exports http offers oidc outgoing partners periodic persons push \
                   reminders setting transfer versions webhooks";
/// Crates of others that log.
const OTHERS: &str = "hyper hyper_util redis rustls sqlx tungstenite";

/// Why the text is no filter.
#[must_use]
pub fn fault(level: &str) -> Option<String> {
    filter(level).err()
}

/// The filter of a level, or of directives by module. The parser of [`Targets`] would read a bare word
/// that is no level as a module at its most verbose level, and an empty one as `error`.
fn filter(level: &str) -> Result<Targets, String> {
    if FILTER_BYTES_MAX < level.len() {
        return Err(format!("must have at most {FILTER_BYTES_MAX} bytes"));
    }
    let parse = |level: &str| {
        let parsed = level.parse::<LevelFilter>().ok().filter(|_| !level.is_empty());
        parsed.ok_or_else(|| {
            "must be error, warn, info, debug or trace, or directives by module".to_owned()
        })
    };
    level.split(',').map(str::trim).try_fold(Targets::new(), |filter, directive| {
        match directive.split_once('=') {
            None => Ok(filter.with_default(parse(directive)?)),
            Some((module, level)) => {
                let target = target(module).ok_or_else(no_such_module)?;
                Ok(filter.with_target(target, parse(level)?))
            }
        }
    })
}

/// The target under which a module logs: its path, which begins with its crate.
fn target(module: &str) -> Option<String> {
    let (root, path) = module.split_once("::").unwrap_or((module, ""));
    let mut names = path.split("::");
    let top = names.next()?;
    if !names.all(|name| name.starts_with(|first: char| first.is_ascii_lowercase())) {
        return None;
    }
    let has = |list: &str, name: &str| list.split(' ').any(|it| it == name);
    match (root, root.strip_prefix("galley_")) {
        ("galley", _) if has(CORE, top) => return Some(format!("galley_core::{path}")),
        ("galley", _) if has(CRATES, top) => return Some(format!("galley_{path}")),
        ("galley", _) => module == root || has(OWN, top),
        (_, Some("core")) => module == root || has(CORE, top),
        (_, Some(name)) => has(CRATES, name),
        (name, None) => has(OTHERS, name),
    }
    .then(|| module.to_owned())
}

fn no_such_module() -> String {
    let mut own: Vec<_> =
        [CRATES, CORE, OWN].into_iter().flat_map(|list| list.split(' ')).collect();
    own.sort_unstable();
    let (own, others) = (own.join(", "), OTHERS.replace(' ', ", "));
    format!("names a module that does not exist; galley:: has {own}; other crates are {others}")
}

/// A format whose lines are JSON objects, with the server in front.
struct WithServer<F> {
    format: F,
    /// The members of each line that name the server.
    server: String,
}

impl<S, N, F> FormatEvent<S, N> for WithServer<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        let rest = line.strip_prefix('{').unwrap_or(&line);
        write!(writer, "{{{},{rest}", self.server)
    }
}

/// Starts logging, once for the process. Each line of JSON names the server: its id as `node`, and its name as
/// `server`.
pub fn start_logs(level: &str, format: Format, node: &str, name: &str) -> Result<(), TryInitError> {
    // The subscriber drops a line that it cannot write, as on a full disk. Reporting that on
    // standard error, which is the failed target, would panic.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = match format {
        // Colour codes are noise in a file, and a container's log is a file.
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => {
            let lines = lines.json().flatten_event(true);
            let server = format!("\"node\":\"{node}\",\"server\":{}", json!(name));
            lines.map_event_format(|format| WithServer { format, server }).boxed()
        }
    };
    let filter = filter(level).unwrap_or_default();
    registry().with(lines.with_filter(filter)).try_init()
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_a_word_or_directives() {
        for level in ["info", "warn", "info,galley::seats=debug", "off", "sqlx=INFO, ERROR"] {
            assert_eq!(fault(level), None, "{level}");
        }
        let accepted =
            ["galley::locks::redis=debug", "galley_core::seats::claim=trace", "galley=debug"];
        assert_eq!(fault(&accepted.join(",")), None);
        let form = "must be error, warn";
        for (level, words) in [
            ("info,galley::http=loudly", form),
            ("galley::seats=b=c", form),
            ("loudly", form),
            ("", form),
            ("info,", form),
            ("galley::seats=", form),
            ("galley::seats", form),
            ("=info", "does not exist"),
            ("galley::seat=debug", "galley:: has accounts, admin, app, bounds"),
            ("galley::=debug", "does not exist"),
            ("galley::seats::=debug", "does not exist"),
            ("galley_core::seat=debug", "does not exist"),
            ("galleys=debug", "does not exist"),
            ("a-b=info", "does not exist"),
            ("galley[seat]=debug", "does not exist"),
            ("[{user=lee}]=debug", "does not exist"),
            (&"galley::seats=debug,".repeat(500), "at most 1024 bytes"),
        ] {
            let found = fault(level).expect("a fault");
            assert!(found.contains(words), "{level}: {found}");
        }
    }

    /// The lists follow the sources.
    #[test]
    fn the_modules_of_a_filter_are_those_that_exist() {
        let declared = |file: &str| {
            let text = std::fs::read_to_string(format!("{}/../{file}", env!("CARGO_MANIFEST_DIR")));
            let text = text.expect("a file");
            let names = text.lines().filter_map(|line| line.strip_prefix("pub mod "));
            let mut names: Vec<_> = names.map(|it| it.trim_end_matches(';').to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(declared("core/lib.rs").join(" "), CORE);
        assert_eq!(declared("lib.rs").join(" "), OWN);
        let workspace =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
        let workspace = workspace.expect("a file");
        let members =
            workspace.lines().find(|line| line.starts_with("members = ")).expect("members");
        // The core, and the macro of statements, which runs in the compiler.
        assert_eq!(members.matches("src/").count(), 2 + CRATES.split(' ').count());
        assert!(
            CRATES.split(' ').all(|name| members.contains(&format!("\"src/{name}\""))),
            "{members}"
        );
        let lock =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));
        let lock = lock.expect("a file");
        for name in OTHERS.split(' ') {
            assert!(lock.contains(&format!("name = \"{}\"", name.replace('_', "-"))), "{name}");
        }
    }

    #[test]
    fn the_longest_module_that_matches_decides_and_a_bare_level_is_for_all_others() {
        let targets = filter(" warn , galley::seats=debug,galley=error").expect("a filter");
        for (target, level, is_shown) in [
            ("galley_core::seats::claim", Level::DEBUG, true),
            ("galley_core::seats", Level::TRACE, false),
            ("galley_core::rooms", Level::ERROR, true),
            ("galley_core::rooms", Level::WARN, false),
            ("galley_locks::redis", Level::WARN, false),
            ("sqlx", Level::WARN, true),
            ("sqlx", Level::INFO, false),
        ] {
            assert_eq!(targets.would_enable(target, &level), is_shown, "{target} {level}");
        }
        let targets = filter("galley=info").expect("a filter");
        assert!(!targets.would_enable("sqlx", &Level::ERROR), "no level is for all others");
    }
}
