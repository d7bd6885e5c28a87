//! A batch of reminders.
//!
//! # Order of a reminder
//!
//! 1. A page of candidates. The database has checked that the user wants the reminder and has a browser
//!    that receives pushes.
//! 2. In the user's quiet hours the reminder is postponed: nothing is stored, and a later batch finds it
//!    again if its reason still exists. It is left out while the writer of unanswered reviews is connected,
//!    and while the seat is taken.
//! 3. The batch still holds its lock, by its own clock, and the quiet hours have not begun meanwhile.
//! 4. The claim is committed under the fence of the batch. The database refuses it after a later batch has
//!    begun, and when the reason is gone. Claims follow one another: the database serializes them by the
//!    row of the job, and each one that waits there would occupy a connection.
//! 5. The push. From the claim on, no other batch sends this reminder: if the server dies before the push,
//!    the reminder is lost, and not sent twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt as _;
use futures_util::stream;
use strum::{IntoStaticStr, VariantArray};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::reminder::ReminderKind;
use crate::domain::seat::{Role, Seat};
use crate::locks::{Guard, LockName, LocksError};
use crate::periodic::store::{JobCursors, JobOutcome, RatifiedRun};
use crate::push::notification::{Notification, NotificationKind};
use crate::push::web_push::PushOutcome;
use crate::reminders::Reminders;
use crate::reminders::reminder::{CandidateQuery, ReminderCandidate, ReminderSubject};
use crate::reminders::store;
use crate::storage::error::StorageError;

/// Reminders of one page of candidates.
const REMINDER_PAGE_ROWS: u32 = 200;
/// Candidates of one kind that a batch looks at. The next batch continues after them.
const REMINDER_CANDIDATES_MAX: usize = 1_000;
/// How long after it became due a reminder is still sent. It outlasts quiet hours and a weekend without
/// a server; a batch reads no older reviews.
const REMINDER_WINDOW: TimeDelta = TimeDelta::hours(72);
/// How long a waiter who left the queue of a seat by a disconnect is remembered.
const ABSENT_WAITER_TTL: TimeDelta = TimeDelta::hours(24);
/// Absent waiters that a batch deletes. A seat has one, so there are no more than seats.
const ABSENT_WAITERS_TRIMMED_AT_ONCE: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
enum ReminderOutcome {
    /// A push service accepted it, or will be asked again.
    Sent,
    /// It is claimed, and no browser of the user received it.
    Unsent,
    Postponed,
    /// The writer is connected, or the seat is taken.
    Present,
    /// Another batch claimed it, or its reason is gone.
    Spent,
}

impl ReminderOutcome {
    const ALL: &[Self] = Self::VARIANTS;

    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a batch ends early.
#[derive(Debug)]
enum Stop {
    /// The lock is lost, or a later batch has begun.
    LockLost,
    /// The server stops.
    Stopped,
    /// The kind has had its time; the next batch continues.
    TimeIsUp,
    Failed(String),
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<LocksError> for Stop {
    fn from(error: LocksError) -> Self {
        Self::Failed(error.to_string())
    }
}

pub(super) struct Batch<'a> {
    reminders: &'a Reminders,
    guard: &'a Guard,
    run: RatifiedRun,
    stop: &'a CancellationToken,
    claims: Mutex<()>,
    candidates: AtomicU64,
    outcomes: [AtomicU64; ReminderOutcome::ALL.len()],
    /// A reminder met a reason to end: the others of its page are not claimed.
    is_over: AtomicBool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        reminders: &'a Reminders,
        guard: &'a Guard,
        run: RatifiedRun,
        stop: &'a CancellationToken,
    ) -> Self {
        Self {
            reminders,
            guard,
            run,
            stop,
            claims: Mutex::new(()),
            candidates: AtomicU64::default(),
            outcomes: Default::default(),
            is_over: AtomicBool::default(),
        }
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let by_outcome = ReminderOutcome::ALL.iter().zip(&self.outcomes);
        let mut counts: BTreeMap<_, _> =
            by_outcome.map(|(it, count)| (it.as_str().to_owned(), read(count))).collect();
        counts.insert("candidates".to_owned(), read(&self.candidates));
        counts
    }

    /// Sends what is due, from the cursors on, and sets them to where it ended. Each kind has its own time,
    /// and a kind whose query fails does not keep the others from being sent.
    pub(super) async fn send_all(&self, cursors: &mut JobCursors) -> JobOutcome {
        let mut outcome = JobOutcome::Done;
        for kind in ReminderKind::ALL.iter().copied() {
            let ends_at = Instant::now() + self.reminders.terms.kind_max;
            match self.send_kind(kind, cursors, ends_at).await {
                Ok(()) => {}
                Err(Stop::TimeIsUp) => {
                    let kind = kind.as_str();
                    tracing::warn!(
                        kind,
                        "a batch had no time for all reminders; the next continues"
                    );
                    self.is_over.store(false, Ordering::Relaxed);
                }
                Err(Stop::Stopped) => return JobOutcome::Stopped,
                Err(Stop::LockLost) => {
                    let fence = self.guard.fence();
                    tracing::warn!(%fence, "a batch of reminders has lost its lock");
                    return JobOutcome::LockLost;
                }
                Err(Stop::Failed(error)) => {
                    tracing::warn!(%error, kind = kind.as_str(), "a batch of reminders has failed");
                    self.is_over.store(false, Ordering::Relaxed);
                    outcome = JobOutcome::Failed;
                }
            }
        }
        outcome
    }

    async fn send_kind(
        &self,
        kind: ReminderKind,
        cursors: &mut JobCursors,
        ends_at: Instant,
    ) -> Result<(), Stop> {
        if kind == ReminderKind::SeatFree {
            let before = Utc::now() - ABSENT_WAITER_TTL * 2;
            let (storage, most) = (&self.reminders.storage, ABSENT_WAITERS_TRIMMED_AT_ONCE);
            let trimmed = store::trim_absent_waiters(storage, self.run, before, most);
            trimmed.await?.ok_or(Stop::LockLost)?;
        }
        let mut seen = 0;
        while seen < REMINDER_CANDIDATES_MAX {
            self.check(ends_at)?;
            let after = cursors.get(kind.as_str()).cloned().unwrap_or_default();
            let query = self.query(kind, after, Utc::now());
            let page =
                store::candidates::reminder_candidates(&self.reminders.storage, kind, &query)
                    .await?;
            seen += page.candidates.len();
            // The next batch continues after this page, also if its time is up in the middle: slow push
            // services of some users keep no other user from a reminder. After the last page it begins
            // at the beginning.
            let is_last = page.next.is_none();
            match page.next {
                Some(next) => cursors.insert(kind.as_str().to_owned(), next),
                None => cursors.remove(kind.as_str()),
            };
            self.send_page(kind, page.candidates, ends_at).await?;
            if is_last {
                return Ok(());
            }
        }
        Ok(())
    }

    fn query(&self, kind: ReminderKind, after: String, now: DateTime<Utc>) -> CandidateQuery {
        let terms = &self.reminders.terms;
        let waited = |after| now - TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX);
        let (since, until) = match kind {
            ReminderKind::ReviewUnanswered => {
                let until = waited(terms.review_unanswered_after);
                (until - REMINDER_WINDOW, until)
            }
            ReminderKind::SeatFree => (now - ABSENT_WAITER_TTL, now),
            ReminderKind::RequestUnanswered => {
                let until = waited(terms.request_unanswered_after);
                (until - REMINDER_WINDOW, until)
            }
        };
        CandidateQuery { after, since, until, now, limit: REMINDER_PAGE_ROWS }
    }

    /// Some at a time. A dropped push would leave a claimed reminder unsent: those under way end, also if
    /// the batch is over.
    async fn send_page(
        &self,
        kind: ReminderKind,
        page: Vec<ReminderCandidate>,
        ends_at: Instant,
    ) -> Result<(), Stop> {
        let count = u64::try_from(page.len()).unwrap_or(u64::MAX);
        self.candidates.fetch_add(count, Ordering::Relaxed);
        let now = Utc::now();
        let (quiet, page): (Vec<_>, Vec<_>) =
            page.into_iter().partition(|candidate| candidate.quiet.contains(now));
        quiet.iter().for_each(|_| self.count(kind, ReminderOutcome::Postponed));
        let due = self.without_present(kind, page).await?;
        let sending = stream::iter(due).map(|candidate| self.remind(kind, candidate, ends_at));
        let sent: Vec<_> = sending.buffer_unordered(self.reminders.terms.at_once).collect().await;
        sent.into_iter().collect()
    }

    /// The candidates whose writer is not connected, or whose seat is free.
    async fn without_present(
        &self,
        kind: ReminderKind,
        page: Vec<ReminderCandidate>,
    ) -> Result<Vec<ReminderCandidate>, Stop> {
        let seat_of = |candidate: &ReminderCandidate| match &candidate.subject {
            ReminderSubject::Reviews { link, .. } => Some(Seat::new(*link, Role::Writer)),
            ReminderSubject::Seat { seat, .. } => Some(*seat),
            ReminderSubject::Request { .. } => None,
        };
        let names: Vec<_> = page.iter().filter_map(seat_of).map(LockName::seat).collect();
        if names.is_empty() {
            return Ok(page);
        }
        let holders = self.reminders.locks.holders(&names).await?;
        let mut due = Vec::with_capacity(page.len());
        for (candidate, holder) in page.into_iter().zip(holders) {
            match holder {
                None => due.push(candidate),
                Some(_) => self.count(kind, ReminderOutcome::Present),
            }
        }
        Ok(due)
    }

    async fn remind(
        &self,
        kind: ReminderKind,
        candidate: ReminderCandidate,
        ends_at: Instant,
    ) -> Result<(), Stop> {
        let claim = self.claims.lock().await;
        if self.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let now = Utc::now();
        if candidate.quiet.contains(now) {
            self.count(kind, ReminderOutcome::Postponed);
            return Ok(());
        }
        let claimed = self.claim(&candidate, ends_at).await;
        drop(claim);
        if claimed.is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        if !claimed? {
            self.count(kind, ReminderOutcome::Spent);
            return Ok(());
        }
        let reached = |outcome| match outcome {
            PushOutcome::Sent | PushOutcome::Queued | PushOutcome::Uncertain => true,
            PushOutcome::Removed | PushOutcome::Refused | PushOutcome::Dropped => false,
        };
        let mut notification = notification_of(candidate.subject);
        // The push service of a device that is switched off stores no reminder into the quiet hours.
        if let Some(left) = candidate.quiet.begins_in(now) {
            notification.ttl = notification.ttl.min(left);
        }
        let outcome = match self.reminders.notify.push(&candidate.user, &notification).await {
            Ok(reports) if reports.iter().any(|report| reached(report.outcome)) => {
                ReminderOutcome::Sent
            }
            Ok(_) => ReminderOutcome::Unsent,
            Err(error) => {
                tracing::warn!(%error, "a claimed reminder was not sent");
                ReminderOutcome::Unsent
            }
        };
        self.count(kind, outcome);
        Ok(())
    }

    async fn claim(&self, candidate: &ReminderCandidate, ends_at: Instant) -> Result<bool, Stop> {
        self.check(ends_at)?;
        let (storage, subject) = (&self.reminders.storage, &candidate.subject);
        let claimed = store::claim_reminder(storage, self.run, subject, Utc::now()).await?;
        claimed.ok_or(Stop::LockLost)
    }

    fn check(&self, ends_at: Instant) -> Result<(), Stop> {
        if !self.guard.is_held() {
            return Err(Stop::LockLost);
        }
        if self.stop.is_cancelled() {
            return Err(Stop::Stopped);
        }
        if ends_at <= Instant::now() {
            return Err(Stop::TimeIsUp);
        }
        Ok(())
    }

    fn count(&self, kind: ReminderKind, outcome: ReminderOutcome) {
        let at = ReminderOutcome::ALL.iter().position(|it| *it == outcome);
        if let Some(count) = at.and_then(|at| self.outcomes.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        candidates(kind, outcome).increment(1);
    }
}

fn candidates(kind: ReminderKind, outcome: ReminderOutcome) -> metrics::Counter {
    let (kind, outcome) = (kind.as_str(), outcome.as_str());
    metrics::counter!("galley_reminders_total", "kind" => kind, "outcome" => outcome)
}

/// Begins each series at 0: a rate needs a value before the first reminder.
pub(super) fn begin_at_zero() {
    for kind in ReminderKind::ALL {
        ReminderOutcome::ALL.iter().for_each(|outcome| candidates(*kind, *outcome).increment(0));
    }
}

/// The push of a reminder. A later one about the same subject replaces it.
fn notification_of(subject: ReminderSubject) -> Notification {
    match subject {
        ReminderSubject::Reviews { link, document, title, by, count, .. } => {
            let kind = NotificationKind::ReviewUnanswered;
            Notification::new(kind, format!("/d/{document}"))
                .with("title", title)
                .with("by", by)
                .with("count", count.to_string())
                .about(format!("review.unanswered {link}"))
        }
        ReminderSubject::Seat { seat, document, title, .. } => {
            let page = match seat.role {
                Role::Writer => format!("/d/{document}"),
                Role::Reviewer => format!("/s/{}", seat.link),
            };
            Notification::new(NotificationKind::SeatFree, page)
                .with("title", title)
                .with("role", seat.role.as_str())
                .about(format!("seat.free {seat}"))
        }
        ReminderSubject::Request { request, from } => {
            Notification::new(NotificationKind::RequestUnanswered, "/#requests")
                .with("from", from)
                .about(format!("request.unanswered {request}"))
        }
    }
}
