//! `/api/admin/share-links/{id}`: an administrator revokes the share link of any user.

use crate::server::many_servers::Cluster;
use crate::support::rest_client::Person;

#[tokio::test]
async fn g14_an_administrator_revokes_a_share_link_and_sees_titles() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.two.reviewer(&desk).await);
    let (id, name) = (String::new(), "admin".to_owned());
    let admin = Person { id, name, token: cluster.two.admin_token() };
    let list = cluster.two.get(&admin, "/api/admin/sessions").await.ok(200);
    let rows = list["sessions"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["title"], "자기소개서");
        let one = format!("/api/admin/sessions/{}", row["session_id"].as_str().expect("an id"));
        assert_eq!(cluster.two.get(&admin, &one).await.ok(200)["title"], "자기소개서");
    }
    let path = format!("/api/admin/share-links/{}", desk.link);
    let refused = cluster.two.call(&desk.writer, "DELETE", &path, None).await;
    refused.problem(403, "not-admin");
    assert_eq!(cluster.two.call(&admin, "DELETE", &path, None).await.status, 204);
    for peer in [&writer, &reviewer] {
        assert_eq!(peer.event("seat.lost").await["reason"], "revoked");
        assert_eq!(peer.closed().await, (4404, "revoked".to_owned()));
    }
    cluster.two.call(&admin, "DELETE", &path, None).await.problem(404, "not-found");
    let unknown = "/api/admin/share-links/shr_00000000000000000000000000000000";
    cluster.two.call(&admin, "DELETE", unknown, None).await.problem(404, "not-found");
    let link = format!("/api/share-links/{}", desk.link);
    cluster.one.get(&desk.writer, &link).await.problem(404, "not-found");
    let log = std::fs::read_to_string(cluster.two.folder().join("log")).expect("a log");
    let line = log.lines().find(|line| line.contains("an administrator revoked a share link"));
    assert!(line.is_some_and(|line| line.contains(&desk.link)));
}
