//! Batches of typed suggestions, anchored to the text.

use chrono::{DateTime, Utc};

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{ReviewId, ShareLinkId, UserId};
use crate::domain::limits::{
    OPEN_PARTS_PER_LINK_MAX, OPEN_PER_LINK_MAX, REVIEW_BYTES_MAX, REVIEWS_BYTES_MAX,
    REVIEWS_PER_LINK_MAX,
};
use crate::domain::review::{ReviewOrigin, ReviewOutcome, ReviewStatus};
use crate::domain::suggestion::Refusal;
use crate::domain::user::User;
use crate::storage::decode::corrupt;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::links::Membership;
use crate::storage::locks::{Locked, require_seat};
use crate::storage::review_changes::note_deletion;
use crate::storage::review_rows::{StoredPart, StoredReview, fetch_one};
use crate::storage::review_webhooks::{put_created, put_status, take_back};
use crate::storage::reviews::{Counts, NewReview, ReviewChange, count, insert, the_review, update};
use crate::storage::statement::sql;
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::webhook_seats::count_review;
use crate::storage::{Storage, StorageFuture};

/// A new suggestion, or a new version of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchoredSuggestion {
    pub id: ReviewId,
    /// The version that its author has read. `None`: it is new.
    pub version: Option<i64>,
    /// `None`: it stays.
    pub body: Option<String>,
    pub parts: Vec<StoredPart>,
}

impl AnchoredSuggestion {
    /// Whether a review has these words at these positions already.
    pub(crate) fn equals(&self, stored: &StoredReview) -> bool {
        let is_same_body = self.body.as_ref().is_none_or(|body| *body == stored.body);
        is_same_body
            && self.parts.len() == stored.parts().count()
            && self.parts.iter().zip(stored.parts()).all(|(part, stored)| {
                part.text == stored.text
                    && part.origin.quote == stored.origin.quote
                    && part.current == *stored.current
            })
    }

    pub(crate) fn bytes(&self) -> usize {
        let body = self.body.as_ref().map_or(0, String::len);
        self.parts.iter().map(StoredPart::bytes).sum::<usize>() + body
    }
}

/// Why an author may not put a suggestion in place of a stored one, whatever its parts are.
pub(crate) fn refusal(
    stored: Option<&StoredReview>,
    author: &UserId,
    version: Option<i64>,
) -> Option<Refusal> {
    match stored {
        // Its author has read a version, so it was withdrawn or deleted since.
        None => version.map(|_| Refusal::Version),
        Some(stored) if stored.author.id != *author || stored.suggestion.is_none() => {
            Some(Refusal::NotYours)
        }
        Some(stored) => (stored.status != ReviewStatus::Open).then_some(Refusal::Decided),
    }
}

/// The parts of an author's open suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenParts {
    /// `true` marks a gap.
    pub positions: Vec<(ReviewId, RelativeRange, bool)>,
    /// The number of the last change of these suggestions.
    pub last_change: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchoredItem {
    Put(AnchoredSuggestion),
    Withdraw {
        id: ReviewId,
        version: i64,
        /// Of a suggestion that stays because it has replies.
        outcome: ReviewOutcome,
    },
    /// Refused before the transaction.
    Refused(Refusal),
}

/// The outcome of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// Stored now.
    Stored(Box<StoredReview>),
    /// Stored before, in this version.
    StoredBefore(i64),
    /// Closed, because it has replies.
    Closed(Box<StoredReview>),
    /// Deleted, with the number of this change.
    Deleted(Box<StoredReview>, i64),
    /// Withdrawn before.
    WithdrawnBefore,
    /// The server's version of it, if it has one.
    Refused(Refusal, Option<i64>),
}

/// The batch of an author, in one transaction.
struct Batch<'a> {
    link: ShareLinkId,
    author: &'a User,
    guard: FenceGuard,
    locked: Locked,
    now: DateTime<Utc>,
    /// Read at the first suggestion that grows.
    counts: Option<Counts>,
}

/// A review by its id.
enum Found {
    Here(Box<StoredReview>),
    /// On another link.
    Elsewhere,
    /// Deleted from this link: no other suggestion gets the id.
    Spent,
    Nowhere,
}

impl Storage {
    /// Stores a batch of typed suggestions. Each item has its own outcome, in the order of `items`. A
    /// repeated item is stored once. `seen` is the last change of the [`OpenParts`] beside which the parts
    /// were placed: `Stale` if another batch has put a part since. `None`: no part has another place.
    pub fn suggest<'a>(
        &'a self,
        link: ShareLinkId,
        author: &'a User,
        items: &'a [AnchoredItem],
        seen: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<Vec<ItemOutcome>>> {
        let write = guarded!(self, tx => {
            let locked = require_seat(tx, link, guard).await?;
            if let Some(seen) = seen
                && seen < last_open_change(tx, link, &author.id).await?
            {
                return Err(TxError::Refused(Guarded::Stale));
            }
            let mut batch = Batch { link, author, guard, locked, now, counts: None };
            let mut outcomes = Vec::with_capacity(items.len());
            for item in items {
                outcomes.push(match item {
                    AnchoredItem::Put(new) => batch.put(tx, new).await?,
                    AnchoredItem::Withdraw { id, version, outcome } => {
                        batch.withdraw(tx, *id, *version, *outcome).await?
                    }
                    AnchoredItem::Refused(reason) => ItemOutcome::Refused(*reason, None),
                });
            }
            Ok(outcomes)
        });
        Box::pin(async move {
            let _turn = self.turn_of(items.len()).await?;
            write.await
        })
    }

    /// The parts of a member's open suggestions on a link.
    pub fn open_parts<'a>(&'a self, member: &'a Membership) -> StorageFuture<'a, OpenParts> {
        run!(self, Snapshot, tx => {
            let (link, author) = (member.id, &member.user.id);
            let last_change = last_open_change(tx, link, author).await?;
            // The author is compared as an expression: by the index of authors SQLite reads the closed ones, too.
            let rows = sql!(
                "SELECT id, current_start, current_end, quote = '' AS is_gap FROM reviews \
                 WHERE link_id = {link} AND author_id || '' = {author} AND status = 'open' \
                 AND suggestion IS NOT NULL \
                 UNION ALL SELECT p.review_id, p.current_start, p.current_end, p.quote = '' \
                 FROM review_parts p JOIN reviews r ON r.id = p.review_id \
                 WHERE r.link_id = {link} AND r.author_id || '' = {author} AND r.status = 'open' \
                 AND r.more_parts > 0"
            );
            let mut positions = Vec::new();
            for row in rows.rows(tx).await? {
                let range = row.range("current_start", "current_end")?;
                positions.push((row.get("id")?, range, row.get("is_gap")?));
            }
            Ok(OpenParts { positions, last_change })
        })
    }
}

/// The last change of an author's open suggestions on a link: one that puts a part exceeds it.
async fn last_open_change(tx: &mut Tx, link: ShareLinkId, author: &UserId) -> Result<i64, TxError> {
    // As above: by the index of open reviews.
    let last = sql!(
        "SELECT COALESCE(MAX(last_change), 0) FROM reviews \
         WHERE link_id = {link} AND author_id || '' = {author} AND status = 'open' \
         AND suggestion IS NOT NULL"
    );
    last.one(tx).await?.get(0)
}

impl Batch<'_> {
    async fn put(&mut self, tx: &mut Tx, new: &AnchoredSuggestion) -> Result<ItemOutcome, TxError> {
        let found = match self.find(tx, new.id).await? {
            Found::Elsewhere => return Ok(ItemOutcome::Refused(Refusal::NotYours, None)),
            // A repeat that arrives after the withdrawal does not bring the suggestion back.
            Found::Spent if new.version.is_none() => {
                return Ok(ItemOutcome::Refused(Refusal::Decided, None));
            }
            Found::Here(stored) => Some(*stored),
            Found::Spent | Found::Nowhere => None,
        };
        let refused = refusal(found.as_ref(), &self.author.id, new.version);
        let Some(stored) = found else {
            return match refused {
                Some(reason) => Ok(ItemOutcome::Refused(reason, None)),
                None => self.create(tx, new).await,
            };
        };
        let current = stored.version;
        match refused {
            Some(Refusal::NotYours) => Ok(ItemOutcome::Refused(Refusal::NotYours, None)),
            Some(reason) => Ok(ItemOutcome::Refused(reason, Some(current))),
            None if new.equals(&stored) => Ok(ItemOutcome::StoredBefore(current)),
            None if new.version != Some(current) => {
                Ok(ItemOutcome::Refused(Refusal::Version, Some(current)))
            }
            None => self.replace(tx, &stored, new).await,
        }
    }

    async fn find(&self, tx: &mut Tx, id: ReviewId) -> Result<Found, TxError> {
        if let Some(found) = fetch_one(tx, self.link, None, id).await? {
            return Ok(Found::Here(Box::new(found)));
        }
        let used = sql!(
            "SELECT (SELECT count(*) FROM reviews WHERE id = {id}) AS elsewhere, \
             (SELECT count(*) FROM deleted_reviews WHERE review_id = {id} \
             AND link_id = {self.link}) AS spent"
        );
        let used = used.one(tx).await?;
        Ok(match (used.get("elsewhere")?, used.get("spent")?) {
            (0_i64, 0_i64) => Found::Nowhere,
            (0, _) => Found::Spent,
            _ => Found::Elsewhere,
        })
    }

    async fn create(
        &mut self,
        tx: &mut Tx,
        new: &AnchoredSuggestion,
    ) -> Result<ItemOutcome, TxError> {
        let Some((first, more)) = new.parts.split_first() else {
            return Ok(ItemOutcome::Refused(Refusal::Malformed, None));
        };
        if !self.reserve(tx, 1, new.parts.len(), new.bytes()).await? {
            return Ok(ItemOutcome::Refused(Refusal::Full, None));
        }
        let review = NewReview {
            id: new.id,
            link: self.link,
            author: self.author.clone(),
            is_summary: false,
            origin: first.origin.clone(),
            current: first.current.clone(),
            body: new.body.clone().unwrap_or_default(),
            suggestion: Some(first.text.clone()),
            now: self.now,
        };
        insert(tx, &review, ReviewOrigin::Typed).await?;
        insert_parts(tx, new.id, more).await?;
        if !more.is_empty() {
            weigh_parts(tx, new.id, more.len(), more.iter().map(StoredPart::bytes).sum()).await?;
        }
        let review = the_review(tx, self.guard.seat, new.id).await?;
        put_created(tx, self.locked, &review).await?;
        count_review(tx, self.guard).await?;
        Ok(ItemOutcome::Stored(Box::new(review)))
    }

    async fn replace(
        &mut self,
        tx: &mut Tx,
        stored: &StoredReview,
        new: &AnchoredSuggestion,
    ) -> Result<ItemOutcome, TxError> {
        let Some((first, more)) = new.parts.split_first() else {
            return Ok(ItemOutcome::Refused(Refusal::Malformed, None));
        };
        let replies: usize = stored.replies.iter().map(|reply| reply.body.len()).sum();
        let body = new.body.as_ref().unwrap_or(&stored.body);
        let bytes = new.parts.iter().map(StoredPart::bytes).sum::<usize>() + body.len() + replies;
        let parts = stored.parts().count();
        let grown_parts = new.parts.len().saturating_sub(parts);
        let grown_bytes = bytes.saturating_sub(stored.bytes());
        if is_long(bytes) && grown_bytes > 0 {
            return Ok(ItemOutcome::Refused(Refusal::TooLong, Some(stored.version)));
        }
        let grows = grown_parts > 0 || grown_bytes > 0;
        if grows && !self.reserve(tx, 0, grown_parts, grown_bytes).await? {
            return Ok(ItemOutcome::Refused(Refusal::Full, Some(stored.version)));
        }
        let change = ReviewChange { body: new.body.clone(), ..ReviewChange::default() };
        update(tx, stored.id, &change, self.now).await?;
        set_first_part(tx, stored.id, first, bytes).await?;
        if stored.more != more {
            sql!("DELETE FROM review_parts WHERE review_id = {stored.id}").run(tx).await?;
            insert_parts(tx, stored.id, more).await?;
            weigh_parts(tx, stored.id, more.len(), 0).await?;
        }
        let review = the_review(tx, self.guard.seat, stored.id).await?;
        Ok(ItemOutcome::Stored(Box::new(review)))
    }

    async fn withdraw(
        &mut self,
        tx: &mut Tx,
        id: ReviewId,
        version: i64,
        outcome: ReviewOutcome,
    ) -> Result<ItemOutcome, TxError> {
        let stored = match self.find(tx, id).await? {
            Found::Here(stored) if stored.author.id == self.author.id => stored,
            Found::Here(_) | Found::Elsewhere => {
                return Ok(ItemOutcome::Refused(Refusal::NotYours, None));
            }
            Found::Spent => return Ok(ItemOutcome::WithdrawnBefore),
            Found::Nowhere => {
                // It overtook its put, which may arrive later and would bring back what its author took back.
                note_deletion(tx, self.link, id).await?;
                return Ok(ItemOutcome::WithdrawnBefore);
            }
        };
        if stored.outcome.is_some() {
            return Ok(ItemOutcome::WithdrawnBefore);
        }
        let current = Some(stored.version);
        if stored.status != ReviewStatus::Open {
            return Ok(ItemOutcome::Refused(Refusal::Decided, current));
        }
        if current != Some(version) {
            return Ok(ItemOutcome::Refused(Refusal::Version, current));
        }
        if stored.replies.is_empty() {
            take_back(tx, self.locked, id).await?;
            sql!("DELETE FROM reviews WHERE id = {id}").run(tx).await?;
            let change = note_deletion(tx, self.link, id).await?;
            return Ok(ItemOutcome::Deleted(stored, change));
        }
        let status = Some(ReviewStatus::Resolved);
        update(tx, id, &ReviewChange { status, ..ReviewChange::default() }, self.now).await?;
        sql!("UPDATE reviews SET outcome = {outcome} WHERE id = {id}").run(tx).await?;
        let review = the_review(tx, self.guard.seat, id).await?;
        put_status(tx, self.locked, &review).await?;
        Ok(ItemOutcome::Closed(Box::new(review)))
    }

    /// Reserves as many more suggestions, parts and bytes of the link. False: it has no room for them.
    async fn reserve(
        &mut self,
        tx: &mut Tx,
        suggestions: i64,
        parts: usize,
        bytes: usize,
    ) -> Result<bool, TxError> {
        let before = match self.counts {
            Some(counts) => counts,
            None => count(tx, self.link).await?,
        };
        let number = |count: usize| i64::try_from(count).map_err(corrupt);
        let after = Counts {
            all: before.all + suggestions,
            open_suggestions: before.open_suggestions + suggestions,
            open_parts: before.open_parts + number(parts)?,
            bytes: before.bytes + number(bytes)?,
            ..before
        };
        let fits = after.all <= REVIEWS_PER_LINK_MAX
            && after.open_suggestions <= OPEN_PER_LINK_MAX
            && after.open_parts <= OPEN_PARTS_PER_LINK_MAX
            && after.bytes <= REVIEWS_BYTES_MAX;
        self.counts = Some(if fits { after } else { before });
        Ok(fits)
    }
}

fn is_long(bytes: usize) -> bool {
    i64::try_from(bytes).map_or(true, |bytes| bytes > REVIEW_BYTES_MAX)
}

async fn insert_parts(tx: &mut Tx, review: ReviewId, more: &[StoredPart]) -> Result<(), TxError> {
    for (number, part) in (1..).zip(more) {
        let number: usize = number;
        sql!(
            "INSERT INTO review_parts (review_id, part, anchor_start, anchor_end, quote, prefix, \
             suffix, current_start, current_end, text) \
             VALUES ({review}, {number}, {part.origin.range.start}, {part.origin.range.end}, \
             {part.origin.quote}, {part.origin.prefix}, {part.origin.suffix}, \
             {part.current.start}, {part.current.end}, {part.text})"
        )
        .run(tx)
        .await?;
    }
    Ok(())
}

/// Stores the number of the further parts, and adds their bytes.
async fn weigh_parts(
    tx: &mut Tx,
    review: ReviewId,
    more: usize,
    bytes: usize,
) -> Result<(), TxError> {
    sql!("UPDATE reviews SET more_parts = {more}, bytes = bytes + {bytes} WHERE id = {review}")
        .run(tx)
        .await?;
    Ok(())
}

async fn set_first_part(
    tx: &mut Tx,
    review: ReviewId,
    part: &StoredPart,
    bytes: usize,
) -> Result<(), TxError> {
    sql!(
        "UPDATE reviews SET anchor_start = {part.origin.range.start}, \
         anchor_end = {part.origin.range.end}, quote = {part.origin.quote}, \
         prefix = {part.origin.prefix}, suffix = {part.origin.suffix}, \
         current_start = {part.current.start}, current_end = {part.current.end}, \
         suggestion = {part.text}, bytes = {bytes} WHERE id = {review}"
    )
    .run(tx)
    .await?;
    Ok(())
}
