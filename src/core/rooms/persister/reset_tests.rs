//! Tests of P3: after a rejection the persister stores no further update of that room.
//!
//! The tests drain the persister's queue themselves, so that each chooses the end of a group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::set_aside::{Aside, Why};
use super::{
    Group, PendingUpdate, PersistJob, Persister, Queue, RETRY_FIRST, UpdateSource, Writer,
    persister, run,
};
use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, SessionId};
use crate::domain::seat::{Role, Seat};
use crate::outbox::outbox;
use crate::pubsub::Pubsub;
use crate::rooms::Rooms;
use crate::rooms::memory::RoomMemory;
use crate::rooms::room::review_events::missed;
use crate::rooms::room::{Opening, ResetCause, Room, Trigger};
use crate::rooms::stored_document::StoredDocument;
use crate::sessions::options::{HistoryTerms, RoomLimits};
use crate::sessions::session::{Session, SessionIdentity};
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};
use crate::storage::seats::Ratified;
use crate::tasks::Tasks;
use crate::yjs::log::{Origin, UpdateLog};
use crate::yjs::protocol;
use crate::yjs::text::document_from_text;

/// Time-out of a wait; a busy machine needs less.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The fence that the database has ratified, and an earlier fence.
const RATIFIED: Fence = Fence(5);
const FORMER: Fence = Fence(4);

/// A document with a link, and its room without its task: no reset follows a rejection.
struct Scene {
    stored: StoredDocument,
    seat: Seat,
    room: Arc<Room>,
    persister: Persister,
    queue: Queue,
}

impl Scene {
    async fn new() -> Self {
        let stored = StoredDocument::new().await;
        let StoredDocument { storage, owner, document, link, .. } = &stored;
        let seat = Seat::new(*link, Role::Writer);
        let session = SessionId::generate();
        let ratified = storage.ratify(seat, RATIFIED, session, &owner.id, Utc::now()).await;
        assert_eq!(ratified.expect("an answer"), Ratified::Accepted);
        let log = storage.log(*document).await.expect("readable").expect("a document");
        let opening = Opening {
            document: *document,
            rows: log.parts.len(),
            log: UpdateLog::open_up_to(log.parts).0,
            memory: RoomMemory::new(usize::MAX).charge(0),
            seq: log.seq,
            owners: HashMap::new(),
            review_changes: 0,
            is_damaged: false,
        };
        let (persister, queue) = persister(storage.clone());
        let room = Room::open(opening, RoomLimits::default(), persister.clone(), missed().0);
        let room = Arc::new(room);
        Self { stored, seat, room, persister, queue }
    }

    /// The room accepts an edit of a session that holds the seat under that fence, as the session
    /// knows it.
    fn types(&self, fence: Fence, client: u64, text: &str) {
        let identity = SessionIdentity {
            session: SessionId::generate(),
            seat: self.seat,
            document: self.room.document,
            user: self.stored.owner.clone(),
            resume: String::new(),
            wants_events: true,
            store_budget: None,
        };
        let session = Arc::new(Session::claiming(identity, outbox(100_000).0));
        let now = Instant::now();
        session.granted(fence, Utc::now(), now + TIMEOUT);
        let update = document_from_text(text, client);
        let taken =
            self.room.receive(Origin::Client, &session, (&update, &protocol::update(&update)), now);
        assert!(taken.is_ok() && !self.room.is_durable(), "the room has an unsaved edit");
    }

    /// The next queued update, as the persister takes it.
    async fn queued_group(&mut self) -> Group {
        let job = self.queue.jobs.recv().await.expect("a job");
        let PersistJob::Store(update) = job else { panic!("{job:?}") };
        let PendingUpdate { room, session, append } = *update;
        let mut group = Group::default();
        group.put(append, UpdateSource { room, session });
        group
    }

    async fn last_number(&self) -> i64 {
        let document = self.room.document;
        self.stored.storage.last_numbers(&[document]).await.expect("readable")[&document].update
    }
}

/// Goal: a failover lost rows while this room received no message, and another server stored other
/// edits under their numbers. The merge of the rows deletes none that the room lacks, and the next read
/// of the log finds the difference.
#[tokio::test]
async fn g7_a_room_that_missed_a_set_back_merges_no_row_that_it_lacks() {
    for merges in [true, false] {
        let Scene { stored, room, .. } = Scene::new().await;
        for number in 1..=40_i64 {
            let client = number.unsigned_abs();
            room.take_stored(number, &document_from_text("lost", client));
            let append = Append {
                document: stored.document,
                guard: None,
                update: document_from_text("stored", 100 + client),
                clients: Vec::new(),
                user: None,
                expected_seq: Some(number - 1),
                after: 0,
                now: Utc::now(),
            };
            let outcomes = stored.storage.append(&[append]).await.expect("an answer");
            assert_eq!(outcomes, [Appended::Stored { seq: number }]);
        }
        if merges {
            let (pubsub, tasks) = (Pubsub::alone(NodeId::generate()), Tasks::default());
            let (limits, terms) = (RoomLimits::default(), HistoryTerms::default());
            let storage = &stored.storage;
            let (rooms, _missed) = Rooms::start(storage, &pubsub, limits, terms, TIMEOUT, &tasks);
            rooms.maintain(&room, Trigger::Leaving).await;
        } else {
            room.catch_up(&stored.storage).await;
        }
        assert!(room.takes_no_more(), "merges: {merges}");
        let log = stored.storage.log(stored.document).await.expect("readable").expect("a log");
        assert_eq!((log.is_merged, log.parts.len()), (false, 40));
    }
}

#[tokio::test]
async fn g8_an_edit_queued_behind_a_rejected_one_of_its_room_is_not_stored() {
    let mut scene = Scene::new().await;
    let before = scene.last_number().await;
    let queue = std::mem::replace(&mut scene.queue, persister(scene.stored.storage.clone()).1);
    let (stop, pubsub) = (CancellationToken::new(), Pubsub::alone(NodeId::generate()));
    let tasks = TaskTracker::new();
    #[expect(clippy::disallowed_methods, reason = "a test")]
    tasks.spawn(run(scene.stored.storage.clone(), pubsub, queue, stop.clone()));

    scene.types(FORMER, 1, "rejected ");
    assert!(scene.persister.flush(TIMEOUT).await);
    assert!(scene.room.takes_no_more());
    // The database alone would accept this edit.
    scene.types(RATIFIED, 2, "later ");
    assert!(scene.persister.flush(TIMEOUT).await);

    assert_eq!(scene.last_number().await, before);
    stop.cancel();
}

#[tokio::test]
async fn g8_an_edit_set_aside_is_not_stored_after_a_rejection_in_its_room() {
    let mut scene = Scene::new().await;
    scene.types(RATIFIED, 1, "locked ");
    let mut aside = Aside::default();
    aside.put(scene.queued_group().await, Why::Locked);

    scene.room.request_reset(ResetCause::Orphaned);

    assert!(aside.take_due(Instant::now() + TIMEOUT, 10).is_empty());
    aside.forget_stored();
    assert!(aside.is_empty());
}

/// Goal (G16): after an outage the database rejects a row. It has replied, so the outage is over, for the
/// health check and for clients.
#[tokio::test]
async fn g16_a_rejected_row_ends_the_outage_and_its_document_is_set_aside() {
    let mut scene = Scene::new().await;
    scene.types(RATIFIED, 1, "faulty ");
    let group = scene.queued_group().await;
    let mut writer = Writer {
        storage: scene.stored.storage.clone(),
        pubsub: Pubsub::alone(NodeId::generate()),
        health: Arc::clone(&scene.queue.health),
        stop: CancellationToken::new(),
        aside: Aside::default(),
    };
    writer.record_outage(&group, StorageError::Full("the disk".to_owned()), RETRY_FIRST);
    assert!(scene.persister.error().is_some());

    writer.store_apart(group, StorageError::Refused("a row".to_owned())).await;

    assert!(scene.persister.error().is_none());
    assert!(!writer.aside.is_empty());
}

/// Goal (P4): an update that was tried goes before those that came meanwhile, and faulty documents, of which
/// each takes a transaction, take turns, however slow the transactions are.
#[tokio::test]
async fn g16_faulty_documents_take_turns_and_keep_the_order_of_their_updates() {
    let mut aside = Aside::default();
    let mut scenes = Vec::new();
    for _ in 0..8 {
        let mut scene = Scene::new().await;
        for client in 1..=3 {
            scene.types(RATIFIED, client, "faulty ");
            let group = scene.queued_group().await;
            let behind = aside.queue_behind(group);
            aside.put(behind, Why::Faulty);
        }
        scenes.push(scene);
    }
    // Not before: the database runs in real time.
    tokio::time::pause();
    let mut written = Vec::new();
    for _ in 0..2 * scenes.len() {
        // Longer than the longest pause: all are due.
        tokio::time::advance(TIMEOUT).await;
        let group = aside.take_due(Instant::now(), 2);
        let clients: Vec<_> = group.appends.iter().flat_map(|it| it.clients.clone()).collect();
        assert_eq!(clients, [1, 2]);
        written.push(group.appends[0].document);
        aside.put(group, Why::Faulty);
    }
    let (first, second) = written.split_at(scenes.len());
    let documents: HashSet<_> = first.iter().collect();
    assert_eq!((documents.len(), first), (scenes.len(), second));
}
