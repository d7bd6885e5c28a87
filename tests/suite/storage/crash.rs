//! Durability of commits after a kill of the client process, a PostgreSQL backend, or the whole
//! PostgreSQL server.

use std::io::Write;
use std::process::Stdio;

use crate::storage::database::{ALL, Desk, document_of, edit, user, within};
use bytes::Bytes;
use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::storage::log::Appended;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::fixtures::until;
use crate::support::postgres_server::Server;

crate::storage::on_both_engines! {
    crash:
    g7_committed_updates_survive_a_drop_without_close
    g7_acknowledged_commits_survive_kill_9
}

/// Environment variables that carry the child's work.
const CHILD_URL: &str = "GALLEY_TEST_KILL_URL";
const CHILD_DOCUMENT: &str = "GALLEY_TEST_KILL_DOCUMENT";

pub(crate) async fn g7_committed_updates_survive_a_drop_without_close(desk: Desk) {
    let document = desk.document().await;
    let marks: Vec<String> = (0..50).map(|number| format!("{number};")).collect();
    for mark in &marks {
        desk.append(edit(document, mark.clone())).await;
    }
    let Desk { location, storage } = desk;
    drop(storage);
    let again = Storage::open(&location.url()).await.unwrap();
    let log = again.log(document).await.unwrap().unwrap();
    assert_eq!((log.seq, log.parts.concat()), (50, marks.concat().into_bytes()));
}

/// The child commits mark after mark for ever and reports each commit. It retries failed commits,
/// as a server does. Without its variables it returns at once.
#[tokio::test]
async fn child_of_the_kill_tests() {
    let (Ok(url), Ok(document)) = (std::env::var(CHILD_URL), std::env::var(CHILD_DOCUMENT)) else {
        return;
    };
    let storage = Storage::open(&url).await.unwrap();
    let document: DocumentId = document.parse().unwrap();
    let mut mark = marks_in(&storage, document).await.last().copied().unwrap_or(0);
    loop {
        mark += 1;
        let seq = store(&storage, document, mark).await;
        writeln!(std::io::stdout(), "stored {mark}").unwrap();
        if seq % 7 == 0 {
            // The next merge repeats a failed one.
            let _away = merge(&storage, document).await;
        }
    }
}

async fn store(storage: &Storage, document: DocumentId, mark: u64) -> i64 {
    let batch = [edit(document, format!("{mark};"))];
    loop {
        match storage.append(&batch).await.map(|mut outcomes| outcomes.pop().unwrap()) {
            Ok(Appended::Stored { seq }) => return seq,
            Ok(refused) => panic!("{refused:?}"),
            Err(_away) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}

async fn merge(storage: &Storage, document: DocumentId) -> Option<()> {
    let log = storage.log(document).await.ok()??;
    storage.compact(document, log.seq, &Bytes::from(log.parts.concat()), ALL).await.ok()?;
    Some(())
}

/// The marks in a document, from 1 without a gap. A mark whose reply was lost may occur twice.
async fn marks_in(storage: &Storage, document: DocumentId) -> Vec<u64> {
    let text = storage.log(document).await.unwrap().unwrap().parts.concat();
    let text = String::from_utf8(text).unwrap();
    let mut marks: Vec<u64> =
        text.split_terminator(';').map(|mark| mark.parse().unwrap()).collect();
    marks.dedup();
    assert!(marks.iter().copied().eq(1..=marks.len() as u64), "{text}");
    marks
}

/// A running child.
struct Worker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    answered: u64,
}

impl Worker {
    fn start(url: &str, document: DocumentId) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "storage::crash::child_of_the_kill_tests", "--nocapture"])
            .env(CHILD_URL, url)
            .env(CHILD_DOCUMENT, document.to_string())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines, answered: 0 }
    }

    /// Waits for `more` further commits. False: the child ended first.
    async fn answers(&mut self, mut more: usize) -> bool {
        while 0 < more {
            let Some(line) = within(self.lines.next_line()).await.unwrap() else { return false };
            // The test runner may print text before it.
            if let Some((_, mark)) = line.rsplit_once("stored ") {
                self.answered = mark.parse().unwrap();
                more -= 1;
            }
        }
        true
    }

    /// Kills the child and returns its last reported mark.
    async fn kill(mut self) -> u64 {
        self.process.start_kill().unwrap();
        while self.answers(1).await {}
        self.process.wait().await.unwrap();
        self.answered
    }
}

pub(crate) async fn g7_acknowledged_commits_survive_kill_9(desk: Desk) {
    let document = desk.document().await;
    for round in 1..=5 {
        let mut worker = Worker::start(&desk.location.url(), document);
        assert!(worker.answers(9 * round).await, "the child stopped by itself");
        let answered = worker.kill().await;

        let marks = marks_in(&desk.storage, document).await;
        assert!(answered <= marks.len() as u64, "{answered} was answered, {marks:?} are there");
    }
}

/// Goal: the client recovers by itself, and no acknowledged commit is missing. First a kill of one
/// backend under load makes the server close all others, then the whole server is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_acknowledged_commits_survive_kill_9_of_postgresql() {
    let server = Server::start();
    let url = server.url(&server.empty().await);
    let storage = Storage::open(&url).await.unwrap();
    let document = document_of(&storage, &user("kim")).await;
    let mut worker = Worker::start(&url, document);
    for round in 1..=4 {
        assert!(worker.answers(11 * round).await, "the child stopped by itself");
        if round % 2 == 0 {
            server.kill();
            server.start_again().await;
        } else {
            // The worker may be between two connections.
            until("a backend is killed", async || server.kill_back_end().await).await;
        }
        assert!(worker.answers(1).await, "the child did not go on");
    }
    server.kill();
    let answered = worker.kill().await;
    server.start_again().await;

    // The first call detects the dead connections, and the pool opens new ones.
    let marks = marks_in(&storage, document).await;
    assert!(answered <= marks.len() as u64, "{answered} was answered, {marks:?} are there");
}
