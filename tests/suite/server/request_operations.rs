//! Cases of the operations on handles, requests and partners: two guests of their own each.

use serde_json::{Value, json};

use crate::server::acts::Act;
use crate::server::operation_fixtures::rows;
use crate::server::request_fixtures::{a_person, decide, text};
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};

/// Two users, the one who acts, and what the request names.
pub(crate) async fn prepared(act: Act, server: &Server) -> (Desk, Person, String) {
    let (kim, lee) = tokio::join!(a_person(server, "Kim"), a_person(server, "Lee"));
    let body = json!({ "title": "t", "text": "text" });
    let document = server.post(&kim, "/api/documents", body).await.ok(201)["id"].clone();
    let actor = match act {
        Act::AcceptRequest | Act::DeclineRequest | Act::DeclineAllRequests => lee.clone(),
        _ => kim.clone(),
    };
    let token = async |who: &Person| {
        let address = server.get(who, "/api/me/address").await.ok(200);
        text(&address["link"]["token"]).to_owned()
    };
    let part = match act {
        // Unique to this case.
        Act::SetHandle => kim.id[4..24].to_owned(),
        Act::SetReminders => "Asia/Seoul".to_owned(),
        Act::RenewAddress => token(&kim).await,
        Act::FindPerson => token(&lee).await,
        Act::SendRequest => lee.id.clone(),
        _ => {
            let body = json!({ "to": lee.id, "as": "writer", "document_id": document });
            let request = server.post(&kim, "/api/review-requests", body).await.ok(201);
            if act == Act::RemovePartner {
                decide(server, &lee, &request["id"], "accept").await.ok(200);
                lee.id.clone()
            } else {
                text(&request["id"]).to_owned()
            }
        }
    };
    let (document, link, invite) = (text(&document).to_owned(), String::new(), String::new());
    (Desk { document, link, invite, writer: kim, reviewer: lee }, actor, part)
}

/// The parts of the effect that the database has.
pub(crate) async fn stored(act: Act, server: &Server, desk: &Desk, part: &str) -> Vec<bool> {
    let (kim, lee) = (&desk.writer, &desk.reviewer);
    let get = async |who: &Person, path: &str| server.get(who, path).await.ok(200);
    let has =
        async |who: &Person, path: &str, list: &str| !rows(&get(who, path).await, list).is_empty();
    let state = async || {
        let request: Value = get(kim, &format!("/api/review-requests/{part}")).await;
        text(&request["state"]).to_owned()
    };
    match act {
        Act::SetHandle => vec![get(kim, "/api/me/address").await["handle"] == part],
        Act::SetReminders => vec![get(kim, "/api/me/reminders").await["time_zone"] == part],
        Act::RenewAddress => vec![get(kim, "/api/me/address").await["link"]["token"] != part],
        Act::SendRequest => vec![
            has(kim, "/api/review-requests?direction=sent", "requests").await,
            has(lee, "/api/review-requests?direction=received", "requests").await,
        ],
        Act::AcceptRequest => vec![
            state().await == "accepted",
            has(kim, "/api/partners", "partners").await,
            has(lee, "/api/share-links", "share_links").await,
        ],
        Act::DeclineRequest | Act::DeclineAllRequests => vec![state().await == "declined"],
        Act::WithdrawRequest => vec![state().await == "withdrawn"],
        Act::RemovePartner => vec![
            !has(kim, "/api/partners", "partners").await,
            !has(lee, "/api/partners", "partners").await,
        ],
        other => unreachable!("{other:?} is not about people"),
    }
}
