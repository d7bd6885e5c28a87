//! The binary under test, in a folder of its own.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::fixtures::until;
use crate::support::http_client::Client;
use crate::support::redis_server::TEST_TIMEOUT;

/// A failed test prints so many lines of each of its servers.
const LOG_LINES: usize = 200;

/// A running server; dropping it kills the process. A test that fails prints the end of its log.
pub(crate) struct Server {
    /// None: the server runs inside the test process.
    process: Option<Child>,
    folder: Arc<TempDir>,
    environment: Vec<(String, String)>,
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    pub(crate) http: Client,
}

/// The program under test: the build of this checkout, or the one that `GALLEY_BIN` names. A benchmark
/// compares two versions by it.
fn binary() -> OsString {
    std::env::var_os("GALLEY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_galley").into())
}

/// A command of the program, without the variables of the tests: it rejects unknown settings.
pub(crate) fn command_of(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GALLEY_") {
            command.env_remove(name);
        }
    }
    command
}

impl Server {
    /// Starts with the defaults: SQLite and locks in memory.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts with these settings, by their environment names without the prefix.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        Self::in_folder(folder, settings).await
    }

    /// Starts in the folder of another server, whose database and secret it shares.
    pub(crate) async fn beside(&self) -> Self {
        Self::spawn(Arc::clone(&self.folder), self.environment.clone()).await
    }

    pub(crate) async fn in_folder(folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| (format!("GALLEY_{name}"), (*value).to_owned());
        Self::spawn(folder, settings.iter().map(own).collect()).await
    }

    /// Starts in an environment that holds more than settings.
    pub(crate) async fn spawn(folder: Arc<TempDir>, environment: Vec<(String, String)>) -> Self {
        Self::spawn_with(folder, environment, &[]).await
    }

    /// Starts with these arguments, too.
    pub(crate) async fn spawn_with(
        folder: Arc<TempDir>,
        environment: Vec<(String, String)>,
        arguments: &[&str],
    ) -> Self {
        let mut command = command_of(&binary());
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("GALLEY_SERVER__LISTEN", "127.0.0.1:0");
        // No test of a stop has a load balancer before the server.
        command.env("GALLEY_SERVER__LINGER", "0s");
        // The guests of a test enter from one address, all at once.
        command.env("GALLEY_LIMITS__GUEST_BURST", "1000000");
        for what in ["REQUESTS", "CLAIMS", "HANDLES"] {
            command.env(format!("GALLEY_LIMITS__GUEST_{what}_PER_ADDRESS"), "0");
        }
        command.envs(environment.iter().cloned());
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(folder.path().join("log"))
            .expect("a log");
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let line = timeout(TEST_TIMEOUT, lines.next_line()).await.expect("it starts in time");
        let line = line.expect("readable").unwrap_or_else(|| {
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            panic!("it did not start: {log}")
        });
        // The line is text or, with log.format = "json", an object.
        let url = line.split([' ', '"']).find(|word| word.starts_with("http://"));
        let url = url.expect("the line names an address").trim_end_matches('/').to_owned();
        let http = client();
        Self { process: Some(process), folder, environment, url, http }
    }

    /// A server inside the test process, at that address.
    pub(crate) fn inside(folder: Arc<TempDir>, url: String) -> Self {
        let http = client();
        Self { process: None, folder, environment: Vec::new(), url, http }
    }

    fn process(&mut self) -> &mut Child {
        self.process.as_mut().expect("a process of its own")
    }

    /// The folder of the process.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).expect("the log's file")
    }

    /// `kill -9`: the server sends nothing and flushes nothing.
    pub(crate) async fn kill(&mut self) {
        self.process().kill().await.expect("it can be killed");
    }

    /// `SIGTERM`, and the exit that follows.
    pub(crate) async fn stop(&mut self) -> std::process::ExitStatus {
        self.signal("-TERM").await;
        self.ended().await
    }

    /// `SIGTERM`, and an exit within `bound`, with any status.
    pub(crate) async fn stops_within(&mut self, bound: Duration) {
        self.signal("-TERM").await;
        timeout(bound, self.process().wait()).await.expect("it stops in time").expect("a status");
    }

    /// Waits for an exit that another event causes.
    pub(crate) async fn ended(&mut self) -> std::process::ExitStatus {
        timeout(TEST_TIMEOUT, self.process().wait())
            .await
            .expect("it stops in time")
            .expect("a status")
    }

    /// Starts the server again on the same data, on another port.
    pub(crate) async fn start_again(&mut self) {
        *self = Self::spawn(Arc::clone(&self.folder), self.environment.clone()).await;
    }

    /// Stops the process, and returns when all its threads have stopped: on a busy machine one that ran when
    /// the signal came may answer a request first.
    pub(crate) async fn freeze(&self) {
        self.signal("-STOP").await;
        until("a stopped process", async || self.is_stopped()).await;
    }

    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("threads");
        let states = threads.map(|thread| std::fs::read_to_string(thread?.path().join("stat")));
        // The state follows the name of the program, which is in parentheses.
        states.flatten().all(|stat| stat.rsplit(')').next().is_some_and(|it| it.starts_with(" T")))
    }

    pub(crate) async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.as_ref().and_then(Child::id).expect("it runs")
    }

    pub(crate) async fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.id().to_string()]).status().await;
        assert!(status.expect("kill is installed").success());
    }

    /// The admin token that the first start created.
    pub(crate) fn admin_token(&self) -> String {
        let path = self.folder().join("data/admin-token");
        std::fs::read_to_string(path).expect("the token's file").trim().to_owned()
    }
}

impl Drop for Server {
    #[allow(clippy::print_stderr, reason = "the library of the tests captures it for the report")]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let log = std::fs::read_to_string(self.folder().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let end = &lines[lines.len().saturating_sub(LOG_LINES)..];
        eprintln!("the log of {}, {} of {} lines:", self.url, end.len(), lines.len());
        eprintln!("{}", end.join("\n"));
    }
}

/// A client that drops idle connections before the server does, after ten seconds: a request on a connection
/// that the server closes at that moment has no answer.
fn client() -> Client {
    let idle = Duration::from_secs(5);
    Client::new(reqwest::Client::builder().pool_idle_timeout(idle).build().expect("a client"))
}
