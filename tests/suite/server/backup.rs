//! `galley backup` and `galley restore`, and the start on a file that was put back by hand.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::storage::files::stranger;
use galley::storage::Storage;
use sqlx::{Connection as _, SqliteConnection};
use tokio::process::Command;

use crate::server::commands::{Ran, galley, galley_with};
use crate::server::storage_outage::shim;
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::Desk;

const DATABASE: &str = "data/galley.db";

/// A stopped server of an installation with one document of that text.
async fn stopped(text: &str) -> (Server, Desk) {
    let mut server = Server::start().await;
    let desk = server.desk(text).await;
    assert!(server.stop().await.success());
    (server, desk)
}

fn url_of(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

/// A connection to a file of the server's folder.
async fn opened(server: &Server, file: &str) -> SqliteConnection {
    stranger(&url_of(&server.folder().join(file))).await
}

/// The titles of all documents.
async fn titles(file: &Path) -> BTreeSet<String> {
    let mut database = stranger(&url_of(file)).await;
    let found = sqlx::query_scalar("SELECT title FROM documents").fetch_all(&mut database).await;
    database.close().await.expect("closed");
    found.expect("titles").into_iter().collect()
}

/// The names of the files in `data` that begin with that of the database.
fn files(folder: &Path) -> Vec<String> {
    let found = folder.join("data").read_dir().expect("a folder").flatten();
    let names = found.map(|file| file.file_name().into_string().expect("a name"));
    let mut names: Vec<_> = names.filter(|name| name.starts_with("galley.db")).collect();
    names.sort();
    names
}

/// Holds that the command failed with these words, and changed no file of the database.
#[track_caller]
fn is_refused(ran: &Ran, words: &[&str]) {
    let complaint = ran.complaint();
    assert_eq!(ran.code(), Some(1), "{complaint}");
    let line = complaint.lines().last().expect("a line");
    assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {complaint}");
}

/// Goal: each backup holds every document that was created before it, and none in part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_each_backup_of_a_server_under_writes_is_restored_whole() {
    let rounds = if std::env::var_os("GALLEY_SHORT").is_some() { 5 } else { 50 };
    let limits = ["REQUESTS_PER_SECOND", "REQUEST_BURST", "USER_DOCUMENTS"];
    let limits = limits.map(|name| format!("LIMITS__{name}"));
    let limits: Vec<_> = limits.iter().map(|name| (name.as_str(), "1000000")).collect();
    let server = Server::with(&limits).await;
    let writer = server.guest("Kim").await;
    let [requested, created] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let title = |number: usize| format!("document {number}");
    let backups = async {
        for round in 0..rounds {
            let copy = format!("{round}.db");
            let before = created.load(Ordering::Acquire);
            galley(server.folder(), &["backup", &copy]).await.ok();
            let copy = server.folder().join(copy);
            assert_eq!(fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777, 0o600);
            let elsewhere = tempfile::tempdir().expect("a folder");
            let secret = server.folder().join("data/secret");
            fs::create_dir(elsewhere.path().join("data")).expect("a folder");
            fs::copy(secret, elsewhere.path().join("data/secret")).expect("a secret");
            let report = galley(elsewhere.path(), &["restore", &copy.display().to_string()]).await;
            let report = report.ok();
            assert!(report.contains("data/secret belongs beside it and is here"), "{report}");
            assert!(report.contains("data/push-key belongs beside it and IS MISSING"), "{report}");
            let restored = elsewhere.path().join(DATABASE);
            let storage = Storage::open(&url_of(&restored)).await.expect("it opens");
            storage.close().await;
            let found = titles(&restored).await;
            let after = requested.load(Ordering::Acquire);
            assert!((before..=after).contains(&found.len()), "{before} {} {after}", found.len());
            assert_eq!(found, (0..found.len()).map(title).collect(), "round {round}");
        }
    };
    let writes = async {
        loop {
            let number = requested.fetch_add(1, Ordering::AcqRel);
            let body = serde_json::json!({ "title": title(number) });
            server.post(&writer, "/api/documents", body).await.ok(201);
            created.fetch_add(1, Ordering::AcqRel);
        }
    };
    tokio::select! {
        () = backups => {}
        () = writes => {}
    }
    assert!(0 < created.load(Ordering::Acquire));
}

/// Goal: a restore brings back the state of the backup, and keeps the former files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_brings_back_the_backup_and_moves_the_former_files_aside() {
    let mut server = Server::start().await;
    let desk = server.desk("the first text").await;
    let folder = server.folder().to_owned();
    galley(&folder, &["backup", "copy.db"]).await.ok();
    is_refused(&galley(&folder, &["backup", "copy.db"]).await, &["copy.db", "exists"]);
    is_refused(&galley(&folder, &["backup", DATABASE]).await, &[DATABASE, "exists"]);
    is_refused(&galley(&folder, &["backup", "data/galley.db-journal"]).await, &["choose another"]);
    let body = serde_json::json!({ "title": "later" });
    server.post(&desk.writer, "/api/documents", body).await.ok(201);

    is_refused(&galley(&folder, &["restore", "copy.db"]).await, &["a running server", DATABASE]);
    // A frozen server has its locks, too, and its heartbeat says nothing.
    server.freeze().await;
    is_refused(&galley(&folder, &["restore", "copy.db"]).await, &["a running server", "stop it"]);
    server.thaw().await;
    server.kill().await;
    assert_eq!(files(&folder), ["galley.db", "galley.db-shm", "galley.db-wal"]);
    let report = galley(&folder, &["restore", "copy.db"]).await.ok();
    let names = files(&folder);
    let [own, former, shm, wal] = names.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        panic!("{names:?}")
    };
    assert!(report.contains(&format!("data/{former}: the former file")), "{report}");
    assert_eq!(
        (own, shm, wal),
        ("galley.db", &*format!("{former}-shm"), &*format!("{former}-wal"))
    );
    // The former files are a database of their own, with its newest state.
    assert!(titles(&folder.join("data").join(former)).await.contains("later"));
    assert!(!titles(&folder.join(DATABASE)).await.contains("later"));
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "the first text");
}

/// Goal: a copy that a user put back beside the old write-ahead log is not opened, and loses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_refuses_a_copy_beside_the_log_of_the_former_file_with_the_remedy() {
    let mut server = Server::start().await;
    server.desk("a text").await;
    let folder = server.folder().to_owned();
    galley(&folder, &["backup", "copy.db"]).await.ok();
    server.desk("a later text").await;
    // SQLite moves the pages into the file, and its log still has them.
    let mut other = opened(&server, DATABASE).await;
    sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut other).await.expect("moved");
    other.close().await.expect("closed");
    server.kill().await;
    let wal = folder.join("data/galley.db-wal");
    let log = fs::read(&wal).expect("a log");
    assert!(!log.is_empty());
    fs::copy(folder.join("copy.db"), folder.join(DATABASE)).expect("copied");
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"], &["backup", "b.db"]] {
        let remedy = ["galley.db-wal is not the write-ahead log", "`galley restore COPY`"];
        is_refused(&galley(&folder, command).await, &remedy);
        assert!(!folder.join("b.db").exists());
        assert!(fs::read(&wal).expect("a log") == log, "the log is unchanged");
    }
    // Without its file the log would be deleted.
    fs::remove_file(folder.join(DATABASE)).expect("removed");
    is_refused(&galley(&folder, &["migrate"]).await, &["`galley restore COPY`"]);
    galley(&folder, &["restore", "copy.db"]).await.ok();
    server.start_again().await;
    assert!(server.stop().await.success());
}

/// Goal: a damaged file stops the start with the remedy, instead of lists that fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_refuses_a_file_with_damaged_pages_with_the_remedy() {
    let (server, _desk) = stopped("a text").await;
    let file = server.folder().join(DATABASE);
    let mut database = opened(&server, DATABASE).await;
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'documents_of_owner'";
    let root: i64 = sqlx::query_scalar(root).fetch_one(&mut database).await.expect("a page");
    database.close().await.expect("closed");
    let mut bytes = fs::read(&file).expect("a file");
    let page = usize::try_from(root - 1).expect("a number") * 4_096;
    bytes[page..page + 4_096].fill(0xA5);
    fs::write(&file, bytes).expect("written");
    let ran = galley(server.folder(), &["serve", "--listen", "127.0.0.1:0"]).await;
    is_refused(&ran, &["damaged", "galley.db", "`galley restore FILE`"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_refuses_an_unfit_copy_and_changes_nothing() {
    let (server, _desk) = stopped("a text").await;
    let folder = server.folder();
    galley(folder, &["backup", "copy.db"]).await.ok();
    let copy = fs::read(folder.join("copy.db")).expect("a copy");
    let make = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).expect("written");
        name.to_owned()
    };
    make("half.db", &copy[..copy.len() / 2]);
    make("empty.db", b"");
    make("letter.db", "Dear Sir or Madam, ".repeat(300).as_bytes());
    make("newer.db", &copy);
    let insert =
        "INSERT INTO _sqlx_migrations VALUES (999, 'later', CURRENT_TIMESTAMP, TRUE, x'00', 0)";
    let mut newer = opened(&server, "newer.db").await;
    sqlx::raw_sql(insert).execute(&mut newer).await.expect("a row");
    newer.close().await.expect("closed");
    let mut others = opened(&server, "others.db").await;
    sqlx::raw_sql("CREATE TABLE users (id INTEGER)").execute(&mut others).await.expect("a table");
    others.close().await.expect("closed");
    make("torn.db", &copy);
    make("torn.db-wal", b"changes");
    let before = files(folder);
    let state = fs::read(folder.join(DATABASE)).expect("a file");
    for (name, words) in [
        ("half.db", "damaged"),
        ("empty.db", "empty"),
        ("letter.db", "damaged"),
        ("newer.db", "use the galley that wrote it"),
        ("others.db", "another program"),
        ("torn.db", "torn.db-wal"),
        ("missing.db", "No such file"),
        (DATABASE, "the database itself"),
    ] {
        is_refused(&galley(folder, &["restore", name]).await, &[name, words]);
        assert_eq!(files(folder), before, "{name}");
        assert!(fs::read(folder.join(DATABASE)).expect("a file") == state, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_refuses_the_copy_of_another_installation_unless_a_flag_takes_it() {
    let ((theirs, desk), (own, _)) = (stopped("their text").await, stopped("own text").await);
    galley(theirs.folder(), &["backup", "copy.db"]).await.ok();
    let copy = theirs.folder().join("copy.db").display().to_string();
    let ran = galley(own.folder(), &["restore", &copy]).await;
    is_refused(&ran, &["another installation", "--other-installation"]);
    assert_eq!(files(own.folder()), ["galley.db"]);
    let arguments = ["restore", &copy, "--other-installation"];
    galley(own.folder(), &arguments).await.ok();
    let mut own = own;
    own.start_again().await;
    let mut restored = opened(&own, DATABASE).await;
    let query = sqlx::query_scalar("SELECT count(*) FROM documents WHERE id = $1");
    let found: i64 = query.bind(&desk.document).fetch_one(&mut restored).await.expect("a row");
    assert_eq!(found, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_ends_backup_and_restore_without_a_trace() {
    let (server, _desk) = stopped("a text").await;
    let folder = server.folder();
    galley(folder, &["backup", "copy.db"]).await.ok();
    let disk = tempfile::tempdir().expect("a folder");
    let full = disk.path().join("full");
    fs::write(&full, "").expect("a flag");
    let (shim, disk_name) = (shim(folder).await, disk.path().display().to_string());
    let settings = [("LD_PRELOAD", shim.as_str()), ("FULL_DISK", disk_name.as_str())];
    let target = disk.path().join("copy.db");
    let arguments = ["backup", &target.display().to_string()];
    let ran = galley_with(folder, &arguments, &settings).await;
    is_refused(&ran, &["no space left", "copy.db"]);
    let url = url_of(&disk.path().join("own.db"));
    let copy = folder.join("copy.db").display().to_string();
    let ran = galley_with(folder, &["restore", &copy, "--database-url", &url], &settings).await;
    is_refused(&ran, &["No space left"]);
    let left: Vec<PathBuf> =
        disk.path().read_dir().expect("a folder").map(|it| it.expect("a file").path()).collect();
    assert_eq!(left, [full]);
}

/// Goal: the printed commands, run as they are, bring back the state of the backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_postgresql_both_commands_print_commands_that_work_without_the_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = "postgres://kim:hunter2@db.example.com/galley?sslmode=require";
    for command in ["backup", "restore"] {
        let shown = galley(folder.path(), &[command, "it's", "--database-url", secret]).await.ok();
        assert!(shown.contains("pg_dump ") && shown.contains("pg_restore "), "{shown}");
        assert!(
            shown.contains("'postgres://kim@db.example.com/galley?sslmode=require'"),
            "{shown}"
        );
        assert!(shown.contains(r"'it'\''s'") && !shown.contains("hunter2"), "{shown}");
    }
    let database = postgres_server::shared().database().await;
    let url = database.url();
    let run = async |command: &str| {
        let line = galley(folder.path(), &[command, "copy", "--database-url", &url]).await.ok();
        let mut shell = Command::new("sh");
        let ran =
            shell.current_dir(folder.path()).args(["-c", &line]).output().await.expect("a shell");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    let mut server = Server::with(&[("DATABASE__URL", &url)]).await;
    let desk = server.desk("the first text").await;
    run("backup").await;
    let body = serde_json::json!({ "title": "later" });
    server.post(&desk.writer, "/api/documents", body).await.ok(201);
    assert!(server.stop().await.success());
    run("restore").await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "the first text");
    let listed = server.get(&desk.writer, "/api/documents").await.ok(200);
    assert!(!listed.to_string().contains("later"), "{listed}");
}
