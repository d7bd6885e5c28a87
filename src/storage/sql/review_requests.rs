//! Requests of one user to another, on either engine.
//!
//! A new request and an acceptance lock both users: PostgreSQL then counts what the bounds count. The
//! partial unique index decides all the same, so a fault of the locks stores no second request.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::Row as _;

use crate::domain::ids::{RequestId, UserId};
use crate::domain::limits::{
    REQUEST_RETENTION, REQUEST_TTL, REQUESTS_PENDING_MAX, REQUESTS_PER_DAY,
    REQUESTS_PER_PAIR_AND_DAY, REQUESTS_PURGED_AT_ONCE, REQUESTS_RECEIVED_MAX,
};
use crate::domain::review_request::RequestState;
use crate::domain::webhook::WebhookEvent;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::links::NewShareLink;
use crate::storage::pagination::{PAGE_ROWS_MAX, Page};
use crate::storage::partners::{Partnership, sorted};
use crate::storage::review_requests::{
    AcceptedRequest, Decided, Direction, LinkOutcome, LinkToOffer, NewRequest, Refusal,
    RequestFilter, Requested, ReviewRequest,
};
use crate::storage::seats::Guarded;
use crate::storage::webhooks::{Hooks, Subject};

use super::dialect::{
    Connection, Engine, Moment, TxError, encoded, guarded, lock, lock_users, read, single, transact,
};
use super::invites::note_attempt;
use super::links::{fetch_active, find_or_create, put_reviewer};
use super::partners::put_partners;
use super::request_rows::{
    Facts, Row, facts_of, fetch, fetch_stored, request_from, select_requests,
};
use super::users::put_user;
use super::webhooks::put;

/// The window of the daily bounds.
const DAY: TimeDelta = TimeDelta::days(1);

/// The facts that decide on a new request.
struct Conditions {
    are_partners: bool,
    /// The request names no document, or one of the sender.
    has_document: bool,
    /// Pending requests that the sender has sent, and those that the receiver has received.
    sent: i64,
    received: i64,
    /// Those of them that guests have sent, and whether the receiver takes any.
    of_guests: i64,
    takes_guests: bool,
    /// The request whose end of the day admits the next one, if the day is full.
    day_of: Option<DateTime<Utc>>,
    /// Some requests are beyond their retention.
    has_old_ones: bool,
    /// The request of the pair without a decision, which may be expired: id, sender, end.
    pending: Option<(String, String, DateTime<Utc>)>,
}

impl Engine {
    pub(in crate::storage) async fn create_request(
        &self,
        new: &NewRequest,
    ) -> Result<Requested, StorageError> {
        transact!(self, tx => {
            put_user(tx, &new.from, new.now).await?;
            lock_users(tx, &new.from.id, &new.to).await?;
            let conditions = conditions_of(tx, new).await?;
            if let Some(refused) = refusal_of(&conditions, new)? {
                return Ok(refused);
            }
            if conditions.pending.is_some() {
                expire(tx, new).await?;
            }
            if !insert(tx, new).await? {
                let conditions = conditions_of(tx, new).await?;
                return Ok(refusal_of(&conditions, new)?.ok_or(sqlx::Error::RowNotFound)?);
            }
            if conditions.has_old_ones {
                purge(tx, new.now).await?;
            }
            let request = fetch_stored(tx, new.id, new.now).await?;
            Ok(Requested::Created(Box::new(request)))
        })
    }

    pub(in crate::storage) async fn request(
        &self,
        id: RequestId,
        now: DateTime<Utc>,
    ) -> Result<Option<ReviewRequest>, StorageError> {
        read!(self, connection => { fetch(connection, id, now).await })
    }

    pub(in crate::storage) async fn requests_of(
        &self,
        filter: &RequestFilter,
        page: &Page<RequestId>,
    ) -> Result<Vec<ReviewRequest>, StorageError> {
        read!(self, connection => {
            // Two selects, one for each index.
            let rows: Vec<Row> = sqlx::query_as(select_requests!(
                "WHERE r.id IN ( \
                   SELECT id FROM review_requests WHERE sender_id = $1 AND $5 \
                   UNION ALL SELECT id FROM review_requests WHERE receiver_id = $1 AND $6 \
                 ) AND ($7 IS NULL OR $7 = CASE \
                   WHEN r.state = 'pending' AND r.expires_at <= $8 THEN 'expired' \
                   ELSE r.state END) \
                 AND ($3 IS NULL OR (r.created_at, r.id) < ($3, $4)) \
                 ORDER BY r.created_at DESC, r.id DESC LIMIT $2"
            ))
            .bind(filter.user.as_str())
            .bind(i64::from(page.limit.min(PAGE_ROWS_MAX)))
            .bind(page.before.map(|before| Moment(before.at)))
            .bind(page.before.map(|before| before.id.to_string()))
            .bind(filter.direction != Direction::Received)
            .bind(filter.direction != Direction::Sent)
            .bind(filter.state.map(RequestState::as_str))
            .bind(Moment(filter.now))
            .fetch_all(connection)
            .await?;
            let request = |row| request_from(row, filter.now);
            Ok(rows.into_iter().map(request).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn refuse_request(
        &self,
        id: RequestId,
        caller: &UserId,
        refusal: Refusal,
        now: DateTime<Utc>,
    ) -> Result<Decided<ReviewRequest>, StorageError> {
        transact!(self, tx => {
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

    pub(in crate::storage) async fn decline_requests(
        &self,
        to: &UserId,
        now: DateTime<Utc>,
    ) -> Result<u64, StorageError> {
        single!(self, tx => {
            let decline = "UPDATE review_requests SET state = 'declined', decided_at = $2 \
                 WHERE receiver_id = $1 AND state = 'pending' AND expires_at > $2";
            let done = sqlx::query(decline).bind(to.as_str()).bind(Moment(now)).execute(tx).await?;
            Ok(done.rows_affected())
        })
    }

    pub(in crate::storage) async fn accept_request(
        &self,
        id: RequestId,
        caller: &UserId,
        link: &LinkToOffer,
        now: DateTime<Utc>,
    ) -> Result<Guarded<Decided<AcceptedRequest>>, StorageError> {
        guarded!(self, tx => {
            let Some(facts) = facts_of(tx, id).await? else { return Ok(Decided::Gone) };
            if *caller != facts.receiver {
                return Ok(facts.no_decider(caller));
            }
            if let Some(document) = facts.document {
                lock(tx, document).await?;
            }
            lock_users(tx, &facts.sender, &facts.receiver).await?;
            if !decide(tx, id, RequestState::Accepted, now).await? {
                let request = fetch_stored(tx, id, now).await?;
                if request.state != RequestState::Accepted {
                    return Ok(Decided::NotPending(request.state));
                }
                let link = joined_link(tx, &facts).await?;
                let is_first = false;
                return Ok(Decided::Done(AcceptedRequest { request, link, is_first }));
            }
            let made = put_partners(tx, &facts.sender, &facts.receiver, now).await?;
            if made == Partnership::Full {
                return Err(TxError::Refused(Guarded::Full));
            }
            let link = join_document(tx, &facts, link, now).await?;
            let request = fetch_stored(tx, id, now).await?;
            let accepted = AcceptedRequest { request, link, is_first: true };
            put_accepted(tx, &self.hooks, &accepted, now).await?;
            Ok(Decided::Done(accepted))
        })
    }
}

/// Marks an expired request of the pair, so that the index admits the next one.
async fn expire(connection: &mut Connection, new: &NewRequest) -> Result<(), TxError> {
    let (low, high) = sorted(&new.from.id, &new.to);
    sqlx::query(
        "UPDATE review_requests SET state = 'expired', decided_at = expires_at \
         WHERE low_id = $1 AND high_id = $2 AND state = 'pending' AND expires_at <= $3",
    )
    .bind(low.as_str())
    .bind(high.as_str())
    .bind(Moment(new.now))
    .execute(connection)
    .await?;
    Ok(())
}

/// Reads what decides on a new request, under the locks of both users.
async fn conditions_of(
    connection: &mut Connection,
    new: &NewRequest,
) -> Result<Conditions, TxError> {
    let (low, high) = sorted(&new.from.id, &new.to);
    let row = sqlx::query(
        "SELECT \
           EXISTS (SELECT 1 FROM partners WHERE low_id = $3 AND high_id = $4), \
           $5 IS NULL OR EXISTS (SELECT 1 FROM documents \
            WHERE id = $5 AND owner_id = $1 AND deleted_at IS NULL), \
           (SELECT count(*) FROM review_requests \
            WHERE sender_id = $1 AND state = 'pending' AND expires_at > $6), \
           (SELECT count(*) FROM review_requests \
            WHERE receiver_id = $2 AND state = 'pending' AND expires_at > $6), \
           (SELECT created_at FROM review_requests \
            WHERE sender_id = $1 AND receiver_id = $2 AND created_at > $7 \
            ORDER BY created_at DESC LIMIT 1 OFFSET $8), \
           (SELECT created_at FROM review_requests WHERE sender_id = $1 AND created_at > $7 \
            ORDER BY created_at DESC LIMIT 1 OFFSET $9), \
           EXISTS (SELECT 1 FROM review_requests WHERE created_at <= $10), \
           p.id, p.sender_id, p.expires_at, \
           (SELECT count(*) FROM review_requests WHERE receiver_id = $2 AND by_guest \
            AND state = 'pending' AND expires_at > $6), \
           (SELECT guest_requests FROM users WHERE id = $2) \
         FROM (SELECT 1 AS one) o LEFT JOIN review_requests p \
         ON p.low_id = $3 AND p.high_id = $4 AND p.state = 'pending'",
    )
    .bind(new.from.id.as_str())
    .bind(new.to.as_str())
    .bind(low.as_str())
    .bind(high.as_str())
    .bind(new.document.map(|document| document.to_string()))
    .bind(Moment(new.now))
    .bind(Moment(new.now - DAY))
    .bind(REQUESTS_PER_PAIR_AND_DAY - 1)
    .bind(REQUESTS_PER_DAY - 1)
    .bind(Moment(new.now - REQUEST_RETENTION))
    .fetch_one(connection)
    .await?;
    let (of_pair, of_day): (Option<Moment>, Option<Moment>) = (row.try_get(4)?, row.try_get(5)?);
    let (id, sender): (Option<String>, Option<String>) = (row.try_get(7)?, row.try_get(8)?);
    let ends: Option<Moment> = row.try_get(9)?;
    let pending = id.zip(sender).zip(ends).map(|((id, sender), Moment(ends))| (id, sender, ends));
    Ok(Conditions {
        are_partners: row.try_get(0)?,
        has_document: row.try_get(1)?,
        sent: row.try_get(2)?,
        received: row.try_get(3)?,
        of_guests: row.try_get(10)?,
        takes_guests: row.try_get(11)?,
        day_of: of_pair.into_iter().chain(of_day).map(|Moment(at)| at).max(),
        has_old_ones: row.try_get(6)?,
        pending,
    })
}

/// Why the request cannot be stored.
fn refusal_of(
    conditions: &Conditions,
    new: &NewRequest,
) -> Result<Option<Requested>, StorageError> {
    if conditions.are_partners {
        return Ok(Some(Requested::AlreadyPartners));
    }
    let pending = conditions.pending.as_ref().filter(|(_, _, ends)| new.now < *ends);
    if let Some((id, sender, _)) = pending {
        let (id, is_own) = (parse(id)?, sender == new.from.id.as_str());
        let sent = if is_own { Requested::AlreadySent } else { Requested::AlreadyReceived };
        return Ok(Some(sent(id)));
    }
    if !conditions.has_document {
        return Ok(Some(Requested::NoDocument));
    }
    if let Some(first) = conditions.day_of {
        return Ok(Some(Requested::DayFull { until: first + DAY }));
    }
    if REQUESTS_PENDING_MAX <= conditions.sent {
        return Ok(Some(Requested::SenderFull));
    }
    Ok(match new.guests {
        Some(_) if !conditions.takes_guests => Some(Requested::NoGuests),
        Some(most) if most <= conditions.of_guests => Some(Requested::GuestsFull),
        _ => (REQUESTS_RECEIVED_MAX <= conditions.received).then_some(Requested::ReceiverFull),
    })
}

/// False: a request of the pair is pending.
async fn insert(connection: &mut Connection, new: &NewRequest) -> Result<bool, TxError> {
    let inserted = sqlx::query(
        "INSERT INTO review_requests (id, sender_id, receiver_id, sender_role, message, \
           document_id, state, created_at, expires_at, by_guest) \
         VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9) \
         ON CONFLICT (low_id, high_id) WHERE state = 'pending' DO NOTHING",
    )
    .bind(new.id.to_string())
    .bind(new.from.id.as_str())
    .bind(new.to.as_str())
    .bind(new.sender_role.as_str())
    .bind(new.message.as_deref().map(encoded))
    .bind(new.document.map(|document| document.to_string()))
    .bind(Moment(new.now))
    .bind(Moment(new.now + REQUEST_TTL))
    .bind(new.guests.is_some())
    .execute(connection)
    .await?;
    Ok(0 < inserted.rows_affected())
}

/// Deletes some requests from before the retention time, of any user. Each new request deletes more
/// than one, so the table shrinks to the requests of that time.
async fn purge(connection: &mut Connection, now: DateTime<Utc>) -> Result<(), TxError> {
    sqlx::query(
        "DELETE FROM review_requests WHERE id IN ( \
           SELECT id FROM review_requests WHERE created_at <= $1 ORDER BY created_at LIMIT $2)",
    )
    .bind(Moment(now - REQUEST_RETENTION))
    .bind(REQUESTS_PURGED_AT_ONCE)
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives a pending request its final state. False: it is not pending.
async fn decide(
    connection: &mut Connection,
    id: RequestId,
    state: RequestState,
    now: DateTime<Utc>,
) -> Result<bool, TxError> {
    let decided = sqlx::query(
        "UPDATE review_requests SET state = $2, decided_at = $3 \
         WHERE id = $1 AND state = 'pending' AND expires_at > $3",
    )
    .bind(id.to_string())
    .bind(state.as_str())
    .bind(Moment(now))
    .execute(connection)
    .await?;
    Ok(0 < decided.rows_affected())
}

/// Makes the receiver the reviewer of the document of the request, under the lock of the document.
async fn join_document(
    connection: &mut Connection,
    facts: &Facts,
    link: &LinkToOffer,
    now: DateTime<Utc>,
) -> Result<LinkOutcome, TxError> {
    let Some(document) = facts.document else { return Ok(LinkOutcome::NoDocument) };
    let new =
        NewShareLink { id: link.id, document_id: document, invite_hash: link.invite_hash, now };
    let Some((link, _)) = find_or_create(connection, &new).await? else {
        return Ok(LinkOutcome::DocumentGone);
    };
    if link.reviewer.is_some_and(|reviewer| reviewer.id != facts.receiver) {
        let is_noted = note_attempt(connection, link.id, &facts.receiver, now).await?;
        return Ok(LinkOutcome::ReviewerExists { document, is_noted });
    }
    put_reviewer(connection, link.id, &facts.receiver, now).await?;
    Ok(LinkOutcome::Joined(link.id))
}

/// Writes the webhooks of an acceptance, under the lock of the document.
async fn put_accepted(
    connection: &mut Connection,
    hooks: &Hooks,
    accepted: &AcceptedRequest,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let AcceptedRequest { request, link, .. } = accepted;
    let link = match link {
        LinkOutcome::Joined(link) => Some(*link),
        LinkOutcome::NoDocument
        | LinkOutcome::ReviewerExists { .. }
        | LinkOutcome::DocumentGone => None,
    };
    let about = (Subject { document: request.document, link }, now);
    let data = || {
        let [from, to] = [&request.from, &request.to].map(|user| user.id.as_str());
        let role = request.sender_role.as_str();
        json!({ "request_id": request.id, "from_id": from, "to_id": to, "as": role })
    };
    put(connection, hooks, WebhookEvent::RequestAccepted, about, data).await
}

/// The link of an accepted request now, for a repeated acceptance: the receiver is its reviewer, or another
/// user is.
async fn joined_link(connection: &mut Connection, facts: &Facts) -> Result<LinkOutcome, TxError> {
    let Some(document) = facts.document else { return Ok(LinkOutcome::NoDocument) };
    let Some(link) = fetch_active(connection, document).await? else {
        return Ok(LinkOutcome::DocumentGone);
    };
    let is_receiver = link.reviewer.as_ref().is_some_and(|it| it.id == facts.receiver);
    Ok(match is_receiver {
        true => LinkOutcome::Joined(link.id),
        false => LinkOutcome::ReviewerExists { document, is_noted: false },
    })
}
