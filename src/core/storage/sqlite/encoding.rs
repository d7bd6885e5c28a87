//! Times as `SQLite` stores them.

use chrono::{DateTime, Utc};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Type};

use crate::storage::decode::time;

/// A time as a column stores it: milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteMoment(pub(crate) DateTime<Utc>);

impl Type<sqlx::Sqlite> for SqliteMoment {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<sqlx::Sqlite>>::type_info()
    }

    fn compatible(column: &SqliteTypeInfo) -> bool {
        <i64 as Type<sqlx::Sqlite>>::compatible(column)
    }
}

impl Encode<'_, sqlx::Sqlite> for SqliteMoment {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, sqlx::Sqlite>>::encode_by_ref(&self.0.timestamp_millis(), buffer)
    }
}

impl Decode<'_, sqlx::Sqlite> for SqliteMoment {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(time(<i64 as Decode<'_, sqlx::Sqlite>>::decode(value)?)?))
    }
}
