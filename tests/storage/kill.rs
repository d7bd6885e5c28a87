//! What survives when the process does not.

use std::io::Write;
use std::process::Stdio;

use bytes::Bytes;
use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::storage::log::Appended;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::harness::{Desk, append_one, edit, url, within};

/// Where the child of [`g7_what_was_answered_as_stored_survives_kill_9`] finds its work.
const CHILD_URL: &str = "GALLEY_TEST_KILL_URL";
const CHILD_DOCUMENT: &str = "GALLEY_TEST_KILL_DOCUMENT";

#[tokio::test]
async fn g7_what_was_stored_is_there_after_a_drop_without_close() {
    let desk = Desk::open().await;
    let document = desk.document().await;
    let marks: Vec<String> = (0..50).map(|number| format!("{number};")).collect();
    for mark in &marks {
        desk.append(edit(document, mark.clone())).await;
    }
    let Desk { folder, storage } = desk;
    drop(storage);
    let again = Storage::open(&url(&folder)).await.unwrap();
    let log = again.log(document).await.unwrap().unwrap();
    assert_eq!((log.seq, log.parts.concat()), (50, marks.concat().into_bytes()));
}

/// The child: stores for ever, and says each number once it is stored. Does nothing unless it
/// was started as the child.
#[tokio::test]
async fn child_of_the_kill_test() {
    let (Ok(url), Ok(document)) = (std::env::var(CHILD_URL), std::env::var(CHILD_DOCUMENT)) else {
        return;
    };
    let storage = Storage::open(&url).await.unwrap();
    let document: DocumentId = document.parse().unwrap();
    loop {
        let outcome = append_one(&storage, edit(document, "x;")).await;
        let Appended::Stored { seq } = outcome else { panic!("{outcome:?}") };
        if seq % 7 == 0 {
            let merged = Bytes::from("x;".repeat(usize::try_from(seq).unwrap()));
            storage.compact(document, seq, &merged).await.unwrap();
        }
        writeln!(std::io::stdout(), "stored {seq}").unwrap();
    }
}

/// Lets a child store until it has said so `answers` times, kills it, and tells the last number
/// that it answered.
async fn kill_after(answers: usize, url: &str, document: DocumentId) -> i64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_of_the_kill_test", "--nocapture"])
        .env(CHILD_URL, url)
        .env(CHILD_DOCUMENT, document.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answered = Vec::new();
    while let Some(line) = within(lines.next_line()).await.unwrap() {
        // The test runner's own words may stand before it.
        answered.extend(line.rsplit_once("stored ").map(|(_, seq)| seq.parse::<i64>().unwrap()));
        if answered.len() == answers {
            child.start_kill().unwrap();
        }
    }
    child.wait().await.unwrap();
    assert!(answers <= answered.len(), "the child stopped by itself");
    answered.pop().unwrap()
}

#[tokio::test]
async fn g7_what_was_answered_as_stored_survives_kill_9() {
    let desk = Desk::open().await;
    let document = desk.document().await;
    for round in 1..=5 {
        let answered = kill_after(9 * round, &url(&desk.folder), document).await;

        let log = desk.storage.log(document).await.unwrap().unwrap();
        assert!(answered <= log.seq, "{answered} was answered, {} is there", log.seq);
        let whole = "x;".repeat(usize::try_from(log.seq).unwrap());
        assert_eq!(log.parts.concat(), whole.as_bytes());
    }
}
