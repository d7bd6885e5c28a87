//! Delivery of changed reviews whose message a room missed (G15).
//!
//! A room reports itself when a number is missing, and each tick compares all rooms with the
//! database. This task reads the changes, resolves their places and delivers them in the order of
//! their numbers.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::bounds::permits::Requester;
use crate::domain::section::StoredSection;
use crate::outbox::event::Event;
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::RoomError;
use crate::rooms::room::Room;
use crate::rooms::room::review_events::MissedQueue;
use crate::seats::SeatError;
use crate::storage::review_changes::ManyChanged;
use crate::storage::review_rows::StoredReview;
use crate::yjs::text::Text;

/// Rooms in work at once: as many as the number of texts built at once, so a slow text delays no
/// other room.
const READ_AT_ONCE: usize = 4;

impl Reviews {
    /// Reads and delivers for the rooms of `queue`, until the sessions have finished.
    pub(super) async fn read_missed(self, mut queue: MissedQueue) {
        let permits = Arc::new(Semaphore::new(READ_AT_ONCE));
        while let Some(Some(room)) = self.tasks.finished.run_until_cancelled(queue.recv()).await {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let reviews = self.clone();
            #[expect(clippy::disallowed_methods, reason = "under the permit")]
            self.tasks.tracker.spawn(async move {
                reviews.try_deliver_missed(&room).await;
                drop(permit);
            });
        }
    }

    /// The next tick finds the room again after a failure.
    async fn try_deliver_missed(&self, room: &Arc<Room>) {
        if let Err(error) = self.deliver_missed(room).await {
            let document = room.document;
            tracing::warn!(%document, %error, "changed reviews cannot be delivered yet");
        }
    }

    async fn deliver_missed(&self, room: &Arc<Room>) -> Result<(), ReviewError> {
        let (document, after) = (room.document, room.review_changes());
        // A room without members needs no event, and a deleted document has none.
        let changes = self.storage.review_changes(document, after).await?;
        let Some(changes) = changes.filter(|changes| after < changes.upto) else { return Ok(()) };
        if !changes.is_whole(after) {
            room.reviews_are_lost(changes.upto);
            return Ok(());
        }
        let mut events = self.events_of(room, changes.changed, after).await?;
        for many in changes.decided {
            events.push((many.change, event_of(&many)));
        }
        for deleted in changes.deleted {
            let gone = Event::ReviewGone { id: deleted.id, link: deleted.link };
            events.push((deleted.change, gone.json()));
        }
        if let Some(passed) = changes.turn {
            events.push((passed.change, Event::TurnChanged(&passed.turn).json()));
        }
        if let Some((change, stored)) = changes.sections {
            events.push((change, self.sections_event(room, stored).await?));
        }
        events.sort_by_key(|(change, _)| *change);
        room.take_missed_reviews(changes.upto, &events);
        Ok(())
    }

    async fn sections_event(
        &self,
        room: &Room,
        stored: Vec<StoredSection>,
    ) -> Result<String, RoomError> {
        let server = Requester::Server(room.document);
        let read = move |text: &Text| text.resolve_sections(stored);
        let sections = self.texts.read(room.document, &server, read).await?;
        Ok(Event::SectionsChanged(&sections).json())
    }

    async fn events_of(
        &self,
        room: &Room,
        changed: Vec<StoredReview>,
        after: i64,
    ) -> Result<Vec<(i64, String)>, ReviewError> {
        let numbers: Vec<_> = changed.iter().map(|review| review.changes).collect();
        let server = Requester::Server(room.document);
        let placed = match self.resolve(room.document, &server, changed.clone()).await {
            // The words of a review are delivered even if its place cannot be resolved.
            Err(ReviewError::Session(SeatError::Room(RoomError::TooCostly | RoomError::Busy))) => {
                Self::unplaced(changed)
            }
            placed => placed?,
        };
        let events = placed.iter().zip(numbers).map(|(review, (first, last))| {
            let is_new = after < first;
            let event =
                if is_new { Event::ReviewCreated(review) } else { Event::ReviewUpdated(review) };
            (last, event.json())
        });
        Ok(events.collect())
    }
}

fn event_of(many: &ManyChanged) -> String {
    let ManyChanged { id, made, reviews, .. } = many;
    match made {
        Some((verdict, by)) => {
            Event::DecisionMade { id: *id, verdict: *verdict, done: reviews, by }.json()
        }
        None => {
            let undone: Vec<_> = reviews.iter().map(|(review, _)| *review).collect();
            Event::DecisionUndone { id: *id, undone: &undone }.json()
        }
    }
}
