//! Builders of exports that are killed at random moments: other servers replace them within their lease,
//! and no file is stored twice (G11).

use std::sync::Arc;

use futures_util::future::{join, join_all};
use sqlx::PgConnection;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep};

use crate::server::exports::{builds, download};
use crate::server::kill_campaign::{planned, say};
use crate::server::offer_fixtures::Fleet;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::Desk;

/// Kills of a server with builds in flight, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 20;
/// Builds that one kill hits.
const BUILDS: usize = 3;
/// The lease of a build, and what a busy machine adds to it.
const REPLACED_WITHIN_MS: i64 = 6_000 + 3_000;
/// Lines of a text whose build takes some hundred milliseconds in a debug build.
const LINES: usize = 10_000;
const QUERY: &str = "format=docx";
/// A journal of every begin of a build and of every file that a server stores, also of a file that
/// replaces another one.
const JOURNAL: &str = "\
    CREATE TABLE journal (number BIGSERIAL, link_id TEXT, act TEXT, at_ms BIGINT); \
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
      INSERT INTO journal (link_id, act, at_ms) VALUES \
        (NEW.link_id, TG_ARGV[0], extract(epoch FROM clock_timestamp()) * 1000); \
      RETURN NULL; END $$; \
    CREATE TRIGGER begun AFTER INSERT OR UPDATE OF fence ON export_builds \
      FOR EACH ROW EXECUTE FUNCTION note('begun'); \
    CREATE TRIGGER stored AFTER INSERT OR UPDATE ON exports \
      FOR EACH ROW EXECUTE FUNCTION note('stored')";

/// The journal of the database of the servers.
struct Journal(PgConnection);

impl Journal {
    async fn of(fleet: &Fleet) -> Self {
        let url = fleet.database.as_ref().expect("a database").url();
        let mut database = postgres_server::stranger(&url).await;
        sqlx::raw_sql(JOURNAL).execute(&mut database).await.expect("triggers");
        Self(database)
    }

    /// The mean length of the builds so far.
    async fn length(&mut self) -> Duration {
        let sql = "SELECT AVG(took_ms)::bigint FROM exports";
        let mean: i64 = sqlx::query_scalar(sql).fetch_one(&mut self.0).await.expect("a mean");
        Duration::from_millis(mean.try_into().expect("a length"))
    }

    /// The acts of the builds of a link in order, with their times in milliseconds.
    async fn acts(&mut self, link: &str) -> Vec<(String, i64)> {
        let sql = "SELECT act, at_ms FROM journal WHERE link_id = $1 ORDER BY number";
        let acts = sqlx::query_as(sql).bind(link).fetch_all(&mut self.0).await;
        acts.expect("the acts of the link")
    }
}

/// The point of a build at which the kill came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    BeforeBegin,
    InBuild,
    AfterStore,
}

/// The builds of one kill.
struct Killed {
    desks: Vec<Desk>,
    at_ms: i64,
}

/// Sends a request for each file. Dropping the set ends their connections.
fn start_builds(server: &Server, desks: &[Desk]) -> JoinSet<reqwest::Result<reqwest::Response>> {
    let requests = desks.iter().map(|desk| {
        let url = format!("{}/api/share-links/{}/export?{QUERY}", server.url, desk.link);
        server.http.get(url).bearer_auth(&desk.writer.token).send()
    });
    requests.collect()
}

/// Both members request the file at two servers, of which one replaces the dead builder. They get the
/// same bytes.
async fn replace(servers: Arc<[Server]>, desk: Desk) {
    let one = download(&servers[0], &desk.writer, &desk, QUERY);
    let (one, other) = join(one, download(&servers[1], &desk.reviewer, &desk, QUERY)).await;
    assert_eq!((one.status, other.status), (200, 200));
    assert_eq!((one.header("etag"), &one.bytes), (other.header("etag"), &other.bytes));
}

/// Holds that one build stored the file of the link, and returns the point of the kill and how long
/// after it this build began.
async fn audit(journal: &mut Journal, link: &str, at_ms: i64) -> (Point, i64) {
    let acts = journal.acts(link).await;
    let stored: Vec<_> = (0..acts.len()).filter(|index| acts[*index].0 == "stored").collect();
    assert_eq!(stored.len(), 1, "one build stores the file of {link}: {acts:?}");
    // A later build finds the file and stores nothing.
    let begins = &acts[..stored[0]];
    let delay = begins.last().expect("a build").1 - at_ms;
    let point = match begins.len() {
        1 if delay <= 0 => Point::AfterStore,
        1 => Point::BeforeBegin,
        2 => Point::InBuild,
        _ => panic!("a replaced build is replaced: {acts:?}"),
    };
    assert!(delay <= REPLACED_WITHIN_MS, "another server begins {delay} ms after the kill");
    (point, delay)
}

/// Goal: a server is killed at a random moment of its builds, again and again. Other servers replace each
/// build within its lease, all members get the same bytes, and each file is stored once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_builders_killed_at_random_moments_are_replaced_and_no_file_is_stored_twice() {
    let (kills, mut random) = planned("exports", KILLS);
    let mut fleet = Fleet::of(3).await;
    let mut journal = Journal::of(&fleet).await;
    let mut victim = fleet.servers.remove(0);
    let others: Arc<[Server]> = std::mem::take(&mut fleet.servers).into();
    let text = "나는 글을 쓴다.\n".repeat(LINES);
    let desks = async || join_all((0..BUILDS).map(|_| others[0].desk(&text))).await;
    // The first builds of all measure the length of a build.
    let files = desks().await;
    join_all(files.iter().map(|desk| download(&victim, &desk.writer, desk, QUERY))).await;
    let (mut replacing, mut all) = (JoinSet::new(), Vec::new());
    for round in 0..kills {
        let desks = desks().await;
        // Some moments are later than the end of the builds.
        let length = journal.length().await * 3 / 2;
        let moment = random.below(length.as_micros().try_into().expect("a length"));
        let pending = start_builds(&victim, &desks);
        // The moment of the kill, not a wait for an event.
        sleep(Duration::from_micros(moment.try_into().expect("a moment"))).await;
        victim.kill().await;
        let at_ms = chrono::Utc::now().timestamp_millis();
        drop(pending);
        for desk in &desks {
            replacing.spawn(replace(Arc::clone(&others), desk.clone()));
        }
        say(&format!("exports: kill {round} after {moment} µs of at most {length:?}"));
        all.push(Killed { desks, at_ms });
        victim.start_again().await;
    }
    replacing.join_all().await;
    let (mut points, mut latest) = (Vec::new(), 0);
    for Killed { desks, at_ms } in &all {
        for desk in desks {
            let (point, delay) = audit(&mut journal, &desk.link, *at_ms).await;
            points.push(point);
            latest = latest.max(delay);
        }
    }
    let count = |point| points.iter().filter(|it| **it == point).count();
    let [before, inside, after] =
        [Point::BeforeBegin, Point::InBuild, Point::AfterStore].map(count);
    say(&format!(
        "exports: the kills hit {before} builds before their begin, {inside} in the middle, and {after} \
         after the store; the last replacement began after {latest} ms"
    ));
    // A few kills may all miss them.
    assert!(kills < KILLS || points.len() / 4 <= inside, "most kills miss the builds");
    let built = u32::try_from(before + inside).expect("a number");
    let others: Vec<_> = others.iter().collect();
    assert_eq!(builds(&others, "built").await, f64::from(built));
    assert_eq!(builds(&others, "lost").await + builds(&others, "failed").await, 0.0);
    // The killed server, alive again, serves what the other ones built.
    let last = &all.last().expect("a kill").desks[0];
    let [own, theirs] =
        [&victim, others[0]].map(|server| download(server, &last.writer, last, QUERY));
    assert_eq!(own.await.bytes, theirs.await.bytes);
}
