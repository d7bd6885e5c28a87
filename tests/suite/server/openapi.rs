//! The client of the tests rejects a response that the `OpenAPI` document does not describe.

use serde_json::{Value, json};

use crate::support::contract::{Contract, Received};

const PROBLEM: &str = "application/problem+json";
const JSON: &str = "application/json";

fn fault(contract: &Contract, at: (&str, &str, u16), kind: &str, json: &Value) -> String {
    let (method, path, status) = at;
    let received = Received { method, path, status, kind, json: Some(json) };
    contract.check(&received).err().unwrap_or_default()
}

fn document() -> Value {
    json!({
        "id": "doc_1", "title": "자기소개서", "external_id": null, "owner": { "id": "usr_1", "name": "Kim" },
        "created_at": "2026-11-25T15:31:02Z", "updated_at": "2026-11-25T15:31:02Z", "characters": 5,
    })
}

#[test]
fn a_response_has_a_status_a_type_and_a_body_of_its_operation() {
    let contract = Contract::served();
    let one = ("GET", "/api/documents/doc_1", 200);
    assert_eq!(fault(&contract, one, JSON, &document()), "");
    let with = |name: &str, value: Value| {
        let mut document = document();
        document[name] = value;
        fault(&contract, one, JSON, &document)
    };
    assert_eq!(with("characters", json!("5")), "characters: \"5\" breaks type \"integer\"");
    assert_eq!(with("created_at", json!("now")), "created_at: \"now\" breaks format \"date-time\"");
    assert_eq!(with("secret", json!(1)), "secret: the schema has no such property");
    assert_eq!(fault(&contract, one, JSON, &json!({})), "\"id\" is missing");
    let of_owner = with("owner", json!({ "id": "usr_1", "name": "Kim", "mail": "k" }));
    assert_eq!(of_owner, "owner: mail: the schema has no such property");
    assert_eq!(
        fault(&contract, one, PROBLEM, &document()),
        "the status has no content of type \"application/problem+json\""
    );
    let created = ("GET", "/api/documents/doc_1", 201);
    assert_eq!(
        fault(&contract, created, JSON, &document()),
        "the operation does not list the status"
    );
    let deleted = ("DELETE", "/api/documents/doc_1", 204);
    assert_eq!(fault(&contract, deleted, JSON, &document()), "the status has no body");
}

#[test]
fn a_problem_has_its_fields_at_every_address() {
    let contract = Contract::served();
    let problem = json!({ "type": "/problems/not-found", "title": "Not found", "status": 404 });
    for path in ["/api/documents/doc_1", "/nothing"] {
        let at = ("GET", path, 404);
        assert_eq!(fault(&contract, at, PROBLEM, &problem), "");
        let bare = json!({ "type": "/problems/not-found", "status": 404 });
        assert_eq!(fault(&contract, at, PROBLEM, &bare), "\"title\" is missing");
    }
    let method = json!({ "type": "/problems/method-not-allowed", "title": "x", "status": 405 });
    assert_eq!(fault(&contract, ("PUT", "/api/me", 405), PROBLEM, &method), "");
}

/// The suite's test of a route fails at the first response while the document lacks the route.
#[test]
fn a_route_without_an_operation_is_rejected_by_the_client_of_its_own_test() {
    let contract = Contract::served();
    let problem = json!({ "type": "/problems/not-found", "title": "x", "status": 404 });
    let unknown = "the document has no such operation";
    for (method, path, status, kind, body) in [
        ("GET", "/api/people/near", 200, JSON, json!([])),
        ("PUT", "/api/me", 204, "", Value::Null),
        ("POST", "/api/documents/doc_1/near", 403, PROBLEM, problem.clone()),
        ("GET", "/near", 200, JSON, json!({})),
    ] {
        assert_eq!(fault(&contract, (method, path, status), kind, &body), unknown, "{path}");
    }
    assert_eq!(fault(&contract, ("GET", "/d/doc_1", 200), "text/html", &Value::Null), "");
    assert_eq!(fault(&contract, ("GET", "/api/nothing", 404), PROBLEM, &problem), "");
}

/// A wrong type in the document makes the responses of a correct server fail.
#[test]
fn a_fault_of_the_document_fails_the_responses_of_the_server() {
    let served = Contract::served();
    let mut planted = served.document().clone();
    planted["components"]["schemas"]["Document"]["properties"]["characters"]["type"] =
        json!("string");
    let fault =
        fault(&Contract::of(planted), ("GET", "/api/documents/doc_1", 200), JSON, &document());
    assert_eq!(fault, "characters: 5 breaks type \"string\"");
}
