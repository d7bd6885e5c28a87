//! The contenders between the pairs: Galley, the relay that copies, or a server from npm. Each is a
//! separate process, and the kernel reports its use of resources.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::client::{Address, Dialect};
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};

/// The argument that makes a benchmark the relay that copies.
pub(crate) const COPY: &str = "--copy";
/// Rooms that are created at a time.
const MADE_AT_ONCE: usize = 16;

const LIMITS: &[(&str, &str)] = &[
    ("LIMITS__MESSAGES_PER_SECOND", "1000000"),
    ("LIMITS__MESSAGE_BURST", "1000000"),
    ("LIMITS__REQUESTS_PER_SECOND", "1000000"),
    ("LIMITS__REQUEST_BURST", "1000000"),
    ("LIMITS__JOINS_PER_SECOND", "1000000"),
    ("LIMITS__JOIN_BURST", "1000000"),
    // One user makes every room.
    ("LIMITS__USER_DOCUMENTS", "1000000"),
];

/// A relay, running.
pub(crate) enum Relay {
    Galley(Arc<Server>),
    Other(Box<Other>),
}

/// A server that accepts each client, and creates a room on its first connection.
pub(crate) struct Other {
    process: Child,
    url: String,
    dialect: Dialect,
    rooms: AtomicU32,
}

impl Relay {
    pub(crate) async fn galley() -> Self {
        Self::Galley(Self::galley_with(&[]).await)
    }

    /// The server with these settings beside the [`LIMITS`].
    pub(crate) async fn galley_with(settings: &[(&str, &str)]) -> Arc<Server> {
        // Not in the system's folder for temporary files, which may be memory.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Arc::new(Server::in_folder(Arc::new(folder), &[LIMITS, settings].concat()).await)
    }

    pub(crate) async fn copy() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(COPY);
        Self::start(command, Dialect::Galley).await.expect("it starts")
    }

    /// Runs a program whose first line is its address. `None` if it ends without one.
    pub(crate) async fn start(mut command: Command, dialect: Dialect) -> Option<Self> {
        let command = command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().ok()?;
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let url = lines.next_line().await.expect("readable")?;
        Some(Self::Other(Box::new(Other { process, url, dialect, rooms: AtomicU32::new(0) })))
    }

    /// New rooms for the same two users.
    pub(crate) async fn rooms(&self, count: u32, query: &'static str) -> Vec<Address> {
        match self {
            Self::Galley(server) => {
                let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
                let mut making = JoinSet::new();
                for first in 0..MADE_AT_ONCE {
                    let (server, kim, lee) = (Arc::clone(server), kim.clone(), lee.clone());
                    let share = (first..count as usize).step_by(MADE_AT_ONCE);
                    making.spawn(make(server, [kim, lee], share.count(), query));
                }
                making.join_all().await.into_iter().flatten().collect()
            }
            Self::Other(other) => {
                let first = other.rooms.fetch_add(count, Ordering::Relaxed);
                let room = |number: u32| Address {
                    url: other.url.clone(),
                    link: number.to_string(),
                    writer_token: String::new(),
                    reviewer_token: String::new(),
                    query,
                    dialect: other.dialect,
                };
                (first..first + count).map(room).collect()
            }
        }
    }

    /// Processor time of the process, the kernel's part included, in µs. Threads that have ended do
    /// not count: a relay's threads live as long as it does.
    pub(crate) fn processor(&self) -> f64 {
        let tasks = std::fs::read_dir(self.proc("task")).expect("Linux");
        let of_task = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<f64>().ok()
        };
        tasks.flatten().filter_map(of_task).sum::<f64>() / 1e3
    }

    /// Private memory of the process, in bytes.
    pub(crate) fn private_bytes(&self) -> f64 {
        let rollup = std::fs::read_to_string(self.proc("smaps_rollup")).expect("Linux");
        let private = rollup.lines().filter(|line| line.starts_with("Private_"));
        let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
        private.filter_map(kib).sum::<f64>() * 1_024.0
    }

    fn proc(&self, file: &str) -> PathBuf {
        let id = match self {
            Self::Galley(server) => server.id(),
            Self::Other(other) => other.process.id().expect("it runs"),
        };
        PathBuf::from(format!("/proc/{id}/{file}"))
    }
}

/// Creates so many rooms, one after the other.
async fn make(
    server: Arc<Server>,
    [kim, lee]: [Person; 2],
    count: usize,
    query: &'static str,
) -> Vec<Address> {
    let mut rooms = Vec::new();
    for _ in 0..count {
        let desk = server.desk_of(kim.clone(), lee.clone(), "").await;
        rooms.push(address(&server, &desk, query));
    }
    rooms
}

/// The addresses of a document's two users.
pub(crate) fn address(server: &Server, desk: &Desk, query: &'static str) -> Address {
    Address {
        url: server.url.clone(),
        link: desk.link.clone(),
        writer_token: desk.writer.token.clone(),
        reviewer_token: desk.reviewer.token.clone(),
        query,
        dialect: Dialect::Galley,
    }
}
