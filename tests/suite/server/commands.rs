//! The commands beside `serve`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use sqlx::AssertSqlSafe;
use tokio::process::Command;

use crate::support::fixtures::until;
use crate::support::galley_process::{Server, command_of};
use crate::support::{postgres_server, redis_server};

/// The output of a finished command.
pub(crate) struct Ran(Output);

impl Ran {
    /// The standard output of a successful command.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(self.0.status.success(), "{}", self.complaint());
        String::from_utf8(self.0.stdout).expect("text")
    }

    /// The standard output, also of a failed command.
    pub(crate) fn result(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    pub(crate) fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}

/// Runs `galley ARGUMENTS` in `folder`.
pub(crate) async fn galley(folder: &Path, arguments: &[&str]) -> Ran {
    galley_with(folder, arguments, &[]).await
}

/// Runs `galley ARGUMENTS` in `folder` with settings, by their environment names.
pub(crate) async fn galley_with(
    folder: &Path,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> Ran {
    let mut command = command_of(env!("CARGO_BIN_EXE_galley").as_ref());
    command.current_dir(folder).args(arguments).envs(settings.iter().copied());
    Ran(command.output().await.expect("the binary"))
}

#[tokio::test]
async fn check_config_prints_the_settings_in_force_and_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = [
        ("GALLEY_ADMIN__TOKEN", "correct-horse-battery-staple-0123"),
        ("GALLEY_LOCKS__URL", "redis://galley:hunter2@127.0.0.1:1/0"),
        ("GALLEY_DATABASE__SHARED_SQLITE", "true"),
    ];
    let arguments = ["check-config", "--listen", "127.0.0.1:1234"];
    let shown = galley_with(folder.path(), &arguments, &settings).await.ok();
    assert!(shown.contains("listen = \"127.0.0.1:1234\""), "{shown}");
    assert!(shown.contains("redis://galley:***@127.0.0.1:1/0"), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains("correct-horse"), "{shown}");
    assert_eq!(
        folder.path().read_dir().expect("readable").count(),
        0,
        "the command creates nothing"
    );
}

#[tokio::test]
async fn wrong_settings_stop_every_command_with_one_line_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = [
        ("GALLEY_SEATS__LEASE", "5s"),
        ("GALLEY_DATABASE__URI", "sqlite://elsewhere.db"),
        ("GALLEY_LOCKS__URL", "redis+sentinel://secret@a:1,b:2"),
    ];
    for command in ["check-config", "serve", "migrate"] {
        let ran = galley_with(folder.path(), &[command], &settings).await;
        assert_eq!(ran.code(), Some(2), "{command}");
        let complaint = ran.complaint();
        assert_eq!(complaint.lines().count(), 3, "{complaint}");
        for part in ["seats.lease: ", "database.uri: ", "locks.url: "] {
            assert!(complaint.contains(part), "{complaint}");
        }
        assert!(!complaint.contains("secret@"), "{complaint}");
    }
    assert_eq!(folder.path().read_dir().expect("readable").count(), 0);
}

#[tokio::test]
async fn kubernetes_variables_do_not_prevent_the_start_and_a_near_miss_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_kubernetes = [
        ("GALLEY_SERVICE_HOST", "10.0.0.1"),
        ("GALLEY_PORT", "tcp://10.0.0.1:8080"),
        ("GALLEY_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
    ];
    let ran = galley_with(folder.path(), &["check-config"], &of_kubernetes).await;
    assert_eq!((ran.code(), ran.complaint().as_str()), (Some(0), ""));
    let others = [("GALLEY_SECRET_FILE", "x"), ("GALLEY_DATABASE_URL", "sqlite://y.db")];
    let ran = galley_with(folder.path(), &["check-config"], &others).await;
    let complaint = ran.complaint();
    assert_eq!((ran.code(), complaint.lines().count()), (Some(0), 1), "{complaint}");
    assert!(complaint.contains("GALLEY_DATABASE_URL, GALLEY_SECRET_FILE"), "{complaint}");
}

/// Goal: a missing quotation mark does not print the secret behind it.
#[tokio::test]
async fn a_fault_in_a_settings_file_is_named_by_its_position_and_not_quoted() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = "[admin]\ntoken=\"correct-horse-battery-staple\n";
    std::fs::write(folder.path().join("bad.toml"), content).expect("written");
    for command in ["check-config", "serve"] {
        let ran = galley(folder.path(), &[command, "--config", "bad.toml"]).await;
        let complaint = ran.complaint();
        assert_eq!((ran.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
        assert!(complaint.contains("bad.toml: line 2, column "), "{complaint}");
        assert!(!complaint.contains("horse"), "{complaint}");
    }
}

#[tokio::test]
async fn a_missing_settings_file_is_an_error_of_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = galley(folder.path(), &["check-config", "--config", "missing.toml"]).await;
    assert_eq!(ran.code(), Some(2));
    assert_eq!(ran.complaint().lines().count(), 1, "{}", ran.complaint());
    assert!(ran.complaint().contains("missing.toml"));
    std::fs::write(folder.path().join("bad.toml"), "[server\nlisten = 1").expect("written");
    let ran = galley(folder.path(), &["check-config", "--config", "bad.toml"]).await;
    assert_eq!(ran.code(), Some(2));
    assert_eq!(ran.complaint().lines().count(), 1, "{}", ran.complaint());
}

#[tokio::test]
async fn migrate_creates_the_database_and_exits_and_is_idempotent() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/src/core/storage/sqlite/migrations");
    let scripts = std::fs::read_dir(scripts).expect("migrations").flatten();
    let version = |name: String| name.split('_').next()?.parse::<u32>().ok();
    let versions = scripts.filter_map(|it| version(it.file_name().to_string_lossy().into_owned()));
    let line = format!("the database has schema version {}\n", versions.max().expect("one"));
    for _ in 0..2 {
        let ran =
            galley(folder.path(), &["migrate", "--database-url", "sqlite://deep/er/g.db"]).await;
        assert_eq!(ran.ok(), line);
    }
    assert!(folder.path().join("deep/er/g.db").exists());
    // The database holds texts, so other users of the host may not read it.
    let made = std::fs::metadata(folder.path().join("deep/er")).expect("a folder");
    assert_eq!(made.permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_token_needs_an_id_a_name_and_a_lifetime() {
    let folder = tempfile::tempdir().expect("a folder");
    for (wrong, part) in [
        (["token", "--sub", "a b", "--name", "Kim", "--ttl", "1h"], "--sub"),
        (["token", "--sub", "kim", "--name", " ", "--ttl", "1h"], "--name"),
        (["token", "--sub", "kim", "--name", "Kim", "--ttl", "60"], "--ttl"),
        (["token", "--sub", "kim", "--name", "Kim", "--ttl", "0s"], "--ttl"),
    ] {
        let ran = galley(folder.path(), &wrong).await;
        assert_eq!(ran.code(), Some(1));
        assert!(ran.complaint().contains(part), "{}", ran.complaint());
    }
}

#[tokio::test]
async fn two_first_starts_at_once_agree_on_the_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["token", "--sub", "kim", "--name", "Kim"];
    let starts = (0..8).map(|_| galley(folder.path(), &arguments));
    let tokens: Vec<_> =
        futures_util::future::join_all(starts).await.into_iter().map(Ran::ok).collect();
    let secret = std::fs::read(folder.path().join("data/secret")).expect("a secret");
    let tokens = tokens.iter().map(|token| {
        galley::http::auth::tokens::Tokens::new(secret.trim_ascii_end()).verify(token.trim())
    });
    assert!(tokens.into_iter().all(|identity| identity.is_ok()));
    assert_eq!(folder.path().join("data").read_dir().expect("readable").count(), 1);
}

/// Goal: the line with the remedy is not lost among the errors that follow from it.
#[tokio::test]
async fn a_port_in_use_stops_the_start_with_one_clear_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let ran = galley(folder.path(), &["serve", "--listen", &address]).await;
    assert_eq!(ran.code(), Some(1));
    let complaint = ran.complaint();
    assert!(complaint.contains(&format!("cannot listen on {address}")), "{complaint}");
    let log = String::from_utf8_lossy(&ran.0.stdout);
    assert!(!log.contains("ERROR") && !complaint.contains("ERROR"), "{log}{complaint}");
}

/// A collector could not parse the line with the address, and no line named its server. A newcomer's
/// first line was a warning about open files.
#[tokio::test]
async fn with_json_logs_each_line_names_the_server_and_the_warning_about_files_follows_the_address()
{
    let folder = tempfile::tempdir().expect("a folder");
    let few_files = "ulimit -n 512 && exec \"$0\" >lines 2>&1";
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).args(["-c", few_files, env!("CARGO_BIN_EXE_galley")]);
    command.env("GALLEY_SERVER__LISTEN", "127.0.0.1:0").env("GALLEY_LOG__FORMAT", "json");
    command.env("GALLEY_SERVER__NAME", "galley-1");
    let _server = command.kill_on_drop(true).spawn().expect("the binary");
    let warning = "fewer files than limits.connections needs";
    let written = || std::fs::read_to_string(folder.path().join("lines")).unwrap_or_default();
    until("a warning", async || written().contains(warning)).await;
    let lines = written();
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let at = |text: &str| lines.iter().position(|line| line["message"].to_string().contains(text));
    let ready = at("Galley is ready").expect("a ready line");
    assert!(ready < at(warning).expect("a warning"), "{lines:?}");
    let open = lines[ready]["open"].as_str().expect("an address");
    assert!(open.starts_with("http://127.0.0.1:"), "{open}");
    let node = lines[ready]["node"].as_str().expect("a server");
    assert!(node.starts_with("node_"), "{node}");
    let names_it = |line: &Value| line["node"] == node && line["server"] == "galley-1";
    assert!(lines.iter().all(names_it), "{lines:?}");
}

/// Goal: the log warns the operator that other users of the host can read the texts. A new file is
/// private.
#[tokio::test]
async fn g14_the_log_warns_of_a_database_that_other_users_can_read() {
    let warning = "other users of this machine can read the database";
    let mut server = Server::start().await;
    assert!(server.stop().await.success());
    server.start_again().await;
    assert!(!server.log().contains(warning), "{}", server.log());
    assert!(server.stop().await.success());
    let file = server.folder().join("data/galley.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    server.start_again().await;
    let log = server.log();
    let line = log.lines().find(|line| line.contains(warning)).expect("a warning");
    assert!(line.contains("galley.db") && line.contains("644"), "{line}");
}

/// Goal: a filter shows what it names, in whichever crate the module lives, or is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_filter_names_a_module_of_any_crate_and_one_that_does_not_exist_is_refused() {
    let server = Server::with(&[("LOG__LEVEL", "error,galley::seats=info")]).await;
    let desk = server.desk("").await;
    let _writer = server.writer(&desk).await;
    until("a line of a seat", async || server.log().contains(" galley_core::seats")).await;
    assert!(!server.log().contains("galley::app"), "{}", server.log());
    for command in ["check-config", "serve"] {
        let settings = [("GALLEY_LOG__LEVEL", "info,galley::seat=debug")];
        let ran = galley_with(server.folder(), &[command], &settings).await;
        let complaint = ran.complaint();
        assert_eq!((ran.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
        let list = "reviews, rooms, runtime, seats, sessions, ";
        assert!(complaint.contains("log.level: ") && complaint.contains(list), "{complaint}");
    }
}

/// Goal: a container mounts its secrets as files that its group may read, and the operator makes them by a command.
#[tokio::test]
async fn a_server_takes_its_secrets_and_passwords_from_mounted_files_and_warns_of_open_ones() {
    let folder = std::sync::Arc::new(tempfile::tempdir().expect("a folder"));
    let printed = galley(folder.path(), &["keys"]).await.ok();
    let lines: Vec<_> = printed.lines().filter(|line| !line.starts_with('#')).collect();
    let [secret, private, public] = lines[..] else { panic!("{printed}") };
    let password = "p@ss/w:rd%#?é";
    let redis = redis_server::Server::start().await;
    let _ok: String = redis.run(&format!("CONFIG SET requirepass {password}")).await;
    // The one user of the suite's PostgreSQL that needs a password.
    let postgres = postgres_server::shared();
    let name = postgres.empty().await;
    let owner = format!(
        "CREATE ROLE keyed LOGIN PASSWORD '{password}'; ALTER DATABASE {name} OWNER TO keyed"
    );
    let mut admin = postgres.stranger(&name).await;
    sqlx::raw_sql(AssertSqlSafe(owner)).execute(&mut admin).await.expect("an owner");
    let database = postgres.url(&name).replace("//galley@", "//keyed@");
    let token = "an-admin-token-of-thirty-two-bytes";
    for (name, content) in
        [("secret", secret), ("key", private), ("token", token), ("password", password)]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("{content}\n")).expect("written");
        let mode = std::fs::Permissions::from_mode(0o440);
        std::fs::set_permissions(path, mode).expect("a mode");
    }
    let settings = [
        ("AUTH__SECRET_FILE", "secret"),
        ("PUSH__KEY_FILE", "key"),
        ("ADMIN__TOKEN_FILE", "token"),
        ("LOCKS__URL", &redis.url()),
        ("LOCKS__PASSWORD_FILE", "password"),
        ("DATABASE__URL", &database),
        ("DATABASE__PASSWORD_FILE", "password"),
    ];
    let mut server = Server::in_folder(folder, &settings).await;
    let get = async |server: &Server, path: &str, token: &str| {
        let request = server.http.get(format!("{}{path}", server.url)).bearer_auth(token);
        request.send().await.expect("an answer")
    };
    assert_eq!(get(&server, "/readyz", token).await.status(), 200);
    assert_eq!(get(&server, "/api/admin/sessions", token).await.status(), 200);
    let kim = server.guest("Kim").await;
    let push: Value = get(&server, "/api/push-key", &kim.token).await.json().await.expect("JSON");
    assert!(push.to_string().contains(public), "{push}");
    let warning = "others can read a secret";
    assert!(!server.log().contains(warning), "{}", server.log());
    assert!(!server.log().contains("p@ss") && !server.log().contains("p%40ss"));
    assert!(server.stop().await.success());
    let mode = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(server.folder().join("password"), mode).expect("a mode");
    server.start_again().await;
    let log = server.log();
    let line = log.lines().find(|line| line.contains(warning)).expect("a warning");
    assert!(line.contains("password") && line.contains("0440"), "{line}");
}

/// Goal: the first line of a failed start names the file, the setting that names it, and the user.
#[tokio::test]
async fn a_folder_that_the_server_cannot_write_is_named_with_its_setting_and_the_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let is_root = rustix::process::geteuid().is_root();
    let uid = if is_root { 65_534 } else { rustix::process::geteuid().as_raw() };
    let run = async || {
        let mut command = command_of(env!("CARGO_BIN_EXE_galley").as_ref());
        command.current_dir(folder.path()).env("GALLEY_SERVER__LISTEN", "127.0.0.1:0");
        // Root writes everywhere.
        if is_root {
            command.uid(uid);
        }
        Ran(command.output().await.expect("the binary"))
    };
    std::fs::create_dir(&data).expect("made");
    set(folder.path(), 0o755);
    set(&data, 0o555);
    let complaint = run().await.complaint();
    for part in ["auth.secret_file: ", "data/secret", &format!("uid {uid}")] {
        assert!(complaint.contains(part), "{complaint}");
    }
    set(&data, 0o755);
    for name in ["secret", "admin-token"] {
        let path = data.join(name);
        std::fs::write(&path, format!("{name}-of-at-least-thirty-two-bytes")).expect("written");
        set(&path, 0o644);
    }
    set(&data, 0o555);
    let complaint = run().await.complaint();
    let line = complaint.lines().last().expect("a line");
    for part in ["database.url: ", " data", &format!("uid {uid} cannot write")] {
        assert!(line.contains(part), "{complaint}");
    }
    set(&data, 0o755);
}

#[tokio::test]
async fn a_password_file_needs_an_address_of_a_server_without_a_password_and_must_exist() {
    let folder = tempfile::tempdir().expect("a folder");
    for (url, file, code, part) in [
        ("memory:", "missing", 2, "locks.password_file: needs a locks.url of a server"),
        ("redis://u:p@127.0.0.1:1", "missing", 2, "locks.password_file: needs a locks.url"),
        ("redis://127.0.0.1:1", "missing", 1, "locks.password_file: missing is missing or empty"),
    ] {
        let settings = [
            ("GALLEY_LOCKS__URL", url),
            ("GALLEY_LOCKS__PASSWORD_FILE", file),
            ("GALLEY_DATABASE__SHARED_SQLITE", "true"),
        ];
        let ran = galley_with(folder.path(), &["serve"], &settings).await;
        assert_eq!(ran.code(), Some(code), "{url}");
        assert!(ran.complaint().contains(part), "{}", ran.complaint());
    }
}
