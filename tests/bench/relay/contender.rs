//! What stands between the pairs: Galley, or the relay that copies, each a process of its own.

use std::process::Stdio;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::COPY;
use crate::pair::Address;
use crate::process::Server;

/// The unit of processor time in `/proc`, in all builds of Linux: 10 ms.
const TICK_MICROS: f64 = 10_000.0;

const LIMITS: &[(&str, &str)] = &[
    ("LIMITS__MESSAGES_PER_SECOND", "1000000"),
    ("LIMITS__MESSAGE_BURST", "1000000"),
    ("LIMITS__REQUESTS_PER_SECOND", "1000000"),
    ("LIMITS__REQUEST_BURST", "1000000"),
];

/// A relay, running.
pub(crate) enum Relay {
    Galley(Server),
    Copy { process: Child, url: String },
}

impl Relay {
    pub(crate) async fn galley() -> Self {
        // Not in the system's folder for such things, which may be no disk at all.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self::Galley(Server::in_folder(Arc::new(folder), LIMITS).await)
    }

    pub(crate) async fn copy() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let command = command.arg(COPY).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let url = lines.next_line().await.expect("readable").expect("its address");
        Self::Copy { process, url }
    }

    /// Rooms that were never used.
    pub(crate) async fn rooms(&self, count: u32, query: &'static str) -> Vec<Address> {
        let mut rooms = Vec::new();
        match self {
            Self::Galley(server) => {
                let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
                for _ in 0..count {
                    let desk = server.desk_of(kim.clone(), lee.clone(), "").await;
                    rooms.push(Address {
                        url: server.url.clone(),
                        link: desk.link,
                        writer_token: desk.writer.token,
                        reviewer_token: desk.reviewer.token,
                        query,
                    });
                }
            }
            Self::Copy { url, .. } => rooms.extend((0..count).map(|number| Address {
                url: url.clone(),
                link: number.to_string(),
                writer_token: String::new(),
                reviewer_token: String::new(),
                query,
            })),
        }
        rooms
    }

    /// What the process has had of the processors, in its own name and the kernel's, in µs.
    pub(crate) fn processor(&self) -> f64 {
        let id = match self {
            Self::Galley(server) => server.id(),
            Self::Copy { process, .. } => process.id().expect("it runs"),
        };
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("Linux");
        // The name of the program may contain anything; it ends at the last parenthesis.
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let field = |at| fields.split(' ').nth(at).and_then(|field| field.parse::<u64>().ok());
        let ticks = field(11).zip(field(12)).map(|(user, system)| user + system);
        ticks.expect("two times") as f64 * TICK_MICROS
    }
}
