//! Servers behind `PgBouncer`: session mode works, and the server refuses transaction mode at its start.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::server::commands::galley_with;
use crate::server::stuck::type_beside_a_locked_row;
use crate::support::fixtures::found;
use crate::support::galley_process::Server;
use crate::support::postgres_server::{self, locked_row};
use crate::support::rest_client::Desk;

/// A `PgBouncer` with its defaults before a `PostgreSQL`, on a socket in a folder of its own. Dropping it ends
/// it.
struct Pooler {
    process: Child,
    folder: PathBuf,
}

impl Pooler {
    async fn before(postgres: &postgres_server::Server, mode: &str) -> Self {
        let server = folder_of(postgres);
        let folder = tempfile::Builder::new().prefix("pooler").tempdir_in(&server);
        let folder = folder.expect("a folder").keep();
        let owner = fs::metadata(&server).expect("readable").uid();
        chown(&folder, Some(owner), None).expect("given away");
        let (socket_dir, server) = (folder.display(), server.display());
        // `any`: PostgreSQL takes every user of this machine for `galley`.
        let settings = format!(
            "[databases]\n* = host={server} user=galley\n\
             [pgbouncer]\nunix_socket_dir = {socket_dir}\nlisten_port = 5432\nauth_type = any\n\
             logfile = {socket_dir}/log\npool_mode = {mode}\n"
        );
        fs::write(folder.join("settings.ini"), settings).expect("written");
        let mut command = postgres.tool(&program());
        command.arg("--quiet").arg(folder.join("settings.ini"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("pgbouncer is installed");
        let pooler = Self { process, folder };
        let socket = pooler.folder.join(".s.PGSQL.5432");
        found(async || UnixStream::connect(&socket).await.map_err(|_down| pooler.log())).await;
        pooler
    }

    fn url(&self, database: &str) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://galley@{socket}/{database}")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _status = self.process.wait();
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// The folder with the socket of a PostgreSQL.
pub(crate) fn folder_of(postgres: &postgres_server::Server) -> PathBuf {
    let url = postgres.url("");
    let host = url.rsplit('@').next().expect("a host").trim_end_matches('/');
    PathBuf::from(host.replace("%2F", "/"))
}

/// Debian installs it outside the `PATH` of users.
fn program() -> String {
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<_> = std::env::split_paths(&in_path).collect();
    let mut folders = in_path.iter().map(PathBuf::as_path).chain([Path::new("/usr/sbin")]);
    let found = folders.find(|socket_dir| socket_dir.join("pgbouncer").exists());
    let found = found.expect("PgBouncer is installed: apt-get install pgbouncer");
    found.join("pgbouncer").display().to_string()
}

async fn reviewed(server: &Server, desk: &Desk) -> String {
    let path = format!("/api/share-links/{}/reviews", desk.link);
    let anchor = json!({ "start": 0, "end": 4, "quote": "Dear" });
    let body = json!({ "anchor": anchor, "body": "why?", "suggestion": "Dearest" });
    let review = server.post(&desk.reviewer, &path, body).await.ok(201);
    format!("{path}/{}", review["id"].as_str().expect("an id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_in_session_mode_edits_are_saved_and_reviews_delivered() {
    let postgres = postgres_server::shared();
    let (pooler, name) = (Pooler::before(postgres, "session").await, postgres.empty().await);
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let url = pooler.url(&name);
    let mut server = Server::in_folder(folder, &[("DATABASE__URL", url.as_str())]).await;
    let desk = server.desk("Dear").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.append(" Sir");
    writer.saved().await;
    reviewer.reads("Dear Sir").await;
    let review = reviewed(&server, &desk).await;
    writer.event("review.created").await;
    server.post(&desk.writer, &format!("{review}/accept"), json!({})).await.ok(200);
    for peer in [&writer, &reviewer] {
        peer.reads("Dearest Sir").await;
    }
    let ready = server.http.get(format!("{}/readyz", server.url)).send().await;
    assert_eq!(ready.expect("an answer").status(), 200);

    // The pooler gives the backends of the killed server to the next one.
    server.kill().await;
    server.start_again().await;
    assert_eq!(server.text(&desk.writer, &desk.document).await, "Dearest Sir");
}

/// Goal: the bound of a lock wait is in force behind a pooler too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_behind_a_pooler_a_locked_row_delays_only_its_own_document() {
    let postgres = postgres_server::shared();
    let (pooler, name) = (Pooler::before(postgres, "session").await, postgres.empty().await);
    let server = Server::with(&[("DATABASE__URL", &pooler.url(&name))]).await;
    let (stuck, free) = (server.desk("").await, server.desk("").await);
    let (one, two) = (server.writer(&stuck).await, server.writer(&free).await);
    let mut other = locked_row(&postgres.url(&name), &stuck.document).await;
    type_beside_a_locked_row(&one, &two).await;
    assert_eq!(one.is_saved_to(), 0, "the row is locked still");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    one.saved().await;
}

#[tokio::test]
async fn a_pooler_in_transaction_mode_ends_the_start_with_a_line_that_names_the_remedy() {
    let postgres = postgres_server::shared();
    let (pooler, name) = (Pooler::before(postgres, "transaction").await, postgres.empty().await);
    let folder = tempfile::tempdir().expect("a folder");
    let url = pooler.url(&name);
    let settings =
        [("GALLEY_DATABASE__URL", url.as_str()), ("GALLEY_SERVER__LISTEN", "127.0.0.1:0")];
    for command in ["migrate", "serve"] {
        let ran = galley_with(folder.path(), &[command], &settings).await;
        assert_eq!(ran.code(), Some(1), "{command}: {}", ran.complaint());
        let complaint = ran.complaint();
        for part in ["a pooler in transaction mode", "pool_mode = session"] {
            assert!(complaint.contains(part), "{command}: {complaint}");
        }
    }
    let mut stranger = postgres.stranger(&name).await;
    let tables: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            .fetch_one(&mut stranger)
            .await
            .expect("readable");
    assert_eq!(tables, 0, "the database is unchanged");
}
