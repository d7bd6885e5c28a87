//! Logs: one line an event, on standard error.

use serde::{Deserialize, Serialize};
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

#[must_use]
pub fn is_level(level: &str) -> bool {
    filter(level).is_some()
}

/// The filter of a level, or of directives by module. The parser of [`Targets`] would read a bare word
/// that is no level as a module at its most verbose level, and an empty one as `error`.
fn filter(level: &str) -> Option<Targets> {
    let parse = |level: &str| level.parse::<LevelFilter>().ok().filter(|_| !level.is_empty());
    let is_module = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_:-".contains(c));
    level.split(',').map(str::trim).try_fold(Targets::new(), |filter, directive| {
        match directive.split_once('=') {
            None => Some(filter.with_default(parse(directive)?)),
            Some(("", _)) => None,
            Some((module, level)) if is_module(module) => {
                Some(filter.with_target(module, parse(level)?))
            }
            Some(_) => None,
        }
    })
}

/// A format whose lines are JSON objects, with the server in front.
struct WithNode<F> {
    format: F,
    node: String,
}

impl<S, N, F> FormatEvent<S, N> for WithNode<F>
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
        write!(writer, "{{\"node\":\"{}\",{rest}", self.node)
    }
}

/// Starts logging, once for the process. Each line of JSON names the server as `node`.
pub fn start_logs(level: &str, format: Format, node: String) -> Result<(), TryInitError> {
    // The subscriber drops a line that it cannot write, as on a full disk. Reporting that on
    // standard error, which is the failed target, would panic.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = match format {
        // Colour codes are noise in a file, and a container's log is a file.
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => {
            let lines = lines.json().flatten_event(true);
            lines.map_event_format(|format| WithNode { format, node }).boxed()
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
        for level in ["info", "warn", "info,galley::seats=debug", "off", "a-b=INFO, ERROR"] {
            assert!(is_level(level), "{level}");
        }
        for level in [
            "info,galley::http=loudly",
            "a=b=c",
            "loudly",
            "",
            "info,",
            "=info",
            "galley=",
            "galley::seats",
            "galley[seat]=debug",
            "[{user=lee}]=debug",
        ] {
            assert!(!is_level(level), "{level}");
        }
    }

    #[test]
    fn the_longest_module_that_matches_decides_and_a_bare_level_is_for_all_others() {
        let targets = filter(" warn , galley::seats=debug,galley=error").expect("a filter");
        for (target, level, is_shown) in [
            ("galley::seats::claim", Level::DEBUG, true),
            ("galley::seats", Level::TRACE, false),
            ("galley::rooms", Level::ERROR, true),
            ("galley::rooms", Level::WARN, false),
            ("sqlx", Level::WARN, true),
            ("sqlx", Level::INFO, false),
        ] {
            assert_eq!(targets.would_enable(target, &level), is_shown, "{target} {level}");
        }
        let targets = filter("galley=info").expect("a filter");
        assert!(!targets.would_enable("sqlx", &Level::ERROR), "no level is for all others");
    }
}
