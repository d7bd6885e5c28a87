//! Jobs and reminders: fences, claims, candidates and settings.

use crate::storage::database::{Desk, Seated, Stranger, at, new_reply, new_review, user, within};
use crate::storage::review_requests::new_request;
use chrono::{DateTime, TimeDelta, Utc};
use galley::domain::fence::Fence;
use galley::domain::ids::{NodeId, ShareLinkId};
use galley::domain::reminder::{Quiet, QuietHours, ReminderKind, ReminderSettings};
use galley::domain::review::ReviewStatus;
use galley::domain::seat::{Role, Seat};
use galley::partners::request::{Refusal, Requested};
use galley::partners::store::requests;
use galley::periodic;
use galley::periodic::store::{JobCursors, JobOutcome, JobRun, RatifiedRun};
use galley::push;
use galley::push::store::PushAddress;
use galley::reminders;
use galley::reminders::reminder::{CandidateQuery, ReminderCandidate, ReminderSubject};
use galley::reminders::store::candidates;
use galley::storage::guard::Guarded;
use galley::storage::replies::NewReply;
use galley::storage::reviews::{NewReview, ReviewChange};
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    reminders:
    settings_are_stored_as_they_are
    g11_the_fence_of_a_later_run_ends_the_writes_of_an_earlier_one
    g13_a_job_has_a_bounded_number_of_stored_runs
    g11_a_reminder_is_claimed_once_by_concurrent_batches
    a_review_is_a_candidate_until_its_writer_answers
    a_reminder_covers_the_reviews_that_are_due_and_no_later_one
    a_claim_is_spent_when_its_reason_is_gone
    a_user_without_browser_or_with_the_kind_switched_off_is_no_candidate
    a_request_is_a_candidate_while_it_is_pending
    a_waiter_who_left_is_a_candidate_until_the_seat_is_theirs
    candidates_are_read_in_pages
    answered_reviews_do_not_end_the_pages_of_candidates
    a_database_with_later_migrations_receives_the_one_of_jobs
}

const JOB: &str = "reminders";
const HOUR: i64 = 3_600;

fn run(fence: u64) -> JobRun {
    JobRun {
        fence: Fence(fence),
        node: NodeId::generate(),
        started_at: at(0),
        ended_at: None,
        outcome: JobOutcome::Running,
        counts: [("sent".to_owned(), fence)].into(),
    }
}

async fn begin(desk: &Desk, fence: u64) -> Option<(RatifiedRun, JobCursors)> {
    periodic::store::begin_job(&desk.storage, JOB, &run(fence), 20).await.unwrap()
}

/// A run that has begun.
async fn begun(desk: &Desk, fence: u64) -> RatifiedRun {
    begin(desk, fence).await.expect("no later run").0
}

/// The candidates of reviews that are an hour old.
fn query(now: DateTime<Utc>) -> CandidateQuery {
    let until = now - TimeDelta::seconds(HOUR);
    let since = until - TimeDelta::days(3);
    CandidateQuery { after: String::new(), since, until, now, limit: 100 }
}

async fn candidates(desk: &Desk, kind: ReminderKind, second: i64) -> Vec<ReminderCandidate> {
    candidates::reminder_candidates(&desk.storage, kind, &query(at(second)))
        .await
        .unwrap()
        .candidates
}

async fn unanswered(desk: &Desk, second: i64) -> Vec<ReminderCandidate> {
    candidates(desk, ReminderKind::ReviewUnanswered, second).await
}

async fn claim(desk: &Desk, run: RatifiedRun, candidate: &ReminderCandidate) -> Option<bool> {
    claim_at(desk, run, candidate, 0).await
}

async fn claim_at(
    desk: &Desk,
    run: RatifiedRun,
    candidate: &ReminderCandidate,
    second: i64,
) -> Option<bool> {
    let subject = &candidate.subject;
    reminders::store::claim_reminder(&desk.storage, run, subject, at(second)).await.unwrap()
}

async fn trim(desk: &Desk, run: RatifiedRun, second: i64) -> Option<u64> {
    reminders::store::trim_absent_waiters(&desk.storage, run, at(second), 10).await.unwrap()
}

async fn subscribe(desk: &Desk, name: &str) {
    let address = PushAddress {
        endpoint: format!("https://push.example/{name}"),
        p256dh: [4; 65],
        auth: [7; 16],
        lang: None,
        expires_at: None,
    };
    push::store::put_push_subscription(&desk.storage, &user(name), &address, 10, at(0))
        .await
        .unwrap();
}

/// A document of kim, who has a browser, and a link with lee.
async fn seated(desk: &Desk) -> Seated {
    let seated = desk.seated().await;
    subscribe(desk, "kim").await;
    seated
}

async fn review(desk: &Desk, seated: Seated, second: i64) -> NewReview {
    let new = NewReview { now: at(second), ..new_review(seated.link) };
    let made = desk.storage.create_review(&new, seated.reviewer).await.unwrap();
    assert!(matches!(made, Guarded::Done(_)), "{made:?}");
    new
}

fn count_of(candidate: &ReminderCandidate) -> i64 {
    match &candidate.subject {
        ReminderSubject::Reviews { count, .. } => *count,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn settings_are_stored_as_they_are(desk: Desk) {
    let kim = user("kim");
    let read = async || reminders::store::reminder_settings(&desk.storage, &kim.id).await.unwrap();
    assert_eq!(read().await, ReminderSettings::default());
    let time = |text: &str| text.parse().unwrap();
    let hours = QuietHours::new(time("22:00"), time("08:00"));
    let quiet = Quiet { hours, time_zone: Some("Asia/Seoul".parse().unwrap()) };
    let all = ReminderSettings { seat_free: false, quiet, ..ReminderSettings::default() };
    reminders::store::put_reminder_settings(&desk.storage, &kim, &all, at(0)).await.unwrap();
    assert_eq!(read().await, all);
    let other = ReminderSettings { review_unanswered: false, ..ReminderSettings::default() };
    reminders::store::put_reminder_settings(&desk.storage, &kim, &other, at(1)).await.unwrap();
    assert_eq!(read().await, other);
}

pub(crate) async fn g11_the_fence_of_a_later_run_ends_the_writes_of_an_earlier_one(desk: Desk) {
    let seated = seated(&desk).await;
    review(&desk, seated, 0).await;
    let seat = Seat::new(seated.link, Role::Writer);
    desk.storage.put_absent_waiter(seat, &user("kim").id, at(0)).await.unwrap();
    assert_eq!(periodic::store::job_fence(&desk.storage, JOB).await.unwrap(), Fence::ZERO);
    let (fifth, cursors) = begin(&desk, 5).await.unwrap();
    assert_eq!(cursors, JobCursors::new());
    let found = unanswered(&desk, HOUR).await;
    // The batch of fence 5 has lost its lock, and a later one has begun.
    let (sixth, cursors) = begin(&desk, 6).await.unwrap();
    assert_eq!(cursors, JobCursors::new());
    for fence in [5, 6] {
        assert_eq!(begin(&desk, fence).await, None, "{fence}");
    }
    assert_eq!(periodic::store::job_fence(&desk.storage, JOB).await.unwrap(), Fence(6));
    assert_eq!(claim(&desk, fifth, &found[0]).await, None);
    assert_eq!(unanswered(&desk, HOUR).await, found, "nothing was stored");
    assert_eq!(trim(&desk, fifth, 1).await, None);
    assert_eq!(trim(&desk, sixth, 1).await, Some(1), "nothing was deleted before");
    // Its end is stored, its cursors are not.
    let ended = JobRun { ended_at: Some(at(9)), outcome: JobOutcome::LockLost, ..run(5) };
    let cursors = JobCursors::from([("seat_free".to_owned(), "x".to_owned())]);
    periodic::store::end_job(&desk.storage, fifth, &ended, &cursors).await.unwrap();
    let runs = periodic::store::job_runs(&desk.storage, JOB).await.unwrap();
    let outcomes: Vec<_> = runs.iter().map(|run| (run.fence.0, run.outcome)).collect();
    assert_eq!(outcomes, [(6, JobOutcome::Running), (5, JobOutcome::LockLost)]);
    assert_eq!((runs[1].ended_at, runs[1].counts["sent"]), (Some(at(9)), 5));
    assert_eq!(claim(&desk, sixth, &found[0]).await, Some(true));
    periodic::store::end_job(&desk.storage, sixth, &run(6), &cursors).await.unwrap();
    assert_eq!(begin(&desk, 7).await.unwrap().1, cursors);
}

pub(crate) async fn g13_a_job_has_a_bounded_number_of_stored_runs(desk: Desk) {
    for fence in 1..=25 {
        begin(&desk, fence).await.unwrap();
    }
    let runs = periodic::store::job_runs(&desk.storage, JOB).await.unwrap();
    let fences: Vec<_> = runs.iter().map(|run| run.fence.0).collect();
    assert_eq!(fences, (6..=25).rev().collect::<Vec<_>>());
    let running = runs.iter().filter(|run| run.outcome == JobOutcome::Running).count();
    assert_eq!(running, 1, "the servers of the others died");
}

pub(crate) async fn g11_a_reminder_is_claimed_once_by_concurrent_batches(desk: Desk) {
    let seated = seated(&desk).await;
    review(&desk, seated, 0).await;
    subscribe(&desk, "lee").await;
    let request = new_request("kim", "lee", 0);
    requests::create_request(&desk.storage, &request).await.unwrap();
    let seat = Seat::new(seated.link, Role::Reviewer);
    desk.storage.put_absent_waiter(seat, &user("lee").id, at(3)).await.unwrap();
    let run = begun(&desk, 5).await;
    for kind in ReminderKind::ALL.iter().copied() {
        let second = if kind == ReminderKind::SeatFree { 60 } else { HOUR };
        let [candidate] = &candidates(&desk, kind, second).await[..] else {
            panic!("{kind:?}");
        };
        let mut claims = JoinSet::new();
        for _ in 0..8 {
            let (storage, subject) = (desk.storage.clone(), candidate.subject.clone());
            claims.spawn(async move {
                reminders::store::claim_reminder(&storage, run, &subject, at(0)).await.unwrap()
            });
        }
        let claims = within(claims.join_all()).await;
        let count = |outcome| claims.iter().filter(|it| **it == outcome).count();
        assert_eq!((count(Some(true)), count(Some(false))), (1, 7), "{kind:?}");
        assert_eq!(candidates(&desk, kind, second).await, []);
    }
}

pub(crate) async fn a_review_is_a_candidate_until_its_writer_answers(desk: Desk) {
    let seated = seated(&desk).await;
    let (first, second) = (review(&desk, seated, 0).await, review(&desk, seated, 1).await);
    assert_eq!(unanswered(&desk, HOUR - 1).await, []);
    let found = unanswered(&desk, HOUR + 1).await;
    let ReminderSubject::Reviews { link, document, title, by, count, .. } = &found[0].subject
    else {
        panic!("{found:?}");
    };
    assert_eq!((*link, *document, *count), (seated.link, seated.document, 2));
    assert_eq!((title.as_str(), by.as_str()), ("지원서", "LEE"));
    assert_eq!((&found[0].user, found.len()), (&user("kim").id, 1));
    // The reviewer's own reply is no answer.
    let reply = NewReply { author: user("lee"), ..new_reply("?") };
    let (storage, link) = (&desk.storage, seated.link);
    storage.add_reply(link, first.id, &reply, seated.reviewer, at(5)).await.unwrap();
    assert_eq!(count_of(&unanswered(&desk, HOUR + 1).await[0]), 2);
    storage.add_reply(link, first.id, &new_reply("네"), seated.writer, at(5)).await.unwrap();
    assert_eq!(count_of(&unanswered(&desk, HOUR + 1).await[0]), 1);
    let resolved = ReviewChange { status: Some(ReviewStatus::Resolved), ..ReviewChange::default() };
    let changed = storage.change_review(link, second.id, &resolved, None, seated.writer, at(6));
    assert!(matches!(changed.await.unwrap(), Guarded::Done(_)));
    assert_eq!(unanswered(&desk, HOUR + 1).await, []);
    // Older than three days and an hour.
    review(&desk, seated, 0).await;
    assert_eq!(unanswered(&desk, HOUR + 3 * 86_400).await, []);
}

pub(crate) async fn a_reminder_covers_the_reviews_that_are_due_and_no_later_one(desk: Desk) {
    let (seated, run) = (seated(&desk).await, begun(&desk, 5).await);
    review(&desk, seated, 0).await;
    // The clock of this review's server was ahead.
    review(&desk, seated, 30).await;
    review(&desk, seated, 10).await;
    review(&desk, seated, 600).await;
    let found = unanswered(&desk, HOUR + 20).await;
    assert_eq!(count_of(&found[0]), 3);
    assert_eq!(claim_at(&desk, run, &found[0], HOUR + 20).await, Some(true));
    // The last review is due after ten minutes. The next reminder follows an hour after the first one, and
    // counts all that wait.
    assert_eq!(unanswered(&desk, 2 * HOUR + 19).await, []);
    let found = unanswered(&desk, 2 * HOUR + 20).await;
    assert_eq!(count_of(&found[0]), 4);
    assert_eq!(claim_at(&desk, run, &found[0], 2 * HOUR + 20).await, Some(true));
    assert_eq!(unanswered(&desk, 4 * HOUR).await, []);
}

/// Goal: between the page of candidates and the claim the writer answered, or the document went to the
/// bin, or the waiter lost the role. The reminder is not sent.
pub(crate) async fn a_claim_is_spent_when_its_reason_is_gone(desk: Desk) {
    let (seated, run) = (seated(&desk).await, begun(&desk, 5).await);
    let only = review(&desk, seated, 0).await;
    let found = unanswered(&desk, HOUR).await;
    let (storage, link) = (&desk.storage, seated.link);
    storage.add_reply(link, only.id, &new_reply("네"), seated.writer, at(5)).await.unwrap();
    assert_eq!(claim(&desk, run, &found[0]).await, Some(false));
    let seat = Seat::new(link, Role::Reviewer);
    storage.put_absent_waiter(seat, &user("park").id, at(0)).await.unwrap();
    let title = String::new();
    let subject = ReminderSubject::Seat { seat, document: seated.document, title, left_at: at(0) };
    let park = ReminderCandidate { user: user("park").id, quiet: Quiet::default(), subject };
    assert_eq!(claim(&desk, run, &park).await, Some(false), "not the reviewer");
    storage.put_absent_waiter(seat, &user("lee").id, at(0)).await.unwrap();
    assert_eq!(claim(&desk, run, &park).await, Some(true));
}

pub(crate) async fn a_user_without_browser_or_with_the_kind_switched_off_is_no_candidate(
    desk: Desk,
) {
    let seated = desk.seated().await;
    review(&desk, seated, 0).await;
    assert_eq!(unanswered(&desk, HOUR).await, []);
    subscribe(&desk, "kim").await;
    assert_eq!(unanswered(&desk, HOUR).await.len(), 1);
    let off = ReminderSettings { review_unanswered: false, ..ReminderSettings::default() };
    reminders::store::put_reminder_settings(&desk.storage, &user("kim"), &off, at(0))
        .await
        .unwrap();
    assert_eq!(unanswered(&desk, HOUR).await, []);
    let time = |text: &str| text.parse().unwrap();
    let quiet = Quiet { hours: QuietHours::new(time("01:00"), time("02:00")), time_zone: None };
    let on = ReminderSettings { quiet, ..ReminderSettings::default() };
    reminders::store::put_reminder_settings(&desk.storage, &user("kim"), &on, at(0)).await.unwrap();
    assert_eq!(unanswered(&desk, HOUR).await[0].quiet, quiet);
}

pub(crate) async fn a_request_is_a_candidate_while_it_is_pending(desk: Desk) {
    for name in ["kim", "lee"] {
        desk.storage.save_user(&user(name), at(0)).await.unwrap();
        subscribe(&desk, name).await;
    }
    let request = new_request("kim", "lee", 0);
    let made = requests::create_request(&desk.storage, &request).await.unwrap();
    assert!(matches!(made, Requested::Created(_)), "{made:?}");
    let pending = async |second| candidates(&desk, ReminderKind::RequestUnanswered, second).await;
    assert_eq!(pending(HOUR - 1).await, []);
    let found = pending(HOUR).await;
    let subject = ReminderSubject::Request { request: request.id, from: "KIM".to_owned() };
    assert_eq!((found.len(), &found[0].user), (1, &user("lee").id));
    assert_eq!(found[0].subject, subject);
    let kim = user("kim").id;
    requests::refuse_request(&desk.storage, request.id, &kim, Refusal::Withdraw, at(5))
        .await
        .unwrap();
    assert_eq!(pending(HOUR).await, []);
    let run = begun(&desk, 5).await;
    assert_eq!(claim(&desk, run, &found[0]).await, Some(false), "its reason is gone");
}

pub(crate) async fn a_waiter_who_left_is_a_candidate_until_the_seat_is_theirs(desk: Desk) {
    let seated = seated(&desk).await;
    let (kim, seat) = (user("kim").id, Seat::new(seated.link, Role::Writer));
    let run = begun(&desk, 5).await;
    let absent = async |second| candidates(&desk, ReminderKind::SeatFree, second).await;
    let leave =
        async |second| desk.storage.put_absent_waiter(seat, &kim, at(second)).await.unwrap();
    assert_eq!(absent(60).await, []);
    leave(3).await;
    let found = absent(60).await;
    let left = ReminderSubject::Seat {
        seat,
        document: seated.document,
        title: "지원서".to_owned(),
        left_at: at(3),
    };
    assert_eq!((found.len(), &found[0].subject), (1, &left));
    // The user gave up, or has been in the seat since.
    desk.storage.delete_absent_waiter(seat, &kim).await.unwrap();
    assert_eq!(absent(60).await, []);
    leave(1).await;
    assert_eq!(absent(60).await, [], "the seat was ratified after it");
    assert_eq!(trim(&desk, run, 0).await, Some(1));
    leave(5).await;
    assert_eq!(trim(&desk, run, 5).await, Some(0));
    assert_eq!(trim(&desk, run, 6).await, Some(1));
    // A user without the role, and a link that ended.
    desk.storage.put_absent_waiter(seat, &user("lee").id, at(9)).await.unwrap();
    assert_eq!(absent(60).await, []);
    leave(9).await;
    assert_eq!(absent(60).await.len(), 1);
    desk.storage.revoke_link(seated.link, at(10)).await.unwrap();
    assert_eq!(absent(60).await, []);
}

pub(crate) async fn candidates_are_read_in_pages(desk: Desk) {
    subscribe(&desk, "kim").await;
    let mut all = Vec::new();
    for _ in 0..5 {
        let seated = desk.seated().await;
        review(&desk, seated, 0).await;
        for role in Role::ALL.iter().copied() {
            let seat = Seat::new(seated.link, role);
            desk.storage.put_absent_waiter(seat, &user("kim").id, at(9)).await.unwrap();
        }
        all.push(seated.link);
    }
    all.sort_unstable_by_key(ToString::to_string);
    for kind in [ReminderKind::ReviewUnanswered, ReminderKind::SeatFree] {
        assert_eq!(links_in_pages(&desk, kind).await, all, "{kind:?}");
    }
}

/// The links of all candidates, read in pages of two.
async fn links_in_pages(desk: &Desk, kind: ReminderKind) -> Vec<ShareLinkId> {
    let (mut found, mut query) = (Vec::new(), query(at(HOUR)));
    query.limit = 2;
    query.since = at(-HOUR);
    loop {
        let page = candidates::reminder_candidates(&desk.storage, kind, &query).await.unwrap();
        assert!(page.candidates.len() <= 2);
        found.extend(page.candidates.iter().map(|candidate| match &candidate.subject {
            ReminderSubject::Reviews { link, .. } => *link,
            ReminderSubject::Seat { seat, .. } => seat.link,
            ReminderSubject::Request { .. } => panic!("{candidate:?}"),
        }));
        let Some(next) = page.next else { return found };
        assert!(query.after < next, "{next} after {}", query.after);
        query.after = next;
    }
}

/// A page whose links are no candidates has a next page.
pub(crate) async fn answered_reviews_do_not_end_the_pages_of_candidates(desk: Desk) {
    subscribe(&desk, "kim").await;
    let mut all = Vec::new();
    for _ in 0..6 {
        let seated = desk.seated().await;
        all.push((seated, review(&desk, seated, 0).await));
    }
    all.sort_unstable_by_key(|(seated, _)| seated.link.to_string());
    let (last, answered) = all.split_last().expect("links");
    for (seated, review) in answered {
        let reply = new_reply("네");
        let storage = &desk.storage;
        storage.add_reply(seated.link, review.id, &reply, seated.writer, at(5)).await.unwrap();
    }
    assert_eq!(links_in_pages(&desk, ReminderKind::ReviewUnanswered).await, [last.0.link]);
}

/// The migration of exports was released before that of jobs, and has a higher number.
pub(crate) async fn a_database_with_later_migrations_receives_the_one_of_jobs(desk: Desk) {
    const DROP: &str = "DROP TABLE jobs; DROP TABLE job_runs; DROP TABLE reminder_settings; \
         DROP TABLE absent_waiters; DROP TABLE review_reminders; DROP TABLE request_reminders; \
         DROP INDEX reviews_open_by_time;";
    let mut stranger = desk.location.stranger().await;
    stranger.run(DROP).await;
    let forget = match &stranger {
        Stranger::Sqlite(_) => "DELETE FROM _sqlx_migrations WHERE version IN (14, 18)",
        Stranger::Postgres(_) => "DELETE FROM _sqlx_migrations WHERE version IN (13, 17)",
    };
    stranger.run(forget).await;
    drop(stranger);
    let storage = desk.another().await;
    assert_eq!(periodic::store::job_fence(&storage, JOB).await.unwrap(), Fence::ZERO);
}
