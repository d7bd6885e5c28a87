//! `[[notify.webhooks]]` from the environment.

use std::collections::HashMap;

use crate::config::{Flags, Settings};
use crate::webhooks::settings::EXAMPLE_SECRETS;

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
    let endpoint = &settings.notify.webhooks[0];
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
        (one("ftp://h/x", SECRET, event), "url: must be an https://"),
        (one("https://u:hunter2@h/x", SECRET, event), "it has a user or a password"),
        (one("https://h/x", "hunter2", event), "secret: must be at least 16 bytes"),
        (one("https://h/x", EXAMPLE_SECRETS[0], event), "and no example of the manual"),
        (one("https://h/x", EXAMPLE_SECRETS[1], event), "and no example of the manual"),
        (one("https://h/x", SECRET, r#""hunter2""#), "events: must be some of review.created"),
        (one("https://h/x", SECRET, ""), "events: is empty"),
        (r#"[{"url":"https://h/x","events":["seat.left"]}]"#.to_owned(), "secret: must be"),
        (r#"[{"uri":"https://h/hunter2"}]"#.to_owned(), "uri: there is no such setting"),
        (
            one("https://h/x", SECRET, event).replace(r#""hunter2-"#, r#"["hunter2"],"x":""#),
            "secret: must be a",
        ),
    ] {
        let lines = with(&json).expect_err("a fault");
        assert!(lines.lines().all(|line| line.starts_with("notify.webhooks[0].")), "{lines}");
        assert!(lines.contains(expected) && !lines.contains("hunter2"), "{lines}");
    }
    for json in ["hunter2", r#"["hunter2"]"#, r#"{"url":"hunter2"}"#] {
        let line = with(json).expect_err("a fault");
        assert!(line.starts_with("notify.webhooks: must be [[notify.webhooks]]"), "{line}");
        assert!(!line.contains("hunter2") && !line.contains('\n'), "{line}");
    }
    let same = one("https://h/x", SECRET, event);
    let twice = format!("[{0},{0}]", &same[1..same.len() - 1]);
    assert!(
        with(&twice)
            .expect_err("a fault")
            .starts_with("notify.webhooks[1].url: is that of another")
    );
    let row =
        |number: u32| one(&format!("https://h/{number}"), SECRET, event)[1..].replace("]}]", "]}");
    let rows: Vec<_> = (0..21).map(row).collect();
    let many = with(&format!("[{}]", rows.join(","))).expect_err("a fault");
    assert!(many.contains("at most 20 endpoints"), "{many}");
}
