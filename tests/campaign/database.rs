//! The campaign's own connection to PostgreSQL: records what is committed, sets documents back,
//! terminates the servers' back ends, and reads texts without any server of Galley's.

use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::yjs::log::UpdateLog;
use galley::yjs::text::Text;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::history::{Recorder, What, marks_in, written};
use crate::support::postgres_server;

/// The database of one round.
pub(crate) struct Database {
    pub(crate) postgres: postgres_server::Server,
    pub(crate) name: String,
}

/// Kind, milliseconds of Unix time, document, link, role, number, fence, session, bytes.
type Line = (
    String,
    i64,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<Vec<u8>>,
);

impl Database {
    pub(crate) async fn start() -> Self {
        let postgres = postgres_server::Server::start();
        let name = postgres.empty().await;
        // The schema of Galley first: the triggers stand on its tables.
        Storage::open(&postgres.url(&name)).await.expect("a schema").close().await;
        let database = Self { postgres, name };
        database.run(include_str!("record.sql")).await;
        database
    }

    pub(crate) fn url(&self) -> String {
        self.postgres.url(&self.name)
    }

    /// The file of PostgreSQL's socket.
    pub(crate) fn socket(&self) -> std::path::PathBuf {
        let url = self.url();
        let (_, rest) = url.split_once('@').expect("a host");
        let (host, _) = rest.split_once('/').expect("a database");
        std::path::Path::new(&host.replace("%2F", "/")).join(".s.PGSQL.5432")
    }

    async fn run(&self, sql: &str) {
        let mut connection = self.connection().await;
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::raw_sql(sql).execute(&mut connection).await.expect("it runs");
        connection.close().await.expect("closed");
    }

    async fn connection(&self) -> PgConnection {
        self.postgres.stranger(&self.name).await
    }

    pub(crate) async fn terminate_back_ends(&self) {
        self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE application_name = 'galley'",
        )
        .await;
    }

    /// Deletes the last rows of a document, with their numbers, as the loss of the last commits
    /// does. Returns their marks; none if the server has merged them already.
    pub(crate) async fn set_back(&self, document: &str, rows: i64) -> Vec<String> {
        let mut connection = self.connection().await;
        let mut tx = connection.begin().await.expect("a transaction");
        let last: i64 =
            sqlx::query_scalar("SELECT last_seq FROM documents WHERE id = $1 FOR UPDATE")
                .bind(document)
                .fetch_one(&mut *tx)
                .await
                .expect("the document");
        let lost: Vec<Vec<u8>> = sqlx::query_scalar(
            "DELETE FROM updates WHERE document_id = $1 AND $2 < seq RETURNING bytes",
        )
        .bind(document)
        .bind(last - rows)
        .fetch_all(&mut *tx)
        .await
        .expect("deleted");
        sqlx::query("UPDATE documents SET last_seq = $2 WHERE id = $1")
            .bind(document)
            .bind(last - i64::try_from(lost.len()).expect("few"))
            .execute(&mut *tx)
            .await
            .expect("updated");
        tx.commit().await.expect("committed");
        lost.iter().flat_map(|bytes| marks_in(&String::from_utf8_lossy(bytes))).collect()
    }

    /// The marks of a document, in order; none if there is no such document.
    pub(crate) async fn reads(&self, document: &str) -> Option<Vec<String>> {
        let storage = Storage::open(&self.url()).await.expect("a database");
        let id: DocumentId = document.parse().expect("an id");
        let log = storage.log(id).await.expect("readable");
        storage.close().await;
        let text = match UpdateLog::open(log?.parts) {
            Ok(mut log) => Text::build(&log.merged()).expect("a text").content(),
            Err(error) => written(&format!("damaged: {error}")),
        };
        Some(marks_in(&text))
    }

    /// Adds to the history what the triggers recorded.
    pub(crate) async fn record(&self, recorder: &Recorder) {
        let mut connection = self.connection().await;
        let lines: Vec<Line> = sqlx::query_as(
            "SELECT kind, (extract(epoch FROM at) * 1000)::int8, document, link, role, seq, fence, session, bytes \
             FROM campaign.log ORDER BY id",
        )
        .fetch_all(&mut connection)
        .await
        .expect("readable");
        for (kind, at, document, link, role, seq, fence, session, bytes) in lines {
            let text = || String::from_utf8_lossy(bytes.as_deref().unwrap_or_default());
            let (document, link) = (document.unwrap_or_default(), link.unwrap_or_default());
            let what = match kind.as_str() {
                "row" => {
                    let marks = marks_in(&text());
                    What::Row { document, seq: seq.expect("a number"), session, fence, marks }
                }
                "ratified" => What::Ratified {
                    link,
                    role: role.expect("a role"),
                    fence: fence.expect("a fence"),
                    session: session.expect("a session"),
                },
                "revoked" => What::Revoked { link },
                "deleted" => What::Deleted { document },
                "accepted" => {
                    let marks = marks_in(&text());
                    let mark = marks.last().cloned().expect("a mark is suggested");
                    What::Accepted { document, mark }
                }
                other => panic!("no trigger records {other}"),
            };
            recorder.note_then(at, what);
        }
    }
}
