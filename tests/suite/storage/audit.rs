//! The audit: rows are appended, and only the retention deletes them.

use crate::storage::database::{Desk, Stranger, user};
use chrono::{TimeDelta, Utc};
use galley::storage::audit::{AUDIT_PURGED_AT_ONCE, Actor, AuditEntry, AuditQuery};
use sqlx::AssertSqlSafe;

crate::storage::on_both_engines! {
    audit:
    a_row_of_the_audit_is_neither_changed_nor_deleted
    the_retention_deletes_the_old_rows_alone
    an_act_in_the_name_of_an_unknown_user_creates_the_user
}

fn entry(target: &str) -> AuditEntry {
    AuditEntry {
        by: Actor::Server("backend".parse().expect("an id")),
        user: Some("kim".parse().expect("an id")),
        action: "DELETE /api/documents/{id}".to_owned(),
        target: target.to_owned(),
        status: None,
        request_id: "req-1".to_owned(),
        peer: "::1".to_owned(),
    }
}

fn all() -> AuditQuery {
    AuditQuery { limit: 100, ..AuditQuery::default() }
}

/// The error of a statement outside Galley.
async fn refusal(stranger: &mut Stranger, sql: &'static str) -> String {
    let sql = AssertSqlSafe(sql);
    let run = match stranger {
        Stranger::Sqlite(connection) => sqlx::raw_sql(sql).execute(connection).await.err(),
        Stranger::Postgres(connection) => sqlx::raw_sql(sql).execute(connection).await.err(),
    };
    run.map(|error| error.to_string()).unwrap_or_default()
}

pub(crate) async fn a_row_of_the_audit_is_neither_changed_nor_deleted(desk: Desk) {
    let storage = &desk.storage;
    storage.append_audit(&entry("one"), None).await.unwrap();
    let failed = AuditEntry { status: Some(404), by: Actor::Admin, user: None, ..entry("one") };
    storage.append_audit(&failed, None).await.unwrap();
    let rows = storage.audit(&all()).await.unwrap();
    assert_eq!(rows.iter().map(|row| &row.entry).collect::<Vec<_>>(), [&failed, &entry("one")]);
    assert!((Utc::now() - rows[0].at).abs() < TimeDelta::minutes(1));
    let mut stranger = desk.location.stranger().await;
    let mut statements = vec![
        "UPDATE audit SET peer = 'x'",
        "UPDATE audit SET at = at WHERE seq = 1",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE seq = 1",
    ];
    if let Stranger::Postgres(_) = stranger {
        statements.push("TRUNCATE audit");
    }
    for sql in statements {
        let refused = refusal(&mut stranger, sql).await;
        assert!(refused.contains("the audit is append-only"), "{sql}: {refused}");
    }
    assert_eq!(storage.audit(&all()).await.unwrap(), rows);
}

pub(crate) async fn the_retention_deletes_the_old_rows_alone(desk: Desk) {
    let (storage, now) = (&desk.storage, Utc::now());
    for target in ["one", "two", "three"] {
        storage.append_audit(&entry(target), None).await.unwrap();
    }
    assert_eq!(storage.purge_audit(now - TimeDelta::hours(1)).await.unwrap(), 0);
    // As if an hour passed.
    assert_eq!(storage.purge_audit(now + TimeDelta::hours(1)).await.unwrap(), 3);
    // A longer retention afterwards.
    assert_eq!(storage.purge_audit(now - TimeDelta::hours(1)).await.unwrap(), 0);
    let mut stranger = desk.location.stranger().await;
    let many = match stranger {
        Stranger::Sqlite(_) => "CAST(unixepoch('now') * 1000 AS INTEGER)",
        Stranger::Postgres(_) => "now()",
    };
    let filled = format!(
        "INSERT INTO audit (at, actor_kind, action, target, request_id, peer) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         SELECT {many}, 'admin', 'x', '', '', '' FROM n",
        AUDIT_PURGED_AT_ONCE + 1
    );
    stranger.run(filled).await;
    let soon = now + TimeDelta::hours(1);
    assert_eq!(storage.purge_audit(soon).await.unwrap(), u64::from(AUDIT_PURGED_AT_ONCE));
    assert_eq!(storage.purge_audit(soon).await.unwrap(), 1);
    assert_eq!(storage.audit(&all()).await.unwrap(), []);
}

pub(crate) async fn an_act_in_the_name_of_an_unknown_user_creates_the_user(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim"));
    storage.append_audit(&entry("one"), Some(&kim)).await.unwrap();
    assert_eq!(storage.profile_of(&kim.id).await.unwrap(), Some((kim.name.clone(), true)));
    // The first token of the user, however old, has the name.
    let renamed = galley::domain::user::User { name: "Kim Minsu".to_owned(), ..kim.clone() };
    storage.save_user(&renamed, chrono::DateTime::UNIX_EPOCH + TimeDelta::days(1)).await.unwrap();
    storage.append_audit(&entry("one"), Some(&kim)).await.unwrap();
    assert_eq!(storage.profile_of(&kim.id).await.unwrap(), Some((renamed.name, true)));
}
