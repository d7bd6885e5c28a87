//! An empty database of either engine, and short calls that fill it.

use std::future::Future;
use std::time::Duration;

use crate::storage::files;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use galley::domain::anchor::{AnchorOrigin, RelativeRange, TextRange};
use galley::domain::fence::Fence;
use galley::domain::ids::{
    DocumentId, InviteId, ReplyId, ReviewId, SessionId, ShareLinkId, UserId,
};
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::storage::Storage;
use galley::storage::documents::{Document, NewDocument};
use galley::storage::guard::FenceGuard;
use galley::storage::invites::NewInvite;
use galley::storage::links::{FindOrCreate, NewShareLink, ShareLink};
use galley::storage::log::{Append, Appended, Covers};
use galley::storage::replies::NewReply;
use galley::storage::reviews::NewReview;
use galley::storage::seats::Ratified;
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};
use tempfile::TempDir;

use crate::support::postgres_server;
use crate::support::postgres_server::Database;

/// Longer than any call here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Every update is in the snapshot.
pub(crate) const ALL: &Covers = &|_| true;

/// An empty database. Its drop deletes it.
pub(crate) struct Desk {
    pub(crate) location: Location,
    pub(crate) storage: Storage,
}

/// The location of the database.
pub(crate) enum Location {
    Folder(TempDir),
    Server(Database),
}

impl Location {
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Folder(folder) => url(folder),
            Self::Server(database) => database.url(),
        }
    }

    /// A connection outside Galley's pool.
    pub(crate) async fn stranger(&self) -> Stranger {
        match self {
            Self::Folder(folder) => Stranger::Sqlite(files::stranger(&url(folder)).await),
            Self::Server(database) => {
                Stranger::Postgres(postgres_server::stranger(&database.url()).await)
            }
        }
    }
}

/// A connection outside Galley's pool.
pub(crate) enum Stranger {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Stranger {
    /// Runs statements; returns the number of rows that they changed.
    pub(crate) async fn run(&mut self, sql: impl Into<String>) -> u64 {
        let sql = AssertSqlSafe(sql.into());
        match self {
            Self::Sqlite(connection) => {
                sqlx::raw_sql(sql).execute(connection).await.unwrap().rows_affected()
            }
            Self::Postgres(connection) => {
                sqlx::raw_sql(sql).execute(connection).await.unwrap().rows_affected()
            }
        }
    }
}

impl Desk {
    pub(crate) async fn sqlite() -> Self {
        Self::at(Location::Folder(tempfile::tempdir().unwrap())).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::at(Location::Server(postgres_server::shared().database().await)).await
    }

    async fn at(location: Location) -> Self {
        let storage = Storage::open(&location.url()).await.unwrap();
        Self { location, storage }
    }

    /// A second storage of the same database. To the database it is a second process.
    pub(crate) async fn another(&self) -> Storage {
        Storage::open(&self.location.url()).await.unwrap()
    }

    pub(crate) async fn document(&self) -> DocumentId {
        self.document_of(&user("kim"), at(0)).await.id
    }

    pub(crate) async fn document_of(&self, owner: &User, now: DateTime<Utc>) -> Document {
        self.storage.create_document(&new_document(owner, now)).await.unwrap()
    }

    pub(crate) async fn link(&self, document: DocumentId) -> ShareLink {
        let (link, found) =
            self.storage.find_or_create_link(&new_link(document)).await.unwrap().unwrap();
        assert_eq!(found, FindOrCreate::Created);
        link
    }

    /// A document with a link, its writer's seat (fence 10) and its reviewer's seat (fence 20).
    pub(crate) async fn seated(&self) -> Seated {
        let document = self.document().await;
        let link = self.link(document).await.id;
        let writer = self.seat(link, Role::Writer, 10).await;
        let reviewer = self.seat(link, Role::Reviewer, 20).await;
        Seated { document, link, writer, reviewer }
    }

    pub(crate) async fn seat(&self, link: ShareLinkId, role: Role, fence: u64) -> FenceGuard {
        let seat = Seat::new(link, role);
        let ratified = ratify(&self.storage, seat, fence).await;
        assert_eq!(ratified, Ratified::Accepted);
        FenceGuard { seat, fence: Fence(fence) }
    }

    /// Commits one update and returns its outcome.
    pub(crate) async fn append(&self, append: Append) -> Appended {
        append_one(&self.storage, append).await
    }

    /// The owner of each Yjs client id of the document.
    pub(crate) async fn owners(&self, document: DocumentId) -> Vec<(u64, UserId)> {
        self.storage.log(document).await.unwrap().unwrap().owners
    }

    /// The content of the log: all parts in sequence.
    pub(crate) async fn text(&self, document: DocumentId) -> Vec<u8> {
        self.storage.log(document).await.unwrap().unwrap().parts.concat()
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Seated {
    pub(crate) document: DocumentId,
    pub(crate) link: ShareLinkId,
    pub(crate) writer: FenceGuard,
    pub(crate) reviewer: FenceGuard,
}

pub(crate) fn url(folder: &TempDir) -> String {
    format!("sqlite://{}", folder.path().join("galley.db").display())
}

pub(crate) fn user(name: &str) -> User {
    User { id: name.parse().unwrap(), name: name.to_uppercase() }
}

/// `seconds` after a fixed time.
pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_800_000_000_123).unwrap() + TimeDelta::seconds(seconds)
}

pub(crate) fn new_document(owner: &User, now: DateTime<Utc>) -> NewDocument {
    NewDocument {
        external_id: None,
        id: DocumentId::generate(),
        title: "지원서".to_owned(),
        owner: owner.clone(),
        update: Bytes::new(),
        characters: 0,
        sections: Vec::new(),
        now,
    }
}

/// An empty document in the database of a single test.
pub(crate) async fn document_of(storage: &Storage, owner: &User) -> DocumentId {
    storage.create_document(&new_document(owner, at(0))).await.unwrap().id
}

pub(crate) fn new_link(document_id: DocumentId) -> NewShareLink {
    NewShareLink { id: ShareLinkId::generate(), document_id, invite_hash: [7; 32], now: at(1) }
}

pub(crate) fn new_invite(hash: [u8; 32], now: DateTime<Utc>) -> NewInvite {
    NewInvite { id: InviteId::generate(), hash, now }
}

pub(crate) async fn ratify(storage: &Storage, seat: Seat, fence: u64) -> Ratified {
    let session = SessionId::generate();
    let holder = user(if seat.role == Role::Writer { "kim" } else { "lee" });
    if seat.role == Role::Reviewer {
        // Only the reviewer of the link gets a grant of that seat.
        storage.join_link(seat.link, &holder, at(1)).await.unwrap();
    }
    storage.ratify(seat, Fence(fence), session, &holder.id, at(2)).await.unwrap()
}

/// The last ratified fence of a seat on an existing link.
pub(crate) async fn floor(storage: &Storage, seat: Seat) -> Fence {
    storage.seat_lookup(seat).await.unwrap().unwrap().floor
}

/// An edit by kim that every check accepts.
pub(crate) fn edit(document: DocumentId, update: impl Into<Bytes>) -> Append {
    Append {
        document,
        guard: None,
        update: update.into(),
        clients: Vec::new(),
        user: Some(user("kim").id),
        expected_seq: None,
        after: 0,
        now: at(3),
    }
}

/// Commits one update. Repeats it while another transaction locks the document, as the persister
/// does.
pub(crate) async fn append_one(storage: &Storage, append: Append) -> Appended {
    loop {
        let outcome = storage.append(std::slice::from_ref(&append)).await.unwrap().pop().unwrap();
        if outcome != Appended::Busy {
            return outcome;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) fn new_review(link: ShareLinkId) -> NewReview {
    NewReview {
        id: ReviewId::generate(),
        link,
        author: user("lee"),
        is_summary: false,
        origin: AnchorOrigin {
            range: TextRange { start: 3, end: 5 },
            quote: "성실".to_owned(),
            prefix: "저는 ".to_owned(),
            suffix: "합니다 🙂".to_owned(),
        },
        current: RelativeRange { start: vec![1, 2], end: vec![3, 4] },
        body: "예를 들어 주세요".to_owned(),
        suggestion: Some("끈기".to_owned()),
        now: at(4),
    }
}

pub(crate) fn new_reply(body: &str) -> NewReply {
    NewReply { id: ReplyId::generate(), author: user("kim"), body: body.to_owned() }
}

/// The future's output. A timeout fails the test.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("an answer in time")
}
