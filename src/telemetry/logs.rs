//! Logs: one line an event, on standard error.

use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt, registry};

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

/// Whether `level` is a level or a list of directives by module.
#[must_use]
pub fn is_level(level: &str) -> bool {
    // The parser would read a bare word that is no level as a module at its most verbose level.
    let is_word = |word: &str| word.eq_ignore_ascii_case("off") || word.parse::<Level>().is_ok();
    let directives = level.split(',').map(str::trim);
    directives.into_iter().all(|directive| directive.contains('=') || is_word(directive))
        && EnvFilter::builder().parse(level).is_ok()
}

/// Starts logging, once for the process.
///
/// # Errors
///
/// Fails when logging was started before.
pub fn start_logs(level: &str, format: Format) -> Result<(), TryInitError> {
    // The subscriber drops a line that it cannot write, as on a full disk. Reporting that on
    // standard error, which is the failed target, would panic.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = match format {
        // Colour codes are noise in a file, and a container's log is a file.
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    let filter = EnvFilter::builder().parse_lossy(level);
    registry().with(lines.with_filter(filter)).try_init()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_word_or_directives() {
        for level in ["info", "warn", "info,galley::seats=debug", "off"] {
            assert!(is_level(level), "{level}");
        }
        for level in ["info,galley::http=loudly", "a=b=c", "loudly", ""] {
            assert!(!is_level(level), "{level}");
        }
    }
}
