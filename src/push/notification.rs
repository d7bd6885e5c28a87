//! The content of a notification, as the service worker of the page reads it.
//!
//! The payload of a push is JSON:
//!
//! ```json
//! { "kind": "request.received", "url": "/#requests", "params": { "from": "김민수" },
//!   "lang": "ko", "tag": "request-1" }
//! ```
//!
//! It carries no sentence: the service worker has the texts of each `kind` in Korean and English and fills
//! in `params`, so one payload serves both languages. `lang` is the language of the page that registered
//! the browser, or `null`. `url` is the page to open, on the origin of the server. `tag`, if present,
//! replaces an older notification of the same tag.
//!
//! | kind | params |
//! |---|---|
//! | `request.received` | `from`, `as` (the role of the sender), `title` of the document if there is one |
//! | `request.accepted` | `by`, `title` |
//! | `request.unanswered` | `from` |
//! | `review.unanswered` | `title`, `by`, `count` |
//! | `seat.free` | `title`, `role` |
//!
//! A service worker shows a plain notification of the service's name for a kind that it does not know: it
//! may be older than the server.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use crate::push::store::PushLanguage;

/// Longest payload of a push, in bytes before the encryption. Every push service accepts a body of 4,096
/// bytes (RFC 8030 §7.2), and the encryption adds 103.
const PUSH_PAYLOAD_BYTES_MAX: usize = 3_000;
const _: () = assert!(PUSH_PAYLOAD_BYTES_MAX + 103 <= 4_096);

/// How long a push service stores a push for a browser that is away, unless the caller sets another time.
const TTL: Duration = Duration::from_hours(24);
/// Longest topic (RFC 8030 §5.4).
const TOPIC_CHARACTERS: usize = 32;
/// Longest address of a page, in bytes.
const URL_BYTES_MAX: usize = 512;
const CUT: char = '…';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationKind {
    RequestReceived,
    RequestAccepted,
    RequestUnanswered,
    ReviewUnanswered,
    /// A seat became free while its waiter was away.
    SeatFree,
}

impl NotificationKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "request.received",
            Self::RequestAccepted => "request.accepted",
            Self::RequestUnanswered => "request.unanswered",
            Self::ReviewUnanswered => "review.unanswered",
            Self::SeatFree => "seat.free",
        }
    }
}

/// How soon a device wakes for a push (RFC 8030 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// On power and Wi-Fi.
    VeryLow,
    /// On either.
    Low,
    /// On neither.
    Normal,
    /// Also with a low battery.
    High,
}

impl Urgency {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::VeryLow => "very-low",
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    pub kind: NotificationKind,
    /// The page to open: a path on the server's origin.
    pub url: String,
    pub params: BTreeMap<&'static str, String>,
    pub urgency: Urgency,
    pub ttl: Duration,
    /// Notifications of one topic replace each other, at the push service and on the screen.
    pub topic: Option<String>,
}

#[derive(Serialize)]
struct Payload<'a> {
    kind: &'static str,
    url: &'a str,
    params: &'a BTreeMap<&'static str, String>,
    lang: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
}

impl Notification {
    /// A notification of normal urgency for a day, without params and topic.
    #[must_use]
    pub fn new(kind: NotificationKind, url: impl Into<String>) -> Self {
        let (url, params) = (url.into(), BTreeMap::new());
        Self { kind, url, params, urgency: Urgency::Normal, ttl: TTL, topic: None }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.params.insert(name, value.into());
        self
    }

    /// Replaces an earlier notification of the same topic.
    #[must_use]
    pub fn about(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// The payload, at most [`PUSH_PAYLOAD_BYTES_MAX`] bytes long: the longest params are cut to fit.
    pub(super) fn payload(&self, lang: Option<PushLanguage>) -> Vec<u8> {
        let mut params = self.params.clone();
        let topic = self.topic_header();
        let url = if self.url.len() <= URL_BYTES_MAX { self.url.as_str() } else { "/" };
        loop {
            let payload = Payload {
                kind: self.kind.as_str(),
                url,
                params: &params,
                lang: lang.map(PushLanguage::as_str),
                tag: topic.as_deref(),
            };
            let json = serde_json::to_vec(&payload).unwrap_or_default();
            if json.len() <= PUSH_PAYLOAD_BYTES_MAX {
                return json;
            }
            let longest = params.values_mut().max_by_key(|value| value.len());
            match longest.filter(|value| value.chars().count() > 1) {
                Some(value) => cut(value),
                None => params.clear(),
            }
        }
    }

    /// The value of `Topic`: a topic of any text as 32 characters of base64url.
    pub(super) fn topic_header(&self) -> Option<String> {
        let hash = digest(&SHA256, self.topic.as_deref()?.as_bytes());
        let text = URL_SAFE_NO_PAD.encode(hash);
        text.get(..TOPIC_CHARACTERS).map(str::to_owned)
    }
}

/// Cuts a text to half of its characters, the mark included.
fn cut(value: &mut String) {
    let half = value.chars().count() / 2;
    let head = value.chars().take(half.saturating_sub(1));
    *value = head.chain([CUT]).collect();
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(notification: &Notification, lang: Option<PushLanguage>) -> Value {
        serde_json::from_slice(&notification.payload(lang)).expect("JSON")
    }

    #[test]
    fn a_payload_names_the_kind_the_page_and_the_params() {
        let notification = Notification::new(NotificationKind::RequestReceived, "/#requests")
            .with("from", "김민수")
            .with("as", "writer");
        let expected = json!({
            "kind": "request.received",
            "url": "/#requests",
            "params": { "from": "김민수", "as": "writer" },
            "lang": "ko",
        });
        assert_eq!(read(&notification, Some(PushLanguage::Korean)), expected);
        assert_eq!(read(&notification, None)["lang"], Value::Null);
    }

    #[test]
    fn a_topic_of_any_text_has_the_form_of_the_standard() {
        let notification =
            Notification::new(NotificationKind::SeatFree, "/").about("문서 1 / writer");
        let topic = notification.topic_header().expect("a topic");
        assert_eq!(topic.len(), 32);
        assert!(topic.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        assert_eq!(read(&notification, None)["tag"], topic);
        assert_ne!(notification.about("another").topic_header(), Some(topic));
    }

    #[test]
    fn g13_a_payload_of_any_params_fits_into_a_push() {
        for long in
            ["가".repeat(5_000), "\"".repeat(5_000), "👩‍👩‍👧".repeat(900), "\u{1}".repeat(3_000)]
        {
            let notification = Notification::new(NotificationKind::ReviewUnanswered, "/d/1")
                .with("title", long.clone())
                .with("by", long)
                .with("count", "3");
            let payload = notification.payload(Some(PushLanguage::Korean));
            assert!(payload.len() <= PUSH_PAYLOAD_BYTES_MAX, "{}", payload.len());
            let json: Value = serde_json::from_slice(&payload).expect("JSON");
            assert!(json["params"]["title"].as_str().expect("text").ends_with(CUT));
            assert_eq!(json["params"]["count"], "3");
        }
        let long = Notification::new(NotificationKind::SeatFree, "/".repeat(9_000));
        assert_eq!(read(&long, None)["url"], "/");
    }
}
