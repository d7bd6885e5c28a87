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

/// Where a page begins: the keys of the last line.
pub(super) type After = (String, String);

/// A kind of lines: its name and columns, the two columns that order it, and the rows of `user`.
macro_rules! kind {
    ($name:literal, $columns:literal, ($key:literal, $more:literal), $of_user:literal $(,)?) => {
        (
            $name,
            $columns,
            Sql::of(
                &["user", "key", "more", "rows"],
                &[concat!(
                    "SELECT ",
                    $key,
                    " AS key, ",
                    $more,
                    " AS more, ",
                    $columns,
                    " ",
                    $of_user,
                    " AND (",
                    $key,
                    ", ",
                    $more,
                    ") > ({key}, {more}) ORDER BY ",
                    $key,
                    ", ",
                    $more,
                    " LIMIT {rows}",
                )],
            ),
        )
    };
}

static KINDS: [(&str, &str, Sql); 12] = [
    kind!(
        "user",
        "u.id, u.name, u.updated_at, r.time_zone, r.quiet_from, r.quiet_to, \
         r.review_unanswered, r.seat_free, r.request_unanswered",
        ("u.id", "u.id"),
        "FROM users u LEFT JOIN reminder_settings r ON r.user_id = u.id WHERE u.id = {user}",
    ),
    kind!(
        "handle",
        "handle, released_at",
        ("handle", "handle"),
        "FROM handles WHERE user_id = {user}",
    ),
    kind!(
        "share_link",
        "id, document_id, created_at, joined_at, revoked_at",
        ("id", "id"),
        "FROM share_links WHERE id IN (SELECT s.id FROM documents o \
         JOIN share_links s ON s.document_id = o.id WHERE o.owner_id = {user} \
         UNION SELECT link_id FROM link_members WHERE user_id = {user})",
    ),
    kind!(
        "review",
        "id, link_id, kind, quote, body, suggestion, status, created_at, updated_at",
        ("link_id", "id"),
        "FROM reviews WHERE author_id = {user}",
    ),
    kind!(
        "reply",
        "id, review_id, body, created_at, edited_at",
        ("review_id", "id"),
        "FROM replies WHERE author_id = {user}",
    ),
    kind!(
        "review_request",
        "id, sender_id, receiver_id, document_id, message, state, created_at, decided_at, \
         expires_at",
        ("id", "id"),
        "FROM review_requests WHERE id IN (SELECT id FROM review_requests WHERE sender_id = {user} \
         UNION ALL SELECT id FROM review_requests WHERE receiver_id = {user})",
    ),
    kind!(
        "review_offer",
        "id, title, message, capacity, claimed, created_at, closed_at",
        ("id", "id"),
        "FROM review_offers WHERE owner_id = {user}",
    ),
    kind!(
        "review_claim",
        "id, offer_id, message, state, created_at, ended_at",
        ("id", "id"),
        "FROM review_claims WHERE user_id = {user}",
    ),
    kind!(
        "partner",
        "p.id, p.since",
        ("p.id", "p.id"),
        "FROM (SELECT high_id AS id, since FROM partners WHERE low_id = {user} \
         UNION ALL SELECT low_id, since FROM partners WHERE high_id = {user}) p WHERE TRUE",
    ),
    kind!(
        "push_subscription",
        "id, endpoint, lang, created_at, expires_at",
        ("id", "id"),
        "FROM push_subscriptions WHERE user_id = {user}",
    ),
    kind!(
        "refused_invite",
        "link_id, attempted_at",
        ("link_id", "link_id"),
        "FROM invite_attempts WHERE user_id = {user}",
    ),
    kind!(
        "decision",
        "id, link_id, verdict, decided_at, parts",
        ("id", "id"),
        "FROM decisions WHERE decided_by = {user}",
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
