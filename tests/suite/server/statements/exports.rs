//! Exports and imports.

use crate::server::exports::download;
use crate::server::imports::import;
use crate::server::statements::Counted;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exports_and_imports_cost_a_fixed_number_of_statements_and_commands() {
    let mut counted = Counted::start().await;
    let desk = async |server: &Server| server.desk("글").await;
    let export = async |server: &Server, desk: Desk| {
        let file = download(server, &desk.writer, &desk, "format=txt").await;
        assert_eq!(file.status, 200);
    };
    counted.measure("a build", desk, export).await;
    let built = async |server: &Server| {
        let desk = server.desk("글").await;
        download(server, &desk.writer, &desk, "format=txt").await;
        server.has("galley_exports_held", 0).await;
        desk
    };
    counted.measure("a stored file", built, export).await;
    let kim = async |server: &Server| server.guest("Kim").await;
    let import = async |server: &Server, kim: Person| {
        import(server, &kim, "?name=a.txt", "text/plain", "글".into()).await.ok(201);
    };
    counted.measure("an import", kim, import).await;
    counted.measure_get("the formats", "/api/export-formats", kim).await;
    counted.cost(&[
        ("a build", 21, 2),
        ("a stored file", 2, 0),
        ("an import", 7, 0),
        ("the formats", 0, 0),
    ]);
}
