//! The recovery of a server after a gap, and after a time in which its process was stopped.

use std::sync::Arc;

use galley::storage::Storage;
use tempfile::TempDir;
use tokio::time::{Duration, sleep};

use crate::server::delivery::QUICK;
use crate::server::pgbouncer::folder_of;
use crate::support::fixtures::{NO_TICK, until};
use crate::support::galley_process::Server;
use crate::support::postgres_server::{self, locked_row};
use crate::support::proxy::{Proxy, Way};
use crate::support::redis_server;
use crate::support::tcp_side::Parting;
use crate::support::wire::{Mode, Target, Wire};

#[tokio::test]
async fn g14_the_comparison_after_a_gap_finds_revoked_links() {
    let redis = redis_server::Server::start().await;
    let proxy = Proxy::to(&redis).await;
    let url = proxy.url();
    let mut settings = NO_TICK.to_vec();
    settings.extend([("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")]);
    let server = Server::in_folder(Arc::new(TempDir::new().expect("a folder")), &settings).await;
    let (revoked, edited) = (server.desk("text").await, server.desk("").await);
    let writer = server.writer(&revoked).await;
    let reader = server.reviewer(&edited).await;
    let storage = server.storage().await;
    let link = revoked.link.parse().expect("an id");
    assert!(storage.revoke_link(link, chrono::Utc::now()).await.expect("revoked"));
    storage.append(&[edited.unannounced_edit("missed")]).await.expect("stored");
    assert!(writer.is_open(), "no tick comes");

    proxy.end_all(Parting::Reset);

    assert_eq!(writer.closed().await.0, 4404);
    reader.reads("missed").await;
}

/// Goal: after a gap a room reads the log, also while it has a pending edit. The comparison of all rooms
/// skips such a room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_gap_makes_a_room_with_an_unsaved_edit_read_the_log() {
    let (redis, postgres) = (redis_server::Server::start().await, postgres_server::shared());
    let (proxy, name) = (Proxy::to(&redis).await, postgres.empty().await);
    let (locks, database) = (proxy.url(), postgres.url(&name));
    let mut settings = NO_TICK.to_vec();
    settings.extend([("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())]);
    let server = Server::with(&settings).await;
    let desk = server.desk("").await;
    let (writer, reader) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let storage = Storage::open(&database).await.expect("the server's own");
    storage.append(&[desk.unannounced_edit("missed")]).await.expect("stored");
    let mut other = locked_row(&postgres.url(&name), &desk.document).await;
    writer.append("unsaved ");
    writer.event("problem").await;

    proxy.end_all(Parting::Reset);

    for peer in [&reader, &writer] {
        peer.until("the missed edit", |state| state.text().contains("missed").then_some(())).await;
    }
    assert_eq!(writer.is_saved_to(), 0, "the row is locked still");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.expect("it is free");
    writer.saved().await;
    assert!(writer.is_open() && reader.is_open());
}

/// Goal: one server misses a revocation, and its database rejects the comparison after the gap. A later tick
/// repeats the comparison (B3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g15_a_comparison_that_the_database_refuses_is_repeated_at_the_next_tick() {
    let (redis, postgres) = (redis_server::Server::start().await, postgres_server::shared());
    let (proxy, name) = (Proxy::to(&redis).await, postgres.empty().await);
    let wire = Wire::to(Target::Unix(folder_of(postgres).join(".s.PGSQL.5432"))).await;
    let (locks, database) = (redis.url(), postgres.url(&name));
    let by_proxy = proxy.url();
    let by_wire = format!("postgres://galley@127.0.0.1:{}/{name}?sslmode=disable", wire.port);
    // One folder, so one secret and one log; the rejections in the log are those of the second server.
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let urls = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let one = Server::in_folder(Arc::clone(&folder), &[QUICK, urls].concat()).await;
    let urls = [("LOCKS__URL", by_proxy.as_str()), ("DATABASE__URL", by_wire.as_str())];
    let two = Server::in_folder(folder, &[QUICK, urls].concat()).await;
    let desk = one.desk("text").await;
    let (writer, reviewer) = (one.writer(&desk).await, two.reviewer(&desk).await);

    wire.set(Mode::Cut);
    proxy.hold(Way::ToClient);
    let path = format!("/api/share-links/{}", desk.link);
    one.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(writer.closed().await.0, 4404);
    let refused = || two.log().matches("share links cannot be read").count();
    let before = refused();
    // The held message is lost with its connection. The new connection begins with a gap.
    proxy.end_all(Parting::Reset);
    proxy.heal();
    until("a refused comparison", async || refused() != before).await;
    assert!(reviewer.is_open(), "no comparison has found the revocation");

    wire.set(Mode::Pass);

    assert_eq!(reviewer.closed().await.0, 4404);
}

#[tokio::test]
async fn g8_a_sequence_number_that_another_process_used_makes_the_room_read_the_log() {
    let server = Server::with(&NO_TICK).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let storage = server.storage().await;
    storage.append(&[desk.unannounced_edit("another ")]).await.expect("stored");

    writer.append("own");

    for peer in [&writer, &reviewer] {
        peer.until("both edits", |state| {
            let text = state.text();
            (text.contains("another") && text.contains("own")).then_some(())
        })
        .await;
    }
    writer.saved().await;
}

/// Goal: a server does not count the time in which its process was stopped as a client's silence.
#[tokio::test]
async fn g4_a_server_that_resumes_after_a_stop_ends_no_session_for_silence() {
    let settings = [
        ("SEATS__LEASE", "60s"),
        ("SEATS__RENEW_EVERY", "500ms"),
        ("SEATS__CLIENT_TIMEOUT", "2s"),
        ("SEATS__RESUME_GRACE", "1s"),
    ];
    let server = Server::with(&settings).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    server.freeze().await;
    // Longer than the client timeout.
    sleep(Duration::from_secs(4)).await;
    server.thaw().await;
    writer.append("awake");
    writer.saved().await;
    reviewer.reads("awake").await;
    // A tick comes within half a second. If it ends the session, the server grants this claim.
    let again = server.claim_seat(&desk, "reviewer", "events=1").await;
    assert_eq!(again.closed().await.0, 4409, "the reviewer still holds its seat");
    assert!(writer.is_open() && reviewer.is_open());
}
