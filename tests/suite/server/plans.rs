//! Every statement about a table that grows has an index for its plan.
//!
//! `auto_explain` logs the plan of each statement that runs, those of triggers included. The planner avoids a
//! sequential scan wherever an index applies (`enable_seqscan = off`), joins by index alone, and plans for any
//! value of the parameters, so a plan does not depend on how few rows the tables of a test have. Two tables have
//! partial indexes with most of their rows: these get rows.

use std::collections::BTreeSet;

use galley::domain::ids::ShareLinkId;
use serde_json::Value;

use crate::server::acts;
use crate::server::delivery::QUICK;
use crate::server::operation_fixtures::Users;
use crate::server::operations::Case;
use crate::server::person_fixtures::{Whole, done};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::ws_client::Peer;

/// Tables that may be read whole: of one row, waiters who have just left (the batch of reminders deletes them),
/// caches with a limit of files and of bytes, an outbox that deliveries empty, and receipts of a month.
const BOUNDED: [&str; 7] = [
    "absent_waiters",
    "audit_retention",
    "export_pieces",
    "exports",
    "installation_root",
    "user_deletions",
    "webhooks",
];

/// The planner has a sequential scan where no index applies, and joins by index alone.
const BY_INDEX: &str = "enable_seqscan = off\nenable_hashjoin = off\nenable_mergejoin = off\n\
                        cpu_tuple_cost = 100\ncpu_index_tuple_cost = 100\n\
                        plan_cache_mode = force_generic_plan\n";
/// Words of the statements of a join.
const JOIN: [&str; 3] = ["named_at", "INSERT INTO seats", "SKIP LOCKED"];

/// Rows whose users and documents do not exist.
const ROWS: &str = "
    SET session_replication_role = replica;
    INSERT INTO share_links (id, document_id, invite_hash, created_at)
    SELECT 'shr_' || md5(n::text), 'doc_' || md5(n::text), decode(repeat('00', 32), 'hex'), now()
    FROM generate_series(1, 20000) AS n;
    INSERT INTO review_requests
        (id, sender_id, receiver_id, sender_role, state, created_at, expires_at)
    SELECT 'req_' || md5(n::text), 'usr_a' || n, 'usr_b' || n, 'writer', 'pending', now(),
        now() + interval '1 day'
    FROM generate_series(1, 20000) AS n;
    ANALYZE share_links, review_requests;
";

/// The scans of a plan that read a table whole: its node and its table.
fn whole_scans(plan: &Value, found: &mut Vec<(String, String)>) {
    let word = |name: &str| plan[name].as_str().unwrap_or_default().to_owned();
    let (node, table) = (word("Node Type"), word("Relation Name"));
    let is_conditional =
        ["Index Cond", "Recheck Cond", "TID Cond"].iter().any(|it| plan[it].is_string());
    if node.contains("Scan") && !table.is_empty() && !is_conditional {
        found.push((node, table));
    }
    for part in plan["Plans"].as_array().into_iter().flatten() {
        whole_scans(part, found);
    }
}

/// The plans of a log of `auto_explain`: an indented JSON object behind each head.
fn plans(log: &str) -> impl Iterator<Item = Value> {
    log.split(" plan:\n").skip(1).map(|rest| {
        let lines: String = rest.lines().take_while(|line| line.starts_with('\t')).collect();
        serde_json::from_str(&lines).expect("a plan")
    })
}

/// Goal: no statement of any operation, of its reads, of an export or of a deletion reads a growing table
/// whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reads_a_growing_table_without_an_index() {
    let postgres = postgres_server::Server::explaining(BY_INDEX);
    let url = postgres.url(&postgres.empty().await);
    let server = Server::with(&[QUICK[0], QUICK[1], ("DATABASE__URL", &url)]).await;
    let mut stranger = postgres_server::stranger(&url).await;
    sqlx::raw_sql(ROWS).execute(&mut stranger).await.expect("rows");
    let users = Users::of(&server).await;
    for act in acts::ALL {
        let case = Case::new(act, &server, &server, &users).await;
        let (method, path, body) = case.request();
        let status = server.call(case.actor(), method, &path, body).await.status;
        assert!(status.is_success(), "{act:?}: {status}");
        case.is_committed(&server).await;
    }
    let whole = Whole::on(&server).await;
    let receipt = whole.delete(&server, "?reviews=delete").await;
    done(&server, &receipt).await;

    let (mut statements, mut bad) = (BTreeSet::new(), BTreeSet::new());
    for plan in plans(&postgres.log()) {
        let text = plan["Query Text"].as_str().expect("a statement").to_owned();
        let is_a_migration = text.starts_with("--") || text.contains("_sqlx_migrations");
        if is_a_migration || text == ROWS || !statements.insert(text.clone()) {
            continue;
        }
        let mut found = Vec::new();
        whole_scans(&plan["Plan"], &mut found);
        found.retain(|(_, table)| !BOUNDED.contains(&table.as_str()));
        bad.extend(found.into_iter().map(|(node, table)| format!("{node} of {table}: {text}\n")));
    }
    assert!(200 < statements.len(), "{} statements", statements.len());
    assert_eq!(bad, BTreeSet::new());
}

/// Goal: the plans of a join, which a connection keeps, probe an index for each seat, although the tables were
/// empty when PostgreSQL made them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_was_planned_on_empty_tables_probes_indexes() {
    let postgres = postgres_server::Server::explaining("");
    let url = postgres.url(&postgres.empty().await);
    let server = Server::with(&[("DATABASE__URL", &url)]).await;
    let (kim, nowhere) = (server.guest("Kim").await, ShareLinkId::generate().to_string());
    let refused = Peer::connect(&server.url, &nowhere, "writer", &kim.token, "events=1").await;
    assert_eq!(refused.closed().await.0, 4404);
    let desk = server.desk("").await;
    server.claim_seat(&desk, "writer", "events=1").await.event("seat.granted").await;
    let mut statements = BTreeSet::new();
    for plan in plans(&postgres.log()) {
        let text = plan["Query Text"].as_str().expect("a statement");
        if text.contains("share_links l") && JOIN.iter().any(|word| text.contains(word)) {
            let mut found = Vec::new();
            whole_scans(&plan["Plan"], &mut found);
            assert_eq!(found, [], "{text}");
            statements.insert(text.to_owned());
        }
    }
    assert_eq!(statements.len(), JOIN.len(), "{statements:?}");
}
