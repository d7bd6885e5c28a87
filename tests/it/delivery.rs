//! The effect of a commit reaches every socket it concerns, also when no message announces it (G15).

use galley::storage::Storage;
use galley::storage::log::Append;
use galley::sync::log::SERVER_IDS;
use galley::sync::text::document_from_text;

use crate::desk::Desk;
use crate::process::Server;

/// Short leases, so that a tick comes soon.
pub(crate) const QUICK: [(&str, &str); 2] =
    [("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "500ms")];

impl Server {
    /// A second process on its `SQLite` file: its commits are announced to no server.
    pub(crate) async fn storage(&self) -> Storage {
        let url = format!("sqlite://{}/data/galley.db", self.folder().display());
        Storage::open(&url).await.expect("the server's own file")
    }
}

impl Desk {
    /// An edit by no session: nothing but the database has it.
    pub(crate) fn unannounced_edit(&self, text: &str) -> Append {
        let client = *SERVER_IDS.start();
        Append {
            document: self.document.parse().expect("an id"),
            guard: None,
            update: document_from_text(text, client),
            clients: vec![client],
            user: None,
            expected_seq: None,
            now: chrono::Utc::now(),
        }
    }
}

#[tokio::test]
async fn g15_a_lone_server_ends_the_sockets_of_a_link_whose_revocation_no_message_announced() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    // A waiter holds no seat, and its link is looked at all the same.
    let waiter = server.knock(&desk, "reviewer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;

    let link = desk.link.parse().expect("an id");
    assert!(server.storage().await.revoke_link(link, chrono::Utc::now()).await.expect("revoked"));

    for peer in [&writer, &reviewer, &waiter] {
        assert_eq!(peer.closed().await.0, 4404);
    }
}

#[tokio::test]
async fn g15_a_session_in_its_resume_grace_ends_with_its_link() {
    let settings = [QUICK[0], QUICK[1], ("SEATS__RESUME_GRACE", "60s")];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    let writer = server.writer(&desk).await;
    let reviewer = server.reviewer(&desk).await;
    drop(writer);
    let link = desk.link.parse().expect("an id");
    server.storage().await.revoke_link(link, chrono::Utc::now()).await.expect("revoked");
    assert_eq!(reviewer.closed().await.0, 4404);
    server.has("galley_seats_held{role=\"writer\"}", 0).await;
}

#[tokio::test]
async fn g15_a_lone_server_ends_the_sockets_of_a_document_deleted_without_a_message() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let document = desk.document.parse().expect("an id");
    assert!(server.storage().await.delete_document(document).await.expect("deleted"));
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.closed().await.0, 4404);
    }
}

/// An accepted suggestion whose commit was answered to no handler looks the same.
#[tokio::test]
async fn g15_a_lone_server_shows_a_committed_edit_that_no_message_announced() {
    let server = Server::with(&QUICK).await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    let edit = desk.unannounced_edit("committed");
    server.storage().await.append(&[edit]).await.expect("stored");
    for peer in [&writer, &reviewer] {
        peer.reads("committed").await;
        peer.saved().await;
    }
}

/// A second DELETE answers 404 and announces nothing: the document's own DELETE ends the sockets.
#[tokio::test]
async fn g15_deleting_a_document_ends_sockets_that_an_earlier_revocation_left_open() {
    // No tick comes within this test.
    let settings = [("SEATS__LEASE", "600s"), ("SEATS__RENEW_EVERY", "200s")];
    let more = ("SEATS__CLIENT_TIMEOUT", "500s");
    let server = Server::with(&[settings[0], settings[1], more]).await;
    let desk = server.desk("text").await;
    let reviewer = server.reviewer(&desk).await;
    let link = desk.link.parse().expect("an id");
    server.storage().await.revoke_link(link, chrono::Utc::now()).await.expect("revoked");
    let path = format!("/api/documents/{}", desk.document);
    server.call(&desk.writer, "DELETE", &path, None).await.ok(204);
    assert_eq!(reviewer.closed().await.0, 4404);
}
