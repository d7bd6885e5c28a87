//! Two servers on one database, and the suggestions of one document on them.

use std::sync::Arc;

use chrono::Utc;
use galley::domain::anchor::AnchorRequest;
use galley::domain::fence::Fence;
use galley::domain::ids::{ReviewId, SessionId};
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::storage::Storage;
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::reviews::NewReview;
use galley::yjs::log::UpdateLog;
use galley::yjs::text::Text;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::redis_server;
use crate::support::rest_client::{Answer, Desk, Person};
use crate::support::ws_client::Peer;

/// Two servers on one database.
pub(crate) struct Pair {
    _redis: redis_server::Server,
    pub(crate) one: Server,
    pub(crate) two: Server,
    database: String,
}

impl Pair {
    pub(crate) async fn sqlite() -> Self {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let database = format!("sqlite://{}/data/galley.db", folder.path().display());
        Self::start(folder, database, ("DATABASE__SHARED_SQLITE", "true".to_owned())).await
    }

    pub(crate) async fn postgres() -> Self {
        let postgres = postgres_server::shared();
        let database = postgres.url(&postgres.empty().await);
        let folder = Arc::new(TempDir::new().expect("a folder"));
        Self::start(folder, database.clone(), ("DATABASE__URL", database)).await
    }

    async fn start(folder: Arc<TempDir>, database: String, own: (&str, String)) -> Self {
        let redis = redis_server::Server::start().await;
        let url = redis.url();
        let settings = [
            ("LOCKS__URL", url.as_str()),
            ("LIMITS__DOCUMENT_BYTES", "300000"),
            ("LIMITS__MESSAGE_BYTES", "65536"),
            (own.0, own.1.as_str()),
        ];
        let one = Server::in_folder(folder, &settings).await;
        let two = one.beside().await;
        Self { _redis: redis, one, two, database }
    }

    /// A document, with its writer on the first server and its reviewer on the second.
    pub(crate) async fn table(&self, text: &str) -> Table<'_> {
        self.seats(self.one.desk(text).await).await
    }

    pub(crate) async fn seats(&self, desk: Desk) -> Table<'_> {
        let (writer, reviewer) = tokio::join!(
            self.one.claim_seat(&desk, "writer", "events=1"),
            self.two.claim_seat(&desk, "reviewer", "events=1")
        );
        let fence = writer.event("seat.granted").await["fence"].as_u64().expect("a fence");
        let fence = Fence(fence);
        reviewer.event("seat.granted").await;
        writer.synced().await;
        reviewer.synced().await;
        Table { pair: self, desk, writer, reviewer, fence }
    }

    pub(crate) async fn storage(&self) -> Storage {
        Storage::open(&self.database).await.expect("the servers' database")
    }
}

pub(crate) struct Table<'a> {
    pair: &'a Pair,
    pub(crate) desk: Desk,
    pub(crate) writer: Peer,
    pub(crate) reviewer: Peer,
    /// The fence of the writer.
    pub(crate) fence: Fence,
}

impl Table<'_> {
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/share-links/{}{rest}", self.desk.link)
    }

    /// Suggests on the second server: the quote is at its first place.
    pub(crate) async fn suggest(&self, quote: &str, suggestion: Option<&str>) -> Value {
        let text = self.reviewer.text();
        let start = text[..text.find(quote).expect("the quote")].encode_utf16().count();
        let end = start + quote.encode_utf16().count();
        let anchor = json!({ "start": start, "end": end, "quote": quote });
        let body = json!({ "anchor": anchor, "body": "why", "suggestion": suggestion });
        let path = self.path("/reviews");
        self.pair.two.post(&self.desk.reviewer, &path, body).await.ok(201)
    }

    pub(crate) async fn decide(&self, decision: &str, reviews: &[(&Value, i64)]) -> Answer {
        let reviews: Vec<_> =
            reviews.iter().map(|(id, version)| json!({ "id": id, "version": version })).collect();
        let body = json!({ "decision": decision, "reviews": reviews });
        self.pair.one.post(&self.desk.writer, &self.path("/decisions"), body).await
    }

    pub(crate) async fn undo_as(&self, who: &Person, id: &Value) -> Answer {
        let id = id.as_str().expect("an id");
        let path = self.path(&format!("/decisions/{id}/undo"));
        // The server without the writer's socket.
        self.pair.two.post(who, &path, json!({})).await
    }

    pub(crate) async fn undo(&self, id: &Value) -> Answer {
        self.undo_as(&self.desk.writer, id).await
    }

    pub(crate) async fn review(&self, review: &Value) -> Value {
        let path = self.path(&format!("/reviews/{}", review["id"].as_str().expect("an id")));
        self.pair.two.get(&self.desk.writer, &path).await.ok(200)
    }

    /// Both users and the database have this text.
    pub(crate) async fn reads(&self, text: &str) {
        self.writer.reads(text).await;
        self.reviewer.reads(text).await;
        assert_eq!(self.pair.two.text(&self.desk.writer, &self.desk.document).await, text);
    }
}

impl Pair {
    /// Stores many suggestions without a server, before a seat is claimed: quote, start, suggestion.
    pub(crate) async fn suggest_many(
        &self,
        desk: &Desk,
        suggestions: &[(&str, u32, &str)],
    ) -> Vec<ReviewId> {
        let storage = self.storage().await;
        let document = desk.document.parse().expect("an id");
        let log = storage.log(document).await.expect("the log").expect("a document");
        let text = Text::build(&UpdateLog::open(log.parts).expect("a log").merged()).expect("text");
        let link = desk.link.parse().expect("an id");
        let guard = FenceGuard { seat: Seat::new(link, Role::Reviewer), fence: Fence(1) };
        let Person { id, name, .. } = &desk.reviewer;
        let author = User { id: id.parse().expect("an id"), name: name.clone() };
        let (session, now) = (SessionId::generate(), Utc::now());
        storage.ratify(guard.seat, guard.fence, session, &author.id, now).await.expect("ratified");
        let mut ids = Vec::new();
        for (quote, start, suggestion) in suggestions {
            let end = start + u32::try_from(quote.encode_utf16().count()).expect("short");
            let request = AnchorRequest { start: *start, end, quote: (*quote).to_owned() };
            let (origin, current) = text.anchor(&request).expect("the quote");
            let id = ReviewId::generate();
            let (author, body) = (author.clone(), String::new());
            let suggestion = Some((*suggestion).to_owned());
            let now = Utc::now();
            let is_summary = false;
            let new =
                NewReview { id, link, author, is_summary, origin, current, body, suggestion, now };
            let made = storage.create_review(&new, guard).await.expect("stored");
            assert!(matches!(made, Guarded::Done(_)), "{made:?}");
            ids.push(id);
        }
        ids
    }
}
