//! The `OpenAPI` document and the route table agree.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::app::features;
use crate::domain::webhook::WebhookEvent;
use crate::http;
use crate::http::auth::scopes;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// JSON whose objects have no key twice. Tools reject such a key; a map of `serde_json` keeps the last.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = fields.next_entry::<String, _>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} stands twice")));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

fn document() -> Value {
    // Joined by `build.rs`, which leaves a path or a schema of two files in it twice.
    let read = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/openapi.json")));
    let Strict(document) = read.expect("JSON without a key twice");
    document
}

/// Method and path of each operation, with the operation.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let mut found = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("a path item") {
            assert!(METHODS.contains(&method.as_str()), "{method} {path}");
            found.push((method.clone(), path.clone(), operation));
        }
    }
    found
}

#[test]
fn a_key_that_stands_twice_is_rejected() {
    let read = |text| serde_json::from_str::<Strict>(text).map(|read| read.0.to_string());
    let once = r#"{"id":[null,true,-1,1,1.5,"x"],"in":{"id":1}}"#;
    assert_eq!(read(once).expect("JSON"), once);
    let twice = read(r#"{"in":[{"id":1,"id":1}]}"#).expect_err("twice");
    assert!(twice.to_string().contains("\"id\""), "{twice}");
}

#[test]
fn every_route_is_documented_and_every_documented_route_is_there() {
    let document = document();
    let documented: BTreeSet<_> =
        operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    let routed: BTreeSet<_> = http::routes()
        .merge(features::routes())
        .table()
        .iter()
        .map(|(method, path)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    let undocumented: Vec<_> = routed.difference(&documented).collect();
    let missing: Vec<_> = documented.difference(&routed).collect();
    assert!(undocumented.is_empty(), "not in an openapi.json: {undocumented:?}");
    assert!(missing.is_empty(), "only in an openapi.json: {missing:?}");
}

/// A route without a row is closed to servers, and its operation has no scope. A row without a route opens nothing.
#[test]
fn g14_the_scopes_of_the_document_are_those_that_admission_demands() {
    let document = document();
    let scopes_of = |operation: &Value| {
        let security = operation["security"].as_array().into_iter().flatten();
        let scopes = security.filter_map(|it| it["serverToken"].as_array()).flatten();
        scopes.map(|it| it.as_str().expect("a scope").to_owned()).collect::<Vec<_>>()
    };
    let documented: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(method, path, operation)| (method, path, scopes_of(operation)))
        .filter(|(.., scopes)| !scopes.is_empty())
        .collect();
    let routes = http::routes().merge(features::routes());
    let is_routed = |method: &str, path: &str| routes.table().contains(&(method, path));
    let demanded: BTreeSet<_> = scopes::table()
        .filter(|(method, path, _)| is_routed(method, path))
        .map(|(method, path, scopes)| {
            let scopes = scopes.into_iter().map(str::to_owned).collect::<Vec<_>>();
            (method, path.to_owned(), scopes)
        })
        .collect();
    assert_eq!(documented, demanded);
}

#[test]
fn every_webhook_is_documented() {
    let document = document();
    let documented: Vec<_> = document["webhooks"].as_object().expect("webhooks").keys().collect();
    let mut kinds: Vec<_> = WebhookEvent::ALL.iter().map(|kind| kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(documented, kinds);
}

#[test]
fn every_operation_names_its_parameters_its_answers_and_itself() {
    let document = document();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let at = format!("{method} {path}");
        let name = operation["operationId"].as_str().expect(&at).to_owned();
        assert!(names.insert(name), "{at}: its operationId is taken");
        assert!(operation["summary"].is_string(), "{at}");
        assert!(!operation["responses"].as_object().expect(&at).is_empty(), "{at}");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let described: BTreeSet<_> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        let in_path: BTreeSet<_> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')))
            .collect();
        assert_eq!(described, in_path, "{at}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn visit(document: &Value, node: &Value) {
        match node {
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                    let pointer = target.strip_prefix('#').expect("a local reference");
                    assert!(document.pointer(pointer).is_some(), "{target}");
                }
                fields.values().for_each(|field| visit(document, field));
            }
            Value::Array(items) => items.iter().for_each(|item| visit(document, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    visit(&document, &document);
}
