//! Statements: a text, arguments and columns that both engines have.
//!
//! [`sql!`] makes a statement of its text, which names its arguments. A text that differs between the engines has
//! marks, which [`Sql::text`] replaces, or is a pair. Arguments and columns are types of the domain: an id, a
//! state, a time, a text. This file alone knows how an engine stores them.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::OnceLock;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{ColumnIndex, Postgres, Sqlite};

use crate::domain::anchor::RelativeRange;
use crate::domain::export::ExportFormat;
use crate::domain::fence::Fence;
use crate::domain::handle::Handle;
use crate::domain::ids::{
    ClaimId, DecisionId, DeletionId, DocumentId, ExternalId, InviteId, NodeId, OfferId,
    PersonalLinkId, PushSubscriptionId, ReplyId, RequestId, ReviewId, SessionId, ShareLinkId,
    UserId, VersionId, WebhookId,
};
use crate::domain::offer::ClaimState;
use crate::domain::review::{ReviewOrigin, ReviewOutcome, ReviewStatus, Verdict};
use crate::domain::review_request::RequestState;
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::domain::webhook::{WebhookEvent, WebhookState};
use crate::storage::decode::{self, corrupt};
use crate::storage::error::StorageError;
use crate::storage::postgres::encoding::{self, PgMoment};
use crate::storage::sqlite::encoding::SqliteMoment;
use crate::storage::tx::{Conn, Tx};
use crate::storage::tx_error::TxError;

pub use crate::sql::sql;

/// The names of a statement's arguments, its text, in parts, and its form for each engine.
#[derive(Debug)]
pub struct Sql {
    names: &'static [&'static str],
    sqlite: (&'static [&'static str], OnceLock<String>),
    postgres: (&'static [&'static str], OnceLock<String>),
}

impl Sql {
    pub const fn of(names: &'static [&'static str], parts: &'static [&'static str]) -> Self {
        Self::pair(names, parts, parts)
    }

    pub const fn pair(
        names: &'static [&'static str],
        sqlite: &'static [&'static str],
        postgres: &'static [&'static str],
    ) -> Self {
        Self { names, sqlite: (sqlite, OnceLock::new()), postgres: (postgres, OnceLock::new()) }
    }

    pub(crate) fn text(&self, is_postgres: bool) -> &str {
        let (parts, text) = if is_postgres { &self.postgres } else { &self.sqlite };
        text.get_or_init(|| render(&parts.concat(), self.names, is_postgres))
    }
}

/// The forms of a mark: SQLite, then PostgreSQL. `$` is the text behind its colon. `None`: there is no such mark.
#[must_use]
pub const fn forms(mark: &[u8]) -> Option<(&'static str, &'static str)> {
    Some(match mark {
        // The documents with the updates of SQLite's journal.
        b"documents" => ("documents_now", "documents"),
        // The texts of a JSON array, each as `w.value`.
        b"list" => ("json_each($) AS w", "json_array_elements_text(CAST($ AS json)) AS w (value)"),
        // The elements of a JSON array, each as `w.value`.
        b"rows" => ("json_each($) AS w", "json_array_elements(CAST($ AS json)) AS w (value)"),
        // The bytes of a hexadecimal text.
        b"hex" => ("unhex($)", "decode($, 'hex')"),
        // The time of the database, which all servers share.
        b"now" => ("CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)", "statement_timestamp()"),
        // A time some milliseconds after that of the database.
        b"after" => (
            "(CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) + $)",
            "(statement_timestamp() + $ * interval '1 millisecond')",
        ),
        // The number of the next webhook: under the lock of the file, or of its document.
        b"webhook number" => {
            ("(SELECT COALESCE(MAX(seq), 0) + 1 FROM webhooks)", "nextval('webhook_numbers')")
        }
        // The end of a selection that locks the rows of a table: of SQLite the transaction has the lock of the file.
        b"lock" => ("", " FOR NO KEY UPDATE OF $"),
        // The end of a selection of a row that the transaction refers to.
        b"key share" => ("", " FOR KEY SHARE"),
        // The end of a selection of a row that the transaction deletes.
        b"for update" => ("", " FOR UPDATE"),
        // The end of a selection whose rows the transaction claims: another one claims the next ones.
        b"skip locked" => ("", " FOR UPDATE SKIP LOCKED"),
        _ => return None,
    })
}

/// Replaces the names of a text by their numbers, and its marks by their forms. An unknown one stays: the engine
/// refuses the statement.
pub(crate) fn render(text: &str, names: &[&str], is_postgres: bool) -> String {
    let number = |text: String, (number, name): (usize, &&str)| {
        text.replace(&format!("{{{name}}}"), &format!("${number}"))
    };
    let numbered = (1..).zip(names).fold(text.to_owned(), number);
    let (mut rendered, mut rest) = (String::new(), numbered.as_str());
    while let Some((before, after)) = rest.split_once("{@") {
        let (mark, after) = after.split_once('}').unwrap_or((after, ""));
        let (mark, argument) = mark.split_once(':').unwrap_or((mark, ""));
        let (sqlite, postgres) = forms(mark.as_bytes()).unwrap_or(("{", "{"));
        let form = if is_postgres { postgres } else { sqlite };
        rendered = rendered + before + &form.replace('$', argument);
        rest = after;
    }
    (rendered + rest).replace("{{", "{").replace("}}", "}")
}

/// A value of a statement or of a row.
#[derive(Clone, Debug)]
pub enum Value {
    Bool(Option<bool>),
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Time(Option<DateTime<Utc>>),
}

pub trait Store {
    /// Its kind, without a value.
    const NULL: Value;
    fn store(&self) -> Value;
}

/// A type of the domain that a column holds.
pub trait Column: Store + Sized {
    /// `None`: the column is null.
    fn load(value: Value) -> Option<Result<Self, StorageError>>;
}

macro_rules! stores {
    ($($kind:ident: $type:ty, $store:expr;)+) => {$(
        impl Store for $type {
            const NULL: Value = Value::$kind(None);
            fn store(&self) -> Value {
                let store: fn(&Self) -> _ = $store;
                Value::$kind(Some(store(self)))
            }
        }
    )+};
}

macro_rules! columns {
    ($($kind:ident: $type:ty, $store:expr, $load:expr;)+) => {
        stores! { $($kind: $type, $store;)+ }
        $(impl Column for $type {
            fn load(value: Value) -> Option<Result<Self, StorageError>> {
                let Value::$kind(value) = value else { return Some(Err(corrupt("a column's type"))) };
                value.map($load)
            }
        })+
    };
    ($($type:ty),+ $(,)?) => {
        columns! { $(Text: $type, ToString::to_string, |it| parsed(&it);)+ }
    };
}

columns! {
    Bool: bool, |it| *it, Ok;
    Int: i64, |it| *it, Ok;
    Int: u32, |it| i64::from(*it), |it| u32::try_from(it).map_err(corrupt);
    Int: u64, |it| i64::try_from(*it).unwrap_or(i64::MAX), |it| u64::try_from(it).map_err(corrupt);
    Int: usize, |it| i64::try_from(*it).unwrap_or(i64::MAX), |it| usize::try_from(it).map_err(corrupt);
    // No lock service grants a fence beyond the column's range.
    Int: Fence, |it| i64::try_from(it.0).unwrap_or(i64::MAX), decode::fence;
    Text: String, Clone::clone, Ok;
    Text: ReviewStatus, |it| it.as_str().to_owned(),
        |it| it.parse().map_err(|_| corrupt("a review's status"));
    Text: ReviewOrigin, |it| it.as_str().to_owned(),
        |it| it.parse().map_err(|_| corrupt("a review's origin"));
    Text: ReviewOutcome, |it| it.as_str().to_owned(),
        |it| it.parse().map_err(|_| corrupt("a review's outcome"));
    Text: Verdict, |it| it.as_str().to_owned(),
        |it| it.parse().map_err(|_| corrupt("a decision's verdict"));
    Bytes: Vec<u8>, Clone::clone, Ok;
    Bytes: Bytes, |it| it.to_vec(), |it| Ok(it.into());
    Bytes: [u8; 32], |it| it.to_vec(), |it| it.try_into().map_err(|_| corrupt("a hash"));
    Time: DateTime<Utc>, |it| *it, Ok;
}

columns! {
    ClaimId, ClaimState, DecisionId, DeletionId, DocumentId, ExternalId, Handle, InviteId, NodeId, OfferId, PersonalLinkId,
    PushSubscriptionId, ReplyId, RequestId, ReviewId, Role, SessionId, ShareLinkId, UserId,
    VersionId, VersionKind, WebhookId,
}

stores! {
    Text: str, ToString::to_string;
    Text: ExportFormat, |it| it.as_str().to_owned();
    Text: RequestState, |it| it.as_str().to_owned();
    Text: WebhookEvent, |it| it.as_str().to_owned();
    Text: WebhookState, |it| it.as_str().to_owned();
    Bytes: [u8], <[u8]>::to_vec;
}

impl Column for RequestState {
    fn load(value: Value) -> Option<Result<Self, StorageError>> {
        String::load(value).map(|text| parsed(&text?))
    }
}

impl Column for WebhookState {
    fn load(value: Value) -> Option<Result<Self, StorageError>> {
        String::load(value).map(|text| parsed(&text?))
    }
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, StorageError> {
    text.parse().map_err(corrupt)
}

impl<T: Store + ?Sized> Store for &T {
    const NULL: Value = T::NULL;
    fn store(&self) -> Value {
        T::store(self)
    }
}

impl<T: Store> Store for Option<T> {
    const NULL: Value = T::NULL;
    fn store(&self) -> Value {
        self.as_ref().map_or(T::NULL, T::store)
    }
}

impl<T: Column> Column for Option<T> {
    fn load(value: Value) -> Option<Result<Self, StorageError>> {
        Some(T::load(value).transpose())
    }
}

#[derive(Debug)]
#[must_use]
pub struct Statement {
    sql: &'static Sql,
    values: Vec<Value>,
}

impl Statement {
    pub fn new(sql: &'static Sql, values: Vec<Value>) -> Self {
        Self { sql, values }
    }

    pub async fn rows(self, tx: &mut Tx) -> Result<Vec<Row>, TxError> {
        Ok(match tx.conn() {
            Conn::Sqlite(conn) => {
                let rows = self.sqlite().fetch_all(conn).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
            Conn::Postgres(conn) => {
                let rows = self.postgres().fetch_all(conn).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    pub async fn row(self, tx: &mut Tx) -> Result<Option<Row>, TxError> {
        Ok(match tx.conn() {
            Conn::Sqlite(conn) => self.sqlite().fetch_optional(conn).await?.map(Row::Sqlite),
            Conn::Postgres(conn) => self.postgres().fetch_optional(conn).await?.map(Row::Postgres),
        })
    }

    pub async fn one(self, tx: &mut Tx) -> Result<Row, TxError> {
        Ok(self.row(tx).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    pub async fn value<T: Column>(self, tx: &mut Tx) -> Result<Option<T>, TxError> {
        self.row(tx).await?.map(|row| row.get(0)).transpose()
    }

    pub async fn values<T: Column>(self, tx: &mut Tx) -> Result<Vec<T>, TxError> {
        self.rows(tx).await?.iter().map(|row| row.get(0)).collect()
    }

    /// Runs the statement. Returns the number of changed rows.
    pub async fn run(self, tx: &mut Tx) -> Result<u64, TxError> {
        Ok(match tx.conn() {
            Conn::Sqlite(conn) => self.sqlite().execute(conn).await?.rows_affected(),
            Conn::Postgres(conn) => self.postgres().execute(conn).await?.rows_affected(),
        })
    }

    fn sqlite(self) -> Query<'static, Sqlite, SqliteArguments> {
        let query = sqlx::query(self.sql.text(false));
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Bool(it) => query.bind(it),
            Value::Int(it) => query.bind(it),
            Value::Text(it) => query.bind(it),
            Value::Bytes(it) => query.bind(it),
            Value::Time(it) => query.bind(it.map(SqliteMoment)),
        })
    }

    fn postgres(self) -> Query<'static, Postgres, PgArguments> {
        let query = sqlx::query(self.sql.text(true));
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Bool(it) => query.bind(it),
            Value::Int(it) => query.bind(it),
            Value::Text(it) => query.bind(it.map(|it| encoding::encoded(&it).into_owned())),
            Value::Bytes(it) => query.bind(it),
            Value::Time(it) => query.bind(it.map(PgMoment)),
        })
    }
}

#[derive(Debug)]
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// The name or the number of a column.
pub trait At: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> + Display + Copy {}
impl<T: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> + Display + Copy> At for T {}

impl Row {
    pub fn get<T: Column>(&self, at: impl At) -> Result<T, TxError> {
        use sqlx::Row as _;
        let value = match (self, T::NULL) {
            (Self::Sqlite(row), Value::Bool(_)) => Value::Bool(row.try_get(at)?),
            (Self::Sqlite(row), Value::Int(_)) => Value::Int(row.try_get(at)?),
            (Self::Sqlite(row), Value::Text(_)) => Value::Text(row.try_get(at)?),
            (Self::Sqlite(row), Value::Bytes(_)) => Value::Bytes(row.try_get(at)?),
            (Self::Sqlite(row), Value::Time(_)) => {
                Value::Time(row.try_get::<Option<SqliteMoment>, _>(at)?.map(|it| it.0))
            }
            (Self::Postgres(row), Value::Bool(_)) => Value::Bool(row.try_get(at)?),
            (Self::Postgres(row), Value::Int(_)) => Value::Int(row.try_get(at)?),
            (Self::Postgres(row), Value::Text(_)) => {
                Value::Text(row.try_get::<Option<String>, _>(at)?.map(encoding::text))
            }
            (Self::Postgres(row), Value::Bytes(_)) => Value::Bytes(row.try_get(at)?),
            (Self::Postgres(row), Value::Time(_)) => {
                Value::Time(row.try_get::<Option<PgMoment>, _>(at)?.map(|it| it.0))
            }
        };
        let null = || Err(corrupt(format_args!("the column {at} is null")));
        Ok(T::load(value).unwrap_or_else(null)?)
    }

    pub fn user(&self, id: impl At, name: impl At) -> Result<User, TxError> {
        Ok(User { id: self.get(id)?, name: self.get(name)? })
    }

    pub(crate) fn range(&self, start: impl At, end: impl At) -> Result<RelativeRange, TxError> {
        Ok(RelativeRange { start: self.get(start)?, end: self.get(end)? })
    }
}

/// A value as JSON, for the marks `@list` and `@rows`.
pub fn json(value: &(impl serde::Serialize + ?Sized)) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_number_and_a_mark_has_a_form_for_each_engine() {
        let text = "SELECT '{{}}', {a.b}, {@hex:w.value ->> 4} FROM {@rows:{c}} \
                    WHERE {a.b}{@skip locked}";
        let names = ["a.b", "c"];
        assert_eq!(
            render(text, &names, false),
            "SELECT '{}', $1, unhex(w.value ->> 4) FROM json_each($2) AS w WHERE $1"
        );
        assert_eq!(
            render(text, &names, true),
            "SELECT '{}', $1, decode(w.value ->> 4, 'hex') FROM \
             json_array_elements(CAST($2 AS json)) AS w (value) WHERE $1 FOR UPDATE SKIP LOCKED"
        );
    }
}
