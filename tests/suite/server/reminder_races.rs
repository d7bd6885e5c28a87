//! Reminders with several servers on one tick, clocks that step, and servers that are killed: no reminder
//! is sent twice (G11).

use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::storage::database::{self, new_document, new_link, new_review, ratify, user};
use chrono::{TimeDelta, Timelike as _, Utc};
use futures_util::future::join_all;
use galley::domain::ids::ShareLinkId;
use galley::domain::reminder::{Quiet, QuietHours, ReminderSettings, TimeOfDay};
use galley::domain::seat::{Role, Seat};
use galley::push;
use galley::reminders;
use galley::reminders::REMINDERS_AT_ONCE;
use galley::storage::Storage;
use galley::storage::reviews::NewReview;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::jobs::address_of;
use crate::server::kill_campaign::{planned, say};
use crate::server::offer_fixtures::Fleet;
use crate::server::reminder_fixtures::{QUICK, browser, report, review, runs};
use crate::support::fixtures::found;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::push_service::{Browser, PushService, Response};
use crate::support::redis_server::{self, TEST_TIMEOUT};
use crate::support::rng::Random;
use crate::support::shifted_redis::clock_shim;

/// The steps of a clock in milliseconds.
const STEPS: [i64; 8] = [-3_600_000, -20_000, -700, -90, 90, 700, 20_000, 1_800_000];
const TICKS: u32 = 20;
/// Kills of a server, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 20;

/// A server whose wall clock the test shifts.
pub(crate) struct ShiftedServer {
    pub(crate) server: Server,
    clock: PathBuf,
}

impl ShiftedServer {
    pub(crate) async fn start(
        folder: &Arc<TempDir>,
        shim: &Path,
        name: &str,
        settings: &[(String, String)],
    ) -> Self {
        let clock = folder.path().join(name);
        std::fs::write(&clock, 0_i64.to_ne_bytes()).expect("written");
        let mut environment = settings.to_vec();
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        environment.push(("LD_PRELOAD".to_owned(), text(shim)));
        environment.push(("CLOCK_SHIFT".to_owned(), text(&clock)));
        let server = Server::spawn(Arc::clone(folder), environment).await;
        Self { server, clock }
    }

    pub(crate) fn shift(&self, by_ms: i64) {
        // In place: the process maps this file.
        let file = std::fs::File::options().write(true).open(&self.clock).expect("its clock");
        file.write_all_at(&by_ms.to_ne_bytes(), 0).expect("written");
    }
}

fn environment(more: &[(&str, &str)]) -> Vec<(String, String)> {
    let all = QUICK.iter().chain(more);
    all.map(|(name, value)| (format!("GALLEY_{name}"), (*value).to_owned())).collect()
}

/// The number of pushes to each topic.
fn by_topic(service: &PushService) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for push in service.received() {
        *counts.entry(push.header("topic").expect("a topic").to_owned()).or_default() += 1;
    }
    counts
}

/// The ticks of a server so far, with any outcome.
async fn ticks(server: &Server) -> f64 {
    let mut ticks = 0.0;
    for outcome in ["done", "stopped", "lock-lost", "failed", "skipped"] {
        let name = format!("galley_jobs_total{{job=\"reminders\",outcome=\"{outcome}\"}}");
        ticks += server.metric(&name).await.expect("a metric");
    }
    ticks
}

/// Users leave reviews without answer during the ticks, while the clocks of the servers step. The first
/// server serves the users, so its clock steps by less than a second meanwhile.
async fn remind_each_once(servers: &[ShiftedServer], rng: &mut Random) {
    let service = PushService::start().await;
    let first = &servers[0].server;
    let step = |rng: &mut Random| {
        let (at, by) = (rng.below(servers.len()), STEPS[rng.below(STEPS.len())]);
        servers[at].shift(if at == 0 { by % 1_000 } else { by });
    };
    let mut documents = 0;
    for _ in 0..TICKS {
        step(rng);
        let desk = first.desk("text").await;
        browser(first, &desk.writer, &service).await;
        let reviewer = first.reviewer(&desk).await;
        review(first, &desk).await;
        drop(reviewer);
        documents += 1;
        sleep(Duration::from_millis(150)).await;
    }
    // Without users the first clock steps too, until each server has had its ticks.
    let began = Instant::now();
    for round in 0.. {
        let had = join_all(servers.iter().map(|server| ticks(&server.server))).await;
        if TICKS <= round && had.iter().all(|had| f64::from(TICKS) <= *had) {
            break;
        }
        assert!(began.elapsed() < TEST_TIMEOUT, "a server has too few ticks: {had:?}");
        let (at, by) = (rng.below(servers.len()), STEPS[rng.below(STEPS.len())]);
        servers[at].shift(by);
        sleep(Duration::from_millis(100)).await;
    }
    servers.iter().for_each(|server| server.shift(0));
    service.has(documents).await;
    runs(first, 4).await;
    let counts = by_topic(&service);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(counts.len(), documents, "no reminder is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_three_servers_on_one_tick_with_stepping_clocks_send_each_reminder_once() {
    let redis = redis_server::Server::start().await;
    let postgres = postgres_server::shared();
    let database = postgres.url(&postgres.empty().await);
    let (folder, locks) = (Arc::new(TempDir::new().expect("a folder")), redis.url());
    let shim = clock_shim(folder.path());
    let settings = environment(&[("LOCKS__URL", &locks), ("DATABASE__URL", &database)]);
    let mut servers = Vec::new();
    for name in ["one", "two", "three"] {
        servers.push(ShiftedServer::start(&folder, &shim, name, &settings).await);
    }
    remind_each_once(&servers, &mut Random::new(14)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_one_server_with_a_stepping_clock_sends_each_reminder_once() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let shim = clock_shim(folder.path());
    let server = ShiftedServer::start(&folder, &shim, "one", &environment(&[])).await;
    remind_each_once(&[server], &mut Random::new(41)).await;
}

/// Four documents of kim with an unanswered review of two hours ago each.
async fn add_documents(storage: &Storage) -> Vec<ShareLinkId> {
    let mut links = Vec::new();
    for _ in 0..4 {
        let document = new_document(&user("kim"), database::at(0));
        storage.create_document(&document).await.expect("a document");
        let link = new_link(document.id);
        storage.find_or_create_link(&link).await.expect("stored");
        let seat = Seat::new(link.id, Role::Reviewer);
        ratify(storage, seat, 20).await;
        let guard =
            galley::storage::guard::FenceGuard { seat, fence: galley::domain::fence::Fence(20) };
        let now = Utc::now() - TimeDelta::hours(2);
        let new = NewReview { now, ..new_review(link.id) };
        storage.create_review(&new, guard).await.expect("a review");
        links.push(link.id);
    }
    links
}

/// The servers share the ticks, and one of them is killed at a random point in each round. A reminder that
/// was claimed and not sent may be lost; none comes twice, and none that no server claimed is lost.
async fn killed_batches(
    servers: &mut [Server],
    storage: &Storage,
    (kills, mut random): (usize, Random),
) {
    let service = PushService::start().await;
    let kims = address_of(&Browser::new().subscription(&service));
    let kim = user("kim");
    push::store::put_push_subscription(storage, &kim, &kims, 10, Utc::now()).await.expect("stored");
    let mut documents = 0;
    for round in 0..kills {
        documents += add_documents(storage).await.len();
        sleep(Duration::from_millis(random.below(450) as u64)).await;
        let killed = &mut servers[round % servers.len()];
        killed.kill().await;
        killed.start_again().await;
    }
    runs(&servers[0], 6).await;
    let counts = by_topic(&service);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    say(&format!("reminders: {} of {documents} were sent", counts.len()));
    // At most one page was claimed and not sent in each round; a fair part arrives.
    assert!(documents / 2 <= counts.len() && counts.len() <= documents, "{}", counts.len());
    let last = runs(&servers[0], 1).await;
    assert_eq!(last[0]["counts"]["candidates"], 0, "every reminder is claimed");
}

/// Goal: of twenty kills on two servers with SQLite none lets a reminder come twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_batch_that_is_killed_twenty_times_sends_no_reminder_twice() {
    let plan = planned("reminders of two servers", KILLS);
    let redis = redis_server::Server::start().await;
    let (folder, locks) = (Arc::new(TempDir::new().expect("a folder")), redis.url());
    let more = [("LOCKS__URL", locks.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
    let settings: Vec<_> = QUICK.iter().chain(&more).copied().collect();
    let one = Server::in_folder(Arc::clone(&folder), &settings).await;
    let two = Server::in_folder(Arc::clone(&folder), &settings).await;
    let file = folder.path().join("data/galley.db");
    let storage = Storage::open(&format!("sqlite://{}", file.display())).await.expect("the file");
    killed_batches(&mut [one, two], &storage, plan).await;
}

/// Goal: the same on three servers with PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_batch_that_is_killed_on_three_servers_sends_no_reminder_twice() {
    let plan = planned("reminders of three servers", KILLS);
    let mut fleet = Fleet::with(3, &QUICK).await;
    let url = fleet.database.as_ref().expect("a database").url();
    let storage = Storage::open(&url).await.expect("the database");
    killed_batches(&mut fleet.servers, &storage, plan).await;
    storage.close().await;
}

/// Goal: quiet hours that begin during a batch postpone what it has not claimed, and the push service stores
/// no push into them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiet_hours_that_begin_during_a_batch_postpone_its_other_reminders() {
    let (folder, service) =
        (Arc::new(TempDir::new().expect("a folder")), PushService::start().await);
    let file = folder.path().join("data/galley.db");
    let storage = Storage::open(&format!("sqlite://{}", file.display())).await.expect("the file");
    let mut documents = 0;
    while documents <= REMINDERS_AT_ONCE {
        documents += add_documents(&storage).await.len();
    }
    let (kim, now) = (user("kim"), Utc::now());
    let kims = address_of(&Browser::new().subscription(&service));
    push::store::put_push_subscription(&storage, &kim, &kims, 10, now).await.expect("stored");
    let minutes = i64::from(now.hour() * 60 + now.minute());
    let time = |after| TimeOfDay::from_minutes((minutes + after) % (24 * 60)).expect("a time");
    let quiet = Quiet { hours: QuietHours::new(time(30), time(180)), time_zone: None };
    let settings = ReminderSettings { quiet, ..ReminderSettings::default() };
    reminders::store::put_reminder_settings(&storage, &kim, &settings, now).await.expect("stored");
    storage.close().await;

    service.respond(Response::Late(Duration::from_secs(1)));
    let shim = clock_shim(folder.path());
    let server = ShiftedServer::start(&folder, &shim, "one", &environment(&[])).await;
    service.has(1).await;
    server.shift(3_600_000);
    let count = |run: &serde_json::Value, name: &str| run["counts"][name].as_u64();
    let run = found(async || {
        let runs = report(&server.server).await["last_runs"].as_array().expect("runs").clone();
        runs.iter().find(|run| Some(0) < count(run, "sent")).cloned().ok_or(runs)
    });
    let run = run.await;
    let sent = usize::try_from(count(&run, "sent").expect("a count")).expect("few");
    let postponed = usize::try_from(count(&run, "postponed").expect("a count")).expect("few");
    assert_eq!(sent + postponed, documents, "{run}");
    assert!(sent <= REMINDERS_AT_ONCE, "{run}");
    let pushes = service.received();
    assert_eq!(pushes.len(), sent);
    let ttl = |push: &crate::support::push_service::Received| {
        push.header("ttl").expect("a time").parse::<u64>().expect("seconds")
    };
    assert!(pushes.iter().all(|push| ttl(push) <= 30 * 60), "{:?}", pushes.iter().map(ttl).max());
    server.shift(0);
    service.has(documents).await;
}
