//! The trace of a request (W3C Trace Context), which the webhooks of the request pass on.
//!
//! The trace belongs to the task of the request, so that no call on the way to a transaction names it.

use std::str::FromStr;
use std::sync::Arc;

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static TRACE: Option<TraceParent>;
}

/// A valid `traceparent` of version 00.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent(Arc<str>);

/// The text is no valid `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid traceparent")]
pub struct InvalidTraceParent;

impl TraceParent {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The standard reads a later version by the four fields of version 00, and passes them on as version 00.
impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id = |part: &str, length| is_hex(part, length) && part.bytes().any(|it| it != b'0');
        let fields: Vec<_> = text.splitn(5, '-').collect();
        match *fields {
            [version, trace, parent, flags, ref further @ ..]
                if is_hex(version, 2)
                    && version != "ff"
                    && is_id(trace, 32)
                    && is_id(parent, 16)
                    && is_hex(flags, 2)
                    && (further.is_empty() || version != "00") =>
            {
                Ok(Self(format!("00-{trace}-{parent}-{flags}").into()))
            }
            _ => Err(InvalidTraceParent),
        }
    }
}

/// Runs `work` under the trace of a request.
pub fn within<F: Future>(
    trace: Option<TraceParent>,
    work: F,
) -> TaskLocalFuture<Option<TraceParent>, F> {
    TRACE.scope(trace, work)
}

/// The trace of the request that this task serves.
#[must_use]
pub fn current() -> Option<TraceParent> {
    TRACE.try_with(Clone::clone).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_valid_by_the_standard() {
        let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        for (text, passed) in [
            (format!("00-{ids}-01"), true),
            (format!("00-{ids}-ff"), true),
            (format!("01-{ids}-01"), true),
            (format!("cc-{ids}-01-of-a-later-version"), true),
            (format!("00-{ids}-01-further"), false),
            (format!("00-{ids}-01-"), false),
            (format!("ff-{ids}-01"), false),
            (format!("00-{}-01", ids.to_uppercase()), false),
            (format!("00-{ids}-1"), false),
            (format!("00-{ids}"), false),
            (format!(" 00-{ids}-01"), false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01".to_owned(), false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01".to_owned(), false),
            (String::new(), false),
        ] {
            let parsed = text.parse::<TraceParent>();
            assert_eq!(parsed.is_ok(), passed, "{text}");
            assert!(parsed.is_err() || parsed.unwrap().as_str()[..52] == format!("00-{ids}"));
        }
    }
}
