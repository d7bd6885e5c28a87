//! Reminders: settings, candidates and claims.
//!
//! The claim of a reminder commits, under the fence of the batch, that it was sent; the push follows. So
//! no two batches send one reminder. A server that dies after the claim leaves it unsent.
//!
//! A claim does not depend on a clock. Reviews of a link have rising numbers, and a link has the number
//! up to which its reviews are claimed. A request is claimed once. The claim of a seat deletes the row of
//! its absent waiter.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, RequestId, ShareLinkId, UserId};
use crate::domain::reminder::{Quiet, ReminderKind};
use crate::domain::seat::Seat;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReminderSubject {
    Reviews {
        link: ShareLinkId,
        document: DocumentId,
        title: String,
        /// The author of the newest one.
        by: String,
        count: i64,
        /// The number of the newest one among the changes of the document.
        mark: i64,
    },
    Seat {
        seat: Seat,
        document: DocumentId,
        title: String,
        /// When the user left the wait queue.
        left_at: DateTime<Utc>,
    },
    Request {
        request: RequestId,
        from: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReminderCandidate {
    pub user: UserId,
    pub quiet: Quiet,
    pub subject: ReminderSubject,
}

impl ReminderCandidate {
    /// The position in the list of candidates of its kind.
    fn cursor(&self) -> String {
        match &self.subject {
            ReminderSubject::Reviews { link, .. } => link.to_string(),
            ReminderSubject::Seat { seat, .. } => format!("{}:{}", seat.link, seat.role),
            ReminderSubject::Request { request, .. } => request.to_string(),
        }
    }

    #[must_use]
    pub fn kind(&self) -> ReminderKind {
        match &self.subject {
            ReminderSubject::Reviews { .. } => ReminderKind::ReviewUnanswered,
            ReminderSubject::Seat { .. } => ReminderKind::SeatFree,
            ReminderSubject::Request { .. } => ReminderKind::RequestUnanswered,
        }
    }
}

#[derive(Clone, Debug)]
pub struct CandidateQuery {
    /// The cursor of the page; empty for the first one.
    pub after: String,
    /// The reason exists since a time after this.
    pub since: DateTime<Utc>,
    /// The reason exists since this time or an earlier one.
    pub until: DateTime<Utc>,
    pub now: DateTime<Utc>,
    pub limit: u32,
}

impl CandidateQuery {
    /// Whether there may be more rows than these.
    pub(super) fn is_filled_by(&self, rows: usize) -> bool {
        usize::try_from(self.limit).is_ok_and(|limit| limit <= rows)
    }

    /// The page of these rows, all of which are candidates.
    pub(super) fn page_of(&self, candidates: Vec<ReminderCandidate>) -> CandidatePage {
        let last = candidates.last().filter(|_| self.is_filled_by(candidates.len()));
        let next = last.map(ReminderCandidate::cursor);
        CandidatePage { candidates, next }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidatePage {
    /// The candidates in the order of their cursors. There may be none although a next page exists.
    pub candidates: Vec<ReminderCandidate>,
    /// The cursor of the next page. `None`: this page is the last one.
    pub next: Option<String>,
}

/// The link and the role of a seat's cursor; both are empty on the first page.
pub(super) fn seat_cursor(cursor: &str) -> (&str, &str) {
    cursor.rsplit_once(':').unwrap_or((cursor, ""))
}
