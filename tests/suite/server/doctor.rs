//! `galley doctor` and `galley healthcheck`.

use std::path::Path;

use sqlx::AssertSqlSafe;

use crate::server::commands::{Ran, galley, galley_with};
use crate::support::galley_process::Server;
use crate::support::{postgres_server, redis_server};

/// Runs `galley doctor` with these settings and few connections, for which the limit of files suffices.
async fn doctor(folder: &Path, settings: &[(&str, &str)]) -> Ran {
    let few = [("GALLEY_LIMITS__CONNECTIONS", "100")];
    galley_with(folder, &["doctor"], &[&few[..], settings].concat()).await
}

/// Asserts exit code 2 and a line of the check with the words, and no other fault.
#[track_caller]
fn assert_fault(ran: &Ran, check: &str, words: &str) {
    let lines = ran.result();
    let faults: Vec<_> = lines.lines().filter(|line| line.starts_with("FAULT")).collect();
    assert!(
        matches!(faults.as_slice(), [one] if one.contains(check) && one.contains(words)),
        "{lines}"
    );
    assert_eq!((ran.code(), ran.complaint().as_str()), (Some(2), "faults: 1\n"));
}

#[tokio::test]
async fn the_doctor_changes_nothing_and_names_each_fault_of_postgresql_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let postgres = postgres_server::Server::start();
    let name = postgres.empty().await;
    let url = postgres.url(&name);
    let run = async |url: &str| doctor(folder.path(), &[("GALLEY_DATABASE__URL", url)]).await;

    let lines = run(&url).await.ok();
    assert!(lines.contains("database.url: the database is empty"), "{lines}");
    assert!(
        lines.lines().all(|line| line.starts_with("ok ")) && lines.lines().count() == 4,
        "{lines}"
    );
    let mut admin = postgres.stranger(&name).await;
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut admin).await.expect("read");
    assert_eq!((tables, folder.path().read_dir().expect("readable").count()), (0, 0));

    let settings = [("GALLEY_DATABASE__URL", url.as_str())];
    galley_with(folder.path(), &["migrate"], &settings).await.ok();
    let lines = run(&url).await.ok();
    assert!(lines.contains("the database has schema "), "{lines}");
    let mut sql = async |text: &str| {
        sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut admin).await.expect("executed");
    };

    // A user that does not own the tables.
    sql("CREATE ROLE clerk LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk; \
         GRANT ALL ON SCHEMA public TO clerk")
    .await;
    let of_clerk = url.replace("galley@", "clerk@");
    assert_fault(&run(&of_clerk).await, "database.url", "OWNER TO");
    sql("GRANT galley TO clerk").await;
    run(&of_clerk).await.ok();

    sql("UPDATE _sqlx_migrations SET version = 999 WHERE version = 23").await;
    assert_fault(&run(&url).await, "database.url", "use the galley that wrote it");
    let careless = postgres_server::shared();
    let risky = careless.url(&careless.empty().await);
    assert_fault(&run(&risky).await, "database.url", "fsync is off");
    let nowhere = format!("postgres://galley@127.0.0.1:{}/x", redis_server::free_port());
    assert_fault(&run(&nowhere).await, "database.url", "see whether it runs");
}

#[tokio::test]
async fn the_doctor_names_each_fault_of_redis_files_and_proxy_with_its_remedy() {
    let mut redis = redis_server::Server::start().await;
    let locks = redis.url();
    let server = Server::with(&[("LOCKS__URL", &locks), ("DATABASE__SHARED_SQLITE", "true")]).await;
    let run = async |more: &[(&str, &str)]| {
        let own = [("GALLEY_LOCKS__URL", &*locks), ("GALLEY_DATABASE__SHARED_SQLITE", "true")];
        doctor(server.folder(), &[&own[..], more].concat()).await
    };

    let lines = run(&[]).await.ok();
    assert!(lines.contains("the clock of Redis is ") && lines.lines().count() == 5, "{lines}");
    assert_fault(
        &run(&[("GALLEY_LIMITS__CONNECTIONS", "1000000")]).await,
        "limits.connections",
        "LimitNOFILE",
    );
    let nowhere = format!("http://127.0.0.1:{}", redis_server::free_port());
    fn public_url(url: &str) -> [(&str, &str); 1] {
        [("GALLEY_SERVER__PUBLIC_URL", url)]
    }
    assert_fault(&run(&public_url(&nowhere)).await, "server.public_url", "leads to the proxy");
    let own = run(&public_url(&server.url)).await.ok();
    assert!(own.contains("leads to a server with these settings"), "{own}");

    let _: String = redis.run("ACL SETUSER default resetchannels").await;
    assert_fault(&run(&[]).await, "locks.url", "+@all");
    let _: String = redis.run("ACL SETUSER default allchannels -eval -evalsha").await;
    assert_fault(&run(&[]).await, "locks.url", "+@all");
    let _: String = redis.run("ACL SETUSER default +@all").await;
    let _: String = redis.run("CONFIG SET maxmemory-policy allkeys-lru").await;
    assert_fault(&run(&[]).await, "locks.url", "noeviction");
    redis.stop().await;
    assert_fault(&run(&[]).await, "locks.url", "see whether it runs");
    std::fs::write(server.folder().join("data/galley.db"), "no database").expect("written");
    let lines = run(&[]).await.result();
    assert!(lines.contains("FAULT  database.url: "), "{lines}");
}

#[tokio::test]
async fn a_healthcheck_exits_with_1_and_the_cause_where_the_server_does_not_answer_with_200() {
    let redis = redis_server::free_port();
    let locks = format!("redis://127.0.0.1:{redis}");
    let mut server =
        Server::with(&[("LOCKS__URL", &locks), ("DATABASE__SHARED_SQLITE", "true")]).await;
    let folder = tempfile::tempdir().expect("a folder");
    // The port of all interfaces, as in a container.
    let listen = format!("0.0.0.0:{}", server.url.rsplit(':').next().expect("a port"));
    let run = async |more: &[&str]| {
        galley(folder.path(), &[&["healthcheck", "--listen", &listen], more].concat()).await
    };
    assert_eq!(run(&[]).await.ok(), "");
    let ran = run(&["--ready"]).await;
    assert_eq!(ran.code(), Some(1));
    assert!(
        ran.complaint().contains("\"locks\"") && ran.complaint().contains("/readyz"),
        "{}",
        ran.complaint()
    );
    server.kill().await;
    let ran = run(&[]).await;
    assert_eq!(ran.code(), Some(1));
    assert!(ran.complaint().contains("refused"), "{}", ran.complaint());
    assert_eq!(folder.path().read_dir().expect("readable").count(), 0, "it creates nothing");
}
