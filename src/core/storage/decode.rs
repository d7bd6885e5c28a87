//! Conversions between columns and types, for all engines. Only Galley writes these columns: a value
//! that does not parse means a damaged database.

use std::fmt::Display;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::storage::error::StorageError;

pub fn corrupt(what: impl Display) -> StorageError {
    StorageError::Corrupt(what.to_string())
}

pub(crate) fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, StorageError> {
    text.parse().map_err(corrupt)
}

pub fn time(ms: i64) -> Result<DateTime<Utc>, StorageError> {
    DateTime::from_timestamp_millis(ms).ok_or_else(|| corrupt("a time out of range"))
}

pub(crate) fn fence(number: i64) -> Result<Fence, StorageError> {
    u64::try_from(number).map(Fence).map_err(corrupt)
}
