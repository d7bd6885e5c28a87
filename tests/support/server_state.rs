//! Views of a server from outside its process: its database file, its metrics and its memory.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};

use crate::support::fixtures::found;
use crate::support::galley_process::Server;

impl Server {
    /// A connection of another program to the server's SQLite file.
    pub(crate) async fn database(&self) -> SqliteConnection {
        let file = self.folder().join("data/galley.db");
        SqliteConnectOptions::new().filename(file).connect().await.expect("a file")
    }

    /// All metrics of the server.
    pub(crate) async fn metrics(&self) -> String {
        let metrics = self.http.get(format!("{}/metrics", self.url)).send().await;
        metrics.expect("an answer").text().await.expect("text")
    }

    /// One metric, by its name and labels, if it exists.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.metrics().await;
        let found = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.map(|value| value.parse().expect("a number"))
    }

    /// The peak of the process's memory in bytes, released memory included. The kernel counts in batches, so
    /// the value may be slightly below the true peak.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The memory that the process holds now, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
    }

    /// Waits until a metric has that value.
    pub(crate) async fn has(&self, name: &str, wanted: u32) {
        found(async || {
            let current = self.metric(name).await;
            if current == Some(f64::from(wanted)) { Ok(()) } else { Err((name, current, wanted)) }
        })
        .await;
    }

    /// Waits until this number of rooms is open.
    pub(crate) async fn has_rooms(&self, count: u32) {
        self.has("galley_rooms", count).await;
    }
}
