//! Behaviour of PostgreSQL only: session settings, concurrent creation of the schema, dead
//! connections.

use crate::storage::database::{
    ALL, Desk, Seated, append_one, at, document_of, edit, floor, new_document, new_link,
    new_review, ratify, user, within,
};
use crate::storage::proxy::Proxy;
use crate::storage::reviews::review_of;
use galley::storage::Storage;
use galley::storage::error::StorageError;
use galley::storage::log::{Append, Appended};
use galley::storage::reviews::ReviewChange;
use galley::storage::seats::Ratified;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::task::JoinSet;

use crate::support::postgres_server::{Server, locked_row, shared};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_concurrent_opens_of_an_empty_database_succeed() {
    for _ in 0..3 {
        let url = shared().url(&shared().empty().await);
        let opening = futures_util::future::join_all((0..8).map(|_| Storage::open(&url)));
        for opened in within(opening).await {
            opened.unwrap().check().await.unwrap();
        }
    }
}

/// Goal: a server that finds a migration in progress waits for it and then uses the schema. If the
/// migrating connection dies, PostgreSQL rolls it back, and the waiting server creates the schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_an_open_waits_for_a_migration_in_progress() {
    let name = shared().empty().await;
    let mut other = shared().stranger(&name).await;
    let begin = "BEGIN; SELECT pg_advisory_xact_lock(x'47414c5947414c59'::bigint); \
                 CREATE TABLE documents (id text)";
    sqlx::raw_sql(begin).execute(&mut other).await.unwrap();
    let url = shared().url(&name);
    let mut opening = JoinSet::new();
    opening.spawn(async move { Storage::open(&url).await });
    let mut third = shared().stranger(&name).await;
    let waits = async {
        let waiting = "SELECT count(*) FROM pg_locks \
                       WHERE locktype = 'advisory' AND NOT granted AND database = \
                       (SELECT oid FROM pg_database WHERE datname = current_database())";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut third).await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
    };
    within(waits).await;
    assert!(opening.try_join_next().is_none());
    // The connection dies before its commit.
    drop(other);
    let opened = within(opening.join_all()).await.remove(0);
    opened.unwrap().check().await.unwrap();
}

/// Goal: settings of the role or the database do not weaken D4.
#[tokio::test]
async fn d4_every_connection_has_the_required_settings() {
    let name = shared().empty().await;
    let mut owner = shared().stranger(&name).await;
    for setting in [
        "synchronous_commit = off",
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_read_only = on",
        "statement_timeout = 0",
        "lock_timeout = 0",
        "idle_in_transaction_session_timeout = 0",
    ] {
        let alter = AssertSqlSafe(format!("ALTER DATABASE {name} SET {setting}"));
        sqlx::raw_sql(alter).execute(&mut owner).await.unwrap();
    }
    let storage = Storage::open(&shared().url(&name)).await.unwrap();
    let spy = "CREATE TABLE spied (operation text, setting text); \
         CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           INSERT INTO spied SELECT TG_TABLE_NAME, name || '=' || setting FROM pg_settings \
           WHERE name IN ('synchronous_commit', 'transaction_isolation', 'statement_timeout', \
             'lock_timeout', 'idle_in_transaction_session_timeout', 'application_name'); \
           RETURN NULL; END $$; \
         CREATE TRIGGER spy AFTER INSERT ON updates EXECUTE FUNCTION spy(); \
         CREATE TRIGGER spy AFTER INSERT ON documents EXECUTE FUNCTION spy()";
    sqlx::raw_sql(spy).execute(&mut owner).await.unwrap();
    let document = document_of(&storage, &user("kim")).await;
    append_one(&storage, edit(document, "x")).await;
    for operation in ["updates", "documents"] {
        let spied: Vec<String> =
            sqlx::query_scalar("SELECT setting FROM spied WHERE operation = $1 ORDER BY 1")
                .bind(operation)
                .fetch_all(&mut owner)
                .await
                .unwrap();
        let expected = [
            "application_name=galley",
            "idle_in_transaction_session_timeout=15000",
            if operation == "updates" { "lock_timeout=400" } else { "lock_timeout=5000" },
            "statement_timeout=10000",
            "synchronous_commit=on",
            "transaction_isolation=read committed",
        ];
        assert_eq!(spied, expected, "{operation}");
    }
}

/// Goal: a probe each second reads no table, and a database that a restore set back to an older schema is
/// noticed after the reconnect.
#[tokio::test]
async fn a_probe_compares_the_schema_after_a_reconnect_only() {
    let name = shared().empty().await;
    let storage = Storage::open(&shared().url(&name)).await.unwrap();
    storage.check().await.unwrap();
    let mut owner = shared().stranger(&name).await;
    let set_back = "UPDATE _sqlx_migrations SET version = version - 1000";
    sqlx::raw_sql(set_back).execute(&mut owner).await.unwrap();
    storage.check().await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(end).execute(&mut owner).await.unwrap();
    for _ in 0..2 {
        let error = storage.check().await.unwrap_err();
        assert!(matches!(error, StorageError::Unsupported(_)), "{error:?}");
        assert!(error.to_string().contains("this galley needs"), "{error}");
    }
    let restore = "UPDATE _sqlx_migrations SET version = version + 1000";
    sqlx::raw_sql(restore).execute(&mut owner).await.unwrap();
    storage.check().await.unwrap();
}

#[tokio::test]
async fn a_foreign_database_is_rejected_and_unchanged() {
    for table in ["users", "_sqlx_migrations"] {
        let name = shared().empty().await;
        let mut other = shared().stranger(&name).await;
        let create = AssertSqlSafe(format!("CREATE TABLE {table} (version bigint)"));
        sqlx::raw_sql(create).execute(&mut other).await.unwrap();
        let error = Storage::open(&shared().url(&name)).await.unwrap_err();
        assert!(matches!(error, StorageError::Unsupported(_)), "{error:?}");
        assert!(error.to_string().contains("belongs to another program"), "{error}");
        let tables: Vec<String> =
            sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
                .fetch_all(&mut other)
                .await
                .unwrap();
        assert_eq!(tables, [table]);
    }
}

#[tokio::test]
async fn an_unsuitable_database_is_rejected_in_one_line() {
    let mut admin = shared().stranger("postgres").await;
    let create = "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'";
    sqlx::raw_sql(create).execute(&mut admin).await.unwrap();
    let nowhere = "postgres://kim:secret@%2Fnowhere/galley".to_owned();
    let cases = [
        (shared().url("latin"), "its encoding is LATIN1"),
        (shared().url("missing"), "does not exist"),
        (shared().url("postgres").replace("galley@", "kim:secret@"), "kim"),
        (nowhere, "out of reach"),
    ];
    for (url, expected) in cases {
        let line = Storage::open(&url).await.unwrap_err().to_string();
        assert!(line.contains(expected), "{line}");
        assert!(!line.contains('\n') && !line.contains("secret"), "{line}");
    }
}

/// Goal: an edit updates no index of its document (a HOT update). So dead rows cost later edits
/// nothing.
#[tokio::test]
async fn an_edit_updates_no_index_of_its_document() {
    let desk = Desk::postgres().await;
    let document = desk.document().await;
    for _ in 0..50 {
        desk.append(edit(document, "x")).await;
    }
    // A closing connection sends its statistics.
    desk.storage.close().await;
    let mut other = crate::support::postgres_server::stranger(&desk.location.url()).await;
    let counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables \
                  WHERE relname = 'documents'";
    let counted = async {
        let mut counted = (0, 0);
        while counted.0 < 50 {
            counted = sqlx::query_as(counts).fetch_one(&mut other).await.unwrap();
            tokio::task::yield_now().await;
        }
        counted
    };
    let (all, hot): (i64, i64) = within(counted).await;
    assert_eq!(all, hot);
}

/// Goal: after a restart of PostgreSQL only the calls in flight fail, although every old connection
/// is dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_call_reconnects_to_a_restarted_server() {
    let server = Server::careless();
    let url = server.url(&server.empty().await);
    let storage = Storage::open(&url).await.unwrap();
    let document = document_of(&storage, &user("kim")).await;
    for seq in 1..=3 {
        // Several connections, all idle when the server stops.
        let reads = (0..6).map(|_| storage.document(document));
        futures_util::future::join_all(reads).await;
        assert_eq!(append_one(&storage, edit(document, "x")).await, Appended::Stored { seq });
        server.stop();
        let away = within(storage.document(document)).await;
        assert!(matches!(away, Err(StorageError::Unavailable(_))), "{away:?}");
        let away = within(storage.append(&[edit(document, "y")])).await;
        assert!(matches!(away, Err(StorageError::Unavailable(_))), "{away:?}");
        server.start_again().await;
    }
    let reads = (0..6).map(|_| storage.document(document));
    futures_util::future::join_all(reads).await;
    server.stop();
    server.start_again().await;
    // All connections are dead, and the pool has no notice of it.
    storage.rename_document(document, "after", at(9)).await.unwrap();
}

/// Goal: the drop of a call's future at any point leaves no lock and no partial change.
#[tokio::test]
async fn a_dropped_call_leaves_no_lock_and_no_partial_change() {
    let desk = Desk::postgres().await;
    let document = desk.document().await;
    for polls in 0..40 {
        let batch = [edit(document, "x")];
        poll_some(polls, desk.storage.append(&batch)).await;
        poll_some(polls, desk.storage.rename_document(document, "half", at(3))).await;
        poll_some(polls, desk.storage.find_or_create_link(&new_link(document))).await;
        let next = within(desk.storage.append(&[edit(document, "y")])).await.unwrap();
        assert!(matches!(next[..], [Appended::Stored { .. }]), "{next:?}");
    }
    let log = desk.storage.log(document).await.unwrap().unwrap();
    assert_eq!(i64::try_from(log.parts.len()), Ok(log.seq));
}

/// Polls a future at most `polls` times, then drops it.
async fn poll_some(mut polls: u32, future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        if polls == 0 {
            return std::task::Poll::Ready(());
        }
        polls -= 1;
        future.as_mut().poll(context).map(|_| ())
    })
    .await;
}

/// Goal: the database rejects an edit under a fence if a new fence, an eviction or a revocation
/// commits before the edit's write. The check and the write are atomic.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_an_edit_that_waits_for_the_row_is_rejected_under_a_new_fence() {
    for change in ["ratify", "vacate", "revoke"] {
        let desk = Desk::postgres().await;
        let seated = desk.seated().await;
        let mut other = crate::support::postgres_server::stranger(&desk.location.url()).await;
        let lock = "BEGIN; SELECT 1 FROM documents FOR UPDATE";
        sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
        // A transaction sees a frozen `pg_stat_activity`, so a separate connection reads it.
        let mut watcher = crate::support::postgres_server::stranger(&desk.location.url()).await;
        let (storage, seat) = (desk.another().await, seated.writer.seat);
        let (mut changing, mut appending) = (JoinSet::new(), JoinSet::new());
        changing.spawn(async move {
            match change {
                "ratify" => drop(ratify(&storage, seat, 30).await),
                "vacate" => storage.vacate(seat, seated.writer.fence).await.unwrap(),
                _ => assert!(storage.revoke_link(seated.link, at(5)).await.unwrap()),
            }
        });
        waiting_for_locks(&mut watcher, 1).await;
        // The edit reads without waiting, then queues behind the change for the row lock.
        let append = Append { guard: Some(seated.writer), ..edit(seated.document, "late") };
        let storage = desk.storage.clone();
        appending.spawn(async move { append_one(&storage, append).await });
        waiting_for_locks(&mut watcher, 2).await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();

        within(changing.join_all()).await;
        assert_eq!(within(appending.join_all()).await, [Appended::Fenced], "{change}");
        assert_eq!(desk.text(seated.document).await, b"");
    }
}

/// The window between the two round trips of a group: the read is done, and the statement is not
/// sent yet. A change of the fence in that window makes the statement reject the edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_an_edit_read_before_a_new_fence_is_rejected_after_it() {
    for change in ["ratify", "vacate", "revoke"] {
        let desk = Desk::postgres().await;
        let seated = desk.seated().await;
        let proxy = Proxy::to(&desk.location.url());
        let far = within(Storage::open(&proxy.url())).await.unwrap();
        // This edit prepares the statements of the connection.
        let first = Append { guard: Some(seated.writer), ..edit(seated.document, "first") };
        assert!(matches!(append_one(&far, first).await, Appended::Stored { .. }));
        let before = desk.text(seated.document).await;

        proxy.hold(&seated.document.to_string());
        let append = Append { guard: Some(seated.writer), ..edit(seated.document, "late") };
        let mut appending = JoinSet::new();
        appending.spawn(async move { append_one(&far, append).await });
        within(proxy.holds()).await;
        match change {
            "ratify" => drop(ratify(&desk.storage, seated.writer.seat, 30).await),
            "vacate" => {
                desk.storage.vacate(seated.writer.seat, seated.writer.fence).await.unwrap();
            }
            _ => assert!(desk.storage.revoke_link(seated.link, at(5)).await.unwrap()),
        }
        proxy.heal();

        assert_eq!(within(appending.join_all()).await, [Appended::Fenced], "{change}");
        assert_eq!(desk.text(seated.document).await, before);
    }
}

/// The database has committed the change, and its reply is lost. A second run would change the review again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_commit_has_no_reply_runs_once() {
    let desk = Desk::postgres().await;
    let seated = desk.seated().await;
    let review = new_review(seated.link);
    desk.storage.create_review(&review, seated.reviewer).await.unwrap();
    let proxy = Proxy::to(&desk.location.url());
    let far = within(Storage::open(&proxy.url())).await.unwrap();
    proxy.hold("COMMIT");
    let mut changing = JoinSet::new();
    changing.spawn(async move {
        let change = ReviewChange { body: Some("once".to_owned()), ..ReviewChange::default() };
        let (link, guard) = (seated.link, seated.reviewer);
        far.change_review(link, review.id, &change, None, guard, at(5)).await.is_ok()
    });
    within(proxy.holds()).await;
    proxy.cut();
    assert_eq!(within(changing.join_all()).await, [false], "the caller learns that it is unknown");
    let stored = review_of(&desk.storage, seated.link, review.id).await;
    assert_eq!(stored.map(|it| (it.version, it.body)), Some((2, "once".to_owned())));
}

/// Waits until `wanted` statements of Galley wait for a lock in this database.
async fn waiting_for_locks(connection: &mut PgConnection, wanted: i64) {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND application_name = 'galley' AND wait_event_type = 'Lock'";
    let waiting = async {
        while sqlx::query_scalar::<_, i64>(count).fetch_one(&mut *connection).await.unwrap()
            != wanted
        {
            tokio::task::yield_now().await;
        }
    };
    within(waiting).await;
}

/// Goal: a grant whose document another transaction has locked waits outside of the group of grants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_locked_row_delays_only_the_grant_of_its_own_document() {
    let desk = Desk::postgres().await;
    let (stuck, free) = (desk.seated().await, desk.seated().await);
    let other = locked_row(&desk.location.url(), &stuck.document.to_string()).await;
    let (storage, mut waiting) = (desk.storage.clone(), JoinSet::new());
    waiting.spawn(async move { ratify(&storage, stuck.writer.seat, 30).await });
    let mut watcher = crate::support::postgres_server::stranger(&desk.location.url()).await;
    waiting_for_locks(&mut watcher, 1).await;
    let ratified = within(ratify(&desk.storage, free.writer.seat, 30)).await;
    assert_eq!(ratified, Ratified::Accepted);
    other.close().await.unwrap();
    assert_eq!(within(waiting.join_all()).await, [Ratified::Accepted]);
}

/// Writes groups to all of these documents. Ratifies grants and creates reviews on the first.
async fn write_all(storage: Storage, documents: Vec<Seated>) {
    let batch: Vec<_> = documents.iter().map(|seated| edit(seated.document, "x")).collect();
    let seated = documents[0];
    for _ in 0..15 {
        let mut batch = batch.clone();
        while !batch.is_empty() {
            let outcomes = storage.append(&batch).await.unwrap();
            // On a busy machine a transaction may lock a document for longer than an edit waits.
            let is_busy = |at: usize| outcomes[at] == Appended::Busy;
            let is_stored = |at: usize| matches!(outcomes[at], Appended::Stored { .. });
            assert!((0..batch.len()).all(|at| is_stored(at) || is_busy(at)), "{outcomes:?}");
            batch =
                (0..batch.len()).filter(|at| is_busy(*at)).map(|at| batch[at].clone()).collect();
        }
        let fence = floor(&storage, seated.writer.seat).await.0 + 1;
        ratify(&storage, seated.writer.seat, fence).await;
        storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap();
    }
}

/// Goal: groups of two servers and all other transactions that lock documents never deadlock, in
/// any order of the documents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_groups_over_the_same_documents_in_any_order_never_deadlock() {
    let desk = Desk::postgres().await;
    let mut documents = Vec::new();
    for _ in 0..6 {
        documents.push(desk.seated().await);
    }
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let (storage, mut documents) = (handles[number % 2].clone(), documents.clone());
        documents.rotate_left(number % 6);
        if number % 3 == 0 {
            documents.reverse();
        }
        tasks.spawn(write_all(storage, documents));
    }
    within(tasks.join_all()).await;
    for seated in documents {
        assert_eq!(desk.storage.log(seated.document).await.unwrap().unwrap().seq, 8 * 15);
    }
    let mut admin = shared().stranger("postgres").await;
    let name = desk.location.url().rsplit('/').next().unwrap().to_owned();
    let deadlocks: i64 =
        sqlx::query_scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = $1")
            .bind(name)
            .fetch_one(&mut admin)
            .await
            .unwrap();
    admin.close().await.unwrap();
    assert_eq!(deadlocks, 0);
}

/// Goal: a group larger than the limit of a statement is stored in several statements.
#[tokio::test]
async fn a_group_too_large_for_one_statement_is_stored_in_several() {
    let desk = Desk::postgres().await;
    let document = desk.document().await;
    let batch: Vec<_> = (0..5_u8).map(|byte| edit(document, vec![byte; 6 << 20])).collect();
    let outcomes = desk.storage.append(&batch).await.unwrap();
    assert_eq!(outcomes, [1, 2, 3, 4, 5].map(|seq| Appended::Stored { seq }));
    let log = desk.storage.log(document).await.unwrap().unwrap();
    assert!(log.parts.iter().zip(0..5_u8).all(|(part, byte)| part[0] == byte));
    assert_eq!(log.parts.concat().len(), 30 << 20);
}

/// Goal: text with U+0000, which PostgreSQL's `text` cannot store, survives a round trip.
#[tokio::test]
async fn text_with_a_nul_is_stored_unchanged() {
    let desk = Desk::postgres().await;
    let title = "a\0b\u{10FFFF}0";
    let new = galley::storage::documents::NewDocument {
        title: title.to_owned(),
        ..new_document(&user("kim"), at(0))
    };
    assert_eq!(desk.storage.create_document(&new).await.unwrap().title, title);
    let again = desk.storage.rename_document(new.id, "\0", at(1)).await.unwrap().unwrap();
    assert_eq!(again.title, "\0");
    assert_eq!(desk.storage.document(new.id).await.unwrap().unwrap().title, "\0");
}

/// Goal: a blocked merge delays no edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d5_a_blocked_merge_delays_no_edit() {
    let desk = Desk::postgres().await;
    let document = desk.document().await;
    for text in ["a", "b"] {
        desk.append(edit(document, text)).await;
    }
    desk.storage.compact(document, 1, &bytes::Bytes::from_static(b"a"), ALL).await.unwrap();
    let mut other = crate::support::postgres_server::stranger(&desk.location.url()).await;
    let lock = "BEGIN; SELECT 1 FROM snapshots FOR UPDATE";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let mut watcher = crate::support::postgres_server::stranger(&desk.location.url()).await;
    let (storage, mut merging) = (desk.another().await, JoinSet::new());
    merging.spawn(async move {
        storage.compact(document, 2, &bytes::Bytes::from_static(b"ab"), ALL).await.unwrap();
    });
    waiting_for_locks(&mut watcher, 1).await;
    for seq in 3..10 {
        assert_eq!(desk.append(edit(document, "x")).await, Appended::Stored { seq });
    }
    assert!(merging.try_join_next().is_none(), "the merge was blocked for the whole loop");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    within(merging.join_all()).await;
    assert_eq!(desk.text(document).await, b"abxxxxxxx");
}
