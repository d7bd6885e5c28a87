//! The commands that clients send to Redis, as `MONITOR` shows them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::support::fixtures::until;
use crate::support::redis_server::Server;

/// The commands since the last [`Monitor::forget`].
pub(crate) struct Monitor {
    commands: Arc<Mutex<Vec<String>>>,
    marks: AtomicUsize,
    _stop: DropGuard,
}

impl Monitor {
    pub(crate) async fn of(server: &Server) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.expect("Redis");
        stream.write_all(b"MONITOR\r\n").await.expect("sent");
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next_line().await.expect("a reply");
        assert_eq!(first.as_deref(), Some("+OK"));
        let (commands, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
        let shared = Arc::clone(&commands);
        let reading = async move {
            while let Ok(Some(line)) = lines.next_line().await {
                record(&shared, line);
            }
        };
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(reading));
        Self { commands, marks: AtomicUsize::new(0), _stop: stop.drop_guard() }
    }

    /// The scripts that have named this key until now. Other work of the servers names other keys.
    pub(crate) async fn scripts(&self, redis: &Server, key: &str) -> Vec<String> {
        let mark = format!("mark-{}", self.marks.fetch_add(1, Ordering::Relaxed));
        let _: String = redis.run(&format!("ECHO {mark}")).await;
        let is_mark = |line: &String| line.ends_with(&format!("\"{mark}\""));
        until("the mark", async || locked(&self.commands).iter().any(is_mark)).await;
        let commands = locked(&self.commands);
        let is_script = |line: &&String| line.contains("\"EVAL") && line.contains(key);
        commands.iter().filter(is_script).cloned().collect()
    }

    /// The commands that name this text until now.
    pub(crate) fn lines(&self, text: &str) -> Vec<String> {
        locked(&self.commands).iter().filter(|line| line.contains(text)).cloned().collect()
    }

    /// The number of commands.
    pub(crate) fn commands(&self) -> usize {
        locked(&self.commands).len()
    }

    pub(crate) fn forget(&self) {
        locked(&self.commands).clear();
    }
}

/// Records a command of a client. One of a script has none: `+1700000000.000000 [0 lua] "GET" "x"`.
fn record(commands: &Mutex<Vec<String>>, line: String) {
    if !line.contains(" lua] ") {
        locked(commands).push(line);
    }
}

fn locked(commands: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    commands.lock().unwrap_or_else(PoisonError::into_inner)
}
