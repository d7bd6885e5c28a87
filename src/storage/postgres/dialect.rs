//! The names that the statements of `storage/sql` use, for PostgreSQL.

pub(super) use crate::storage::postgres::Postgres as Engine;
pub(super) use crate::storage::postgres::append::append_in;
pub(super) use crate::storage::postgres::encoding::{Moment, encoded, text, user};
pub(super) use crate::storage::postgres::locks::{
    change_guards, lock, lock_histories, lock_of, lock_users,
};
pub(super) use crate::storage::postgres::tx_error::TxError;

pub(super) type Connection = sqlx::PgConnection;
pub(super) type Row = sqlx::postgres::PgRow;

macro_rules! documents {
    () => {
        "documents"
    };
}
pub(super) use documents;

/// The texts of a JSON array, as the column `value` of the table `w`.
macro_rules! listed {
    ($array:literal) => {
        concat!("json_array_elements_text(CAST(", $array, " AS json)) AS w (value)")
    };
}
pub(super) use listed;

/// The elements of a JSON array, each as `w.value`.
macro_rules! json_rows {
    ($parameter:literal) => {
        concat!("json_array_elements(", $parameter, "::json) AS w (value)")
    };
}
pub(super) use json_rows;

/// The bytes of a hexadecimal text.
macro_rules! bytes_of_hex {
    ($text:literal) => {
        concat!("decode(", $text, ", 'hex')")
    };
}
pub(super) use bytes_of_hex;

/// The time of the database after the milliseconds of a parameter. All servers share this clock.
macro_rules! after_ms {
    ($ms:literal) => {
        concat!("(statement_timestamp() + ", $ms, " * interval '1 millisecond')")
    };
}
pub(super) use after_ms;

/// The number of the next webhook, under the lock of its document.
macro_rules! webhook_number {
    () => {
        "nextval('webhook_numbers')"
    };
}
pub(super) use webhook_number;

/// The end of a selection whose rows the transaction claims: another one claims the next ones.
macro_rules! skip_locked {
    () => {
        " FOR UPDATE SKIP LOCKED"
    };
}
pub(super) use skip_locked;

/// A transaction without a guard.
macro_rules! transact {
    ($engine:expr, $tx:ident => $block:block) => {
        $crate::storage::postgres::transaction!(
            $engine.others,
            $crate::storage::postgres::WRITE,
            $tx => $block
        )
        .map_err($crate::storage::postgres::tx_error::TxError::into_error)
    };
}
pub(super) use transact;

/// A write of one statement, which is its own transaction: one round trip instead of three. A lost
/// connection hides its commit, and this module runs it again. So the statement tolerates a second run.
macro_rules! single {
    ($engine:expr, $connection:ident => $block:block) => {
        $crate::storage::postgres::reading!($engine.others, $connection => $block)
            .map_err($crate::storage::postgres::tx_error::TxError::into_error)
    };
}
pub(super) use single;

/// A transaction that a guard may refuse.
macro_rules! guarded {
    ($engine:expr, $tx:ident => $block:block) => {
        $crate::storage::seats::finish(
            $crate::storage::postgres::transaction!(
                $engine.others,
                $crate::storage::postgres::WRITE,
                $tx => $block
            )
            .map_err($crate::storage::postgres::tx_error::TxError::into_halt),
        )
    };
}
pub(super) use guarded;

/// Runs a block of statements that see one state.
macro_rules! snapshot {
    ($engine:expr, $tx:ident => $block:block) => {
        $crate::storage::postgres::transaction!(
            $engine.others,
            $crate::storage::postgres::SNAPSHOT,
            $tx => $block
        )
        .map_err($crate::storage::postgres::tx_error::TxError::into_error)
    };
}
pub(super) use snapshot;

/// Runs a block that reads with one statement.
macro_rules! read {
    ($engine:expr, $connection:ident => $block:block) => {
        $crate::storage::postgres::reading!($engine.others, $connection => $block)
            .map_err($crate::storage::postgres::tx_error::TxError::into_error)
    };
}
pub(super) use read;
