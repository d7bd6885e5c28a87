//! A Redis process for one test. The test kills it at its end, also after a panic.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, RedisResult, Value};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The limit of every wait in a test: generous to a busy machine, and shorter than the leases that no
/// test outlives.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(40);

/// An argument that starts Valkey in the place of Redis.
pub(crate) const VALKEY: &str = "valkey-server";

pub(crate) struct Server {
    // Killed on drop, before its folder is removed.
    process: Child,
    _log: Lines<BufReader<ChildStdout>>,
    _folder: TempDir,
    port: u16,
    arguments: Vec<String>,
}

impl Server {
    /// An empty Redis without persistence.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// An empty Redis without persistence, with more arguments.
    pub(crate) async fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        // Another process may take a free port a moment later; then the next attempt uses another
        // one.
        for _attempt in 0..10 {
            if let Some(server) = Self::start_at(free_port(), &arguments).await {
                return server;
            }
        }
        panic!("no redis-server would start");
    }

    /// A node of a Cluster: it has a second port, for the cluster bus.
    pub(crate) async fn start_in_cluster(arguments: &[&str]) -> Self {
        for _attempt in 0..10 {
            let bus = free_port().to_string();
            let mut all = vec!["--cluster-port", bus.as_str()];
            all.extend_from_slice(arguments);
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            if let Some(server) = Self::start_at(free_port(), &all).await {
                return server;
            }
        }
        panic!("no redis-server would start");
    }

    async fn start_at(port: u16, arguments: &[String]) -> Option<Self> {
        let folder = TempDir::new().expect("a folder");
        let (process, log) = launch(port, arguments, folder.path()).await?;
        let (_log, _folder, arguments) = (log, folder, arguments.to_vec());
        Some(Self { process, _log, _folder, port, arguments })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Kills the process with all its data.
    pub(crate) async fn stop(&mut self) {
        self.process.kill().await.expect("it can be killed");
    }

    /// Starts an empty Redis on the port of the stopped one.
    pub(crate) async fn start_again(&mut self) {
        *self = timeout(TEST_TIMEOUT, Self::start_over(self.port, &self.arguments))
            .await
            .expect("the port comes free");
    }

    /// Starts a process in the folder of the stopped one: a node of a Cluster is empty and has its
    /// old identity.
    pub(crate) async fn start_again_in_cluster(&mut self) {
        let start = async {
            let mut running = None;
            while running.is_none() {
                running = launch(self.port, &self.arguments, self._folder.path()).await;
            }
            running.expect("it was started")
        };
        let running = timeout(TEST_TIMEOUT, start).await.expect("the port comes free");
        (self.process, self._log) = running;
    }

    /// The present state, as Redis stores it: the RDB file, and the AOF if any.
    pub(crate) async fn stored(&self) -> TempDir {
        let _: Value = self.run("SAVE").await;
        let state = TempDir::new().expect("a folder");
        copy(self._folder.path(), state.path()).await;
        state
    }

    /// Starts a Redis with a stored state on the port of the stopped one.
    pub(crate) async fn start_again_with(&mut self, state: &TempDir) {
        let folder = TempDir::new().expect("a folder");
        copy(state.path(), folder.path()).await;
        self._folder = folder;
        self.start_again_in_cluster().await;
    }

    async fn start_over(port: u16, arguments: &[String]) -> Self {
        loop {
            if let Some(server) = Self::start_at(port, arguments).await {
                return server;
            }
        }
    }

    /// Suspends the process (SIGSTOP).
    pub(crate) async fn freeze(&self) {
        self.signal("-STOP").await;
    }

    /// Resumes the process.
    pub(crate) async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.process.id().expect("it runs").to_string();
        let status = Command::new("kill").args([signal, &id]).status().await;
        assert!(status.expect("kill is installed").success());
    }

    /// A connection of the test.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        self.try_connection().await.expect("a connection")
    }

    async fn try_connection(&self) -> RedisResult<MultiplexedConnection> {
        let client = redis::Client::open(self.url())?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TEST_TIMEOUT))
            .set_response_timeout(Some(TEST_TIMEOUT));
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Runs one command; spaces separate its words.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &str) -> T {
        self.try_run(command).await.expect("no error")
    }

    pub(crate) async fn try_run<T: FromRedisValue>(&self, command: &str) -> RedisResult<T> {
        let mut words = command.split(' ');
        let mut request = redis::cmd(words.next().expect("a command"));
        for word in words {
            request.arg(word);
        }
        request.query_async(&mut self.try_connection().await?).await
    }

    /// The calls of a command since [`Self::forget_calls`], including those of scripts.
    pub(crate) async fn calls(&self, command: &str) -> u64 {
        let [calls] = self.calls_of([command]).await;
        calls
    }

    /// The calls of several commands at one moment.
    pub(crate) async fn calls_of<const N: usize>(&self, commands: [&str; N]) -> [u64; N] {
        let info: String = self.run("INFO commandstats").await;
        commands.map(|command| {
            let prefix = format!("cmdstat_{command}:calls=");
            let counted =
                info.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
            counted.map_or(0, |count| count.parse().expect("a number"))
        })
    }

    pub(crate) async fn forget_calls(&self) {
        let _: Value = self.run("CONFIG RESETSTAT").await;
    }
}

async fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().await;
    assert!(status.expect("cp is installed").success());
}

/// Starts a process in a folder; none if it exits.
async fn launch(
    port: u16,
    arguments: &[String],
    folder: &Path,
) -> Option<(Child, Lines<BufReader<ChildStdout>>)> {
    let is_valkey = arguments.iter().any(|it| it == VALKEY);
    let mut process = Command::new(if is_valkey { VALKEY } else { "redis-server" })
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .args(arguments.iter().filter(|it| *it != VALKEY))
        .current_dir(folder)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("redis-server is installed");
    let mut log = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let ready = timeout(TEST_TIMEOUT, is_ready(&mut log)).await;
    ready.expect("redis-server starts in time").then_some((process, log))
}

/// Reads the log until the server is ready, or ends.
async fn is_ready(log: &mut Lines<BufReader<ChildStdout>>) -> bool {
    while let Some(line) = log.next_line().await.expect("a readable log") {
        if line.contains("Ready to accept connections") {
            return true;
        }
    }
    false
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}
