//! Holds the responses, the events and the webhooks of a server to the `OpenAPI` document that it serves.
//!
//! A response has a status that its operation lists, a content type of that status, and a body that matches
//! the schema. The schemas are JSON Schema 2020-12 in the keywords that the document uses; an unknown keyword
//! is an error, so no rule passes unread. Beyond the schemas, an object has only properties that they name.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Statuses that the head of the document states for every address: another method, another host.
const EVERYWHERE: [u16; 2] = [405, 421];
/// Statuses of the router, for an address of the API without a route.
const NOWHERE: [u16; 4] = [404, 405, 421, 429];
const PROBLEM: &str = "/components/schemas/Problem";

/// Read once for each process.
static CONTRACT: LazyLock<Contract> = LazyLock::new(Contract::served);

/// A document with its patterns compiled.
pub(crate) struct Contract {
    document: Value,
    patterns: HashMap<String, Regex>,
}

/// A response, as far as the document describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    /// The content type without its parameters.
    pub(crate) kind: &'a str,
    /// JSON; none for a body of another kind, or an empty one.
    pub(crate) json: Option<&'a Value>,
}

/// Fails the test if the response is not one that the document describes.
pub(crate) fn hold(received: &Received<'_>) {
    if let Err(fault) = CONTRACT.check(received) {
        let Received { method, path, status, json, .. } = received;
        let body = json.map(ToString::to_string).unwrap_or_default();
        panic!("{method} {path} -> {status} is not in the OpenAPI document: {fault}\n{body}");
    }
}

/// Fails the test if the JSON of a frame is not one that the document describes.
pub(crate) fn hold_event(event: &Value) {
    let variants = rule_list(&CONTRACT.document["components"]["schemas"]["ServerEvent"]["oneOf"]);
    let mut of_name = variants.filter(|it| it["properties"]["event"]["const"] == event["event"]);
    let fault = match of_name.next() {
        Some(schema) => CONTRACT.matches(schema, event).err(),
        None => Some("it has no such event".to_owned()),
    };
    assert!(fault.is_none(), "not in the OpenAPI document: {fault:?}\n{event}");
}

/// Fails the test if the body of a webhook is not one that the document describes.
pub(crate) fn hold_webhook(body: &Value) {
    let webhook = &CONTRACT.document["webhooks"][body["type"].as_str().unwrap_or_default()];
    let schema = &webhook["post"]["requestBody"]["content"]["application/json"]["schema"];
    let fault = CONTRACT.matches(schema, body).err();
    assert!(fault.is_none(), "not in the OpenAPI document: {fault:?}\n{body}");
}

impl Contract {
    /// The document of this build.
    pub(crate) fn served() -> Self {
        let document = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));
        Self::of(serde_json::from_str(document).expect("JSON"))
    }

    pub(crate) fn of(document: Value) -> Self {
        let mut patterns = HashMap::new();
        collect_patterns(&document, &mut patterns);
        Self { document, patterns }
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// The first fault of a response.
    pub(crate) fn check(&self, received: &Received<'_>) -> Result<(), String> {
        let item = self.path_item(received.path);
        let operation = item.map(|item| &item[received.method.to_lowercase()]);
        let Some(operation) = operation.filter(|operation| operation.is_object()) else {
            // A page, an address that does not exist, or another method.
            let is_routed = received.method != "HEAD" && !NOWHERE.contains(&received.status);
            let is_api = ["/api/", "/ws/"].iter().any(|api| received.path.starts_with(api));
            if is_routed && (is_api || received.kind == "application/json") {
                return Err("the document has no such operation".to_owned());
            }
            return match received.json {
                Some(problem) if received.kind == "application/problem+json" => {
                    self.matches(self.document.pointer(PROBLEM).expect("a schema"), problem)
                }
                _ => Ok(()),
            };
        };
        let listed = &operation["responses"][received.status.to_string()];
        let response = match listed.get("$ref") {
            Some(target) => self.target(target),
            None => listed,
        };
        let schema = match &response["content"] {
            _ if listed.is_null() && EVERYWHERE.contains(&received.status) => {
                self.document.pointer(PROBLEM).expect("a schema")
            }
            _ if listed.is_null() => {
                return Err("the operation does not list the status".to_owned());
            }
            Value::Null if received.json.is_none() => return Ok(()),
            Value::Null => return Err("the status has no body".to_owned()),
            content => match content.get(received.kind) {
                Some(content) => &content["schema"],
                None => {
                    return Err(format!("the status has no content of type {:?}", received.kind));
                }
            },
        };
        received.json.map_or(Ok(()), |json| self.matches(schema, json))
    }

    /// The path of the document with the fewest parameters that matches.
    fn path_item(&self, path: &str) -> Option<&Value> {
        let parts: Vec<_> = path.split('/').collect();
        let is_parameter = |part: &str| part.starts_with('{');
        let matches = |template: &str| {
            let template: Vec<_> = template.split('/').collect();
            template.len() == parts.len()
                && template.iter().zip(&parts).all(|(it, part)| it == part || is_parameter(it))
        };
        let paths = self.document["paths"].as_object().expect("paths");
        let found = paths.iter().filter(|(template, _)| matches(template));
        found.min_by_key(|(template, _)| template.matches('{').count()).map(|(_, item)| item)
    }

    fn target(&self, reference: &Value) -> &Value {
        let pointer = reference.as_str().and_then(|target| target.strip_prefix('#'));
        self.document.pointer(pointer.expect("a local reference")).expect("its target")
    }

    /// The value matches the schema and has no property that the schema does not name.
    fn matches(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let fields = schema.as_object().ok_or("a schema is an object")?;
        for (keyword, rule) in fields {
            self.keyword(keyword, rule, schema, value)?;
        }
        let mut names = BTreeSet::new();
        let is_open = !self.collect_names(schema, &mut names);
        let properties = value.as_object().into_iter().flatten();
        match properties.map(|(name, _)| name).find(|name| !names.contains(name.as_str())) {
            Some(unknown) if !is_open => Err(format!("{unknown}: the schema has no such property")),
            _ => Ok(()),
        }
    }

    /// One rule of a schema. The parts of `allOf` and `$ref` leave unknown properties to the whole schema.
    fn keyword(
        &self,
        keyword: &str,
        rule: &Value,
        schema: &Value,
        value: &Value,
    ) -> Result<(), String> {
        let within = |name: &str, result: Result<(), String>| {
            result.map_err(|fault| format!("{name}: {fault}"))
        };
        let is_met = match keyword {
            "$ref" => return self.part(self.target(rule), value),
            "allOf" => return rule_list(rule).try_for_each(|part| self.part(part, value)),
            "anyOf" | "oneOf" => {
                let faults: Vec<_> =
                    rule_list(rule).filter_map(|part| self.part(part, value).err()).collect();
                let count = rule_list(rule).count() - faults.len();
                if count == 0 {
                    return Err(faults.join(", or "));
                }
                keyword == "anyOf" || count == 1
            }
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_of(kind, value)),
                kind => is_of(kind, value),
            },
            "enum" => rule_list(rule).any(|allowed| allowed == value),
            "const" => rule == value,
            "required" => {
                let missing = |name: &&Value| value.get(name.as_str().expect("a name")).is_none();
                let missing = rule_list(rule).find(missing).filter(|_| value.is_object());
                return missing.map_or(Ok(()), |name| Err(format!("{name} is missing")));
            }
            "properties" => {
                let rules = rule.as_object().expect("properties");
                let mut present =
                    rules.iter().filter_map(|(name, rule)| Some((name, rule, value.get(name)?)));
                return present
                    .try_for_each(|(name, rule, it)| within(name, self.matches(rule, it)));
            }
            "additionalProperties" => {
                let more = value.as_object().into_iter().flatten();
                let mut more = more.filter(|(name, _)| schema["properties"].get(name).is_none());
                return more.try_for_each(|(name, it)| match rule {
                    Value::Bool(_) => Err(format!("{name} is one too many")),
                    rule => within(name, self.matches(rule, it)),
                });
            }
            "items" => {
                let mut items = value.as_array().into_iter().flatten().enumerate();
                return items.try_for_each(|(index, it)| {
                    within(&index.to_string(), self.matches(rule, it))
                });
            }
            "description" | "default" | "examples" => true,
            _ => self.bound(keyword, rule, value)?,
        };
        is_met.then_some(()).ok_or_else(|| format!("{value} breaks {keyword} {rule}"))
    }

    /// A rule for a value without parts, or for the length of a list.
    fn bound(&self, keyword: &str, rule: &Value, value: &Value) -> Result<bool, String> {
        let number = || value.as_f64().zip(rule.as_f64());
        let length = || value.as_array().map(Vec::len).zip(rule.as_u64());
        Ok(match keyword {
            "minItems" => length().is_none_or(|(length, least)| least <= length as u64),
            "maxItems" => length().is_none_or(|(length, most)| length as u64 <= most),
            "minimum" => number().is_none_or(|(number, least)| least <= number),
            "maximum" => number().is_none_or(|(number, most)| number <= most),
            "maxLength" => {
                let length = value.as_str().map(|text| text.chars().count() as u64);
                length.zip(rule.as_u64()).is_none_or(|(length, most)| length <= most)
            }
            "pattern" => {
                let pattern = &self.patterns[rule.as_str().expect("a pattern")];
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "format" => value.as_str().is_none_or(|text| is_formatted(rule, text)),
            _ => return Err(format!("this test knows no keyword {keyword}")),
        })
    }

    /// A schema that describes a part of the value's properties.
    fn part(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let mut fields = schema.as_object().into_iter().flatten();
        fields.try_for_each(|(keyword, rule)| self.keyword(keyword, rule, schema, value))
    }

    /// Collects the properties that a schema names; false if it leaves them open.
    fn collect_names<'a>(&'a self, schema: &'a Value, names: &mut BTreeSet<&'a str>) -> bool {
        let mut is_closed = false;
        for (keyword, rule) in schema.as_object().into_iter().flatten() {
            match (keyword.as_str(), rule) {
                ("properties", Value::Object(rules)) => {
                    names.extend(rules.keys().map(String::as_str));
                    is_closed = true;
                }
                ("additionalProperties", rule) => return rule == &Value::Bool(false),
                ("$ref", target) => is_closed |= self.collect_names(self.target(target), names),
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    parts.iter().for_each(|part| is_closed |= self.collect_names(part, names));
                }
                _ => {}
            }
        }
        is_closed
    }
}

fn rule_list(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.as_array().expect("a list").iter()
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

fn is_formatted(format: &Value, text: &str) -> bool {
    match format.as_str() {
        Some("date-time") => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
        Some("uri") => url::Url::parse(text).is_ok(),
        // Of a file; its body is no JSON.
        Some("binary") => true,
        _ => false,
    }
}

fn collect_patterns(node: &Value, patterns: &mut HashMap<String, Regex>) {
    match node {
        Value::Object(fields) => {
            if let Some(pattern) = fields.get("pattern").and_then(Value::as_str) {
                let regex = Regex::new(pattern).expect("a pattern");
                patterns.insert(pattern.to_owned(), regex);
            }
            fields.values().for_each(|field| collect_patterns(field, patterns));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, patterns)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
