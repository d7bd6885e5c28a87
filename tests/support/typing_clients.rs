//! Clients in a process of their own, which a test can kill as a browser can be killed. Each document
//! has a writer, which types marks, and a reviewer, which attempts edits.
//!
//! The child is this test binary. It prints each mark before it types it, and each event, a line each,
//! to its standard output. The test has these lines also after it kills the child.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use yrs::Doc;

use crate::support::rest_client::Desk;
use crate::support::rng::Random;
use crate::support::ws_client::{Peer, empty};

/// Longer than any step takes on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The variable with the child's work.
const WORK: &str = "GALLEY_TEST_TYPISTS";
/// Marks of one writer; more of them would test nothing new.
const MARKS_MAX: usize = 400;
/// The text that a reviewer types without permission.
pub(crate) const REFUSED: &str = "⟦EVIL⟧";
/// The prefix of the child's output: the test runner may print on the same line.
const WORD: &str = "> ";

/// The output of the clients of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// For each document, the marks that its writer was about to type, in order.
    pub(crate) typed: Vec<Vec<String>>,
    /// For each document, the number of marks that `document.saved` named.
    pub(crate) saved: Vec<usize>,
    /// Rejected edits of reviewers.
    pub(crate) denied: usize,
    /// Every typed mark is saved.
    pub(crate) all_saved: bool,
}

/// A process of clients.
pub(crate) struct Typists {
    process: Child,
    orders: ChildStdin,
    said: Arc<Mutex<Said>>,
    changed: watch::Receiver<bool>,
    reading: JoinSet<()>,
}

impl Typists {
    /// Claims the seats of all these documents, on any of these servers.
    pub(crate) fn start(name: &str, seed: u64, servers: &[String], desks: &[Desk]) -> Self {
        let seat = |desk: &Desk| json!([desk.link, desk.writer.token, desk.reviewer.token]);
        let work = json!({
            "name": name,
            "seed": seed,
            "servers": servers,
            "desks": desks.iter().map(seat).collect::<Vec<_>>(),
        });
        let mut process = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "support::typing_clients::child_that_types", "--nocapture"])
            .env(WORK, work.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it runs");
        let orders = process.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let count = desks.len();
        let said = Said { typed: vec![vec![]; count], saved: vec![0; count], ..Said::default() };
        let said = Arc::new(Mutex::new(said));
        let (change, changed) = watch::channel(false);
        let (mut reading, heard) = (JoinSet::new(), Arc::clone(&said));
        reading.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let word = line.rsplit_once(WORD).map(|(_, word)| word);
                word.inspect(|word| heard.lock().expect("sane").read_word(word));
                change.send_replace(false);
            }
            change.send_replace(true);
        });
        Self { process, orders, said, changed, reading }
    }

    /// The output so far.
    pub(crate) fn said(&self) -> Said {
        self.said.lock().expect("sane").clone()
    }

    async fn until(&mut self, what: &str, wanted: impl Fn(&Said) -> bool) {
        let said = Arc::clone(&self.said);
        let look = || wanted(&said.lock().expect("sane"));
        let seen = self.changed.wait_for(|ended| *ended || look());
        let seen = timeout(TEST_TIMEOUT, seen).await.is_ok_and(|seen| seen.is_ok());
        assert!(seen && look(), "never: {what}; {:?}", self.said());
    }

    /// Waits until `document.saved` has named a mark of each writer.
    pub(crate) async fn are_at_work(&mut self) {
        self.until("work", |said| said.saved.iter().all(|saved| 0 < *saved)).await;
    }

    /// Sends the clients the current addresses of the servers.
    pub(crate) async fn find(&mut self, servers: &[String]) {
        self.order(&format!("servers {}", servers.join(" "))).await;
    }

    async fn order(&mut self, order: &str) {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.expect("it listens");
    }

    /// Stops the typing, and waits until every mark is saved and the clients have left.
    pub(crate) async fn finish(&mut self) -> Said {
        self.order("finish").await;
        self.until("everything saved", |said| said.all_saved).await;
        self.said()
    }

    /// `kill -9`; returns all of the output.
    pub(crate) async fn kill(&mut self) -> Said {
        self.process.kill().await.expect("it can be killed");
        let read = async { while self.reading.join_next().await.is_some() {} };
        timeout(TEST_TIMEOUT, read).await.expect("the end of the output");
        self.said()
    }
}

impl Said {
    fn read_word(&mut self, word: &str) {
        let mut words = word.splitn(3, ' ');
        let (kind, desk) = (words.next(), words.next().and_then(|desk| desk.parse().ok()));
        let (desk, rest) = (desk.unwrap_or(0_usize), words.next().unwrap_or_default());
        match kind {
            Some("typed") => self.typed[desk].push(rest.to_owned()),
            Some("saved") => self.saved[desk] = rest.parse().expect("a number"),
            Some("denied") => self.denied += 1,
            Some("settled") => self.all_saved = true,
            _ => panic!("{word:?}"),
        }
    }
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    // The test has ended, and so will this process.
    let _gone = writeln!(out, "{WORD}{word}").and_then(|()| out.flush());
}

/// The orders that the child receives while it works.
#[derive(Clone, Debug, Default)]
struct Orders {
    servers: Vec<String>,
    finish: bool,
}

/// The child: types until the test stops or kills it. Does nothing unless it was started as the child.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_types() {
    let Ok(work) = std::env::var(WORK) else { return };
    let work: Value = serde_json::from_str(&work).expect("JSON");
    let servers = work["servers"].as_array().expect("servers").iter().map(text).collect();
    let (give, orders) = watch::channel(Orders { servers, finish: false });
    let (name, seed) = (text(&work["name"]), work["seed"].as_u64().expect("a seed"));
    let (mut writers, mut reviewers) = (JoinSet::new(), JoinSet::new());
    for (number, desk) in (0_u64..).zip(work["desks"].as_array().expect("desks")) {
        let seat = |role: &'static str, token: &Value, seed| TypingClient {
            desk: number,
            link: text(&desk[0]),
            role,
            token: text(token),
            orders: orders.clone(),
            random: Random::new(seed),
            doc: empty(),
        };
        let writer = seat("writer", &desk[1], seed ^ (2 * number));
        writers.spawn(writer.write(format!("{name}.{number}")));
        reviewers.spawn(seat("reviewer", &desk[2], seed ^ (2 * number + 1)).intrude());
    }
    std::thread::spawn(move || listen(&give));
    let _all = writers.join_all().await;
    say("settled");
}

/// Passes on orders until the standard input ends.
fn listen(give: &watch::Sender<Orders>) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        give.send_modify(|orders| match line.split_once(' ') {
            Some((_, urls)) => orders.servers = urls.split(' ').map(str::to_owned).collect(),
            None => orders.finish = true,
        });
    }
    // The test process has ended.
    std::process::exit(0);
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// A client of one seat, which reconnects with its document when the socket ends.
struct TypingClient {
    desk: u64,
    link: String,
    role: &'static str,
    token: String,
    orders: watch::Receiver<Orders>,
    random: Random,
    doc: Doc,
}

impl TypingClient {
    async fn sit(&mut self) -> Option<Peer> {
        let servers = self.orders.borrow().servers.clone();
        let server = &servers[self.random.below(servers.len())];
        let query = "events=1&takeover=1";
        Peer::come(server, &self.link, self.role, &self.token, query, self.doc.clone()).await
    }

    async fn pause(&mut self, most_ms: usize) {
        sleep(Duration::from_millis(self.random.below(most_ms + 1) as u64)).await;
    }

    /// Claims the seat until the client is seated and synced.
    async fn sit_down(&mut self) -> Peer {
        loop {
            if let Some(peer) = self.sit().await
                && peer.becomes_synced().await
            {
                return peer;
            }
            self.pause(60).await;
        }
    }

    /// Types marks at the end, connected or not, until the order to finish; then waits until all of
    /// them are saved, and leaves.
    async fn write(mut self, name: String) {
        let mut peer = self.sit_down().await;
        let client = peer.client_id();
        let (mut ends, mut end, mut saved) = (Vec::new(), 0, 0);
        loop {
            if !peer.is_open() {
                match self.sit().await {
                    Some(back) => peer = back,
                    None => self.pause(40).await,
                }
            }
            let safe_up_to =
                peer.take_events().iter().filter_map(|event| saved_of(event, client)).max();
            let safe = ends.partition_point(|end| *end <= safe_up_to.unwrap_or(0));
            if saved < safe {
                saved = safe;
                say(&format!("saved {} {saved}", self.desk));
            }
            let finish = self.orders.borrow().finish;
            if finish && saved == ends.len() && peer.is_open() {
                peer.leave().await;
                return;
            }
            if !finish && ends.len() < MARKS_MAX {
                let mark = format!("⟦{name}.{} 가🙂⟧", ends.len());
                end += u32::try_from(mark.encode_utf16().count()).expect("short");
                ends.push(end);
                say(&format!("typed {} {mark}", self.desk));
                peer.append(&mark);
            }
            self.pause(6).await;
        }
    }

    /// Types forbidden text while the writers work.
    async fn intrude(mut self) {
        let mut peer = self.sit_down().await;
        loop {
            if !peer.is_open() {
                self.doc = empty();
                peer = self.sit_down().await;
            }
            peer.insert(0, REFUSED);
            let events = peer.take_events();
            for _denied in events.iter().filter(|event| event["event"] == "denied") {
                say(&format!("denied {}", self.desk));
            }
            self.pause(40).await;
        }
    }
}

/// The clock up to which a `document.saved` names the edits of that client.
fn saved_of(event: &Value, client: u64) -> Option<u32> {
    (event["event"] == "document.saved").then(|| Peer::saved_in(event, client)).flatten()
}
