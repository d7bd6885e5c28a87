//! Batches of reminders, and the reports about them.

use std::time::Duration;

use galley::locks::Locks;
use galley::storage::Storage;
use sqlx::AssertSqlSafe;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::jobs::jobs_of;
use crate::server::reminder_fixtures::{admin, browser, review};
use crate::server::statements::Counted;
use crate::support::galley_process::Server;
use crate::support::push_service::PushService;

/// Older than the age from which a review is due.
const AGE: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_and_each_reminder_cost_a_fixed_number_of_statements_and_commands() {
    let (mut counted, service) = (Counted::start().await, PushService::start().await);
    let storage = Storage::open(&counted.url).await.expect("the database");
    let locks = Locks::connect(&counted.redis.url()).await.expect("a good address");
    let jobs = jobs_of(&storage, &locks, Duration::from_millis(1));
    let run = async |count: u64| {
        let run = jobs.run(&CancellationToken::new()).await.expect("a run").pop().expect("a run");
        assert_eq!(run.counts["sent"], count, "{run:?}");
    };
    let nothing = async |_: &Server| {};
    counted.measure("an empty batch", nothing, async |_, ()| run(0).await).await;
    let waiting = async |server: &Server, documents: usize| {
        for _ in 0..documents {
            let desk = server.desk("text").await;
            browser(server, &desk.writer, &service).await;
            let reviewer = server.reviewer(&desk).await;
            review(server, &desk).await;
            reviewer.leave().await;
        }
        sleep(AGE).await;
    };
    let one = async |server: &Server| waiting(server, 1).await;
    counted.measure("a reminder", one, async |_, ()| run(1).await).await;
    let three = async |server: &Server| waiting(server, 3).await;
    counted.measure("three reminders", three, async |_, ()| run(3).await).await;
    let admin = async |server: &Server| admin(server);
    counted.measure_get("the report of the jobs", "/api/admin/jobs", admin).await;
    // One pipeline of two commands queries the holders of any number of locks: it loads its script, and calls
    // it. Each reminder costs a claim in a transaction, and the read of the user's browsers.
    counted.cost(&[
        ("an empty batch", 18, 2),
        ("a reminder", 23, 4),
        ("three reminders", 33, 4),
        ("the report of the jobs", 2, 4),
    ]);
}

/// Goal: a batch reads an index, and no review of a link that needs no reminder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g13_a_batch_reads_few_blocks_for_reviews_that_have_their_reminder() {
    const REVIEWS: i64 = 5_000;
    const BLOCKS_MAX: i64 = 400;
    let (mut counted, service) = (Counted::start().await, PushService::start().await);
    let desk = counted.server.desk("text").await;
    browser(&counted.server, &desk.writer, &service).await;
    let (link, lee) = (&desk.link, &desk.reviewer.id);
    let fill = format!(
        "INSERT INTO reviews (id, link_id, author_id, anchor_start, anchor_end, quote, prefix, \
           suffix, current_start, current_end, body, status, version, created_at, updated_at, \
           first_change, last_change) \
         SELECT 'rev_' || md5(g::text), '{link}', '{lee}', 0, 4, 'text', '', '', '', '', 'why?', \
           'open', 1, now() - interval '2 hours', now(), g, g FROM generate_series(1, {REVIEWS}) g; \
         INSERT INTO review_reminders VALUES ('{link}', {REVIEWS}, 1, now() - interval '2 hours')"
    );
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut counted.database).await.expect("filled");
    // An index answers alone for rows that PostgreSQL knows to be visible.
    let vacuum = "VACUUM ANALYZE reviews";
    sqlx::raw_sql(vacuum).execute(&mut counted.database).await.expect("vacuumed");
    let storage = Storage::open(&counted.url).await.expect("the database");
    let jobs = jobs_of(&storage, &Locks::memory(), Duration::from_secs(3_600));
    counted.forget().await;
    let run = jobs.run(&CancellationToken::new()).await.expect("a run").pop().expect("a run");
    assert_eq!(run.counts["candidates"], 0);
    let blocks = counted.sum("shared_blks_hit + shared_blks_read", "%review_reminders%").await;
    assert!((1..=BLOCKS_MAX).contains(&blocks), "{blocks} blocks for {REVIEWS} reviews");
}
