//! `/api/admin/jobs`: the last runs of a job.

use serde_json::{Value, json};

use crate::server::reminder_fixtures::{QUICK, admin, report, runs};
use crate::support::galley_process::Server;

#[tokio::test]
async fn an_administrator_reads_the_last_runs_of_a_job() {
    let server = Server::with(&QUICK).await;
    let kim = server.guest("Kim").await;
    server.get(&kim, "/api/admin/jobs").await.problem(403, "not-admin");
    assert_eq!(report(&server).await["job"], "reminders");
    runs(&server, 2).await;
    let report = report(&server).await;
    let run = &report["last_runs"][1];
    assert_eq!(run["outcome"], "done", "{report}");
    assert!(run["node"].as_str().is_some_and(|node| node.starts_with("node_")));
    let counts = ["candidates", "postponed", "present", "sent", "spent", "unsent"];
    let zero: Value = counts.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
    assert_eq!(run["counts"], zero);
    assert!(report["estimate_ms"].as_u64().is_some_and(|estimate| 0 < estimate));
    assert!(report["next_at"].is_string());
    assert!(
        server.metric("galley_jobs_total{job=\"reminders\",outcome=\"done\"}").await >= Some(2.0)
    );
    drop(admin(&server));
}
