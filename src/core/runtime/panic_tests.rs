//! A socket task that panics leaves its room and its seat. No input makes a socket task of the
//! binary panic, so these tests drop the session as an unwinding task does.

use std::time::Duration;

use chrono::Utc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::ids::NodeId;
use crate::domain::seat::Role;
use crate::locks::Locks;
use crate::pubsub::Pubsub;
use crate::rooms::stored_document::StoredDocument;
use crate::runtime::Runtime;
use crate::seats::claim::SeatRequest;
use crate::seats::handle::SeatHandle;
use crate::seats::joining::Arriving;
use crate::seats::peers::Peers;
use crate::sessions::options::{HistoryTerms, RoomLimits, SeatTerms};

/// Longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Office {
    pub(crate) stored: StoredDocument,
    pub(crate) runtime: Runtime,
}

impl Office {
    pub(crate) async fn open() -> Self {
        let stored = StoredDocument::new().await;
        let runtime = Runtime::start(
            &stored.storage,
            Locks::memory(),
            Peers::new("galley-1".to_owned(), Pubsub::alone(NodeId::generate())),
            SeatTerms { resume_grace: Duration::from_millis(50), ..SeatTerms::default() },
            RoomLimits::default(),
            HistoryTerms::default(),
        );
        Self { stored, runtime }
    }

    pub(crate) async fn acquire_seat(&self) -> SeatHandle {
        let request = SeatRequest {
            user: self.stored.owner.clone(),
            link: self.stored.link,
            role: Role::Writer,
            wants_events: false,
            store_budget: None,
            resume: None,
            takes_over: false,
            waits: Duration::ZERO,
            issued_at: Utc::now(),
            gone: CancellationToken::new(),
            arriving: Arriving::default(),
        };
        let seats = &self.runtime.seats;
        let (outbox, _reader) = seats.outbox();
        seats.acquire_seat(request, outbox).await.expect("a free seat")
    }
}

#[tokio::test]
async fn g12_a_task_that_panics_leaves_its_room_and_its_seat() {
    let office = Office::open().await;
    let seated = office.acquire_seat().await;
    #[expect(clippy::disallowed_methods, reason = "a test")]
    let task = TaskTracker::new().spawn(async move {
        seated.heard();
        std::panic::resume_unwind(Box::new("a fault of a socket task"));
    });
    assert!(task.await.expect_err("it panicked").is_panic());
    let left = async {
        let Runtime { texts, seats, .. } = &office.runtime;
        while texts.is_open(office.stored.document) || !seats.registry().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, left).await.expect("the room is retired and the registry empty");
    office.acquire_seat().await;
}
