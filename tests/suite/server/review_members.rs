//! Calls on the reviews of a link whose member has gone, while the registry still has the member's session:
//! the commit is behind the server's back, and the tick that compares both is a minute away (G14).

use galley::domain::ids::{DocumentId, ShareLinkId};
use galley::domain::user::User;
use galley::storage::Storage;
use galley::storage::invites::ReplacedReviewer;
use serde_json::{Value, json};

use crate::support::galley_process::Server;
use crate::support::rest_client::{Desk, Person};
use crate::support::ws_client::Peer;
use crate::support::{postgres_server, redis_server};

const TEXT: &str = "One plain sentence. Another plain sentence.";

/// Both seats of a link with two suggestions of which one is decided, and the database.
struct Seated {
    _redis: redis_server::Server,
    server: Server,
    storage: Storage,
    desk: Desk,
    peers: [Peer; 2],
    review: String,
    decision: String,
}

impl Seated {
    async fn on_both_engines() -> [Self; 2] {
        let postgres = postgres_server::shared();
        let url = postgres.url(&postgres.empty().await);
        [
            Self::with(("DATABASE__SHARED_SQLITE", "true")).await,
            Self::with(("DATABASE__URL", &url)).await,
        ]
    }

    async fn with(database: (&str, &str)) -> Self {
        let redis = redis_server::Server::start().await;
        let locks = redis.url();
        let slow = [
            ("SEATS__LEASE", "180s"),
            ("SEATS__RENEW_EVERY", "60s"),
            ("SEATS__CLIENT_TIMEOUT", "120s"),
        ];
        let settings = [&slow[..], &[("LOCKS__URL", locks.as_str()), database]].concat();
        let server = Server::with(&settings).await;
        let storage = match database {
            ("DATABASE__URL", url) => Storage::open(url).await.expect("the server's database"),
            _ => server.storage().await,
        };
        let desk = server.desk(TEXT).await;
        let peers = [server.writer(&desk).await, server.reviewer(&desk).await];
        let all = format!("/api/share-links/{}/reviews", desk.link);
        let (mut reviews, mut named) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let made = server.post(&desk.reviewer, &all, draft()).await.ok(201);
            reviews.push(made["id"].as_str().expect("an id").to_owned());
            named.push(json!({ "id": made["id"], "version": 1 }));
        }
        let decide = json!({ "decision": "reject", "reviews": [named.pop()] });
        let path = format!("/api/share-links/{}/decisions", desk.link);
        let made = server.post(&desk.writer, &path, decide).await.ok(200);
        let decision = made["id"].as_str().expect("an id").to_owned();
        Self { _redis: redis, server, storage, desk, peers, review: reviews.remove(0), decision }
    }

    fn link(&self) -> ShareLinkId {
        self.desk.link.parse().expect("an id")
    }

    fn document(&self) -> DocumentId {
        self.desk.document.parse().expect("an id")
    }

    /// The statuses of calls of a user, by their names. A status below 400 is a success.
    async fn statuses(&self, who: &Person) -> Vec<(&'static str, u16)> {
        let link = format!("/api/share-links/{}", self.desk.link);
        let (all, one) = (format!("{link}/reviews"), format!("{link}/reviews/{}", self.review));
        let body = Some(json!({ "body": "!" }));
        let nothing = format!("rev_{}", "0".repeat(32));
        let decide = |id: &str| {
            let reviews = json!([{ "id": id, "version": 1 }]);
            Some(json!({ "decision": "reject", "reviews": reviews }))
        };
        let (decisions, undo) =
            (format!("{link}/decisions"), format!("{link}/decisions/{}/undo", self.decision));
        let calls: [(&str, &str, &str, Option<Value>); 13] = [
            ("create", "POST", &all, Some(draft())),
            ("list", "GET", &all, None),
            ("get", "GET", &one, None),
            ("edit", "PATCH", &one, body.clone()),
            ("delete", "DELETE", &one, None),
            ("reply", "POST", &format!("{one}/replies"), body),
            ("resolve", "POST", &format!("{one}/resolve"), Some(json!({}))),
            ("reject", "POST", &format!("{one}/reject"), Some(json!({}))),
            ("decide", "POST", &decisions, decide(&self.review)),
            ("decide none", "POST", &decisions, decide(&nothing)),
            ("undo", "POST", &undo, Some(json!({}))),
            ("seen", "PUT", &format!("{link}/seen"), Some(json!({ "change": 1 }))),
            ("turn", "POST", &format!("{link}/turn"), Some(json!({ "to": "writer" }))),
        ];
        let mut statuses = Vec::new();
        for (what, method, path, body) in calls {
            let answer = self.server.call(who, method, path, body).await;
            statuses.push((what, answer.status.as_u16()));
        }
        statuses
    }

    /// Whether the server has heard of nothing, and the calls have changed nothing.
    async fn is_unchanged(&self) {
        for peer in &self.peers {
            assert!(peer.is_open(), "the registry has heard of it");
            let events = peer.take_events();
            assert!(!events.iter().any(|event| event["event"] == "seat.lost"), "{events:?}");
        }
        let stored =
            self.storage.reviews_unchecked(self.link(), None, 9).await.expect("readable").reviews;
        let versions: Vec<_> = stored.iter().map(|review| review.version).collect();
        assert_eq!(versions.iter().sum::<i64>(), 3, "{versions:?}");
    }
}

fn draft() -> Value {
    let anchor = json!({ "start": 4, "end": 9, "quote": "plain" });
    json!({ "anchor": anchor, "body": "?", "suggestion": "short" })
}

/// The statuses of a member whose membership the database has ended: reads, and writes that read first,
/// find nothing; other writes fail at the fence.
const REFUSED: [(&str, u16); 13] = [
    ("create", 403),
    ("list", 404),
    ("get", 404),
    ("edit", 404),
    ("delete", 404),
    ("reply", 404),
    ("resolve", 403),
    ("reject", 403),
    ("decide", 403),
    ("decide none", 403),
    ("undo", 403),
    ("seen", 404),
    ("turn", 403),
];

/// The statuses of a former writer, who decides.
const REFUSED_TO_DECIDE: [(&str, u16); 3] =
    [("resolve", 404), ("decide none", 404), ("create", 403)];

fn of_the_writer() -> [(&'static str, u16); 13] {
    REFUSED.map(|(what, status)| {
        let own = REFUSED_TO_DECIDE.iter().find(|(name, _)| *name == what);
        (what, own.map_or(status, |(_, status)| *status))
    })
}

#[tokio::test]
async fn g14_after_a_replaced_reviewer_the_first_review_is_403_although_the_registry_has_not_heard_of_it()
 {
    for seated in Seated::on_both_engines().await {
        let (park, now) = (seated.server.guest("Park").await, chrono::Utc::now());
        let user = User { id: park.id.parse().expect("an id"), name: "Park".to_owned() };
        seated.storage.join_link(seated.link(), &user, now).await.expect("refused and stored");
        let replaced = seated.storage.replace_reviewer(seated.link(), &user.id, now).await;
        assert!(matches!(replaced, Ok(ReplacedReviewer::Done(Some(_)))), "{replaced:?}");

        assert_eq!(seated.statuses(&seated.desk.reviewer).await, REFUSED);
        seated.is_unchanged().await;
        let path = format!("/api/share-links/{}/reviews", seated.desk.link);
        let list = seated.server.get(&park, &path).await.ok(200);
        assert_eq!(
            list["reviews"].as_array().map(Vec::len),
            Some(2),
            "the next reviewer reads them"
        );
    }
}

#[tokio::test]
async fn g14_after_a_revoked_link_the_first_call_on_its_reviews_is_refused_although_the_registry_has_not_heard_of_it()
 {
    for seated in Seated::on_both_engines().await {
        let revoked = seated.storage.revoke_link(seated.link(), chrono::Utc::now()).await;
        assert!(revoked.expect("revoked"));
        assert_eq!(seated.statuses(&seated.desk.writer).await, of_the_writer());
        assert_eq!(seated.statuses(&seated.desk.reviewer).await, REFUSED);
        seated.is_unchanged().await;
    }
}

#[tokio::test]
async fn g14_after_a_deleted_document_the_first_call_on_its_reviews_is_refused_although_the_registry_has_not_heard_of_it()
 {
    for seated in Seated::on_both_engines().await {
        let binned = seated.storage.bin_document(seated.document(), chrono::Utc::now()).await;
        assert!(binned.expect("deleted"));
        assert_eq!(seated.statuses(&seated.desk.writer).await, of_the_writer());
        assert_eq!(seated.statuses(&seated.desk.reviewer).await, REFUSED);
        seated.is_unchanged().await;
    }
}
