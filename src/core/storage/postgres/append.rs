//! Storing groups of edits: the hot path, in two round trips and one sync of the disk.
//!
//! The first statement reads the rows that the group depends on, all from one state. The plan is
//! decided from that state. The second statement, which is also the transaction, writes the plan only
//! if the state is unchanged. It is unchanged if each document to be written has the same `last_seq`
//! and `grants`: `clients` never changes without the first, nor seats and links without the second.
//! The statement locks these rows to compare them; after a wait, PostgreSQL compares the new row.
//!
//! If another transaction was faster, the group is decided again. That is rare: it takes two servers
//! that write one document at once, or a grant. After the second conflict, a transaction locks the
//! rows first.
//!
//! A statement waits for the lock of a row for `EDIT_LOCK_TIMEOUT` at most. Then the group is stored
//! without the documents whose rows are locked, and these are reported as `Busy` (G16).

use std::collections::{BTreeSet, HashMap, HashSet};

use sqlx::PgConnection;

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::storage::append_plan::{AppendPlan, AppendState, RatifiedSeat, plan};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};
use crate::storage::postgres::Postgres;
use crate::storage::postgres::encoding::PgMoment;
use crate::storage::tx::attempt;
use crate::storage::tx_error::{TxError, typed};

/// How often a group is decided without locks.
const FREE_TRIES: u32 = 2;
/// The approximate bytes of one statement: a message of PostgreSQL ends at 1 GiB.
const STATEMENT_BYTES: usize = 16 << 20;

struct Seen {
    state: AppendState,
    /// `last_seq` and `grants` of each document.
    stamps: HashMap<DocumentId, (i64, i64)>,
}

#[derive(Default)]
struct Updates<'a> {
    documents: Vec<String>,
    numbers: Vec<i64>,
    bytes: Vec<&'a [u8]>,
}

impl Postgres {
    pub(crate) async fn append(&self, batch: &[Append]) -> Result<Vec<Appended>, StorageError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        for _ in 0..FREE_TRIES {
            match self.append_free(batch).await {
                Ok(Some(outcomes)) => return Ok(outcomes),
                Ok(None) | Err(TxError::Again(_)) => {}
                Err(TxError::Locked(_)) => return self.append_unlocked(batch).await,
                Err(stop) => return Err(stop.into_error()),
            }
        }
        let appending = attempt!(self.edits, Write, tx => {
            lock_all(tx.postgres()?, batch).await?;
            append_in(tx.postgres()?, batch).await
        });
        match appending.await {
            Err(TxError::Locked(_)) => self.append_unlocked(batch).await,
            appended => appended.map_err(TxError::into_error),
        }
    }

    /// Stores the updates of all documents whose rows no other transaction has locked.
    pub(crate) async fn append_unlocked(
        &self,
        batch: &[Append],
    ) -> Result<Vec<Appended>, StorageError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let appending = attempt!(self.edits, Write, tx => {
            let tx = tx.postgres()?;
            let locked = lock_free(tx, batch).await?;
            if locked.is_empty() {
                append_in(tx, batch).await
            } else {
                append_without(tx, batch, &locked).await
            }
        });
        appending.await.map_err(TxError::into_error)
    }

    /// Decides and stores a group without locks. `None`: another transaction was faster.
    async fn append_free(&self, batch: &[Append]) -> Result<Option<Vec<Appended>>, TxError> {
        let seen = attempt!(self.edits, Read, tx => { read_state(tx.postgres()?, batch).await });
        let Seen { state, stamps } = seen.await?;
        let plan = plan(batch, state);
        let mut parts = in_parts(batch, &plan);
        let (Some(last), true) = (parts.pop(), parts.is_empty()) else {
            // Too large for one statement.
            return Ok(None);
        };
        if plan.documents.is_empty() {
            return Ok(Some(plan.outcomes));
        }
        let writing = async {
            let mut conn = self.edits.take().await?;
            let written = typed(write(conn.connection(), &plan, &stamps, &last)).await;
            conn.give_back(written)
        };
        Ok(self.edits.bounded(writing).await?.then_some(plan.outcomes))
    }
}

pub(crate) async fn append_in(
    connection: &mut PgConnection,
    batch: &[Append],
) -> Result<Vec<Appended>, TxError> {
    let Seen { state, stamps } = read_state(connection, batch).await?;
    let plan = plan(batch, state);
    let mut parts = in_parts(batch, &plan);
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        sqlx::query(
            "INSERT INTO updates (document_id, seq, bytes) \
             SELECT * FROM unnest($1::text[], $2::int8[], $3::bytea[])",
        )
        .bind(part.documents)
        .bind(part.numbers)
        .bind(part.bytes)
        .execute(&mut *connection)
        .await?;
    }
    if !plan.documents.is_empty() && !write(connection, &plan, &stamps, &last).await? {
        let why = "a document changed under its lock";
        return Err(TxError::Again(StorageError::Unavailable(why.to_owned())));
    }
    Ok(plan.outcomes)
}

/// Locks the documents of a group, in the order of their ids like every transaction.
async fn lock_all(connection: &mut PgConnection, batch: &[Append]) -> Result<(), TxError> {
    let query = "SELECT 1 FROM documents WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    sqlx::query(query).bind(documents(batch)).execute(connection).await?;
    Ok(())
}

/// Locks the documents of a group that no other transaction has locked. Returns the others.
async fn lock_free(
    connection: &mut PgConnection,
    batch: &[Append],
) -> Result<HashSet<DocumentId>, TxError> {
    let query =
        "SELECT id FROM documents WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED";
    let free: Vec<String> =
        sqlx::query_scalar(query).bind(documents(batch)).fetch_all(&mut *connection).await?;
    // A missing document is not locked: the plan refuses its updates.
    let query = "SELECT id FROM documents WHERE id = ANY($1) AND id <> ALL($2)";
    let locked: Vec<String> = sqlx::query_scalar(query)
        .bind(documents(batch))
        .bind(free)
        .fetch_all(&mut *connection)
        .await?;
    Ok(locked.iter().map(|id| parse(id)).collect::<Result<_, StorageError>>()?)
}

/// Stores the updates of a group except those on `locked` documents, inside a transaction that has
/// the locks of the others.
async fn append_without(
    connection: &mut PgConnection,
    batch: &[Append],
    locked: &HashSet<DocumentId>,
) -> Result<Vec<Appended>, TxError> {
    let is_free = |append: &&Append| !locked.contains(&append.document);
    let free: Vec<_> = batch.iter().filter(is_free).cloned().collect();
    let mut stored =
        if free.is_empty() { Vec::new() } else { append_in(connection, &free).await? }.into_iter();
    let outcome = |append: &Append| match locked.contains(&append.document) {
        true => Appended::Busy,
        // `stored` has an outcome for each free update.
        false => stored.next().unwrap_or(Appended::Busy),
    };
    Ok(batch.iter().map(outcome).collect())
}

fn documents(batch: &[Append]) -> Vec<String> {
    let wanted: BTreeSet<DocumentId> = batch.iter().map(|append| append.document).collect();
    wanted.iter().map(ToString::to_string).collect()
}

/// Kind, text, text, text, number, number.
type SeenRow = (i16, String, Option<String>, Option<String>, i64, i64);

async fn read_state(connection: &mut PgConnection, batch: &[Append]) -> Result<Seen, TxError> {
    let seats: BTreeSet<Seat> =
        batch.iter().filter_map(|append| append.guard).map(|guard| guard.seat).collect();
    let mut clients = BTreeSet::new();
    for append in batch {
        // The plan refuses ids beyond the column's range.
        let columns = append.clients.iter().filter_map(|&client| i64::try_from(client).ok());
        clients.extend(columns.map(|client| (append.document, client)));
    }
    let (owned, ids): (Vec<String>, Vec<i64>) =
        clients.iter().map(|(document, client)| (document.to_string(), *client)).unzip();
    let (links, roles): (Vec<String>, Vec<&str>) =
        seats.iter().map(|seat| (seat.link.to_string(), seat.role.as_str())).unzip();
    let rows: Vec<SeenRow> = sqlx::query_as(
        "SELECT 0::int2, d.id, NULL, NULL, d.last_seq, d.grants \
         FROM unnest($1::text[]) AS w (id) JOIN documents d ON d.id = w.id \
         UNION ALL \
         SELECT 1::int2, s.link_id, s.role, l.document_id, s.fence, 0 \
         FROM unnest($2::text[], $3::text[]) AS w (link_id, role) \
         JOIN seats s ON s.link_id = w.link_id AND s.role = w.role \
         JOIN share_links l ON l.id = s.link_id WHERE l.revoked_at IS NULL \
         UNION ALL \
         SELECT 2::int2, c.document_id, c.user_id, NULL, c.client, 0 \
         FROM unnest($4::text[], $5::int8[]) AS w (document_id, client) \
         JOIN clients c ON c.document_id = w.document_id AND c.client = w.client",
    )
    .bind(documents(batch))
    .bind(links)
    .bind(roles)
    .bind(owned)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    Ok(seen_in(rows)?)
}

fn seen_in(rows: Vec<SeenRow>) -> Result<Seen, StorageError> {
    let mut seen = Seen { state: AppendState::default(), stamps: HashMap::new() };
    for row in rows {
        match row {
            (0, document, None, None, last_seq, grants) => {
                let document = parse(&document)?;
                seen.state.last_seq.insert(document, last_seq);
                seen.stamps.insert(document, (last_seq, grants));
            }
            (1, link, Some(role), Some(document), number, _) => {
                let seat = Seat::new(parse(&link)?, parse::<Role>(&role)?);
                match RatifiedSeat::of_row(&document, number) {
                    Ok(ratified) => drop(seen.state.seats.insert(seat, ratified)),
                    Err(error) => {
                        tracing::error!(%seat, %error, "a row of `seats` does not parse");
                        seen.state.damage.seats.insert(seat);
                    }
                }
            }
            (_, document, user, _, client, _) => {
                let document = parse(&document)?;
                let key = (document, u64::try_from(client).map_err(corrupt)?);
                match user.as_deref().map(parse::<UserId>).transpose() {
                    Ok(user) => drop(seen.state.clients.insert(key, user)),
                    Err(error) => {
                        tracing::error!(%document, client, %error, "a row of `clients` does not parse");
                        seen.state.damage.owners.insert(document);
                    }
                }
            }
        }
    }
    Ok(seen)
}

/// Splits the updates to store into statements of a bounded size, at least one.
fn in_parts<'a>(batch: &'a [Append], plan: &AppendPlan) -> Vec<Updates<'a>> {
    let mut parts = Vec::new();
    let (mut part, mut size) = (Updates::default(), 0);
    for &(position, seq) in &plan.rows {
        let Some(append) = batch.get(position) else { continue };
        if size + append.update.len() > STATEMENT_BYTES && size > 0 {
            parts.push(std::mem::take(&mut part));
            size = 0;
        }
        size += append.update.len();
        part.documents.push(append.document.to_string());
        part.numbers.push(seq);
        part.bytes.push(append.update.as_ref());
    }
    parts.push(part);
    parts
}

/// Writes a plan if the state that it depends on is unchanged, and returns whether it was. If not, it
/// writes nothing.
async fn write(
    connection: &mut PgConnection,
    plan: &AppendPlan,
    stamps: &HashMap<DocumentId, (i64, i64)>,
    updates: &Updates<'_>,
) -> Result<bool, TxError> {
    let mut ids = Vec::with_capacity(plan.documents.len());
    let (mut old_seq, mut old_grants) = (Vec::new(), Vec::new());
    let (mut new_seq, mut times) = (Vec::new(), Vec::new());
    for (document, (seq, now)) in &plan.documents {
        let (last_seq, grants) = stamps.get(document).copied().unwrap_or_default();
        ids.push(document.to_string());
        old_seq.push(last_seq);
        old_grants.push(grants);
        new_seq.push(*seq);
        times.push(PgMoment(*now));
    }
    let (mut owned, mut clients, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (document, client, user) in &plan.clients {
        owned.push(document.to_string());
        clients.push(i64::try_from(*client).map_err(corrupt)?);
        owners.push(user.as_ref().map(UserId::as_str));
    }
    let stands = sqlx::query_scalar(
        "WITH seen AS ( \
           SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::timestamptz[]) \
             AS s (id, old_seq, old_grants, new_seq, at) \
         ), locked AS MATERIALIZED ( \
           SELECT id, last_seq, grants FROM documents WHERE id = ANY($1) \
           ORDER BY id FOR NO KEY UPDATE \
         ), verdict AS MATERIALIZED ( \
           SELECT count(*) = cardinality($1) AS stands FROM locked l JOIN seen s \
           ON s.id = l.id AND s.old_seq = l.last_seq AND s.old_grants = l.grants \
         ), stored AS ( \
           INSERT INTO updates (document_id, seq, bytes) \
           SELECT u.* FROM verdict, unnest($6::text[], $7::int8[], $8::bytea[]) AS u \
           WHERE verdict.stands \
         ), bound AS ( \
           INSERT INTO clients (document_id, client, user_id) \
           SELECT c.* FROM verdict, unnest($9::text[], $10::int8[], $11::text[]) AS c \
           WHERE verdict.stands \
         ), moved AS ( \
           UPDATE documents d SET last_seq = s.new_seq, updated_at = s.at FROM verdict, seen s \
           WHERE verdict.stands AND d.id = s.id \
         ) SELECT stands FROM verdict",
    )
    .bind(ids)
    .bind(old_seq)
    .bind(old_grants)
    .bind(new_seq)
    .bind(times)
    .bind(updates.documents.as_slice())
    .bind(updates.numbers.as_slice())
    .bind(updates.bytes.as_slice())
    .bind(owned)
    .bind(clients)
    .bind(owners)
    .fetch_one(connection)
    .await?;
    Ok(stands)
}
