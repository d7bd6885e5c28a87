//! A released migration is never edited: databases have run it, and refuse to start with another text.

use std::fmt::Write as _;

use sqlx::AssertSqlSafe;

use crate::storage::database::{Desk, Stranger};

crate::storage::on_both_engines! {
    migrations:
    a_released_migration_has_the_checksum_of_its_release
}

/// The engine, the number and the begin of the checksum of each migration. A new migration adds its line.
const RELEASED: &str = include_str!("../../data/upgrade/migrations.txt");

pub(crate) async fn a_released_migration_has_the_checksum_of_its_release(desk: Desk) {
    let mut stranger = desk.location.stranger().await;
    let (engine, sum) = match &stranger {
        Stranger::Sqlite(_) => ("sqlite", "lower(hex(substr(checksum, 1, 16)))"),
        Stranger::Postgres(_) => ("postgres", "encode(substr(checksum, 1, 16), 'hex')"),
    };
    let sql = format!("SELECT version, {sum} FROM _sqlx_migrations ORDER BY version");
    let rows: Vec<(i64, String)> = match &mut stranger {
        Stranger::Sqlite(connection) => {
            sqlx::query_as(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap()
        }
        Stranger::Postgres(connection) => {
            sqlx::query_as(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap()
        }
    };
    let mut here = String::new();
    for (version, checksum) in rows {
        let _infallible = writeln!(here, "{engine} {version} {checksum}");
    }
    let released: String =
        RELEASED.split_inclusive('\n').filter(|line| line.starts_with(engine)).collect();
    assert_eq!(here, released, "a change of the schema is a migration of its own, and a new line");
}
