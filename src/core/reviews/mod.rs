//! Reviews: comments and suggestions, anchored to the text.
//!
//! A session that creates, changes or decides a review must hold the seat for it at that moment.
//! [`member`] checks it, and the database again in the transaction of the write.
//!
//! # Cancel safety
//!
//! A change that its caller drops may be committed without its messages. The other sessions then receive
//! the effect at their next tick (G15). So a route runs its handler to the end.

pub mod anchors;
pub(crate) mod decide;
pub(crate) mod decision_versions;
pub mod decisions;
pub(crate) mod error;
pub mod member;
pub(crate) mod missed;
pub mod plan;
pub(crate) mod progress;
pub(crate) mod ranges;
pub(crate) mod replies;
pub mod suggestions;
pub(crate) mod undo;

use chrono::Utc;

use crate::bounds::permits::Requester;
use crate::domain::anchor::{Anchor, AnchorOrigin, AnchorRequest, RelativeRange};
use crate::domain::ids::{DocumentId, ReviewId};
use crate::domain::limits::{REVIEW_BODY_BYTES_MAX, SUGGESTION_BYTES_MAX};
use crate::domain::review::{DecisionRefused, Review, ReviewKind, ReviewStatus};
use crate::domain::text::incoming;
use crate::domain::user::User;
use crate::outbox::event::Event;
use crate::reviews::anchors::to_review;
pub use crate::reviews::error::ReviewError;
use crate::reviews::error::done;
use crate::reviews::member::MemberLink;
use crate::rooms::RoomError;
use crate::rooms::room::review_events::MissedQueue;
use crate::rooms::server_edit::TRIES;
use crate::rooms::texts::Texts;
use crate::seats::{SeatError, Seats};
use crate::storage::Storage;
use crate::storage::guard::FenceGuard;
use crate::storage::pagination::Cursor;
use crate::storage::review_rows::StoredReview;
use crate::storage::reviews::{NewReview, ReviewChange};
use crate::tasks::Tasks;
use crate::yjs::error::AnchorMismatch;
use crate::yjs::text::{Effort, Resolved, Text};

/// Bytes of an event about a review besides its texts: ids, names, times.
const EVENT_BYTES: usize = 512;

#[derive(Clone, Debug)]
pub struct Draft {
    /// The place, and the text that the client saw there. `None`: the whole text.
    pub anchor: Option<AnchorRequest>,
    pub body: String,
    pub suggestion: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    pub body: Option<String>,
    /// A new suggestion, or its removal.
    pub suggestion: Option<Option<String>>,
}

impl Draft {
    fn with_clean_texts(self) -> Self {
        let body = incoming(&self.body);
        let suggestion = self.suggestion.as_deref().map(incoming);
        Self { body, suggestion, ..self }
    }
}

impl Revision {
    fn with_clean_texts(&self) -> Self {
        let suggestion = self.suggestion.as_ref();
        Self {
            body: self.body.as_deref().map(incoming),
            suggestion: suggestion.map(|text| text.as_deref().map(incoming)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Reviews {
    seats: Seats,
    texts: Texts,
    storage: Storage,
    tasks: Tasks,
}

impl Reviews {
    /// Starts the delivery of the changes that rooms of `queue` missed.
    #[must_use]
    pub fn start(
        storage: &Storage,
        seats: &Seats,
        texts: &Texts,
        tasks: &Tasks,
        queue: MissedQueue,
    ) -> Self {
        let (seats, texts, storage) = (seats.clone(), texts.clone(), storage.clone());
        let reviews = Self { seats, texts, storage, tasks: tasks.clone() };
        tasks.spawn_critical("missed reviews", reviews.clone().read_missed(queue));
        reviews
    }

    /// The reviews of a page that have this status and kind, with their current places; the cursor is
    /// that of the next page.
    pub async fn list(
        &self,
        link: &MemberLink,
        after: Option<Cursor<ReviewId>>,
        rows: u32,
        status: Option<ReviewStatus>,
        kind: Option<ReviewKind>,
    ) -> Result<(Vec<Review>, Option<Cursor<ReviewId>>), ReviewError> {
        let storage = &self.storage;
        let page = storage.reviews(link, after, rows).await?;
        let mut page = page.ok_or(ReviewError::NotFound("share link"))?;
        page.reviews.retain(|review| {
            status.is_none_or(|status| review.status == status)
                && kind.is_none_or(|kind| review.kind() == kind)
        });
        Ok((self.resolve(link.document, &link.requester, page.reviews).await?, page.next))
    }

    /// The current text of a document with all open suggestions that an acceptance of all would take, and
    /// the number of the others.
    pub async fn accepted_text(
        &self,
        document: DocumentId,
        requester: &Requester,
    ) -> Result<(String, usize), ReviewError> {
        let mut open = match self.storage.link_of(document).await? {
            Some(link) => self.storage.all_reviews_unchecked(link.id).await?,
            None => Vec::new(),
        };
        open.retain(|review| review.status == ReviewStatus::Open && review.suggestion.is_some());
        let read = move |text: &Text| plan::accepted_text(text, &open);
        Ok(self.texts.read(document, requester, read).await?)
    }

    /// With its current place.
    pub async fn get(&self, link: &MemberLink, id: ReviewId) -> Result<Review, ReviewError> {
        let stored = self.find(link, id).await?;
        self.resolve_one(link, stored).await
    }

    /// Needs the caller's own seat, and for a suggestion the reviewer's.
    pub async fn create(&self, link: &MemberLink, draft: Draft) -> Result<Review, ReviewError> {
        let draft = draft.with_clean_texts();
        check_words(&draft.body, draft.suggestion.as_deref())?;
        if draft.anchor.is_none() && draft.suggestion.is_some() {
            return Err(ReviewError::NothingToReplace);
        }
        let guard = self.guard(link, link.role_for(draft.suggestion.as_ref())).await?;
        self.demand_room()?;
        let quoted = draft.anchor.as_ref().map_or(0, |anchor| anchor.quote.len());
        let suggested = draft.suggestion.as_ref().map_or(0, String::len);
        self.charge(&link.user, quoted + draft.body.len() + suggested)?;
        let is_summary = draft.anchor.is_none();
        let (origin, current, anchors) = match draft.anchor {
            Some(request) => self.anchor(link, request).await?,
            None => (AnchorOrigin::of_whole_text(), RelativeRange::of_whole_text(), Vec::new()),
        };
        let new = NewReview {
            id: ReviewId::generate(),
            link: link.id,
            author: link.user.clone(),
            is_summary,
            origin,
            current,
            body: draft.body,
            suggestion: draft.suggestion,
            now: Utc::now(),
        };
        let stored = done(self.storage.create_review(&new, guard).await?, guard)?;
        let (_, change) = stored.changes;
        let review = to_review(stored, anchors);
        self.announce(link, change, &Event::ReviewCreated(&review)).await;
        Ok(review)
    }

    /// The anchor to store, and its place in the text that was built for it.
    async fn anchor(
        &self,
        link: &MemberLink,
        request: AnchorRequest,
    ) -> Result<(AnchorOrigin, RelativeRange, Vec<Anchor>), ReviewError> {
        let anchor = move |text: &Text| {
            let (origin, current) = text.anchor(&request)?;
            let Resolved { anchor, .. } =
                text.resolve_within(&origin, &current, &mut Effort::default());
            Ok::<_, AnchorMismatch>((origin, current, vec![anchor]))
        };
        let anchored = self.texts.read(link.document, &link.requester, anchor).await?;
        anchored.map_err(|_| ReviewError::AnchorMismatch)
    }

    /// Only its author may, with the own seat. [`ReviewError::VersionMismatch`]: `expected` is no longer
    /// its version.
    pub async fn edit(
        &self,
        link: &MemberLink,
        id: ReviewId,
        revision: Revision,
        expected: Option<i64>,
    ) -> Result<Review, ReviewError> {
        let revision = revision.with_clean_texts();
        let suggested = revision.suggestion.as_ref().and_then(Option::as_ref);
        let guard = self.guard(link, link.role_for(suggested)).await?;
        for _ in 0..TRIES {
            match self.try_edit(link, id, revision.clone(), expected, guard).await {
                // The writer decided in between.
                Err(ReviewError::VersionMismatch { .. }) if expected.is_none() => {}
                edited => return edited,
            }
        }
        Err(ReviewError::Contended)
    }

    async fn try_edit(
        &self,
        link: &MemberLink,
        id: ReviewId,
        revision: Revision,
        expected: Option<i64>,
        guard: FenceGuard,
    ) -> Result<Review, ReviewError> {
        let stored = self.own(link, id).await?;
        if stored.status != ReviewStatus::Open {
            return Err(DecisionRefused::NotOpen.into());
        }
        if stored.is_summary && matches!(revision.suggestion, Some(Some(_))) {
            return Err(ReviewError::NothingToReplace);
        }
        if revision.suggestion.is_some() && !can_change_by_form(&stored) {
            return Err(ReviewError::TypedParts);
        }
        if revision == Revision::default() {
            // An empty revision changes nothing, so the version stays.
            let is_meant = expected.is_none_or(|expected| expected == stored.version);
            let current = stored.version;
            return match is_meant {
                true => self.resolve_one(link, stored).await,
                false => Err(ReviewError::VersionMismatch { current }),
            };
        }
        let body = revision.body.as_deref().unwrap_or(&stored.body);
        let suggestion = revision.suggestion.as_ref().unwrap_or(&stored.suggestion);
        check_words(body, suggestion.as_deref())?;
        let grows = body.len() + suggestion.as_ref().map_or(0, String::len);
        self.charge(&link.user, stored.bytes() + grows)?;
        let Revision { body, suggestion } = revision;
        let change = ReviewChange { body, suggestion, status: None };
        self.change(link, id, change, expected, guard).await
    }

    /// As [`edit`](Self::edit).
    pub async fn delete(
        &self,
        link: &MemberLink,
        id: ReviewId,
        expected: Option<i64>,
    ) -> Result<(), ReviewError> {
        let guard = self.guard(link, link.role).await?;
        let stored = self.own(link, id).await?;
        self.charge(&link.user, stored.bytes())?;
        let deleted = self.storage.delete_review(link.id, id, expected, guard).await?;
        let change = done(deleted, guard)?;
        let review = self.resolve_committed(link, stored).await;
        self.announce(link, change, &Event::ReviewDeleted(&review)).await;
        Ok(())
    }

    /// Rejects new content while the database is above its bound.
    fn demand_room(&self) -> Result<(), ReviewError> {
        let has_room = self.storage.has_room();
        has_room.then_some(()).ok_or(ReviewError::Session(SeatError::Room(RoomError::StorageSpent)))
    }

    /// Charges the event of a review with `bytes` of text to the user who causes it.
    pub(crate) fn charge(&self, user: &User, bytes: usize) -> Result<(), ReviewError> {
        let charged = self.seats.budgets().announce(&user.id, EVENT_BYTES + bytes);
        charged.map_err(ReviewError::TooFast)
    }

    /// Charges the events of several reviews as one: a refusal charges none of them.
    pub(crate) fn charge_all(
        &self,
        user: &User,
        bytes: impl Iterator<Item = usize>,
    ) -> Result<(), ReviewError> {
        match bytes.map(|bytes| EVENT_BYTES + bytes).sum::<usize>() {
            0 => Ok(()),
            all => self.charge(user, all - EVENT_BYTES),
        }
    }

    pub(crate) async fn change(
        &self,
        link: &MemberLink,
        id: ReviewId,
        change: ReviewChange,
        expected: Option<i64>,
        guard: FenceGuard,
    ) -> Result<Review, ReviewError> {
        let storage = &self.storage;
        let changed =
            storage.change_review(link.id, id, &change, expected, guard, Utc::now()).await?;
        Ok(self.updated(link, done(changed, guard)?).await)
    }

    pub(crate) async fn updated(&self, link: &MemberLink, stored: StoredReview) -> Review {
        let (_, change) = stored.changes;
        let review = self.resolve_committed(link, stored).await;
        self.announce(link, change, &Event::ReviewUpdated(&review)).await;
        review
    }

    /// As [`updated`](Self::updated), for reviews whose change is one commit.
    pub(crate) async fn updated_all(
        &self,
        link: &MemberLink,
        stored: Vec<StoredReview>,
    ) -> Vec<Review> {
        let changes: Vec<_> = stored.iter().map(|review| review.changes.1).collect();
        let mut reviews = self.resolve_all_committed(link, stored).await;
        let mut numbered: Vec<_> = changes.into_iter().zip(&mut reviews).collect();
        numbered.sort_by_key(|(change, _)| *change);
        for (change, review) in numbered {
            self.announce(link, change, &Event::ReviewUpdated(review)).await;
        }
        reviews
    }

    pub(crate) async fn find(
        &self,
        link: &MemberLink,
        id: ReviewId,
    ) -> Result<StoredReview, ReviewError> {
        let found = self.storage.review(link, id).await?;
        found.ok_or(ReviewError::NotFound("review"))
    }

    async fn own(&self, link: &MemberLink, id: ReviewId) -> Result<StoredReview, ReviewError> {
        let stored = self.find(link, id).await?;
        if stored.author.id == link.user.id { Ok(stored) } else { Err(ReviewError::NotAuthor) }
    }

    /// Broadcasts the event to both seats, on every server. A review counts as activity.
    pub(crate) async fn announce(&self, link: &MemberLink, change: i64, event: &Event<'_>) {
        self.seats.deliver_change(link.document, change, event).await;
        self.seats.record_work(link.document, link.seat()).await;
    }
}

/// An insertion or a suggestion with several parts changes by typing alone.
fn can_change_by_form(stored: &StoredReview) -> bool {
    let is_gap = stored.suggestion.is_some() && stored.origin.quote.is_empty();
    !is_gap && stored.more.is_empty()
}

fn check_words(body: &str, suggestion: Option<&str>) -> Result<(), ReviewError> {
    if body.trim().is_empty() && suggestion.is_none() {
        return Err(ReviewError::Empty("a review needs a comment or a suggestion"));
    }
    if body.len() > REVIEW_BODY_BYTES_MAX {
        return Err(ReviewError::TooLong("the comment"));
    }
    if suggestion.is_some_and(|suggestion| suggestion.len() > SUGGESTION_BYTES_MAX) {
        return Err(ReviewError::TooLong("the suggestion"));
    }
    Ok(())
}
