//! `src/http/openapi/schemas.json` has the schemas that the types of the bodies and answers make; `build.rs` joins
//! it with the files by hand. The doc comment of a field is its description in the API.

use std::path::Path;
use std::{env, fs};

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::admin;
use crate::domain::progress::{ReviewCounts, ReviewTurn};
use crate::exports;
use crate::http;
use crate::offers;
use crate::partners;
use crate::periodic;
use crate::persons;
use crate::push;
use crate::reminders;
use crate::seats::view::SeatsView;
use crate::sharing::bin::Binned;
use crate::transfer;
use crate::versions;
use crate::webhooks;

const FILE: &str = "src/http/openapi/schemas.json";
const HEAD: &str = r#"{
  "made": "by src/app/openapi_schema_tests.rs",
  "paths": {},
  "components": {
    "schemas": {
      "#;
/// The order of the keywords of a schema.
const KEYWORDS: [&str; 5] = ["$ref", "type", "description", "required", "properties"];

macro_rules! publish {
    ($generator:ident: $($of:ty),+ $(,)?) => { $($generator.subschema_for::<$of>();)+ };
}

/// The bodies of responses. `RemindersBody` is that of a request, too.
fn answers(answers: &mut SchemaGenerator) {
    publish!(answers:
        admin::audit::AuditPage, admin::explain::SessionDetails, admin::locks::LockList,
        admin::series::Series, admin::sessions::SessionList,
        exports::http::BuildingBody, exports::http::FormatsBody, exports::http::ImportBody,
        http::auth::guest::Entry, http::auth::guest::Welcome<'_>, http::decisions::Made,
        http::decisions::Undone, http::documents::DocumentList<Binned>, http::replies::Replied,
        http::reviewers::PreviewBody, http::reviews::ReviewList, http::sections::SectionsBody,
        http::suggestions::Outcomes,
        offers::http::ClaimListBody, offers::http::OfferListBody,
        partners::http::AddressBody, partners::http::FoundBody, partners::http::PartnersBody,
        partners::http::requests::AcceptedBody, partners::http::requests::RequestsBody,
        periodic::http::JobsBody,
        persons::http::BegunBody, persons::http::ReceiptBody,
        push::http::CreatedBody, push::http::KeyBody, push::http::PushSubscriptions,
        reminders::http::RemindersBody,
        transfer::http::TransferBody,
        versions::Difference, versions::http::VersionList, versions::http::WithText,
        webhooks::http::WebhookList,
        ReviewCounts, ReviewTurn, SeatsView,
    );
}

/// The bodies of requests.
fn bodies(bodies: &mut SchemaGenerator) {
    publish!(bodies:
        http::auth::guest::MeChange, http::auth::guest::NewGuest, http::decisions::NewDecision,
        http::documents::NewDocumentBody, http::documents::TitleBody, http::links::JoinBody,
        http::progress::PassBody, http::progress::SeenBody, http::replies::NewReply,
        http::reviewers::ReplacementBody, http::reviews::Changes, http::reviews::NewReview,
        http::sections::NewSectionsBody,
        offers::http::NewClaimBody, offers::http::NewOfferBody,
        partners::http::FindBody, partners::http::HandleBody, partners::http::requests::NewRequestBody,
        push::http::NewSubscriptionBody,
        transfer::http::CodeBody,
        versions::http::LabelBody,
    );
}

fn made_by(list: fn(&mut SchemaGenerator), settings: SchemaSettings) -> Map<String, Value> {
    let mut generator = settings
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    list(&mut generator);
    let mut schemas = generator.take_definitions(false);
    schemas.values_mut().for_each(simplify);
    schemas
}

/// Removes the rules of Rust that the API does not state: widths of numbers, uniqueness, defaults for "absent", and
/// the prose of variants.
fn simplify(node: &mut Value) {
    match node {
        Value::Object(fields) => {
            fields.values_mut().for_each(simplify);
            simplify_fields(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn simplify_fields(schema: &mut Map<String, Value>) {
    schema.remove("uniqueItems");
    schema.retain(|key, value| key != "default" || !(value.is_null() || *value == json!([])));
    if let Some(Value::String(prose)) = schema.get_mut("description") {
        *prose = prose.replace('\n', " ");
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
    if ["int", "uint", "double", "float"].iter().any(|it| format.starts_with(it)) {
        schema.remove("format");
        let is_unsigned = format.starts_with('u') && !schema.contains_key("maximum");
        schema.retain(|key, rule| !(is_unsigned && key == "minimum" && *rule == 0));
    }
    let names = schema.get("oneOf").and_then(Value::as_array).and_then(|it| names_of(it));
    if let Some(names) = names {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), names.into());
    }
}

/// The names of an enum without fields.
fn names_of(variants: &[Value]) -> Option<Vec<Value>> {
    let names = variants.iter().map(|variant| match (&variant["const"], &variant["enum"]) {
        (name @ Value::String(_), _) => Some(vec![name.clone()]),
        (_, Value::Array(names)) => Some(names.clone()),
        _ => None,
    });
    names.collect::<Option<Vec<_>>>().map(|names| names.concat())
}

/// JSON in the manner of the files by hand: a part that fits stands in one line, and fields in the order of the type.
fn print(value: &Value, indent: usize, order: &[&str]) -> String {
    let pad = " ".repeat(indent);
    let (open, parts, close) = match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| {
                order.iter().position(|it| it == key).unwrap_or(order.len())
            });
            let required = value["required"].as_array().into_iter().flatten();
            let required: Vec<_> = required.filter_map(Value::as_str).collect();
            let parts = fields.into_iter().map(|(key, part)| {
                let order = if key == "properties" { &required[..] } else { &KEYWORDS };
                format!("\"{key}\": {}", print(part, indent + 2, order))
            });
            ('{', parts.collect::<Vec<_>>(), '}')
        }
        Value::Array(items) => {
            ('[', items.iter().map(|item| print(item, indent + 2, &KEYWORDS)).collect(), ']')
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return value.to_string();
        }
    };
    let line = parts.join(", ");
    if indent + line.chars().count() < 100 && !line.contains('\n') {
        return format!("{open}{line}{close}");
    }
    format!("{open}\n{pad}  {}\n{pad}{close}", parts.join(&format!(",\n{pad}  ")))
}

/// Run it with `WRITE=1` to write the file anew.
#[test]
fn the_schemas_are_those_of_the_types() {
    let settings = SchemaSettings::draft2020_12;
    let mut schemas = made_by(answers, settings().for_serialize());
    for (name, schema) in made_by(bodies, settings().for_deserialize()) {
        let other = schemas.insert(name.clone(), schema.clone());
        assert!(other.is_none_or(|other| other == schema), "{name} differs as a body");
    }
    let schemas =
        schemas.iter().map(|(name, schema)| format!("\"{name}\": {}", print(schema, 6, &KEYWORDS)));
    let text = format!("{HEAD}{}\n    }}\n  }}\n}}\n", Vec::from_iter(schemas).join(",\n      "));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if env::var_os("WRITE").is_some() {
        fs::write(&file, &text).expect("write");
    }
    let is_current = fs::read_to_string(&file).is_ok_and(|stored| stored == text);
    assert!(is_current, "run: WRITE=1 cargo test --lib the_schemas_are_those_of_the_types");
}
