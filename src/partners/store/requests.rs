//! The statements of requests of one user to another.
//!
//! A new request and an acceptance lock both users: PostgreSQL then counts what the bounds count. The
//! partial unique index decides all the same, so a fault of the locks stores no second request.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::domain::ids::{DocumentId, RequestId, UserId};
use crate::domain::review_request::RequestState;
use crate::domain::webhook::WebhookEvent;
use crate::partners::request::{
    AcceptedRequest, Decided, Direction, LinkOutcome, LinkToOffer, NewRequest, Refusal,
    RequestFilter, Requested, ReviewRequest,
};
use crate::storage::guard::Guarded;
use crate::storage::invites::note_attempt;
use crate::storage::links::{NewShareLink, fetch_active, find_or_create, put_reviewer};
use crate::storage::locks::{lock, lock_users};
use crate::storage::pagination::Page;
use crate::storage::partners::{Partnership, put_partners, sorted};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::webhooks::{Subject, put};
use crate::storage::{Storage, StorageFuture};

/// Pending requests that one user has sent: each waits in the list of another user.
const REQUESTS_PENDING_MAX: i64 = 20;
/// Pending requests that one user has received. Beyond it that list helps no reader.
const REQUESTS_RECEIVED_MAX: i64 = 200;
/// Requests of one user to one other within a day: a receiver who declines is left alone.
const REQUESTS_PER_PAIR_AND_DAY: i64 = 3;
/// Requests of one user within a day.
const REQUESTS_PER_DAY: i64 = 50;
/// How long a request is pending.
const REQUEST_TTL: TimeDelta = TimeDelta::days(30);
/// How long a request stays in the lists of its users. With [`REQUESTS_PER_DAY`] it bounds the rows of a
/// sender to 4,500.
const REQUEST_RETENTION: TimeDelta = TimeDelta::days(90);
/// Requests beyond their retention that one new request deletes, at most.
const REQUESTS_PURGED_AT_ONCE: i64 = 10;
const _: () = assert!(REQUEST_TTL.num_days() < REQUEST_RETENTION.num_days());

const DAY: TimeDelta = TimeDelta::days(1);

/// Selects requests. After a refusal the other user no longer reads the document's title.
const REQUESTS: &str = "SELECT r.id, f.id AS from_id, f.name AS from_name, t.id AS to_id, \
     t.name AS to_name, r.sender_role, r.message, r.document_id, d.title, r.state, r.created_at, \
     r.decided_at, r.expires_at FROM review_requests r \
     JOIN users f ON f.id = r.sender_id JOIN users t ON t.id = r.receiver_id \
     LEFT JOIN documents d ON d.id = r.document_id AND d.deleted_at IS NULL \
     AND r.state IN ('pending', 'accepted') ";

struct Conditions {
    are_partners: bool,
    /// The request names no document, or one of the sender.
    has_document: bool,
    /// Pending requests that the sender has sent, and those that the receiver has received.
    sent: i64,
    received: i64,
    /// Pending requests that guests have sent to the receiver, and whether the receiver takes any.
    of_guests: i64,
    takes_guests: bool,
    /// The request whose end of the day admits the next one, if the day is full.
    day_of: Option<DateTime<Utc>>,
    /// Some requests are beyond their retention.
    has_old_ones: bool,
    /// The request of the pair without a decision, which may be expired.
    pending: Option<Pending>,
}

struct Pending {
    id: RequestId,
    sender: UserId,
    expires_at: DateTime<Utc>,
}

/// The facts of a request do not change, but for a purged document.
struct Facts {
    sender: UserId,
    receiver: UserId,
    document: Option<DocumentId>,
}

/// Stores a request, unless one of the pair is pending, both are partners, or a bound is reached.
pub fn create_request<'a>(
    storage: &'a Storage,
    new: &'a NewRequest,
) -> StorageFuture<'a, Requested> {
    let (low, high) = sorted(&new.from.id, &new.to);
    run!(storage, Write, tx => {
        put_user(tx, &new.from, new.now).await?;
        lock_users(tx, &new.from.id, &new.to).await?;
        let conditions = conditions_of(tx, new).await?;
        if let Some(refused) = conditions.refusal(new) {
            return Ok(refused);
        }
        if conditions.pending.is_some() {
            // It is expired. The index then admits the next one.
            sql!(
                "UPDATE review_requests SET state = 'expired', decided_at = expires_at \
                 WHERE low_id = {low} AND high_id = {high} AND state = 'pending' \
                 AND expires_at <= {new.now}"
            )
            .run(tx)
            .await?;
        }
        let inserted = sql!(
            "INSERT INTO review_requests (id, sender_id, receiver_id, sender_role, message, \
               document_id, state, created_at, expires_at, by_guest) \
             VALUES ({new.id}, {new.from.id}, {new.to}, {new.sender_role}, {new.message}, \
             {new.document}, 'pending', {new.now}, {new.now + REQUEST_TTL}, \
             {new.guests.is_some()}) \
             ON CONFLICT (low_id, high_id) WHERE state = 'pending' DO NOTHING"
        );
        if inserted.run(tx).await? == 0 {
            let refusal = conditions_of(tx, new).await?.refusal(new);
            return refusal.ok_or_else(TxError::missing_row);
        }
        if conditions.has_old_ones {
            // Each new request deletes more than one old request, of any user, so the table shrinks
            // to the requests of the retention time.
            sql!(
                "DELETE FROM review_requests WHERE id IN (SELECT id FROM review_requests \
                   WHERE created_at <= {new.now - REQUEST_RETENTION} \
                   ORDER BY created_at LIMIT {REQUESTS_PURGED_AT_ONCE})"
            )
            .run(tx)
            .await?;
        }
        Ok(Requested::Created(Box::new(fetch_stored(tx, new.id, new.now).await?)))
    })
}

pub fn decline_requests<'a>(
    storage: &'a Storage,
    to: &'a UserId,
    now: DateTime<Utc>,
) -> StorageFuture<'a, u64> {
    run!(storage, One, tx => {
        sql!(
            "UPDATE review_requests SET state = 'declined', decided_at = {now} \
             WHERE receiver_id = {to} AND state = 'pending' AND expires_at > {now}"
        )
        .run(tx)
        .await
    })
}

pub fn request(
    storage: &Storage,
    id: RequestId,
    now: DateTime<Utc>,
) -> StorageFuture<'_, Option<ReviewRequest>> {
    run!(storage, Read, tx => { fetch(tx, id, now).await })
}

pub fn requests_of<'a>(
    storage: &'a Storage,
    filter: &'a RequestFilter,
    page: &'a Page<RequestId>,
) -> StorageFuture<'a, Vec<ReviewRequest>> {
    run!(storage, Read, tx => {
        // Two selects, one for each index.
        let found = sql!([
            REQUESTS,
            "WHERE r.id IN ( \
               SELECT id FROM review_requests WHERE sender_id = {filter.user} \
               AND {filter.direction != Direction::Received} \
               UNION ALL SELECT id FROM review_requests WHERE receiver_id = {filter.user} \
               AND {filter.direction != Direction::Sent} \
             ) AND ({filter.state} IS NULL OR {filter.state} = CASE \
               WHEN r.state = 'pending' AND r.expires_at <= {filter.now} THEN 'expired' \
               ELSE r.state END) \
             AND ({page.before_at()} IS NULL \
             OR (r.created_at, r.id) < ({page.before_at()}, {page.before_id()})) \
             ORDER BY r.created_at DESC, r.id DESC LIMIT {page.rows()}",
        ]);
        let request = |row: &Row| request_of(row, filter.now);
        found.rows(tx).await?.iter().map(request).collect()
    })
}

pub fn refuse_request<'a>(
    storage: &'a Storage,
    id: RequestId,
    caller: &'a UserId,
    refusal: Refusal,
    now: DateTime<Utc>,
) -> StorageFuture<'a, Decided<ReviewRequest>> {
    run!(storage, Write, tx => {
        let Some(facts) = facts_of(tx, id).await? else { return Ok(Decided::Gone) };
        let decider = match refusal {
            Refusal::Decline => &facts.receiver,
            Refusal::Withdraw => &facts.sender,
        };
        if caller != decider {
            return Ok(facts.no_decider(caller));
        }
        decide(tx, id, refusal.state(), now).await?;
        let request = fetch_stored(tx, id, now).await?;
        let is_done = request.state == refusal.state();
        Ok(if is_done { Decided::Done(request) } else { Decided::NotPending(request.state) })
    })
}

/// Accepts a pending request for its receiver. In the same transaction both become partners, and the
/// receiver becomes the reviewer of the document of the request, unless its link has another. `Full`:
/// one of them has as many partners as a user may have.
pub fn accept_request<'a>(
    storage: &'a Storage,
    id: RequestId,
    caller: &'a UserId,
    link: &'a LinkToOffer,
    now: DateTime<Utc>,
) -> StorageFuture<'a, Guarded<Decided<AcceptedRequest>>> {
    guarded!(storage, tx => {
        let Some(facts) = facts_of(tx, id).await? else { return Ok(Decided::Gone) };
        if *caller != facts.receiver {
            return Ok(facts.no_decider(caller));
        }
        let locked = match facts.document {
            Some(document) => lock(tx, document).await?,
            None => None,
        };
        lock_users(tx, &facts.sender, &facts.receiver).await?;
        if !decide(tx, id, RequestState::Accepted, now).await? {
            let request = fetch_stored(tx, id, now).await?;
            if request.state != RequestState::Accepted {
                return Ok(Decided::NotPending(request.state));
            }
            let link = joined_link(tx, &facts).await?;
            return Ok(Decided::Done(AcceptedRequest { request, link, is_first: false }));
        }
        let made = put_partners(tx, &facts.sender, &facts.receiver, now).await?;
        if made == Partnership::Full {
            return Err(TxError::Refused(Guarded::Full));
        }
        let link = join_document(tx, &facts, link, now).await?;
        let request = fetch_stored(tx, id, now).await?;
        let joined = match link {
            LinkOutcome::Joined(link) => Some(link),
            LinkOutcome::NoDocument
            | LinkOutcome::ReviewerExists { .. }
            | LinkOutcome::DocumentGone => None,
        };
        let subject = locked.zip(request.document);
        let subject = subject.map(|(locked, document)| Subject::document(locked, document, joined));
        let about = (subject.unwrap_or(Subject::NONE), now);
        put(tx, WebhookEvent::RequestAccepted, about, || {
            let [from, to] = [&request.from, &request.to].map(|user| user.id.as_str());
            let role = request.sender_role.as_str();
            json!({ "request_id": request.id, "from_id": from, "to_id": to, "as": role })
        })
        .await?;
        Ok(Decided::Done(AcceptedRequest { request, link, is_first: true }))
    })
}

/// Reads the facts that decide on a new request, under the locks of both users.
async fn conditions_of(tx: &mut Tx, new: &NewRequest) -> Result<Conditions, TxError> {
    let (low, high) = sorted(&new.from.id, &new.to);
    let found = sql!(
        "SELECT \
           EXISTS (SELECT 1 FROM partners \
            WHERE low_id = {low} AND high_id = {high}) AS are_partners, \
           {new.document} IS NULL OR EXISTS (SELECT 1 FROM documents WHERE id = {new.document} \
            AND owner_id = {new.from.id} AND deleted_at IS NULL) AS has_document, \
           (SELECT count(*) FROM review_requests WHERE sender_id = {new.from.id} \
            AND state = 'pending' AND expires_at > {new.now}) AS sent, \
           (SELECT count(*) FROM review_requests WHERE receiver_id = {new.to} \
            AND state = 'pending' AND expires_at > {new.now}) AS received, \
           (SELECT created_at FROM review_requests WHERE sender_id = {new.from.id} \
            AND receiver_id = {new.to} AND created_at > {new.now - DAY} ORDER BY created_at DESC \
            LIMIT 1 OFFSET {REQUESTS_PER_PAIR_AND_DAY - 1}) AS day_of_pair, \
           (SELECT created_at FROM review_requests \
            WHERE sender_id = {new.from.id} AND created_at > {new.now - DAY} \
            ORDER BY created_at DESC LIMIT 1 OFFSET {REQUESTS_PER_DAY - 1}) AS day_of_sender, \
           EXISTS (SELECT 1 FROM review_requests \
            WHERE created_at <= {new.now - REQUEST_RETENTION}) AS has_old_ones, \
           p.id, p.sender_id, p.expires_at, \
           (SELECT count(*) FROM review_requests WHERE receiver_id = {new.to} AND by_guest \
            AND state = 'pending' AND expires_at > {new.now}) AS of_guests, \
           (SELECT guest_requests FROM users WHERE id = {new.to}) AS takes_guests \
         FROM (SELECT 1 AS one) o LEFT JOIN review_requests p \
         ON p.low_id = {low} AND p.high_id = {high} AND p.state = 'pending'"
    );
    let row = found.one(tx).await?;
    let pending = |id| {
        let (sender, expires_at) = (row.get("sender_id")?, row.get("expires_at")?);
        Ok::<_, TxError>(Pending { id, sender, expires_at })
    };
    let of_pair: Option<DateTime<Utc>> = row.get("day_of_pair")?;
    Ok(Conditions {
        are_partners: row.get("are_partners")?,
        has_document: row.get("has_document")?,
        sent: row.get("sent")?,
        received: row.get("received")?,
        of_guests: row.get("of_guests")?,
        takes_guests: row.get("takes_guests")?,
        day_of: of_pair.max(row.get("day_of_sender")?),
        has_old_ones: row.get("has_old_ones")?,
        pending: row.get::<Option<RequestId>>("id")?.map(pending).transpose()?,
    })
}

impl Conditions {
    fn refusal(&self, new: &NewRequest) -> Option<Requested> {
        if self.are_partners {
            return Some(Requested::AlreadyPartners);
        }
        if let Some(pending) = self.pending.as_ref().filter(|it| new.now < it.expires_at) {
            let is_own = pending.sender == new.from.id;
            let sent = if is_own { Requested::AlreadySent } else { Requested::AlreadyReceived };
            return Some(sent(pending.id));
        }
        if !self.has_document {
            return Some(Requested::NoDocument);
        }
        if let Some(first) = self.day_of {
            return Some(Requested::DayFull { until: first + DAY });
        }
        if self.sent >= REQUESTS_PENDING_MAX {
            return Some(Requested::SenderFull);
        }
        match new.guests {
            Some(_) if !self.takes_guests => Some(Requested::NoGuests),
            Some(most) if most <= self.of_guests => Some(Requested::GuestsFull),
            _ => (self.received >= REQUESTS_RECEIVED_MAX).then_some(Requested::ReceiverFull),
        }
    }
}

impl Facts {
    /// The outcome for a caller who may not decide.
    fn no_decider<T>(&self, caller: &UserId) -> Decided<T> {
        let is_party = *caller == self.sender || *caller == self.receiver;
        if is_party { Decided::OtherSide } else { Decided::Gone }
    }
}

async fn facts_of(tx: &mut Tx, id: RequestId) -> Result<Option<Facts>, TxError> {
    let found =
        sql!("SELECT sender_id, receiver_id, document_id FROM review_requests WHERE id = {id}");
    let Some(row) = found.row(tx).await? else { return Ok(None) };
    let (sender, receiver) = (row.get("sender_id")?, row.get("receiver_id")?);
    Ok(Some(Facts { sender, receiver, document: row.get("document_id")? }))
}

async fn fetch(
    tx: &mut Tx,
    id: RequestId,
    now: DateTime<Utc>,
) -> Result<Option<ReviewRequest>, TxError> {
    let row = sql!([REQUESTS, "WHERE r.id = {id}"]).row(tx).await?;
    row.map(|row| request_of(&row, now)).transpose()
}

async fn fetch_stored(
    tx: &mut Tx,
    id: RequestId,
    now: DateTime<Utc>,
) -> Result<ReviewRequest, TxError> {
    fetch(tx, id, now).await?.ok_or_else(TxError::missing_row)
}

fn request_of(row: &Row, now: DateTime<Utc>) -> Result<ReviewRequest, TxError> {
    let stored: RequestState = row.get("state")?;
    let expires_at: DateTime<Utc> = row.get("expires_at")?;
    let is_expired = stored == RequestState::Pending && expires_at <= now;
    Ok(ReviewRequest {
        id: row.get("id")?,
        from: row.user("from_id", "from_name")?,
        to: row.user("to_id", "to_name")?,
        sender_role: row.get("sender_role")?,
        message: row.get("message")?,
        document: row.get("document_id")?,
        title: row.get("title")?,
        state: if is_expired { RequestState::Expired } else { stored },
        created_at: row.get("created_at")?,
        decided_at: if is_expired { Some(expires_at) } else { row.get("decided_at")? },
        expires_at,
    })
}

/// Gives a pending request its final state. False: it is not pending.
async fn decide(
    tx: &mut Tx,
    id: RequestId,
    state: RequestState,
    now: DateTime<Utc>,
) -> Result<bool, TxError> {
    let decided = sql!(
        "UPDATE review_requests SET state = {state}, decided_at = {now} \
         WHERE id = {id} AND state = 'pending' AND expires_at > {now}"
    );
    Ok(decided.run(tx).await? > 0)
}

/// Makes the receiver the reviewer of the document of the request, under the lock of the document.
async fn join_document(
    tx: &mut Tx,
    facts: &Facts,
    link: &LinkToOffer,
    now: DateTime<Utc>,
) -> Result<LinkOutcome, TxError> {
    let Some(document) = facts.document else { return Ok(LinkOutcome::NoDocument) };
    let new =
        NewShareLink { id: link.id, document_id: document, invite_hash: link.invite_hash, now };
    let Some((link, _)) = find_or_create(tx, &new).await? else {
        return Ok(LinkOutcome::DocumentGone);
    };
    if link.reviewer.is_some_and(|reviewer| reviewer.id != facts.receiver) {
        let is_noted = note_attempt(tx, link.id, &facts.receiver, now).await?;
        return Ok(LinkOutcome::ReviewerExists { document, is_noted });
    }
    put_reviewer(tx, link.id, &facts.receiver, now).await?;
    Ok(LinkOutcome::Joined(link.id))
}

/// For a repeated acceptance: the receiver is its reviewer, or another user is.
async fn joined_link(tx: &mut Tx, facts: &Facts) -> Result<LinkOutcome, TxError> {
    let Some(document) = facts.document else { return Ok(LinkOutcome::NoDocument) };
    let Some(link) = fetch_active(tx, document).await? else {
        return Ok(LinkOutcome::DocumentGone);
    };
    let is_receiver = link.reviewer.as_ref().is_some_and(|it| it.id == facts.receiver);
    Ok(match is_receiver {
        true => LinkOutcome::Joined(link.id),
        false => LinkOutcome::ReviewerExists { document, is_noted: false },
    })
}
