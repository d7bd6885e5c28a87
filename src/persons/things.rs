//! The rows that an export has of a user, a page at a time, each as a line of JSON.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::domain::ids::UserId;
use crate::storage::statement::{Row, Sql, Statement, Store as _};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

/// Rows of a page: with the longest reviews some four megabytes.
const ROWS: usize = 50;

/// Columns that are numbers. Those that end with `_at`, and `since`, are times, and all others are texts.
const NUMBERS: [&str; 8] = [
    "capacity",
    "claimed",
    "parts",
    "quiet_from",
    "quiet_to",
    "review_unanswered",
    "seat_free",
    "request_unanswered",
];

const USER: &str = "u.id, u.name, u.updated_at, r.time_zone, r.quiet_from, r.quiet_to, r.review_unanswered, \
     r.seat_free, r.request_unanswered";
const HANDLE: &str = "handle, released_at";
const SHARE_LINK: &str = "id, document_id, created_at, joined_at, revoked_at";
const REVIEW: &str = "id, link_id, kind, quote, body, suggestion, status, created_at, updated_at";
const REPLY: &str = "id, review_id, body, created_at, edited_at";
const REVIEW_REQUEST: &str =
    "id, sender_id, receiver_id, document_id, message, state, created_at, decided_at, expires_at";
const REVIEW_OFFER: &str = "id, title, message, capacity, claimed, created_at, closed_at";
const REVIEW_CLAIM: &str = "id, offer_id, message, state, created_at, ended_at";
const PARTNER: &str = "p.id, p.since";
const PUSH_SUBSCRIPTION: &str = "id, endpoint, lang, created_at, expires_at";
const REFUSED_INVITE: &str = "link_id, attempted_at";
const DECISION: &str = "id, link_id, verdict, decided_at, parts";

/// Where a page begins: the keys of the last line.
pub(super) type After = (String, String);

/// The rows of `$1` after the keys `$2` and `$3`.
static KINDS: [(&str, &str, Sql); 12] = [
    (
        "user",
        USER,
        Sql::of(&[
            "SELECT u.id AS key, u.id AS more, ",
            USER,
            " FROM users u LEFT JOIN reminder_settings r ON r.user_id = u.id WHERE u.id = $1 \
                 AND (u.id, u.id) > ($2, $3) ORDER BY u.id, u.id LIMIT $4",
        ]),
    ),
    (
        "handle",
        HANDLE,
        Sql::of(&[
            "SELECT handle AS key, handle AS more, ",
            HANDLE,
            " FROM handles WHERE user_id = $1 AND (handle, handle) > ($2, $3) ORDER BY \
                 handle, handle LIMIT $4",
        ]),
    ),
    (
        "share_link",
        SHARE_LINK,
        Sql::of(&[
            "SELECT id AS key, id AS more, ",
            SHARE_LINK,
            " FROM share_links WHERE id IN (SELECT s.id FROM documents o JOIN share_links s \
                 ON s.document_id = o.id WHERE o.owner_id = $1 UNION SELECT link_id FROM \
                 link_members WHERE user_id = $1) AND (id, id) > ($2, $3) ORDER BY id, id LIMIT \
                 $4",
        ]),
    ),
    (
        "review",
        REVIEW,
        Sql::of(&[
            "SELECT link_id AS key, id AS more, ",
            REVIEW,
            " FROM reviews WHERE author_id = $1 AND (link_id, id) > ($2, $3) ORDER BY \
                 link_id, id LIMIT $4",
        ]),
    ),
    (
        "reply",
        REPLY,
        Sql::of(&[
            "SELECT review_id AS key, id AS more, ",
            REPLY,
            " FROM replies WHERE author_id = $1 AND (review_id, id) > ($2, $3) ORDER BY \
                 review_id, id LIMIT $4",
        ]),
    ),
    (
        "review_request",
        REVIEW_REQUEST,
        Sql::of(&[
            "SELECT id AS key, id AS more, ",
            REVIEW_REQUEST,
            " FROM review_requests WHERE id IN (SELECT id FROM review_requests WHERE \
                 sender_id = $1 UNION ALL SELECT id FROM review_requests WHERE receiver_id = $1) \
                 AND (id, id) > ($2, $3) ORDER BY id, id LIMIT $4",
        ]),
    ),
    (
        "review_offer",
        REVIEW_OFFER,
        Sql::of(&[
            "SELECT id AS key, id AS more, ",
            REVIEW_OFFER,
            " FROM review_offers WHERE owner_id = $1 AND (id, id) > ($2, $3) ORDER BY id, id \
                 LIMIT $4",
        ]),
    ),
    (
        "review_claim",
        REVIEW_CLAIM,
        Sql::of(&[
            "SELECT id AS key, id AS more, ",
            REVIEW_CLAIM,
            " FROM review_claims WHERE user_id = $1 AND (id, id) > ($2, $3) ORDER BY id, id \
                 LIMIT $4",
        ]),
    ),
    (
        "partner",
        PARTNER,
        Sql::of(&[
            "SELECT p.id AS key, p.id AS more, ",
            PARTNER,
            " FROM (SELECT high_id AS id, since FROM partners WHERE low_id = $1 UNION ALL \
                 SELECT low_id, since FROM partners WHERE high_id = $1) p WHERE TRUE AND (p.id, \
                 p.id) > ($2, $3) ORDER BY p.id, p.id LIMIT $4",
        ]),
    ),
    (
        "push_subscription",
        PUSH_SUBSCRIPTION,
        Sql::of(&[
            "SELECT id AS key, id AS more, ",
            PUSH_SUBSCRIPTION,
            " FROM push_subscriptions WHERE user_id = $1 AND (id, id) > ($2, $3) ORDER BY id, \
                 id LIMIT $4",
        ]),
    ),
    (
        "refused_invite",
        REFUSED_INVITE,
        Sql::of(&[
            "SELECT link_id AS key, link_id AS more, ",
            REFUSED_INVITE,
            " FROM invite_attempts WHERE user_id = $1 AND (link_id, link_id) > ($2, $3) ORDER \
                 BY link_id, link_id LIMIT $4",
        ]),
    ),
    (
        "decision",
        DECISION,
        Sql::of(&[
            "SELECT id AS key, id AS more, ",
            DECISION,
            " FROM decisions WHERE decided_by = $1 AND (id, id) > ($2, $3) ORDER BY id, id \
                 LIMIT $4",
        ]),
    ),
];

/// A page of the kind with this number, and where the next one begins. `None`: there is no such kind. Documents and
/// versions, which have texts, are none.
pub(super) fn page<'a>(
    storage: &'a Storage,
    kind: usize,
    user: &'a UserId,
    after: &'a After,
) -> StorageFuture<'a, Option<(Vec<Value>, Option<After>)>> {
    run!(storage, Read, tx => {
        let Some((name, columns, sql)) = KINDS.get(kind) else { return Ok(None) };
        let values = vec![user.store(), after.0.store(), after.1.store(), ROWS.store()];
        let statement = Statement::new(sql, values);
        let rows = statement.rows(tx).await?;
        let lines = rows.iter().map(|row| line(row, name, columns)).collect::<Result<_, _>>()?;
        let next = rows.last().filter(|_| rows.len() == ROWS);
        let next = next.map(|row| Ok::<_, TxError>((row.get("key")?, row.get("more")?)));
        Ok(Some((lines, next.transpose()?)))
    })
}

fn line(row: &Row, kind: &str, columns: &'static str) -> Result<Value, TxError> {
    let mut line = Map::from_iter([("type".to_owned(), json!(kind))]);
    for name in columns.split(", ") {
        let name = name.rsplit('.').next().unwrap_or(name);
        let value = match name {
            _ if NUMBERS.contains(&name) => json!(row.get::<Option<i64>>(name)?),
            "since" => json!(row.get::<Option<DateTime<Utc>>>(name)?),
            _ if name.ends_with("_at") => json!(row.get::<Option<DateTime<Utc>>>(name)?),
            _ => json!(row.get::<Option<String>>(name)?),
        };
        line.insert(name.to_owned(), value);
    }
    Ok(line.into())
}
