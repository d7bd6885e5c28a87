//! Batches of reminders without a server: the lock, the fence, the watchdog and the stop.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::storage::database::{Desk, new_review, user};
use crate::storage::review_requests::new_request;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{TimeDelta, Utc};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join, ready};
use galley::domain::fence::Fence;
use galley::domain::ids::NodeId;
use galley::locks::{Guard, Locks};
use galley::outgoing::Outgoing;
use galley::partners::request::{NewRequest, Requested};
use galley::partners::store::requests;
use galley::periodic;
use galley::periodic::store::{JobCursors, JobOutcome, JobRun, RatifiedRun};
use galley::periodic::{Job, Jobs};
use galley::push;
use galley::push::Notify;
use galley::push::store::PushAddress;
use galley::push::vapid::PushKey;
use galley::push::web_push::PushOptions;
use galley::reminders::{REMINDER_KIND_MAX, REMINDERS, ReminderTerms, Reminders};
use galley::storage::Storage;
use galley::storage::reviews::NewReview;
use rustls::RootCertStore;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::fixtures::found;
use crate::support::push_service::{Browser, PushService, Response};
use crate::support::redis_server::{Server, TEST_TIMEOUT};

/// The lease of a run is three quarters of a second with it.
const TICK: Duration = Duration::from_millis(100);
/// Longer than that lease.
const LATE: Duration = Duration::from_millis(2_000);

/// The browser's address, as storage has it.
pub(crate) fn address_of(subscription: &Value) -> PushAddress {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let bytes = |value: &Value| URL_SAFE_NO_PAD.decode(text(value)).expect("base64url");
    let keys = &subscription["keys"];
    PushAddress {
        endpoint: text(&subscription["endpoint"]),
        p256dh: bytes(&keys["p256dh"]).try_into().expect("a point"),
        auth: bytes(&keys["auth"]).try_into().expect("a secret"),
        lang: None,
        expires_at: None,
    }
}

/// The jobs of a server with this database and these locks, which reminds of reviews of this age and sends
/// one reminder after another.
pub(crate) fn jobs_of(storage: &Storage, locks: &Locks, age: Duration) -> Jobs {
    jobs_within(storage, locks, age, REMINDER_KIND_MAX)
}

/// The jobs of [`jobs_of`], with the time of each kind.
fn jobs_within(storage: &Storage, locks: &Locks, age: Duration, kind_max: Duration) -> Jobs {
    let key = PushKey::parse(&PushKey::generate().expect("random")).expect("a key");
    let subject = Some("mailto:ops@example.com".to_owned());
    let push = PushOptions { key, subject, allow_private: true, hosts: Vec::new() };
    let outgoing = Outgoing::trusting(RootCertStore::empty(), TEST_TIMEOUT);
    let notify = Notify::new(storage.clone(), outgoing, Some(push));
    let terms = ReminderTerms::new(TICK, age, Duration::from_secs(86_400));
    let terms = ReminderTerms { at_once: 1, kind_max, ..terms };
    let reminders = Reminders::new(storage.clone(), locks.clone(), notify, terms);
    Jobs::new(storage.clone(), locks.clone(), NodeId::generate(), vec![Box::new(reminders)])
}

/// A database in which kim, who has a browser, has documents with a review of two hours ago each.
struct Waiting {
    desk: Desk,
    service: PushService,
    _browser: Browser,
}

impl Waiting {
    async fn with(documents: usize) -> Self {
        let (desk, service) = (Desk::sqlite().await, PushService::start().await);
        let browser = Browser::new();
        for _ in 0..documents {
            let seated = desk.seated().await;
            let now = Utc::now() - TimeDelta::hours(2);
            let new = NewReview { now, ..new_review(seated.link) };
            desk.storage.create_review(&new, seated.reviewer).await.expect("a review");
        }
        let address = address_of(&browser.subscription(&service));
        let (kim, now) = (user("kim"), Utc::now());
        push::store::put_push_subscription(&desk.storage, &kim, &address, 10, now)
            .await
            .expect("stored");
        Self { desk, service, _browser: browser }
    }

    fn storage(&self) -> &Storage {
        &self.desk.storage
    }

    /// The jobs of a server of its own.
    fn jobs(&self, locks: &Locks) -> Jobs {
        jobs_of(self.storage(), locks, Duration::from_secs(3_600))
    }

    /// Runs once, after the minimum hold of the last run and the lease of a lost one.
    async fn run(&self, jobs: &Jobs) -> JobRun {
        found(async || match jobs.run(&CancellationToken::new()).await {
            Ok(mut runs) if !runs.is_empty() => Ok(runs.remove(0)),
            other => Err(other),
        })
        .await
    }

    /// The documents of which the browser was reminded. Each of them once.
    fn reminded(&self) -> usize {
        let received = self.service.received();
        let mut topics: Vec<_> = received.iter().map(|push| push.header("topic")).collect();
        topics.sort_unstable();
        topics.dedup();
        assert_eq!(topics.len(), received.len(), "no reminder comes twice");
        topics.len()
    }
}

#[tokio::test]
async fn a_batch_reports_what_it_did() {
    let waiting = Waiting::with(3).await;
    let jobs = waiting.jobs(&Locks::memory());
    let run = waiting.run(&jobs).await;
    assert_eq!(
        (run.outcome, run.counts["candidates"], run.counts["sent"]),
        (JobOutcome::Done, 3, 3)
    );
    assert_eq!(waiting.reminded(), 3);
    let next = waiting.run(&jobs).await;
    assert_eq!((next.outcome, next.counts["candidates"]), (JobOutcome::Done, 0));
    assert!(run.fence < next.fence);
    let asked = Utc::now();
    let report = jobs.report().await.expect("a report");
    assert_eq!((report[0].job, report[0].running), (REMINDERS, None));
    assert_eq!(
        report[0].last_runs,
        periodic::store::job_runs(waiting.storage(), REMINDERS).await.expect("runs")
    );
    assert_eq!(report[0].last_runs.len(), 2);
    assert!(asked < report[0].next_at + TimeDelta::milliseconds(1));
    assert_eq!(report[0].estimate_ms, 500, "the least");
}

/// Goal: a server froze beyond its lease, and another one has begun a batch.
#[tokio::test]
async fn g11_a_batch_sends_nothing_after_a_later_batch_has_begun() {
    let waiting = Waiting::with(5).await;
    let jobs = waiting.jobs(&Locks::memory());
    waiting.service.script([Response::Late(Duration::from_millis(200))]);
    let later = async {
        waiting.service.has(1).await;
        let Fence(last) =
            periodic::store::job_fence(waiting.storage(), REMINDERS).await.expect("a fence");
        let run = JobRun {
            fence: Fence(last + 1),
            node: NodeId::generate(),
            started_at: Utc::now(),
            ended_at: None,
            outcome: JobOutcome::Running,
            counts: Default::default(),
        };
        let begun = periodic::store::begin_job(waiting.storage(), REMINDERS, &run, 20).await;
        assert!(begun.expect("stored").is_some());
    };
    let (run, ()) = join(waiting.run(&jobs), later).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::LockLost, 1));
    assert_eq!(waiting.reminded(), 1);
    let runs = periodic::store::job_runs(waiting.storage(), REMINDERS).await.expect("runs");
    assert_eq!(runs[1].outcome, JobOutcome::LockLost);
    let run = waiting.run(&jobs).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Done, 4));
    assert_eq!(waiting.reminded(), 5);
}

/// Goal: Redis does not answer for longer than the lease. The batch stops by its own clock, before another
/// server has begun.
#[tokio::test]
async fn g11_a_batch_without_its_lock_stops_before_its_next_send() {
    let (redis, waiting) = (Server::start().await, Waiting::with(5).await);
    let locks = Locks::connect(&redis.url()).await.expect("a good address");
    let jobs = waiting.jobs(&locks);
    waiting.service.script([Response::Late(LATE)]);
    let freezing = async {
        waiting.service.has(1).await;
        redis.freeze().await;
    };
    let (run, ()) = join(waiting.run(&jobs), freezing).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::LockLost, 1));
    assert_eq!(waiting.reminded(), 1);
    redis.thaw().await;
    let run = waiting.run(&jobs).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Done, 4));
    assert_eq!(waiting.reminded(), 5);
}

/// Goal: the renewal actor extends the lease every half of the estimate.
#[tokio::test]
async fn a_batch_longer_than_its_lease_keeps_its_lock() {
    let (redis, waiting) = (Server::start().await, Waiting::with(2).await);
    let locks = Locks::connect(&redis.url()).await.expect("a good address");
    let others = Locks::connect(&redis.url()).await.expect("a good address");
    let (jobs, other) = (waiting.jobs(&locks), waiting.jobs(&others));
    waiting.service.script([Response::Late(LATE)]);
    let meanwhile = async {
        waiting.service.has(1).await;
        let began = Instant::now();
        let mut tried = 0;
        while began.elapsed() < LATE * 3 / 4 {
            let run = other.run(&CancellationToken::new()).await.expect("an answer");
            assert_eq!(run, [], "the first batch runs");
            let running = other.report().await.expect("a report")[0].running;
            assert!(running.is_some());
            tried += 1;
            sleep(Duration::from_millis(50)).await;
        }
        tried
    };
    let (run, tried) = join(waiting.run(&jobs), meanwhile).await;
    assert!(5 < tried, "{tried}");
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Done, 2));
    let took = run.ended_at.expect("an end") - run.started_at;
    assert!(TimeDelta::milliseconds(750) < took, "longer than its lease: {took}");
    assert_eq!(
        periodic::store::job_runs(waiting.storage(), REMINDERS).await.expect("runs").len(),
        1
    );
}

/// Goal: a slow push service spends the time of one kind. The batch sends the next kind, and the next batch
/// continues the first.
#[tokio::test]
async fn a_kind_whose_time_is_up_does_not_keep_the_next_one_from_being_sent() {
    let waiting = Waiting::with(3).await;
    waiting.storage().save_user(&user("lee"), Utc::now()).await.expect("stored");
    let now = Utc::now() - TimeDelta::days(2);
    let request = NewRequest { now, ..new_request("lee", "kim", 0) };
    let made = requests::create_request(waiting.storage(), &request).await.expect("stored");
    assert!(matches!(made, Requested::Created(_)), "{made:?}");
    let hour = Duration::from_secs(3_600);
    let jobs = jobs_within(waiting.storage(), &Locks::memory(), hour, LATE / 2);
    waiting.service.script([Response::Late(LATE)]);
    let run = waiting.run(&jobs).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Done, 2), "a review, the request");
    let run = waiting.run(&jobs).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Done, 2), "the other reviews");
    assert_eq!(waiting.reminded(), 4);
}

#[tokio::test]
async fn a_stopping_server_ends_its_batch_after_the_reminders_under_way() {
    let waiting = Waiting::with(4).await;
    let (jobs, stop) = (waiting.jobs(&Locks::memory()), CancellationToken::new());
    waiting.service.script([Response::Late(Duration::from_millis(200))]);
    let stopping = async {
        waiting.service.has(1).await;
        stop.cancel();
    };
    let (run, ()) = join(jobs.run(&stop), stopping).await;
    let run = run.expect("an end").pop().expect("a run");
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Stopped, 1));
    let run = waiting.run(&jobs).await;
    assert_eq!((run.outcome, run.counts["sent"]), (JobOutcome::Done, 3));
    assert_eq!(waiting.reminded(), 4);
}

/// A job whose first run panics, and whose second one stops its server.
struct PanicsOnce(AtomicBool, CancellationToken);

impl Job for PanicsOnce {
    fn name(&self) -> &'static str {
        "panics-once"
    }

    fn tick(&self) -> Duration {
        TICK
    }

    fn run<'a>(
        &'a self,
        _held: (&'a Guard, RatifiedRun),
        _cursors: &'a mut JobCursors,
        _stop: &'a CancellationToken,
    ) -> BoxFuture<'a, (JobOutcome, BTreeMap<String, u64>)> {
        if !self.0.swap(true, Ordering::Relaxed) {
            // Without a backtrace, whose symbols would be the peak memory of this process.
            resume_unwind(Box::new("on purpose"));
        }
        self.1.cancel();
        ready((JobOutcome::Done, BTreeMap::new())).boxed()
    }
}

/// Goal: a fault of a job ends neither its later ticks nor the server.
#[tokio::test]
async fn a_job_that_panics_runs_again_at_a_later_tick() {
    let (desk, stop) = (Desk::sqlite().await, CancellationToken::new());
    let job = PanicsOnce(AtomicBool::new(false), stop.clone());
    let (node, storage) = (NodeId::generate(), desk.storage.clone());
    let jobs = Jobs::new(storage.clone(), Locks::memory(), node, vec![Box::new(job)]);
    timeout(TEST_TIMEOUT, jobs.run_ticks(stop)).await.expect("a second run");
    let runs = periodic::store::job_runs(&storage, "panics-once").await.expect("runs");
    let outcomes: Vec<_> = runs.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [JobOutcome::Done, JobOutcome::Failed], "the newest first");
}
