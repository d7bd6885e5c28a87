//! `[[notify.webhooks]]`: the endpoints of the host product.

use std::collections::HashSet;

use ::config::{Value, ValueKind};
use secrecy::SecretString;

use crate::config::WebhookSettings;
use crate::config::parse::Reader;
use crate::domain::limits::{
    WEBHOOK_ENDPOINTS_MAX, WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_URL_BYTES_MAX,
};
use crate::domain::webhook::WebhookEvent;
use crate::notify::destination::{Destination, Scope};

const KEY: &str = "notify.webhooks";
const EXPECTED: &str = "must be [[notify.webhooks]] with url, secret and events; in the environment a \
                        JSON array of such objects";
/// The secrets of the examples in the README and the manual. Every reader of these knows them.
const EXAMPLE_SECRETS: [&str; 2] =
    ["32 random bytes as hexadecimal digits", "a random text of 16 bytes or more"];

/// An endpoint as written.
#[derive(Default)]
struct Row {
    url: Option<String>,
    secret: Option<String>,
    events: Option<Vec<String>>,
}

/// Reads and checks the endpoints.
pub(super) fn settings(reader: &mut Reader) -> Option<Vec<WebhookSettings>> {
    let Some(value) = reader.take(KEY) else { return Some(Vec::new()) };
    let Some(rows) = rows_of(&value) else {
        reader.fault(KEY, EXPECTED);
        return None;
    };
    if WEBHOOK_ENDPOINTS_MAX < rows.len() {
        reader.fault(KEY, &format!("must be at most {WEBHOOK_ENDPOINTS_MAX} endpoints"));
        return None;
    }
    let mut urls = HashSet::new();
    let mut endpoints = Vec::new();
    let count = rows.len();
    for (number, row) in (1..).zip(rows) {
        match endpoint_of(row) {
            Ok(endpoint) if urls.insert(endpoint.url.clone()) => endpoints.push(endpoint),
            Ok(_same) => {
                reader.fault(KEY, &format!("number {number}: its url is that of another endpoint"));
            }
            // The line omits the values: an address or a secret may be in the wrong place.
            Err(fault) => reader.fault(KEY, &format!("number {number}: {fault}")),
        }
    }
    (endpoints.len() == count).then_some(endpoints)
}

fn endpoint_of(row: Row) -> Result<WebhookSettings, String> {
    let url = row.url.ok_or("url is missing")?;
    if WEBHOOK_URL_BYTES_MAX < url.len() {
        return Err(format!("url must have at most {WEBHOOK_URL_BYTES_MAX} bytes"));
    }
    let to = Destination::parse(&url, Scope::Anywhere);
    to.map_err(|error| format!("url must be an https:// or http:// address: {error}"))?;
    let secret = row.secret.ok_or("secret is missing")?;
    if secret.len() < WEBHOOK_SECRET_BYTES_MIN || EXAMPLE_SECRETS.contains(&secret.as_str()) {
        let least = WEBHOOK_SECRET_BYTES_MIN;
        return Err(format!(
            "secret must be at least {least} bytes, and no example of the manual; make one with \
             `openssl rand -hex 32`"
        ));
    }
    let mut events = Vec::new();
    for name in row.events.ok_or("events is missing")? {
        match name.parse::<WebhookEvent>() {
            Ok(event) if !events.contains(&event) => events.push(event),
            Ok(_again) => {}
            Err(_unknown) => {
                let names = WebhookEvent::ALL.map(WebhookEvent::as_str).join(", ");
                return Err(format!("events must be some of {names}"));
            }
        }
    }
    if events.is_empty() {
        return Err("events is empty".to_owned());
    }
    Ok(WebhookSettings { url, secret: SecretString::from(secret), events })
}

/// The rows of a file, or of a text in the environment. `None`: the value has another form.
fn rows_of(value: &Value) -> Option<Vec<Row>> {
    match &value.kind {
        ValueKind::Array(rows) => rows.iter().map(row_of).collect(),
        ValueKind::String(text) => {
            let rows: Vec<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_str(text).ok()?;
            rows.iter().map(row_of_json).collect()
        }
        _ => None,
    }
}

fn row_of(value: &Value) -> Option<Row> {
    let ValueKind::Table(fields) = &value.kind else { return None };
    let text = |value: &Value| match &value.kind {
        ValueKind::String(text) => Some(text.clone()),
        _ => None,
    };
    let mut row = Row::default();
    for (name, value) in fields {
        match name.as_str() {
            "url" => row.url = Some(text(value)?),
            "secret" => row.secret = Some(text(value)?),
            "events" => {
                let ValueKind::Array(events) = &value.kind else { return None };
                row.events = Some(events.iter().map(text).collect::<Option<_>>()?);
            }
            _ => return None,
        }
    }
    Some(row)
}

fn row_of_json(fields: &serde_json::Map<String, serde_json::Value>) -> Option<Row> {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let mut row = Row::default();
    for (name, value) in fields {
        match name.as_str() {
            "url" => row.url = Some(text(value)?),
            "secret" => row.secret = Some(text(value)?),
            "events" => {
                row.events = Some(value.as_array()?.iter().map(text).collect::<Option<_>>()?);
            }
            _ => return None,
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::EXAMPLE_SECRETS;
    use crate::config::{Flags, Settings};

    fn with(json: &str) -> Result<Settings, String> {
        let variable = ("GALLEY_NOTIFY__WEBHOOKS".to_owned(), json.to_owned());
        let loaded = Settings::load(&Flags::default(), HashMap::from([variable]));
        loaded.map_err(|faults| faults.to_string())
    }

    fn one(url: &str, secret: &str, events: &str) -> String {
        format!(r#"[{{"url":"{url}","secret":"{secret}","events":[{events}]}}]"#)
    }

    const SECRET: &str = "hunter2-hunter2-hunter2";

    #[test]
    fn an_endpoint_is_read_from_the_environment_and_its_secret_is_not_shown() {
        let url = "http://10.0.0.7:9000/hook?key=hunter2";
        let settings = with(&one(url, SECRET, r#""review.created","seat.left""#)).expect("valid");
        let endpoint = &settings.webhooks[0];
        assert_eq!((endpoint.url.as_str(), endpoint.events.len()), (url, 2));
        let shown = settings.show();
        assert!(shown.contains("[[notify.webhooks]]\nurl = \"http://10.0.0.7:9000/hook?***\""));
        assert!(shown.contains("events = [\"review.created\", \"seat.left\"]"), "{shown}");
        assert!(!shown.contains("hunter2") && !format!("{settings:?}").contains("hunter2"));
    }

    #[test]
    fn an_endpoint_at_fault_stops_the_start_without_its_values() {
        let event = r#""review.created""#;
        for (json, expected) in [
            (one("ftp://h/x", SECRET, event), "number 1: url must be an https://"),
            (one("https://u:hunter2@h/x", SECRET, event), "it has a user or a password"),
            (one("https://h/x", "hunter2", event), "secret must be at least 16 bytes"),
            (one("https://h/x", EXAMPLE_SECRETS[0], event), "and no example of the manual"),
            (one("https://h/x", EXAMPLE_SECRETS[1], event), "and no example of the manual"),
            (
                one("https://h/x", SECRET, r#""review.made""#),
                "events must be some of review.created",
            ),
            (one("https://h/x", SECRET, ""), "events is empty"),
            (r#"[{"url":"https://h/x","events":["seat.left"]}]"#.to_owned(), "secret is missing"),
            (r#"[{"uri":"https://h/hunter2"}]"#.to_owned(), "must be [[notify.webhooks]]"),
            ("hunter2".to_owned(), "must be [[notify.webhooks]]"),
        ] {
            let line = with(&json).expect_err("a fault");
            assert!(line.starts_with("notify.webhooks: ") && line.contains(expected), "{line}");
            assert!(!line.contains("hunter2"), "{line}");
        }
        let same = one("https://h/x", SECRET, event);
        let twice = format!("[{0},{0}]", &same[1..same.len() - 1]);
        assert!(
            with(&twice).expect_err("a fault").contains("number 2: its url is that of another")
        );
        let row = |number: u32| {
            one(&format!("https://h/{number}"), SECRET, event)[1..].replace("]}]", "]}")
        };
        let rows: Vec<_> = (0..21).map(row).collect();
        let many = with(&format!("[{}]", rows.join(","))).expect_err("a fault");
        assert!(many.contains("at most 20 endpoints"), "{many}");
    }
}
