//! A PostgreSQL server for tests, in a temporary folder, on a socket in it. It stops with the
//! process that started it, however that process ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use galley::storage::Storage;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

/// Longer than a start takes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// PostgreSQL refuses to run as root. This account exists on every system, and owns no files.
const UNPRIVILEGED: u32 = 65_534;
const SHARED_MEMORY: &str = "/dev/shm";
/// Many times what the databases of concurrent tests take.
const MEMORY_MIN_MB: u64 = 2_000;
/// Waits until the process that started it is gone, then stops the server and removes its folder.
const GUARD: &str = r#"
    trap '' INT TERM HUP
    echo watching
    cat >/dev/null
    pid=$(head -n 1 data/postmaster.pid 2>/dev/null) && kill -QUIT "$pid"
    while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    cd / && rm -rf "$0"
"#;

/// A running server.
pub(crate) struct Server {
    folder: PathBuf,
    /// Ends with its standard input, which this process holds.
    _guard: Child,
    template: OnceCell<()>,
    made: AtomicU32,
    /// Databases that no test uses any more.
    left: Mutex<Vec<String>>,
}

/// An empty database with the current schema.
pub(crate) struct Database {
    server: &'static Server,
    name: String,
}

/// The server that the tests of this process share. Each test has its own database.
pub(crate) fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(Server::careless)
}

impl Server {
    /// A server with full durability.
    pub(crate) fn start() -> Self {
        // Recovery would sync about a thousand files one by one; no commit depends on that.
        Self::with(&std::env::temp_dir(), "recovery_init_sync_method = syncfs\n")
    }

    /// A server without fsync. It survives a kill of its processes, but no power cut.
    pub(crate) fn careless() -> Self {
        Self::with(&memory(), "fsync = off\nfull_page_writes = off\n")
    }

    /// A server that can count its statements.
    pub(crate) fn counting() -> Self {
        Self::with(&memory(), "fsync = off\nshared_preload_libraries = 'pg_stat_statements'\n")
    }

    /// A server that logs the plan of each statement as JSON, with these settings of the planner.
    pub(crate) fn explaining(planner: &str) -> Self {
        let settings = "fsync = off\nshared_preload_libraries = 'auto_explain'\n\
                        auto_explain.log_min_duration = 0\nauto_explain.log_format = json\n\
                        auto_explain.log_nested_statements = on\n";
        Self::with(&memory(), &format!("{settings}{planner}"))
    }

    fn with(above: &Path, settings: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in(above).expect("a folder");
        let folder = folder.keep();
        if is_root() {
            let above = folder.parent().expect("a folder above");
            let mode = fs::metadata(above).expect("readable").permissions().mode();
            assert!(mode & 0o001 != 0, "{} must be passable: chmod o+x", above.display());
            chown(&folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("given away");
        }
        let guard = guard(&folder);
        let server = Self {
            folder,
            _guard: guard,
            template: OnceCell::new(),
            made: AtomicU32::new(0),
            left: Mutex::default(),
        };
        server.initialize(settings);
        assert!(server.try_start(), "PostgreSQL does not start: {}", server.log());
        server
    }

    fn initialize(&self, more: &str) {
        // No sync of the empty cluster: only later commits count.
        let arguments = ["-D", "data", "-U", "galley", "-A", "trust", "-E", "UTF8"];
        let made = self.tool("initdb").args(arguments).args(["--no-locale", "--no-sync"]).output();
        let made = made.expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = 200\n\
             shared_buffers = 32MB\nmax_wal_size = 256MB\n{more}",
            self.folder.display()
        );
        let file = self.folder.join("data/postgresql.conf");
        fs::write(&file, settings).expect("written");
        let rules = "local all keyed scram-sha-256\nlocal all all trust\n";
        fs::write(self.folder.join("data/pg_hba.conf"), rules).expect("written");
    }

    fn try_start(&self) -> bool {
        let arguments = ["-D", "data", "-l", "log", "-w", "-t", "60", "-s", "start"];
        let mut start = self.tool("pg_ctl");
        // The server would hold the inherited pipes open.
        let null = Stdio::null;
        start.args(arguments).stdin(null()).stdout(null()).stderr(null());
        start.status().expect("pg_ctl runs").success()
    }

    /// A program of PostgreSQL, or of the path `name`, under an account that PostgreSQL accepts.
    pub(crate) fn tool(&self, name: &str) -> Command {
        let program = programs().join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let user = UNPRIVILEGED.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.folder);
        command
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// The URL of a database of that name, whether it exists or not.
    pub(crate) fn url(&self, database: &str) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://galley@{socket}/{database}")
    }

    /// A connection outside Galley's pool.
    pub(crate) async fn stranger(&self, database: &str) -> PgConnection {
        stranger(&self.url(database)).await
    }

    /// Creates an empty database without a schema and returns its name.
    pub(crate) async fn empty(&self) -> String {
        self.create("template0").await
    }

    async fn create(&self, template: &str) -> String {
        let left = std::mem::take(&mut *self.left.lock().expect("sane"));
        let mut admin = self.stranger("postgres").await;
        for name in left {
            let drop = AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
            sqlx::raw_sql(drop).execute(&mut admin).await.expect("dropped");
        }
        let name = format!("test{}", self.made.fetch_add(1, Ordering::Relaxed));
        let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
        sqlx::raw_sql(create).execute(&mut admin).await.expect("created");
        admin.close().await.expect("closed");
        name
    }

    /// A database for one test.
    pub(crate) async fn database(&'static self) -> Database {
        let make = || async {
            let mut admin = self.stranger("postgres").await;
            sqlx::raw_sql("CREATE DATABASE schema").execute(&mut admin).await.expect("created");
            Storage::open(&self.url("schema")).await.expect("a schema").close().await;
        };
        self.template.get_or_init(make).await;
        Database { server: self, name: self.create("schema").await }
    }

    fn postmaster(&self) -> String {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).expect("it runs");
        file.lines().next().expect("its process").to_owned()
    }

    /// Stops the server and all of its processes at once, without a final checkpoint.
    pub(crate) fn stop(&self) {
        let arguments = ["-D", "data", "-s", "-w", "-m", "immediate", "stop"];
        let stopped = self.tool("pg_ctl").args(arguments).status();
        assert!(stopped.expect("pg_ctl runs").success());
    }

    /// All rows of a database as SQL.
    pub(crate) fn dump(&self, database: &str) -> String {
        let mut dump = self.tool("pg_dump");
        dump.args(["-h", &self.folder.display().to_string(), "-U", "galley", database]);
        let dumped = dump.output().expect("pg_dump runs");
        assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
        String::from_utf8_lossy(&dumped.stdout).into_owned()
    }

    /// `kill -9` of the main process.
    pub(crate) fn kill(&self) {
        signal("-KILL", &self.postmaster());
    }

    /// `kill -9` of one backend that serves Galley. The server then closes all other connections
    /// and recovers. False: there is none.
    pub(crate) async fn kill_back_end(&self) -> bool {
        let mut admin = self.stranger("postgres").await;
        let one: Option<i32> = sqlx::query_scalar(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'galley' \
             ORDER BY query_start DESC LIMIT 1",
        )
        .fetch_optional(&mut admin)
        .await
        .expect("readable");
        one.inspect(|pid| signal("-KILL", &pid.to_string())).is_some()
    }

    /// Restarts the server after [`Self::kill`]; its last processes may need a moment to exit.
    pub(crate) async fn start_again(&self) {
        let began = Instant::now();
        while !self.try_start() {
            assert!(began.elapsed() < START_TIMEOUT, "{}", self.log());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Database {
    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    pub(crate) fn dump(&self) -> String {
        self.server.dump(&self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Ok(mut left) = self.server.left.lock() {
            left.push(std::mem::take(&mut self.name));
        }
    }
}

/// A file system in memory where it has room: a database has three hundred files, and those of a disk cost half
/// of the time of its test.
fn memory() -> PathBuf {
    let free = Command::new("df").args(["-BM", "--output=avail", SHARED_MEMORY]).output();
    let text = free.map(|free| String::from_utf8_lossy(&free.stdout).into_owned());
    let free =
        text.ok().and_then(|text| text.lines().last()?.trim().strip_suffix('M')?.parse().ok());
    let has_room = free.is_some_and(|free: u64| MEMORY_MIN_MB <= free);
    if has_room { SHARED_MEMORY.into() } else { std::env::temp_dir() }
}

/// A connection outside Galley's pool.
pub(crate) async fn stranger(url: &str) -> PgConnection {
    let options = PgConnectOptions::from_str(url).expect("a good address");
    options.connect().await.expect("a connection")
}

/// A transaction outside Galley's pool that holds the lock of a document's row.
pub(crate) async fn locked_row(url: &str, document: &str) -> PgConnection {
    let mut other = stranger(url).await;
    sqlx::raw_sql("BEGIN").execute(&mut other).await.expect("a transaction");
    sqlx::query("SELECT 1 FROM documents WHERE id = $1 FOR UPDATE")
        .bind(document)
        .execute(&mut other)
        .await
        .expect("the lock");
    other
}

fn guard(folder: &Path) -> Child {
    let mut guard = Command::new("sh")
        .args(["-c", GUARD])
        .arg(folder)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let output = guard.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a word from it");
    guard
}

fn signal(signal: &str, process: &str) {
    let sent = Command::new("kill").args([signal, process]).status();
    assert!(sent.expect("kill is installed").success());
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The folder of PostgreSQL's programs. On Debian the ones that create a server are not in `PATH`.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let bindir = Command::new("pg_config").arg("--bindir").output();
        let bindir =
            bindir.map(|bindir| PathBuf::from(String::from_utf8_lossy(&bindir.stdout).trim()));
        let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut of_debian: Vec<_> = of_debian.map(|entry| entry.path().join("bin")).collect();
        of_debian.sort();
        let in_path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&in_path).collect::<Vec<_>>();
        let mut candidates = bindir.into_iter().chain(of_debian.into_iter().rev()).chain(in_path);
        let found = candidates.find(|candidate| {
            candidate.join("initdb").exists() && candidate.join("pg_ctl").exists()
        });
        found.expect("PostgreSQL is installed: apt-get install postgresql")
    })
}
