//! Cases of the mutating operations: the request of each, what it commits, and what the sockets of the
//! document receive from it.

use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::server::acts::Act;
use crate::server::offer_fixtures;
use crate::server::operation_fixtures::{
    Users, a_browser, a_claim, a_code, a_reply, a_review, await_event, half_a_desk,
    refused_visitor, rows, subscription,
};
use crate::server::request_operations::{prepared, stored};
use crate::support::fixtures::found;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::{Peer, State};

/// The text of a document, an edited one, and the text with the suggestion in it.
pub(crate) const OLD: &str = "text here";
const NEWER: &str = "text here!";
const ACCEPTED: &str = "word here";
/// A title and a label that no other row has.
const MARK: &str = "by this request";

/// Documents that a case may take, and the time for each but the last.
const CASES: usize = 4;
const PREPARED_WITHIN: Duration = Duration::from_secs(5);

/// A document with its users, and a request about it.
pub(crate) struct Case {
    pub(crate) act: Act,
    pub(crate) desk: Desk,
    actor: Person,
    /// The part of the path after the document or the link.
    part: String,
    /// The id of the reply or the claim that the request changes.
    reply: String,
    /// The decision to undo.
    decision: String,
    pub(crate) writer: Option<Peer>,
    pub(crate) reviewer: Option<Peer>,
}

/// An edit that both servers have: their rooms know each other.
async fn typed(writer: &Peer, reviewer: &Peer) -> Value {
    writer.append("!");
    writer.saved().await;
    reviewer.reads(NEWER).await;
    Value::Null
}

impl Case {
    /// Seats the writer on one server and the reviewer on the other.
    ///
    /// A room that subscribes while the review is published misses the event. The next tick repairs that; a
    /// test without ticks takes another document instead.
    pub(crate) async fn new(
        act: Act,
        at_writer: &Server,
        at_reviewer: &Server,
        users: &Users,
    ) -> Self {
        if matches!(act, Act::Subscribe | Act::Unsubscribe) {
            return Self::of_a_browser(act, at_writer, users.lee.clone()).await;
        }
        for _ in 1..CASES {
            let case = Self::prepare(act, at_writer, at_reviewer, users);
            if let Ok(case) = timeout(PREPARED_WITHIN, case).await {
                return case;
            }
        }
        Self::prepare(act, at_writer, at_reviewer, users).await
    }

    pub(crate) fn without_seats(
        act: Act,
        desk: Desk,
        actor: Person,
        ids: (String, String),
    ) -> Self {
        let ((part, reply), decision) = (ids, String::new());
        Self { act, desk, actor, part, reply, decision, writer: None, reviewer: None }
    }

    /// A user has ten browsers at most, and an operation has more cases: each has a user of its own.
    async fn of_a_browser(act: Act, server: &Server, lee: Person) -> Self {
        let kim = server.guest("Kim").await;
        let browser = match act {
            Act::Unsubscribe => a_browser(server, &kim).await,
            _ => String::new(),
        };
        let desk = half_a_desk(act, server, kim.clone(), lee).await;
        Self::without_seats(act, desk, kim, (browser, String::new()))
    }

    async fn prepare(act: Act, at_writer: &Server, at_reviewer: &Server, users: &Users) -> Self {
        let Users { kim, lee, admin } = users;
        let actor = match act {
            // The operation ends the token of its user.
            Act::Leave => at_writer.guest("Kim").await,
            Act::EndSession | Act::RevokeForAdmin => admin.clone(),
            _ if act.is_the_reviewers() => lee.clone(),
            _ => kim.clone(),
        };
        let (kim, lee) = (kim.clone(), lee.clone());
        if act.is_about_people() {
            let (desk, actor, part) = prepared(act, at_writer).await;
            return Self::without_seats(act, desk, actor, (part, String::new()));
        }
        if act.needs_no_seat() {
            let ids = match act {
                act if act.is_about_an_offer() => a_claim(act, at_writer, &kim, &lee).await,
                Act::EnterByCode => (a_code(at_writer, &kim).await, String::new()),
                _ => (String::new(), String::new()),
            };
            let desk = half_a_desk(act, at_writer, kim, lee).await;
            return Self::without_seats(act, desk, actor, ids);
        }
        let desk = at_writer.desk_of(kim, lee, OLD).await;
        let (writer, reviewer) = tokio::join!(
            at_writer.writer(&desk),
            at_reviewer.claim_seat(&desk, "reviewer", "events=1")
        );
        let session = reviewer.event("seat.granted").await;
        reviewer.synced().await;
        let mut reply = Value::Null;
        let part = match act {
            Act::EndSession => session["session_id"].clone(),
            Act::RemoveReviewer | Act::LeaveLink => Value::Null,
            Act::ReplaceText => typed(&writer, &reviewer).await,
            Act::ReplaceReviewer => json!(refused_visitor(at_writer, &desk).await.id),
            Act::RestoreVersion => {
                let path = format!("/api/documents/{}/versions", desk.document);
                let body = json!({ "label": "first" });
                let version = at_writer.post(&desk.writer, &path, body).await.ok(201);
                typed(&writer, &reviewer).await;
                version["id"].clone()
            }
            _ => {
                let review = a_review(act, at_writer, at_reviewer, &desk).await;
                if act.is_about_a_reply() {
                    reply = a_reply(at_writer, &desk, &review).await;
                }
                let is_updated = act.is_about_a_decided_one() || act.is_about_a_reply();
                let last = if is_updated { "review.updated" } else { "review.created" };
                // A socket that misses two changes of a review receives its last state once.
                for peer in [&writer, &reviewer] {
                    await_event(peer, last).await;
                }
                review
            }
        };
        let part = part.as_str().unwrap_or_default().to_owned();
        let reply = reply.as_str().unwrap_or_default().to_owned();
        let mut decision = String::new();
        if act == Act::UndoDecision {
            let path = format!("/api/share-links/{}/reviews/{part}", desk.link);
            let review = at_writer.get(&desk.writer, &path).await.ok(200);
            review["decision"]["id"].as_str().unwrap_or_default().clone_into(&mut decision);
            writer.reads(ACCEPTED).await;
            reviewer.reads(ACCEPTED).await;
        }
        let (writer, reviewer) = (Some(writer), Some(reviewer));
        Self { act, desk, actor, part, reply, decision, writer, reviewer }
    }

    /// The sockets of both users; for the reviewer's end, that user's socket only.
    pub(crate) fn concerned(&self) -> Vec<&Peer> {
        if !self.act.concerns_sockets() {
            return Vec::new();
        }
        let writer = self.writer.as_ref().filter(|_| !self.act.ends_the_reviewers_socket());
        writer.into_iter().chain(&self.reviewer).collect()
    }

    /// The path with its ids and its query.
    fn path(&self) -> String {
        let (_, path) = self.act.route();
        let Desk { document, link, .. } = &self.desk;
        let is_of_a_link = path.contains("/share-links/");
        let named = if is_of_a_link { link } else { document };
        let is_part = self.act == Act::Unsubscribe
            || self.act.is_about_an_offer()
            || path.contains("/review-requests/");
        let named = if is_part { &self.part } else { named };
        let path = path.replace("{id}", named).replace("{cid}", &self.reply);
        let path = ["{rid}", "{vid}", "{session_id}", "{user_id}"]
            .iter()
            .fold(path, |path, name| path.replace(name, &self.part))
            .replace("{reply}", &self.reply)
            .replace("{did}", &self.decision)
            .replace("{external_id}", document);
        match self.act {
            Act::ReplaceText => path + "?while_open=true",
            Act::PurgeDocument => path + "?permanent=true",
            Act::ImportDocument => format!("{path}?title={document}&name=text.txt"),
            _ => path,
        }
    }

    /// Method, path and body.
    pub(crate) fn request(&self) -> (&'static str, String, Option<Value>) {
        let ((method, _), path) = (self.act.route(), self.path());
        let Desk { document, invite, .. } = &self.desk;
        let anchor = json!({ "start": 5, "end": 9, "quote": "here" });
        let body = match self.act {
            Act::EnterAsGuest => json!({ "name": "Kim" }),
            Act::EnterByCode => json!({ "code": self.part }),
            Act::Subscribe => subscription(&self.actor.id),
            Act::RenameGuest => json!({ "name": document }),
            Act::SetHandle => json!({ "handle": self.part }),
            Act::SetReminders => json!({
                "review_unanswered": true,
                "seat_free": true,
                "request_unanswered": true,
                "quiet": null,
                "time_zone": self.part,
            }),
            Act::FindPerson => json!({ "to": self.part }),
            Act::SendRequest => json!({ "to": self.part, "as": "writer", "message": MARK }),
            Act::CheckInvite => json!({ "invite": invite }),
            Act::ReplaceReviewer => json!({ "user_id": self.part }),
            Act::CreateDocument | Act::FindOrCreateDocument => {
                json!({ "title": document, "text": OLD })
            }
            Act::ReplaceText => json!({ "text": MARK }),
            // The file is the JSON itself, with its quotes.
            Act::ImportDocument => json!(OLD),
            Act::RenameDocument => json!({ "title": MARK }),
            Act::SetSections => json!({ "sections": [{ "title": OLD, "limit": 500 }] }),
            Act::CreateOffer => json!({ "title": document, "capacity": 1 }),
            Act::NameVersion => json!({ "label": MARK }),
            Act::JoinShareLink => json!({ "invite": invite }),
            Act::DecideReviews => {
                json!({ "decision": "accept", "reviews": [{ "id": self.part, "version": 1 }] })
            }
            Act::CreateReview => json!({ "anchor": anchor, "body": MARK }),
            Act::Suggest => {
                // The id is unique to the document of this case.
                let id = format!("typed-{document}");
                let parts = json!([{ "at": 0, "text": MARK }]);
                json!({ "put": [{ "id": id, "version": null, "parts": parts, "body": MARK }] })
            }
            Act::EditReview | Act::ReplyToReview | Act::EditReply => json!({ "body": MARK }),
            Act::MarkSeen => json!({ "change": 1 }),
            Act::PassTurn => json!({ "to": "reviewer" }),
            Act::RevokeShareLink
            | Act::RevokeForAdmin
            | Act::RemoveReviewer
            | Act::LeaveLink
            | Act::DeleteDocument
            | Act::PurgeDocument
            | Act::DeleteReview
            | Act::DeleteReply
            | Act::RemovePartner
            | Act::EndClaim
            | Act::Unsubscribe
            | Act::EndSession => return (method, path, None),
            _ => json!({}),
        };
        (method, path, Some(body))
    }

    /// The user who sends the request.
    pub(crate) fn actor(&self) -> &Person {
        &self.actor
    }

    pub(crate) fn document(&self) -> String {
        format!("/api/documents/{}", self.desk.document)
    }

    fn link(&self) -> String {
        format!("/api/share-links/{}", self.desk.link)
    }

    /// Whether the database has the effect. A part of it without the rest is a fault.
    pub(crate) async fn is_committed(&self, server: &Server) -> bool {
        found(async || {
            let parts = self.parts(server).await;
            let first = parts.first().copied().unwrap_or_default();
            // A commit between two reads shows in the second read only.
            if parts.iter().all(|part| *part == first) { Ok(first) } else { Err((self.act, parts)) }
        })
        .await
    }

    /// The parts of the effect of an act on a user's name, an invite or the reviewer of a link.
    async fn identity_parts(&self, server: &Server) -> Vec<bool> {
        let writer = &self.desk.writer;
        let get = async |path: String| server.get(writer, &path).await;
        match self.act {
            // The name is unique to the document of this case.
            Act::RenameGuest => {
                vec![get("/api/me".to_owned()).await.ok(200)["name"] == self.desk.document]
            }
            Act::RenewInvite => {
                let path = format!("{}/share-link", self.document());
                let link = server.post(writer, &path, json!({})).await.ok(200);
                vec![link["invite"]["token"] != self.desk.invite]
            }
            Act::RemoveReviewer | Act::LeaveLink => {
                vec![get(self.link()).await.ok(200)["reviewer"].is_null()]
            }
            Act::ReplaceReviewer => {
                vec![get(self.link()).await.ok(200)["reviewer"]["id"] == self.part]
            }
            other => unreachable!("{other:?} changes no identity"),
        }
    }

    /// The parts of the effect of an act that creates a document.
    async fn created_parts(&self, server: &Server) -> Vec<bool> {
        let writer = &self.desk.writer;
        // A file of an import is the JSON of the text itself, with its quotes.
        let is_file = self.act == Act::ImportDocument;
        let text = if is_file { format!("\"{OLD}\"") } else { OLD.to_owned() };
        let list = server.get(writer, "/api/documents").await.ok(200);
        // The title is unique to the document of this case.
        let is_it = |row: &Value| row["title"] == self.desk.document;
        let made = rows(&list, "documents").into_iter().find(is_it);
        let Some(made) = made else { return vec![false] };
        let id = made["id"].as_str().expect("an id");
        vec![server.text(writer, id).await == text, made["characters"] == text.len()]
    }

    /// The parts of an effect on an offer. The title of a new one is unique to this case.
    async fn offer_parts(&self, server: &Server) -> Vec<bool> {
        let (owner, offer) = (&self.desk.writer, &self.part);
        if self.act == Act::CreateOffer {
            let list = server.get(owner, "/api/review-offers").await.ok(200);
            let is_it = |row: &Value| row["title"] == self.desk.document;
            return vec![rows(&list, "offers").iter().any(is_it)];
        }
        let seen = offer_fixtures::offer(server, owner, offer).await;
        let claims = offer_fixtures::claims(server, owner, offer).await;
        match self.act {
            Act::CloseOffer => vec![seen["state"] == "closed"],
            Act::ClaimOffer => vec![seen["remaining"] == 0, claims.len() == 1],
            Act::EndClaim => vec![seen["remaining"] == 1, claims.is_empty()],
            _ => vec![claims[0]["state"] == "accepted"],
        }
    }

    /// The parts of the effect that the database has.
    async fn parts(&self, server: &Server) -> Vec<bool> {
        let writer = &self.desk.writer;
        let get = async |path: String| server.get(writer, &path).await;
        let is_gone = async |path: String| get(path).await.status == 404;
        let text = async || server.text(writer, &self.desk.document).await;
        match self.act {
            act if act.is_stateless() => Vec::new(),
            act if act.is_about_people() => stored(act, server, &self.desk, &self.part).await,
            act if act.is_about_an_offer() => self.offer_parts(server).await,
            act if act.is_about_members() => self.identity_parts(server).await,
            Act::CreateDocument | Act::FindOrCreateDocument | Act::ImportDocument => {
                self.created_parts(server).await
            }
            Act::ReplaceText => {
                vec![self.has_version(server, "kind", "pause").await, text().await == MARK]
            }
            Act::RenameDocument => vec![get(self.document()).await.ok(200)["title"] == MARK],
            Act::SetSections => vec![self.has_section(server).await],
            Act::ShareDocument => {
                let list = get("/api/share-links".to_owned()).await.ok(200);
                let is_its = |row: &Value| row["document_id"] == self.desk.document;
                vec![rows(&list, "share_links").iter().any(is_its)]
            }
            Act::JoinShareLink => vec![!get(self.link()).await.ok(200)["reviewer"].is_null()],
            Act::NameVersion => vec![self.has_version(server, "label", MARK).await],
            Act::RestoreVersion => {
                vec![self.has_version(server, "kind", "restore").await, text().await == OLD]
            }
            Act::RevokeShareLink | Act::RevokeForAdmin => vec![is_gone(self.link()).await],
            Act::PurgeDocument => {
                let bin = get("/api/documents?deleted=true".to_owned()).await.ok(200);
                let is_it = |row: &Value| row["id"] == self.desk.document;
                vec![!rows(&bin, "documents").iter().any(is_it)]
            }
            Act::RestoreDocument => {
                vec![!is_gone(self.document()).await, !is_gone(self.link()).await]
            }
            Act::Subscribe | Act::Unsubscribe => {
                let list = get("/api/push-subscriptions".to_owned()).await.ok(200);
                vec![rows(&list, "subscriptions").is_empty() == (self.act == Act::Unsubscribe)]
            }
            Act::MarkSeen => vec![get(self.link()).await.ok(200)["seen"] == 1],
            Act::PassTurn => vec![get(self.link()).await.ok(200)["turn"]["role"] == "reviewer"],
            Act::DeleteDocument => {
                vec![is_gone(self.link()).await, is_gone(self.document()).await]
            }
            Act::CreateReview | Act::Suggest => {
                let list = get(format!("{}/reviews", self.link())).await.ok(200);
                vec![rows(&list, "reviews").iter().any(|review| review["body"] == MARK)]
            }
            Act::EndSession => {
                let path = format!("/api/admin/sessions/{}", self.part);
                vec![server.get(&self.actor, &path).await.status == 404]
            }
            _ => {
                let review = get(format!("{}/reviews/{}", self.link(), self.part)).await;
                if self.act == Act::DeleteReview {
                    return vec![review.status == 404];
                }
                let is_done = self.is_done_to(&review.ok(200));
                match self.act {
                    Act::AcceptReview | Act::DecideReviews => {
                        vec![is_done, text().await == ACCEPTED]
                    }
                    Act::UndoDecision => vec![is_done, text().await == OLD],
                    _ => vec![is_done],
                }
            }
        }
    }

    async fn has_section(&self, server: &Server) -> bool {
        let path = format!("{}/sections", self.document());
        server.get(&self.desk.writer, &path).await.ok(200)["sections"][0]["limit"] == 500
    }

    /// Whether a review has the state that the request causes.
    fn is_done_to(&self, review: &Value) -> bool {
        match self.act {
            Act::EditReview => review["body"] == MARK,
            Act::ReplyToReview => review["replies"][0].is_object(),
            Act::EditReply => review["replies"][0]["body"] == MARK,
            Act::DeleteReply => review["replies"] == json!([]),
            Act::RejectReview => review["status"] == "rejected",
            Act::ResolveReview => review["status"] == "resolved",
            Act::ReopenReview | Act::UndoDecision => review["status"] == "open",
            Act::AcceptReview | Act::DecideReviews => review["status"] == "accepted",
            other => panic!("{other:?} changes no review"),
        }
    }

    /// Waits until a socket has the effect.
    pub(crate) async fn reaches(&self, peer: &Peer) {
        let what = format!("the effect of {:?}", self.act);
        peer.until(&what, |state| self.shows(state).then_some(())).await;
    }

    /// Whether a socket has received the effect.
    pub(crate) fn shows(&self, state: &State) -> bool {
        let has_event = |name: &str, is_it: &dyn Fn(&Value) -> bool| {
            state.events.iter().any(|event| event["event"] == name && is_it(&event["review"]))
        };
        let code = state.closed.as_ref().map(|(code, _)| *code);
        match self.act {
            Act::RevokeShareLink | Act::RevokeForAdmin | Act::DeleteDocument => code == Some(4404),
            Act::EndSession => code == Some(4410),
            Act::RemoveReviewer | Act::ReplaceReviewer | Act::LeaveLink => code == Some(4403),
            Act::RestoreVersion => state.text() == OLD,
            Act::ReplaceText => state.text() == MARK,
            Act::SetSections => {
                state.events.iter().any(|event| event["sections"][0]["limit"] == 500)
            }
            Act::CreateReview | Act::Suggest => {
                has_event("review.created", &|review| review["body"] == MARK)
            }
            Act::DeleteReview => has_event("review.deleted", &|_review| true),
            Act::AcceptReview | Act::DecideReviews | Act::UndoDecision => {
                state.text() == if self.act == Act::UndoDecision { OLD } else { ACCEPTED }
                    && has_event("review.updated", &|review| self.is_done_to(review))
            }
            Act::PassTurn => {
                let events = &mut state.events.iter();
                events.any(|event| event["turn"]["role"] == "reviewer")
            }
            Act::EditReview
            | Act::ReplyToReview
            | Act::EditReply
            | Act::DeleteReply
            | Act::RejectReview
            | Act::ResolveReview
            | Act::ReopenReview => has_event("review.updated", &|review| self.is_done_to(review)),
            _ => false,
        }
    }

    /// Holds that the database stores an edit of the writer, and that the reviewer
    /// receives it, also after a failed request. False: the server closed a socket.
    pub(crate) async fn works_on(&self) -> bool {
        let (Some(writer), Some(reviewer)) = (&self.writer, &self.reviewer) else { return true };
        writer.append("…");
        let is_closed = |state: &State| state.closed.is_some();
        let reaches = |state: &mut State| {
            (is_closed(state) || state.text().ends_with('…')).then(|| !is_closed(state))
        };
        // A server that has closed the writer's socket accepts no edit.
        reviewer.until("the next edit", reaches).await && {
            writer.saved().await;
            true
        }
    }
}
