//! The end of a round: tabs synchronise their replicas, a fresh tab acquires each seat, and the run
//! records the content of every replica.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::desks::Desks;
use crate::history::{How, What, marks_in};
use crate::judge::DATABASE;
use crate::replica::Replica;
use crate::suggesting::listed;
use crate::support::rest_client::Desk;
use crate::tab::{Look, Open, open};
use crate::world::{SERVERS, World};

/// For a seat and the sync that follows it.
const TEST_TIMEOUT: Duration = Duration::from_secs(45);
/// The checker rejects a recovery of this length.
const RECOVERY: Duration = Duration::from_secs(50);
/// For one claim.
const CLAIM: Duration = Duration::from_secs(8);
/// For an edit to be saved. A set-back and a take-over may close the socket of its tab meanwhile.
const SAVE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(25);

/// Claims a seat until it is granted and synchronised. After a time-out it returns the replica.
pub(crate) async fn seat(
    desks: &Desks,
    desk: &Desk,
    role: &str,
    how: How,
    mut replica: Replica,
) -> Result<Open, Replica> {
    let began = Instant::now();
    let more = if how == How::TakeOver { "&takeover=1" } else { "" };
    let mut server = 0;
    while began.elapsed() < TEST_TIMEOUT {
        server = (server + 1) % SERVERS;
        let url = desks.url(server);
        replica = match open(desks, desk, role, (0, how), &url, more, replica).await {
            Ok(mut open) => {
                if is_seated(desks, &mut open).await {
                    return Ok(open);
                }
                open.replica
            }
            Err(replica) => replica,
        };
        sleep(Duration::from_millis(200)).await;
    }
    Err(replica)
}

async fn is_seated(desks: &Desks, open: &mut Open) -> bool {
    let synced = timeout(CLAIM, open.peer.becomes_synced()).await;
    let is_over = matches!(open.look(desks, 0, &mut None), Look::Ended);
    let is_seated = !is_over && open.is_granted && matches!(synced, Ok(true));
    if !is_seated && !is_over {
        open.leave(desks, false, &mut None).await;
    }
    is_seated
}

/// Waits until `document.saved` named all marks typed here. False if the socket ended or the wait
/// timed out.
pub(crate) async fn has_saved(desks: &Desks, open: &mut Open) -> bool {
    let began = Instant::now();
    loop {
        if matches!(open.look(desks, 0, &mut None), Look::Ended) {
            return false;
        }
        if open.replica.is_mine_saved() {
            return true;
        }
        if SAVE < began.elapsed() {
            return false;
        }
        sleep(LOOK).await;
    }
}

/// Observes a tab until then; reconnects with its replica whenever its socket ends. `None`: it has
/// no socket in the end.
pub(crate) async fn come_back(
    desks: &Desks,
    desk: &Desk,
    mut now: Open,
    until: Instant,
) -> Option<Open> {
    while Instant::now() < until {
        if matches!(now.look(desks, 0, &mut None), Look::Ended) {
            let replica = now.replica;
            drop(now.peer);
            now = seat(desks, desk, "writer", How::TakeOver, replica).await.ok()?;
        }
        sleep(LOOK).await;
    }
    Some(now)
}

/// After a fault: a fresh tab takes a seat over and has an edit saved. Records the time of that.
pub(crate) async fn recover(desks: &Desks, number: usize) {
    let began = Instant::now();
    let desk = desks.desk(number);
    let mut replica = Replica::of(&desk.document);
    while began.elapsed() < RECOVERY {
        match seat(desks, &desk, "writer", How::TakeOver, replica).await {
            Ok(mut open) => {
                open.types(desks, number);
                // Another tab may take the seat over before.
                if has_saved(desks, &mut open).await {
                    open.leave(desks, true, &mut None).await;
                    break;
                }
                if open.peer.is_open() {
                    open.leave(desks, false, &mut None).await;
                }
                replica = open.replica;
            }
            Err(unseated) => replica = unseated,
        }
    }
    let after_ms = u64::try_from(began.elapsed().as_millis()).expect("short");
    desks.recorder.note(What::Recovered { document: desk.document, after_ms });
}

/// Settles all documents concurrently.
pub(crate) async fn all(desks: &Arc<Desks>, world: &World, replicas: Vec<Replica>) {
    let flushes = (0..desks.count()).map(|number| {
        let desk = desks.desk(number);
        let replicas = replicas.iter().filter(|replica| replica.document == desk.document);
        let replicas: Vec<_> = replicas.cloned().collect();
        async move { one(desks, world, number, &desk, replicas).await }
    });
    join_all(flushes).await;
}

async fn one(desks: &Desks, world: &World, number: usize, desk: &Desk, replicas: Vec<Replica>) {
    let began = Instant::now();
    let mut is_free = true;
    for replica in replicas {
        let back = seat(desks, desk, "writer", How::TakeOver, replica).await;
        is_free = back.is_ok();
        let Ok(mut open) = back else { break };
        has_saved(desks, &mut open).await;
        open.leave(desks, true, &mut None).await;
    }
    let document = &desk.document;
    let mut writer = None;
    // Without a seat the claims were rejected for long enough.
    if is_free {
        let fresh = Replica::of(document);
        writer = seat(desks, desk, "writer", How::Plain, fresh).await.ok();
    }
    if let Some(open) = &mut writer {
        open.types(desks, number);
        if has_saved(desks, open).await {
            let after_ms = u64::try_from(began.elapsed().as_millis()).expect("short");
            desks.recorder.note(What::Recovered { document: document.clone(), after_ms });
        }
    }
    let fresh = Replica::of(document);
    let mut reviewer = None;
    if writer.is_some() {
        reviewer = seat(desks, desk, "reviewer", How::TakeOver, fresh).await.ok();
    }
    // The last edit is saved and no fault is active: replicas are equal when its effects are due
    // (G8).
    let due = world.due();
    let reads = loop {
        // Before the reads, which take time.
        let are_due = due < Instant::now();
        let reads = read(desks, world, desk, [&writer, &reviewer]).await;
        let agree = reads.iter().all(|(_, marks)| *marks == reads[0].1);
        if agree || are_due {
            break reads;
        }
        sleep(Duration::from_millis(250)).await;
    };
    list(desks, desk).await;
    for (source, marks) in reads {
        desks.recorder.note(What::Reads { document: document.clone(), source, marks });
    }
    for mut open in [writer, reviewer].into_iter().flatten() {
        open.leave(desks, true, &mut None).await;
    }
}

/// Records the typed suggestions of a link at every server.
async fn list(desks: &Desks, desk: &Desk) {
    for server in 0..SERVERS {
        let Some(suggestions) = listed(&desks.url(server), desk).await else { continue };
        let (link, source) = (desk.link.clone(), format!("server {server}"));
        desks.recorder.note(What::Listed { link, source, suggestions });
    }
}

/// Records the content of every replica of a document.
async fn read(
    desks: &Desks,
    world: &World,
    desk: &Desk,
    tabs: [&Option<Open>; 2],
) -> Vec<(String, Vec<String>)> {
    let there = world.database.reads(&desk.document).await;
    let mut reads = vec![(DATABASE.to_owned(), there.unwrap_or_default())];
    for server in 0..SERVERS {
        let url = format!("{}/api/documents/{}/text", desks.url(server), desk.document);
        let request = reqwest::Client::new().get(url).bearer_auth(&desk.writer.token);
        let marks = match request.timeout(CLAIM).send().await {
            Ok(answer) if answer.status().is_success() => answer.text().await.unwrap_or_default(),
            Ok(answer) => format!("⟦status {}⟧", answer.status()),
            Err(_) => "⟦no answer⟧".to_owned(),
        };
        reads.push((format!("server {server}"), marks_in(&marks)));
    }
    for open in tabs.into_iter().flatten() {
        reads.push((format!("socket {}", open.socket), marks_in(&open.peer.text())));
    }
    reads
}
