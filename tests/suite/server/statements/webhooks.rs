//! Events with webhooks, and their delivery.

use crate::server::reminder_fixtures::{admin, review};
use crate::server::statements::Counted;
use crate::support::galley_process::Server;
use crate::support::push_service::PushService;
use crate::support::rest_client::Desk;
use crate::support::webhook_receiver::setting;
use crate::support::ws_client::Peer;

/// A desk whose reviewer is seated.
async fn seated(server: &Server) -> (Desk, Peer) {
    let desk = server.desk("text").await;
    let peer = server.reviewer(&desk).await;
    (desk, peer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_costs_one_statement_and_its_delivery_a_fixed_number() {
    // The seat is released after the count.
    let write = async |server: &Server, (desk, peer): (Desk, Peer)| {
        review(server, &desk).await;
        peer
    };
    let mut plain = Counted::start().await;
    plain.measure("a review", seated, write).await;
    plain.cost(&[("a review", 12, 0)]);
    drop(plain);
    let receiver = PushService::start().await;
    let endpoints = setting(&[&format!("{}/hook", receiver.url)], &["review.created"]);
    let mut counted = Counted::with(&[("NOTIFY__WEBHOOKS", endpoints.as_str())]).await;
    let delivered = async |server: &Server, seated: (Desk, Peer)| {
        let before = receiver.received().len();
        let peer = write(server, seated).await;
        receiver.has(before + 1).await;
        peer
    };
    counted.measure("a review with its webhook", seated, delivered).await;
    let inserts = counted.sum("calls", "INSERT INTO webhooks%").await;
    assert_eq!(inserts, 1, "the event itself");
    let admin = async |server: &Server| admin(server);
    counted.measure_get("a page of webhooks", "/api/admin/webhooks", admin).await;
    // Besides the row: a look, the claim, a look for the time of the next one, five for the end of the delivery, and
    // a last look.
    counted.cost(&[("a review with its webhook", 24, 0), ("a page of webhooks", 1, 0)]);
}
