//! The line that reports a settings file which the TOML parser rejects.
//!
//! The parser quotes the line at fault. That line may contain a secret: `token="…` without its end is an
//! ordinary mistake. The report contains file, line, column and message, and drops the quotation.

use ::config::ConfigError;

/// How the parser's report begins when it knows the place.
const POSITION_PREFIX: &str = "TOML parse error at ";
/// Lines of the parser's report before its message: place, margin, quotation, marker.
const LINES_BEFORE_MESSAGE: usize = 4;

/// One line for the operator, without any content of the file.
pub(super) fn line(error: &ConfigError) -> String {
    let ConfigError::FileParse { uri, cause } = error else {
        return one_line(&error.to_string());
    };
    let file = uri.as_deref().unwrap_or("a settings file");
    let report = cause.to_string();
    let mut lines = report.lines();
    let Some(position) = lines.next().and_then(|first| first.strip_prefix(POSITION_PREFIX)) else {
        // A report of another form may quote any line.
        return format!("{file}: is no TOML that galley can read");
    };
    let message: Vec<_> = lines.skip(LINES_BEFORE_MESSAGE - 1).collect();
    one_line(&format!("{file}: {position}: {}", message.join(" ")))
}

/// Folds a message of several lines into one.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
