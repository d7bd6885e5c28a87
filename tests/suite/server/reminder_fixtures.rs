//! Servers with fast ticks, users with browsers, and reviews that wait for an answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::galley_process::Server;
use crate::support::push_service::{Browser, PushService};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::{Desk, Person};

/// Ticks and waits of a test.
pub(crate) const QUICK: [(&str, &str); 4] = [
    ("JOBS__TICK", "200ms"),
    ("JOBS__REVIEW_UNANSWERED_AFTER", "300ms"),
    ("JOBS__REQUEST_UNANSWERED_AFTER", "300ms"),
    ("PUSH__ALLOW_PRIVATE", "true"),
];

/// A browser of `who`.
pub(crate) async fn browser(server: &Server, who: &Person, service: &PushService) -> Browser {
    let browser = Browser::new();
    let body = browser.subscription(service);
    server.post(who, "/api/push-subscriptions", body).await.ok(201);
    browser
}

/// A review by the reviewer, who is seated meanwhile.
pub(crate) async fn review(server: &Server, desk: &Desk) -> Value {
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 4, "quote": "text" });
    let body = json!({ "anchor": anchor, "body": "?" });
    server.post(&desk.reviewer, &path, body).await.ok(201)
}

pub(crate) fn admin(server: &Server) -> Person {
    let (id, name) = (String::new(), "the admin token".to_owned());
    Person { id, name, token: server.admin_token() }
}

/// The report of the job.
pub(crate) async fn report(server: &Server) -> Value {
    let report = server.get(&admin(server), "/api/admin/jobs").await.ok(200);
    let mut jobs = report["jobs"].as_array().into_iter().flatten();
    jobs.find(|job| job["job"] == "reminders").expect("the job of reminders").clone()
}

/// The runs that have begun and ended after this call, when there are so many, the oldest first.
pub(crate) async fn runs(server: &Server, count: usize) -> Vec<Value> {
    // A clock may step, a fence rises.
    let mut seen = report(server).await["last_runs"][0]["fence"].as_u64().unwrap_or_default();
    let mut found = Vec::new();
    let began = Instant::now();
    while found.len() < count {
        assert!(began.elapsed() < TEST_TIMEOUT, "{} of {count} runs", found.len());
        sleep(Duration::from_millis(30)).await;
        let report = report(server).await;
        let all = report["last_runs"].as_array().expect("runs").clone();
        let is_new = |run: &Value| seen < run["fence"].as_u64().expect("a fence");
        let ended = all.into_iter().rev().filter(|run| is_new(run) && !run["ended_at"].is_null());
        let ended: Vec<_> = ended.collect();
        if let Some(run) = ended.last() {
            seen = run["fence"].as_u64().expect("a fence");
        }
        found.extend(ended);
    }
    found
}

/// The sum of a count over runs.
pub(crate) fn sum(runs: &[Value], count: &str) -> u64 {
    runs.iter().map(|run| run["counts"][count].as_u64().expect("a count")).sum()
}
