//! The Redis of a campaign. Its state can vanish, stay or go back to a snapshot, and its wall clock
//! can be shifted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use redis::{FromRedisValue, RedisResult};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Duration, timeout};

use crate::support::fixtures::until;
use crate::support::redis_server::free_port;

/// Killed on drop.
pub(crate) struct Redis {
    process: Child,
    folder: TempDir,
    shim: PathBuf,
    pub(crate) port: u16,
    /// Whether each write is in an append-only file before its answer.
    pub(crate) persists: bool,
}

impl Redis {
    pub(crate) async fn start(persists: bool) -> Self {
        let folder = TempDir::new().expect("a folder");
        let shim = clock_shim(folder.path());
        fs::write(folder.path().join("clock"), 0_i64.to_ne_bytes()).expect("written");
        let port = free_port();
        let process = launch(folder.path(), &shim, port, persists);
        let redis = Self { process, folder, shim, port, persists };
        redis.answers().await;
        redis
    }

    pub(crate) async fn kill(&mut self) {
        self.process.kill().await.expect("it can be killed");
    }

    /// Restarts it from its files: all data if it persists, otherwise the last snapshot.
    pub(crate) async fn start_again(&mut self) {
        self.process = launch(self.folder.path(), &self.shim, self.port, self.persists);
        self.answers().await;
    }

    /// Removes its snapshot, so that the next start without persistence is empty.
    pub(crate) fn forget(&self) {
        let _absent = fs::remove_file(self.folder.path().join("dump.rdb"));
    }

    /// Shifts its wall clock by so many milliseconds.
    pub(crate) fn shift_clock(&self, by_ms: i64) {
        // In place: the process maps this file.
        let file = fs::File::options().write(true).open(self.folder.path().join("clock"));
        let bytes = by_ms.to_ne_bytes();
        std::os::unix::fs::FileExt::write_all_at(&file.expect("its clock"), &bytes, 0)
            .expect("written");
    }

    pub(crate) async fn signal(&self, signal: &str) {
        let id = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill").args([signal, &id]).status().await;
        assert!(sent.expect("kill is installed").success());
    }

    /// Runs one command, its words divided by spaces.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &str) -> RedisResult<T> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut words = command.split(' ');
        let mut request = redis::cmd(words.next().expect("a command"));
        for word in words {
            request.arg(word);
        }
        request.query_async(&mut connection).await
    }

    async fn answers(&self) {
        let ping = || timeout(Duration::from_secs(1), self.run::<String>("PING"));
        until("redis-server starts", async || matches!(ping().await, Ok(Ok(_)))).await;
    }
}

fn launch(folder: &Path, shim: &Path, port: u16, persists: bool) -> Child {
    let appends = if persists { "yes" } else { "no" };
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", appends, "--appendfsync", "always"])
        .env("LD_PRELOAD", shim)
        .env("CLOCK_SHIFT", folder.join("clock"))
        .current_dir(folder)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("redis-server is installed")
}

/// The library that shifts the clock of a process by the file `CLOCK_SHIFT`, compiled into `folder`.
pub(crate) fn clock_shim(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/clock.c");
    let library = folder.join("clock.so");
    let mut compiler = std::process::Command::new("cc");
    let made = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
    let made = made.expect("a C compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    library
}
