//! The update log, on `SQLite`.
//!
//! A group of edits is one statement: its own transaction, with one sync of the disk. The rows that it
//! depends on are cached ([`write_cache`]), and it writes to one table ([`journal`]). If a row is not
//! cached, or an update is refused, a transaction reads the tables, with one select for each.
//!
//! [`write_cache`]: crate::storage::sqlite::write_cache

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use sqlx::{Connection, QueryBuilder, SqliteConnection};

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::storage::append_plan::{AppendPlan, AppendState, RatifiedSeat, plan};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended, DocumentRow, Log, Tail};
use crate::storage::sqlite::write_cache::{CachedRows, UNCACHED, forget_stale};
use crate::storage::sqlite::{Sqlite, journal};

/// Rows of one statement: `SQLite` binds at most 32,766 values, and a row has up to three.
const ROWS_MAX: usize = 4_096;

/// Logs of one statement. They are in memory at the same time, and a load of a small log waits for
/// the large ones of its batch.
pub(super) const LOGS_MAX: usize = 64;

/// A document, and a [`DocumentRow`] of it.
type LogRow = (String, i64, i64, Option<Vec<u8>>, Option<String>);

/// Index into the wanted logs, kind of the row, number, bytes.
type TailRow = (i64, i64, i64, Option<Vec<u8>>);

/// Each size of group is another statement, so none is worth preparing.
type Builder = QueryBuilder<sqlx::Sqlite>;

impl Sqlite {
    pub(crate) async fn log(&self, id: DocumentId) -> Result<Option<Log>, StorageError> {
        self.logs.run(id, |ids| self.logs_of(ids)).await
    }

    async fn logs_of(&self, ids: Vec<DocumentId>) -> Result<Vec<Option<Log>>, StorageError> {
        let wanted: Vec<_> = ids.iter().map(ToString::to_string).collect();
        // One statement sees one state, and scans the journal once for all logs.
        let rows: Vec<LogRow> = sqlx::query_as(
            "WITH wanted (id) AS (SELECT value FROM json_each($1)) \
             SELECT id, 0, last_seq, NULL, NULL FROM documents WHERE id IN wanted \
             UNION ALL \
             SELECT document_id, 1, upto, bytes, NULL FROM snapshots WHERE document_id IN wanted \
             UNION ALL \
             SELECT document_id, 2, seq, bytes, NULL FROM updates WHERE document_id IN wanted \
             UNION ALL \
             SELECT document_id, 2, seq, bytes, NULL FROM journal WHERE document_id IN wanted \
             UNION ALL \
             SELECT document_id, 3, client, NULL, user_id FROM clients \
             WHERE document_id IN wanted AND user_id IS NOT NULL \
             UNION ALL \
             SELECT id, 4, review_changes, NULL, NULL FROM documents WHERE id IN wanted",
        )
        .bind(serde_json::to_string(&wanted).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        let mut of_each: HashMap<String, Vec<DocumentRow>> = HashMap::new();
        for (id, kind, number, bytes, owner) in rows {
            of_each.entry(id).or_default().push((kind, number, bytes, owner));
        }
        let logs = of_each.into_iter().map(|(id, rows)| Ok((id, Log::of_rows(rows)?)));
        let logs = logs.collect::<Result<HashMap<_, _>, StorageError>>()?;
        // A batch may contain one id twice.
        Ok(wanted.iter().map(|id| logs.get(id).cloned().flatten()).collect())
    }

    pub(crate) async fn log_from(
        &self,
        id: DocumentId,
        seq: i64,
    ) -> Result<Option<Tail>, StorageError> {
        self.tails.run((id, seq), |wanted| self.tails_of(wanted)).await
    }

    async fn tails_of(
        &self,
        wanted: Vec<(DocumentId, i64)>,
    ) -> Result<Vec<Option<Tail>>, StorageError> {
        let pairs: Vec<_> = wanted.iter().map(|(id, seq)| (id.to_string(), seq)).collect();
        let mut rows: Vec<TailRow> = sqlx::query_as(
            "SELECT w.key, 0, COALESCE(s.upto, 0), NULL FROM json_each($1) w \
             CROSS JOIN documents d ON d.id = w.value ->> 0 \
             LEFT JOIN snapshots s ON s.document_id = d.id \
             UNION ALL \
             SELECT w.key, 1, u.seq, u.bytes FROM json_each($1) w \
             CROSS JOIN updates u ON u.document_id = w.value ->> 0 AND u.seq >= w.value ->> 1 \
             UNION ALL \
             SELECT w.key, 1, j.seq, j.bytes FROM journal j \
             CROSS JOIN json_each($1) w ON w.value ->> 0 = j.document_id AND w.value ->> 1 <= j.seq \
             WHERE j.document_id IN (SELECT value ->> 0 FROM json_each($1))",
        )
        .bind(serde_json::to_string(&pairs).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        rows.sort_unstable_by_key(|(at, kind, number, _)| (*at, *kind, *number));
        let mut tails = vec![None; wanted.len()];
        for (at, kind, number, bytes) in rows {
            let at = usize::try_from(at).map_err(corrupt)?;
            let (Some(tail), Some((_, seq))) = (tails.get_mut(at), wanted.get(at)) else {
                continue;
            };
            match (kind, tail) {
                // The row of the document comes first, with the number of its snapshot.
                (0, tail) => *tail = (number <= *seq).then(Tail::default),
                (_, Some(tail)) => {
                    tail.updates.push((number, Bytes::from(bytes.unwrap_or_default())));
                }
                (_, None) => {}
            }
        }
        Ok(tails)
    }

    pub(crate) async fn append(&self, batch: &[Append]) -> Result<Vec<Appended>, StorageError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut writer = self.writer.acquire().await?;
        let mut cache = self.memory.take();
        if batch.len() <= journal::UPDATES_MAX
            && cache.journaled < journal::ROWS_MAX
            && batch.iter().all(|append| cache.state.covers(append))
        {
            let plan = plan(batch, std::mem::take(&mut cache.state));
            if plan.stores_all() && journal::write(&mut writer, batch, &plan, &mut cache).await? {
                self.memory.put_back(CachedRows { state: plan.after, ..cache });
                return Ok(plan.outcomes);
            }
            // A refusal needs the rows of the database: the cache may be stale.
            cache.state = plan.undone(batch);
        }
        let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
        let mut cache = refresh_cache(&mut tx, cache).await?;
        let outcomes = append_cached(&mut tx, batch, &mut cache).await?;
        tx.commit().await?;
        self.memory.put_back(cache);
        Ok(outcomes)
    }
}

/// Returns the cached rows that are still valid. If another process has changed the file, or the
/// journal is long, it moves the journal first.
async fn refresh_cache(
    connection: &mut SqliteConnection,
    mut cache: CachedRows,
) -> Result<CachedRows, StorageError> {
    forget_stale(connection, &mut cache.state).await?;
    let version: i64 =
        sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut *connection).await?;
    let is_current = cache.version == version;
    let cache = if is_current { cache } else { CachedRows { version, ..CachedRows::default() } };
    if is_current && cache.journaled < journal::ROWS_MAX {
        return Ok(cache);
    }
    journal::clear(connection, None).await?;
    Ok(CachedRows { journaled: 0, ..cache })
}

/// Stores a group inside a write transaction, without the cache. The numbers of its documents become
/// stale there.
pub(crate) async fn append_in(
    connection: &mut SqliteConnection,
    batch: &[Append],
) -> Result<Vec<Appended>, StorageError> {
    journal::clear(connection, None).await?;
    let mut cache = CachedRows { version: UNCACHED, ..CachedRows::default() };
    let outcomes = append_cached(connection, batch, &mut cache).await?;
    for append in batch {
        let stale = sqlx::query("INSERT INTO stale (document_id) VALUES ($1)");
        stale.bind(append.document.to_string()).execute(&mut *connection).await?;
    }
    Ok(outcomes)
}

/// Stores a group inside a write transaction that has called [`refresh_cache`].
async fn append_cached(
    connection: &mut SqliteConnection,
    batch: &[Append],
    cache: &mut CachedRows,
) -> Result<Vec<Appended>, StorageError> {
    let mut state = std::mem::take(&mut cache.state);
    let mut documents: BTreeSet<DocumentId> = batch.iter().map(|append| append.document).collect();
    documents.retain(|document| !state.last_seq.contains_key(document));
    state.last_seq.extend(last_numbers(connection, &Vec::from_iter(documents)).await?);
    find_ratified(connection, batch, &mut state).await?;
    find_owners(connection, batch, &mut state).await?;
    let plan = plan(batch, state);
    if !journal::write(connection, batch, &plan, cache).await? {
        let why = "the file changed under its lock";
        return Err(StorageError::Unavailable(why.to_owned()));
    }
    write_owners(connection, &plan).await?;
    cache.state = plan.after;
    Ok(plan.outcomes)
}

async fn last_numbers(
    connection: &mut SqliteConnection,
    wanted: &[DocumentId],
) -> Result<HashMap<DocumentId, i64>, StorageError> {
    let mut found = HashMap::new();
    for chunk in wanted.chunks(ROWS_MAX) {
        let mut query = Builder::new("WITH wanted (id) AS (");
        query.push_values(chunk, |mut row, id| {
            row.push_bind(id.to_string());
        });
        query.push(") SELECT d.id, d.last_seq FROM wanted w JOIN documents_now d ON d.id = w.id");
        let rows: Vec<(String, i64)> =
            query.build_query_as().persistent(false).fetch_all(&mut *connection).await?;
        for (id, last) in rows {
            found.insert(parse(&id)?, last);
        }
    }
    Ok(found)
}

async fn find_ratified(
    connection: &mut SqliteConnection,
    batch: &[Append],
    state: &mut AppendState,
) -> Result<(), StorageError> {
    let guards = batch.iter().filter_map(|append| append.guard);
    let mut wanted: BTreeSet<Seat> = guards.map(|guard| guard.seat).collect();
    wanted.retain(|seat| !state.seats.contains_key(seat));
    for chunk in Vec::from_iter(wanted).chunks(ROWS_MAX) {
        let mut query = Builder::new("WITH wanted (link_id, role) AS (");
        query.push_values(chunk, |mut row, seat| {
            row.push_bind(seat.link.to_string()).push_bind(seat.role.as_str());
        });
        query.push(
            ") SELECT s.link_id, s.role, s.fence, l.document_id FROM wanted w \
             JOIN seats s ON s.link_id = w.link_id AND s.role = w.role \
             JOIN share_links l ON l.id = s.link_id WHERE l.revoked_at IS NULL",
        );
        let rows: Vec<(String, String, i64, String)> =
            query.build_query_as().persistent(false).fetch_all(&mut *connection).await?;
        for (link, role, number, document) in rows {
            let seat = Seat::new(parse(&link)?, parse::<Role>(&role)?);
            match RatifiedSeat::of_row(&document, number) {
                Ok(ratified) => drop(state.seats.insert(seat, ratified)),
                Err(error) => {
                    tracing::error!(%seat, %error, "a row of `seats` does not parse");
                    state.damage.seats.insert(seat);
                }
            }
        }
    }
    Ok(())
}

async fn find_owners(
    connection: &mut SqliteConnection,
    batch: &[Append],
    state: &mut AppendState,
) -> Result<(), StorageError> {
    let mut wanted = BTreeSet::new();
    for append in batch {
        // The plan refuses ids beyond the column's range.
        let unknown = append
            .clients
            .iter()
            .filter(|client| !state.clients.contains_key(&(append.document, **client)));
        let columns = unknown.filter_map(|&client| i64::try_from(client).ok());
        wanted.extend(columns.map(|client| (append.document, client)));
    }
    for chunk in Vec::from_iter(wanted).chunks(ROWS_MAX) {
        let mut query = Builder::new("WITH wanted (document_id, client) AS (");
        query.push_values(chunk, |mut row, (document, client)| {
            row.push_bind(document.to_string()).push_bind(*client);
        });
        query.push(
            ") SELECT c.document_id, c.client, c.user_id FROM wanted w \
             JOIN clients c ON c.document_id = w.document_id AND c.client = w.client",
        );
        let rows: Vec<(String, i64, Option<String>)> =
            query.build_query_as().persistent(false).fetch_all(&mut *connection).await?;
        for (document, client, user) in rows {
            let document = parse(&document)?;
            let key = (document, u64::try_from(client).map_err(corrupt)?);
            match user.as_deref().map(parse).transpose() {
                Ok(user) => drop(state.clients.insert(key, user)),
                Err(error) => {
                    tracing::error!(%document, client, %error, "a row of `clients` does not parse");
                    state.damage.owners.insert(document);
                }
            }
        }
    }
    Ok(())
}

async fn write_owners(
    connection: &mut SqliteConnection,
    plan: &AppendPlan,
) -> Result<(), StorageError> {
    for chunk in plan.clients.chunks(ROWS_MAX) {
        let mut query = Builder::new("INSERT INTO clients (document_id, client, user_id) ");
        query.push_values(chunk, |mut row, (document, client, user)| {
            row.push_bind(document.to_string());
            row.push_bind(i64::try_from(*client).ok());
            row.push_bind(user.as_ref().map(UserId::as_str));
        });
        query.build().persistent(false).execute(&mut *connection).await?;
    }
    Ok(())
}
