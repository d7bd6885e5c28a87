//! The choice whether a stored file answers a request.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::exports::store::{ExportKey, ExportMark, ExportState, StoredExport};

/// A file that was rendered within this time answers the request that started its build, also if the
/// database takes twice as long to store it.
const QUICK: Duration = Duration::from_millis(300);
/// How long a file that took longer than [`QUICK`] answers requests after a change of the text:
/// callers ask again every second.
const SERVED_FOR: TimeDelta = TimeDelta::seconds(5);
/// A file that took longer answers so after any change: reviews arrive in less time than the next build.
const LONG: Duration = Duration::from_secs(5);
/// The sequence number of a text that the database has not in full: no later state equals it.
pub(super) const UNSAVED: i64 = -1;

/// The stored file, if it shows the document as it is now, or took so long that callers wait for it.
pub(super) fn servable(
    key: ExportKey,
    state: &ExportState,
    now: DateTime<Utc>,
) -> Option<StoredExport> {
    let file = state.stored.as_ref()?;
    let ExportMark { seq, change, title, names, zone } = &state.now;
    if file.mark.zone != *zone {
        return None;
    }
    let has_state = (&file.mark.title, &file.mark.names) == (title, names)
        && (!key.has_reviews || file.mark.change == *change);
    let is_current = file.mark.seq == *seq;
    let took = Duration::from_millis(u64::try_from(file.took_ms).unwrap_or_default());
    let is_fresh = now < file.built_at + SERVED_FOR;
    let (outlives_typing, outlives_all) = (is_fresh && took > QUICK, is_fresh && took > LONG);
    (has_state && (is_current || outlives_typing) || outlives_all).then(|| file.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::export::ExportFormat;
    use crate::domain::ids::{DocumentId, ShareLinkId};
    use crate::domain::reminder::TimeZone;
    use crate::domain::user::User;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + second, 0).expect("a time")
    }

    fn state(seq: i64, change: i64, title: &str, took_ms: i64) -> ExportState {
        let mark = |seq, change, title: &str| {
            let (title, names, zone) = (title.to_owned(), "Kim".to_owned(), "UTC".to_owned());
            ExportMark { seq, change, title, names, zone }
        };
        let file = StoredExport {
            mark: mark(seq, change, title),
            hash: [0; 32],
            length: 1,
            took_ms,
            built_at: at(0),
        };
        let (stored, now) = (Some(file), mark(7, 3, "글"));
        let writer = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let (document, reviewer) = (DocumentId::generate(), None);
        ExportState { document, writer, reviewer, now, stored, build: None }
    }

    fn key(has_reviews: bool) -> ExportKey {
        let (link, zone) = (ShareLinkId::generate(), TimeZone::UTC);
        ExportKey { link, format: ExportFormat::Docx, has_reviews, zone }
    }

    #[test]
    fn a_file_is_served_while_the_document_is_as_in_it() {
        let is_served = |has_reviews, seq, change, title| {
            servable(key(has_reviews), &state(seq, change, title, 5), at(1)).is_some()
        };
        assert!(is_served(true, 7, 3, "글"));
        assert!(is_served(false, 7, 2, "글"), "without reviews their changes do not count");
        for (seq, change, title) in [(6, 3, "글"), (UNSAVED, 3, "글"), (7, 2, "글"), (7, 3, "옛")]
        {
            assert!(!is_served(true, seq, change, title), "{seq} {change} {title}");
        }
        let mut renamed = state(7, 3, "글", 5);
        renamed.now.names = "Kim Minsu".to_owned();
        assert_eq!(servable(key(false), &renamed, at(1)), None);
    }

    /// Goal: a writer who types does not keep the callers of a long build waiting for ever.
    #[test]
    fn g16_a_file_that_took_long_is_served_for_some_seconds_whatever_is_typed() {
        let is_served =
            |took, second| servable(key(true), &state(6, 3, "글", took), at(second)).is_some();
        assert!(servable(key(true), &state(6, 2, "글", 301), at(1)).is_none(), "a new review");
        assert!(servable(key(true), &state(6, 3, "옛", 301), at(1)).is_none(), "a new title");
        assert!(is_served(301, 4));
        assert!(!is_served(301, 5));
        assert!(!is_served(300, 4), "the caller of a quick build has its file already");
        assert!(servable(key(true), &state(6, 2, "옛", 5_001), at(4)).is_some(), "a long build");
        assert!(servable(key(true), &state(6, 2, "옛", 5_001), at(5)).is_none());
        let mut elsewhere = state(7, 3, "글", 5_001);
        elsewhere.now.zone = "Asia/Seoul".to_owned();
        assert!(servable(key(true), &elsewhere, at(4)).is_none(), "times of another zone");
    }
}
