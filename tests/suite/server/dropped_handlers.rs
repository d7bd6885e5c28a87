//! The handler of each mutating route, dropped after each of its polls (G15).
//!
//! Two servers run inside the test process, with a real database and a real Redis. The harness sends a
//! request to the router of the first one, polls the response future a given number of times, and drops it,
//! as hyper does when a client disconnects. Then the database has the whole effect or none of it, and the
//! sockets of both servers receive a committed effect. No tick runs within a test.
//!
//! A handler that moves its commit to a task is polled only a few times after that.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use galley::app::App;
use galley::config::{Flags, Settings};
use galley::domain::ids::NodeId;
use galley::http::service::HttpService;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use crate::server::acts::{ALL, Act, tried};
use crate::server::kill_campaign::say;
use crate::server::operation_fixtures::Users;
use crate::server::operations::Case;
use crate::support::fixtures::apart;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server::{self, TEST_TIMEOUT};
use crate::support::ws_client::Peer;

/// An upper bound of the polls of any handler.
const POLLS_MAX: usize = 400;

/// The least number of drops of all operations before their commits, and after them. The number of polls of a
/// handler depends on the speed of the database, so a single operation may have none.
const DROPS_MIN: usize = 3;

/// The settings that all servers of this process share.
const SETTINGS: [(&str, &str); 7] = [
    ("SERVER__LISTEN", "127.0.0.1:0"),
    // A process has one metrics recorder.
    ("METRICS__ENABLED", "false"),
    // No tick runs within a test.
    ("SEATS__LEASE", "600s"),
    ("SEATS__RENEW_EVERY", "200s"),
    ("SEATS__CLIENT_TIMEOUT", "500s"),
    ("LIMITS__GUEST_BURST", "1000000"),
    ("DATABASE__SHARED_SQLITE", "true"),
];

/// Operations without an effect on a document or a socket: each transaction makes some dead webhooks
/// pending, which `storage::webhooks` and `server::webhooks` cover; an exchanged session stores nothing; a
/// revocation is one transaction, whose sockets each server ends at its tick, also this one.
const WITHOUT_EFFECT: [&str; 5] = [
    "/api/admin/webhooks/replay",
    "/api/admin/webhooks/{id}/replay",
    "/api/auth/session",
    "/api/me/sessions",
    "/api/users/{id}/sessions",
];

/// Drops its future after a number of polls.
struct Polls<F> {
    left: usize,
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for Polls<F> {
    /// None: the future was dropped before its end.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.left -= 1;
        match self.inner.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Two servers in this process.
struct Pair {
    service: HttpService,
    one: Server,
    two: Server,
    requests: AtomicU32,
    _redis: redis_server::Server,
}

/// The addresses of requests: 127.1.0.0 and those after it.
const LOOPBACK: u32 = 0x7f01_0000;

impl Pair {
    async fn on(database: &str, folder: TempDir) -> Self {
        let folder = Arc::new(folder);
        let data = folder.path().join("data");
        std::fs::create_dir_all(&data).expect("a folder");
        let admin = "of-these-two-servers-and-no-other-server";
        std::fs::write(data.join("admin-token"), admin).expect("a file");
        let redis = redis_server::Server::start().await;
        let secret = data.join("secret").display().to_string();
        let push_key = data.join("push-key").display().to_string();
        let locks = redis.url();
        let more = [
            ("AUTH__SECRET_FILE", secret.as_str()),
            ("PUSH__KEY_FILE", push_key.as_str()),
            ("ADMIN__TOKEN", admin),
            ("LOCKS__URL", &locks),
            ("DATABASE__URL", database),
        ];
        let named = |(name, value): &(&str, &str)| (format!("GALLEY_{name}"), (*value).to_owned());
        let environment: HashMap<_, _> = SETTINGS.iter().chain(&more).map(named).collect();
        let (service, one) = start(&environment, &folder).await;
        let (_, two) = start(&environment, &folder).await;
        Self { service, one, two, requests: AtomicU32::new(0), _redis: redis }
    }

    /// Sends the request to the router and drops the response future after this number of polls. None: it was
    /// dropped.
    async fn answer(&self, case: &Case, polls: usize) -> Option<StatusCode> {
        let inner = Box::pin(self.begin(case));
        let answer = timeout(TEST_TIMEOUT, Polls { left: polls, inner }).await;
        answer.expect("its next poll comes in time").map(|response| response.status())
    }

    /// Polls a response future until the database has the effect, and drops it then. The test reads the
    /// database between two polls, so it drops a handler that awaits its commit before the handler resumes.
    async fn drop_after_commit(&self, act: Act, users: &Users) -> bool {
        let case = Case::new(act, &self.one, &self.two, users).await;
        let mut answer = Box::pin(self.begin(&case));
        let began = Instant::now();
        let mut is_over = false;
        while !is_over && !case.is_committed(&self.two).await {
            is_over =
                poll_fn(|context| Poll::Ready(answer.as_mut().poll(context).is_ready())).await;
            assert!(began.elapsed() < TEST_TIMEOUT, "{act:?} never ends");
        }
        drop(answer);
        self.judge(&case).await && !is_over
    }

    /// Sends the request to the router.
    fn begin(&self, case: &Case) -> impl Future<Output = Response> {
        let (method, path, body) = case.request();
        let host = self.one.url.trim_start_matches("http://");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", host)
            .header("authorization", format!("Bearer {}", case.actor().token))
            .header("content-type", "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
            .expect("a request");
        // An address may try few codes in a minute.
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        self.service.request(request, IpAddr::V4(Ipv4Addr::from_bits(LOOPBACK + number)))
    }

    /// A case whose response future is dropped after this number of polls, and whether it had ended by then.
    async fn drop_at(&self, polls: usize, act: Act, users: &Users) -> (Case, bool) {
        let case = Case::new(act, &self.one, &self.two, users).await;
        let status = self.answer(&case, polls).await;
        assert!(status.is_none_or(|status| status.is_success()), "{act:?}: {status:?}");
        (case, status.is_some())
    }

    /// Drops the request of one operation after each number of polls.
    async fn drop_at_each_poll(&self, act: Act) -> Drops {
        let users = Users::of(&self.one).await;
        let mut cases = Vec::new();
        let mut polls = 0;
        let whole = loop {
            polls += 1;
            assert!(polls < POLLS_MAX, "{act:?} never ends");
            let (case, is_over) = self.drop_at(polls, act, &users).await;
            if is_over {
                break case;
            }
            cases.push(case);
        };
        let mut drops = Drops::default();
        if act.is_stateless() {
            return drops;
        }
        assert!(self.judge(&whole).await, "{act:?} was answered");
        for case in &cases {
            drops.count(self.judge(case).await);
        }
        drops.count(self.drop_after_commit(act, &users).await);
        drops
    }

    /// Whether the database has the effect. If so, the effect reaches the sockets.
    async fn judge(&self, case: &Case) -> bool {
        if !case.is_committed(&self.two).await {
            let is_shown = |peer: &&Peer| peer.look(|state| case.shows(state));
            let works = case.works_on().await;
            if works && !case.concerned().iter().any(is_shown) {
                return false;
            }
            // The commit was in flight and has ended since.
            assert!(case.is_committed(&self.two).await, "{:?} is shown and not stored", case.act);
        }
        for peer in case.concerned() {
            case.reaches(peer).await;
        }
        if matches!(case.act, Act::AcceptReview | Act::RejectReview | Act::DecideReviews) {
            case.is_durable(&self.two).await;
        }
        assert!(case.act.ends_sockets() || case.works_on().await, "{:?} ends a socket", case.act);
        true
    }

    /// Drops the handlers of all operations, and holds that drops came before and after the commits.
    async fn drops_every_handler(&self, engine: &str) {
        let mut all = Drops::default();
        for act in tried() {
            let drops = self.drop_at_each_poll(act).await;
            say(&format!("dropped on {engine}: {act:?}: {drops:?}"));
            all.before += drops.before;
            all.after += drops.after;
        }
        let least = DROPS_MIN * tried().count() / ALL.len();
        assert!(least <= all.before && least <= all.after, "{all:?}");
    }
}

/// The number of drops before and after the commit.
#[derive(Debug, Default)]
struct Drops {
    before: usize,
    after: usize,
}

impl Drops {
    /// Counts a drop as one before the commit, unless the commit is known to precede it.
    fn count(&mut self, is_committed: bool) {
        *(if is_committed { &mut self.after } else { &mut self.before }) += 1;
    }
}

async fn start(
    environment: &HashMap<String, String>,
    folder: &Arc<TempDir>,
) -> (HttpService, Server) {
    let settings = Settings::load(&Flags::default(), environment.clone()).expect("settings");
    let app = Box::pin(App::start(settings, NodeId::generate())).await.expect("it starts");
    let line = app.ready_line();
    let url = line.split_whitespace().find(|word| word.starts_with("http://"));
    let url = url.expect("the line names an address").trim_end_matches('/').to_owned();
    let service = app.service();
    apart(app.run());
    (service, Server::inside(Arc::clone(folder), url))
}

/// Goal: this harness covers every mutating operation.
#[test]
fn g15_each_mutating_operation_of_the_interface_is_dropped() {
    let document = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));
    let document: Value = serde_json::from_str(document).expect("JSON");
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("a path item").keys() {
            if method != "get" && !WITHOUT_EFFECT.contains(&path.as_str()) {
                documented.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    let of = |act: Act| (act.route().0.to_owned(), act.route().1.to_owned());
    assert_eq!(ALL.into_iter().map(of).collect::<BTreeSet<_>>(), documented);
}

/// Goal: a handler that is dropped at any await leaves the whole effect or none, and a committed effect
/// reaches the sockets of both servers.
#[tokio::test]
async fn g15_a_handler_dropped_at_any_await_delivers_what_it_commits_on_sqlite() {
    let folder = TempDir::new().expect("a folder");
    let database = format!("sqlite://{}/data/galley.db", folder.path().display());
    Pair::on(&database, folder).await.drops_every_handler("sqlite").await;
}

/// Goal: the same on PostgreSQL, whose handlers await more often.
#[tokio::test]
async fn g15_a_handler_dropped_at_any_await_delivers_what_it_commits_on_postgresql() {
    let database = postgres_server::shared().database().await;
    let folder = TempDir::new().expect("a folder");
    Pair::on(&database.url(), folder).await.drops_every_handler("postgresql").await;
}
