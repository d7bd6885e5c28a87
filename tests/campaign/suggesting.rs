//! The page of a reviewer that types, and of a writer that decides: new and changed suggestions, each sent again until
//! a server answers, and decisions about those that are open.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::desks::Desks;
use crate::history::{Listed, What, marks_in, written};
use crate::requests::Call;
use crate::support::rest_client::{Desk, Person};
use crate::support::rng::Random;
use crate::support::ws_client::Peer;
use crate::world::SERVERS;

/// A page sends the same batch again after this.
const ATTEMPT: Duration = Duration::from_millis(800);
/// Of a suggestion: it stands at one position, or at two.
const PARTS_MAX: usize = 2;
/// Suggestions that are decided at once.
const DECIDED_AT_ONCE: usize = 3;
const LISTED_MAX: usize = 200;

/// The suggestion that the reviewer types at.
#[derive(Debug, Default)]
pub(crate) struct Typing {
    link: String,
    id: String,
    /// The acknowledged version.
    version: Option<i64>,
    /// Of each part, in base64.
    positions: Vec<String>,
    /// The texts of a batch without an answer.
    unanswered: Option<Vec<String>>,
}

impl Typing {
    /// Sends the next version of the suggestion, or a new one.
    pub(crate) async fn types(
        &mut self,
        desks: &Desks,
        desk: &Desk,
        peer: &Peer,
        random: &mut Random,
    ) {
        let is_new = self.link != desk.link || self.id.is_empty();
        if is_new || (self.unanswered.is_none() && random.below(6) == 0) {
            let Some(new) = Self::begun(desks, desk, peer, random) else { return };
            self.end(desks);
            *self = new;
        }
        let marks = self.unanswered.take().unwrap_or_else(|| {
            let number = desks.next();
            (0..self.positions.len()).map(|part| format!("typed.s{number}.{part}")).collect()
        });
        let parts = self.positions.iter().zip(&marks);
        let parts: Vec<_> =
            parts.map(|(at, mark)| json!({ "at": at, "text": written(mark) })).collect();
        let item = json!({ "id": self.id, "version": self.version, "parts": parts });
        let path = format!("/api/share-links/{}/suggestions", desk.link);
        let body = json!({ "put": [item] });
        let call = Call { method: "POST", path: &path, user: &desk.reviewer, body: &body };
        let (link, suggestion) = (desk.link.clone(), self.id.clone());
        desks.recorder.note(What::Suggested { link, suggestion, marks: marks.clone() });
        let (status, answer) = call.once(&desks.url(random.below(SERVERS)), ATTEMPT).await;
        let item = &answer["items"][0];
        match (status, item["state"].as_str()) {
            (200, Some("kept")) => {
                let version = item["version"].as_i64().expect("a version");
                self.version = Some(version);
                let (link, suggestion) = (desk.link.clone(), self.id.clone());
                desks.recorder.note(What::Acknowledged { link, suggestion, version, marks });
            }
            // The writer has decided it, or another suggestion stands at its position.
            (200, Some("refused")) => {
                let suggestion = std::mem::take(self).id;
                desks.recorder.note(What::Refused { suggestion, marks });
            }
            // Without the seat, or without an answer: the same batch is due.
            _ => self.unanswered = Some(marks),
        }
    }

    /// The page ends: a batch without an answer stays in the browser.
    pub(crate) fn end(&mut self, desks: &Desks) {
        if let Some(marks) = self.unanswered.take() {
            let suggestion = self.id.clone();
            desks.recorder.note(What::Unsent { suggestion, marks });
        }
    }

    /// A new suggestion before some marks of the text; none in an empty text.
    fn begun(desks: &Desks, desk: &Desk, peer: &Peer, random: &mut Random) -> Option<Self> {
        let text = peer.text();
        let offsets: Vec<_> =
            text.match_indices('⟦').map(|(at, _)| text[..at].encode_utf16().count()).collect();
        let mut chosen: Vec<_> = (0..=random.below(PARTS_MAX))
            .filter_map(|_| offsets.get(random.below(offsets.len())).copied())
            .collect();
        chosen.sort_unstable();
        chosen.dedup();
        if chosen.is_empty() {
            return None;
        }
        let position =
            |at: &usize| STANDARD.encode(peer.position(u32::try_from(*at).expect("short")));
        Some(Self {
            link: desk.link.clone(),
            id: format!("campaign-suggestion-{}", desks.next()),
            version: None,
            positions: chosen.iter().map(position).collect(),
            unanswered: None,
        })
    }
}

/// Decides about some open suggestions, in the versions that a server lists.
pub(crate) async fn decide(desks: &Desks, desk: &Desk, random: &mut Random) {
    let url = desks.url(random.below(SERVERS));
    let Some(reviews) = reviews(&url, &desk.writer, &desk.link).await else { return };
    let is_open = |review: &&Value| review["origin"] == "typed" && review["status"] == "open";
    let open: Vec<_> = reviews
        .iter()
        .filter(is_open)
        .take(DECIDED_AT_ONCE)
        .map(|review| json!({ "id": review["id"], "version": review["version"] }))
        .collect();
    if open.is_empty() {
        return;
    }
    let decision = if random.below(3) == 0 { "reject" } else { "accept" };
    let path = format!("/api/share-links/{}/decisions", desk.link);
    let body = json!({ "decision": decision, "reviews": open });
    Call { method: "POST", path: &path, user: &desk.writer, body: &body }.once(&url, ATTEMPT).await;
}

/// The typed suggestions of a link at one server, if it answers.
pub(crate) async fn listed(url: &str, desk: &Desk) -> Option<Vec<Listed>> {
    let reviews = reviews(url, &desk.writer, &desk.link).await?;
    let typed = reviews.iter().filter(|review| review["origin"] == "typed");
    let mut listed: Vec<_> = typed.map(listed_of).collect();
    listed.sort_unstable();
    Some(listed)
}

async fn reviews(url: &str, user: &Person, link: &str) -> Option<Vec<Value>> {
    let path = format!("/api/share-links/{link}/reviews?limit={LISTED_MAX}");
    let mut all = Vec::new();
    let mut more = String::new();
    loop {
        let path = format!("{path}{more}");
        let call = Call { method: "GET", path: &path, user, body: &Value::Null };
        let (_, answer) = call.once(url, 4 * ATTEMPT).await;
        all.extend(answer["reviews"].as_array()?.iter().cloned());
        let Some(cursor) = answer["next_cursor"].as_str() else { return Some(all) };
        more = format!("&cursor={cursor}");
    }
}

fn listed_of(review: &Value) -> Listed {
    let text = |name: &str| review[name].as_str().expect("text").to_owned();
    let parts = review["parts"].as_array().expect("parts");
    let mark = |part: &Value| marks_in(part["text"].as_str().expect("text"));
    let offset = |part: &Value| part["anchor"]["start"].as_i64().expect("an offset");
    Listed {
        id: text("id"),
        version: review["version"].as_i64().expect("a version"),
        status: text("status"),
        marks: parts.iter().flat_map(mark).collect(),
        offsets: parts.iter().map(offset).collect(),
    }
}
