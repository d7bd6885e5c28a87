//! Logs: one line an event, on standard error.

use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt, registry};

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

/// Whether `level` is a level, or directives by module.
#[must_use]
pub fn is_level(level: &str) -> bool {
    // A bare word that is no level would be read as a module, at its most talkative.
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
    // A line that cannot be written, as on a full disk, is left out. To say so on standard error,
    // which is where it could not be written, would panic.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = match format {
        // A terminal's colours would be noise in a file, and a container's log is a file.
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
