//! The names that the statements of `storage/sql` use, for `SQLite`.

use std::borrow::Cow;
use std::future::{Ready, ready};

use chrono::{DateTime, Utc};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Type};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::storage::decode::time;
pub(super) use crate::storage::decode::user;
pub(super) use crate::storage::seats::GuardError as TxError;
pub(super) use crate::storage::sqlite::Sqlite as Engine;
pub(super) use crate::storage::sqlite::log::append_in;

pub(super) type Connection = sqlx::SqliteConnection;
pub(super) type Row = sqlx::sqlite::SqliteRow;

/// The documents with the updates of the journal.
macro_rules! documents {
    () => {
        "documents_now"
    };
}
pub(super) use documents;

/// The texts of a JSON array, as the column `value` of the table `w`.
macro_rules! listed {
    ($array:literal) => {
        concat!("json_each(", $array, ") w")
    };
}
pub(super) use listed;

/// The elements of a JSON array, each as `w.value`.
macro_rules! json_rows {
    ($parameter:literal) => {
        concat!("json_each(", $parameter, ") AS w")
    };
}
pub(super) use json_rows;

/// The bytes of a hexadecimal text.
macro_rules! bytes_of_hex {
    ($text:literal) => {
        concat!("unhex(", $text, ")")
    };
}
pub(super) use bytes_of_hex;

/// The time of the database after the milliseconds of a parameter.
macro_rules! after_ms {
    ($ms:literal) => {
        concat!("(CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) + ", $ms, ")")
    };
}
pub(super) use after_ms;

/// The number of the next webhook. A write transaction has the lock of the whole file.
macro_rules! webhook_number {
    () => {
        "(SELECT COALESCE(MAX(seq), 0) + 1 FROM webhooks)"
    };
}
pub(super) use webhook_number;

/// The end of a selection whose rows the transaction claims: it has the lock of the whole file.
macro_rules! skip_locked {
    () => {
        ""
    };
}
pub(super) use skip_locked;

/// Runs a block of statements as one transaction, whose value commits.
macro_rules! transaction {
    ($engine:expr, $tx:ident => $block:block) => {
        async {
            let mut transaction = $engine.write().await?;
            let value = $crate::storage::sqlite::dialect::typed(async {
                let $tx = &mut *transaction;
                $block
            });
            let value = value.await?;
            transaction.commit().await?;
            Ok::<_, $crate::storage::seats::GuardError>(value)
        }
        .await
    };
}
pub(super) use transaction;

/// A transaction without a guard.
macro_rules! transact {
    ($engine:expr, $tx:ident => $block:block) => {
        $crate::storage::sqlite::dialect::transaction!($engine, $tx => $block)
            .map_err($crate::storage::seats::GuardError::into_error)
    };
}
pub(super) use transact;

/// A write of one statement.
macro_rules! single {
    ($engine:expr, $connection:ident => $block:block) => {
        $crate::storage::sqlite::dialect::transact!($engine, $connection => $block)
    };
}
pub(super) use single;

/// A transaction that a guard may refuse.
macro_rules! guarded {
    ($engine:expr, $tx:ident => $block:block) => {
        $crate::storage::seats::finish($crate::storage::sqlite::dialect::transaction!($engine, $tx => $block))
    };
}
pub(super) use guarded;

/// Runs a block of statements that see one state.
macro_rules! snapshot {
    ($engine:expr, $tx:ident => $block:block) => {
        async {
            let mut transaction = $engine.read().await?;
            let $tx = &mut *transaction;
            $crate::storage::sqlite::dialect::typed(async { $block }).await
        }
        .await
        .map_err($crate::storage::seats::GuardError::into_error)
    };
}
pub(super) use snapshot;

/// Runs a block that reads with one statement.
macro_rules! read {
    ($engine:expr, $connection:ident => $block:block) => {
        async {
            let mut reader = $engine.readers.acquire().await?;
            let $connection = &mut *reader;
            $crate::storage::sqlite::dialect::typed(async { $block }).await
        }
        .await
        .map_err($crate::storage::seats::GuardError::into_error)
    };
}
pub(super) use read;

/// Fixes the type of a future.
pub(super) fn typed<T, F: Future<Output = Result<T, TxError>>>(future: F) -> F {
    future
}

/// A column stores any text as it is.
pub(super) fn encoded(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// The text of a column.
pub(super) fn text(column: String) -> String {
    column
}

/// A write transaction has the lock of the whole file. The statements find a missing document.
pub(super) fn lock(_: &mut Connection, _: DocumentId) -> Ready<Result<bool, TxError>> {
    ready(Ok(true))
}

/// A write transaction has the lock of the whole file.
pub(super) fn lock_of(_: &mut Connection, _: ShareLinkId) -> Ready<Result<(), TxError>> {
    ready(Ok(()))
}

/// A write transaction has the lock of the whole file.
pub(super) fn lock_histories(_: &mut Connection, _: &[String]) -> Ready<Result<(), TxError>> {
    ready(Ok(()))
}

/// A write transaction has the lock of the whole file.
pub(super) fn lock_users(_: &mut Connection, _: &UserId, _: &UserId) -> Ready<Result<(), TxError>> {
    ready(Ok(()))
}

/// The triggers of the write cache note a change of the guards.
pub(super) fn change_guards(_: &mut Connection, _: DocumentId) -> Ready<Result<(), TxError>> {
    ready(Ok(()))
}

/// A time as a column stores it: milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(pub(super) DateTime<Utc>);

impl Type<sqlx::Sqlite> for Moment {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<sqlx::Sqlite>>::type_info()
    }

    fn compatible(column: &SqliteTypeInfo) -> bool {
        <i64 as Type<sqlx::Sqlite>>::compatible(column)
    }
}

impl Encode<'_, sqlx::Sqlite> for Moment {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, sqlx::Sqlite>>::encode_by_ref(&self.0.timestamp_millis(), buffer)
    }
}

impl Decode<'_, sqlx::Sqlite> for Moment {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(time(<i64 as Decode<'_, sqlx::Sqlite>>::decode(value)?)?))
    }
}
