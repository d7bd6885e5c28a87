//! Encodings for values that PostgreSQL's columns cannot store as they are: texts with U+0000, times.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

/// The escape character. Unicode defines it as a noncharacter, so texts hardly contain it; a text
/// that does is stored correctly.
const MARK: char = '\u{10FFFF}';
const NUL_FOLLOWS: char = '0';

/// Encodes `text` for a column: PostgreSQL's texts cannot contain U+0000, and a quote may.
pub(crate) fn encoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut column = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => column.extend([MARK, NUL_FOLLOWS]),
            MARK => column.extend([MARK, MARK]),
            plain => column.push(plain),
        }
    }
    Cow::Owned(column)
}

pub(crate) fn text(column: String) -> String {
    if !column.contains(MARK) {
        return column;
    }
    let mut text = String::with_capacity(column.len());
    let mut characters = column.chars();
    while let Some(character) = characters.next() {
        match (character, character == MARK) {
            (_, true) => match characters.next() {
                Some(NUL_FOLLOWS) => text.push('\0'),
                Some(other) => text.push(other),
                None => {}
            },
            (plain, false) => text.push(plain),
        }
    }
    text
}

/// A `timestamptz` in whole milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PgMoment(pub(crate) DateTime<Utc>);

/// Microseconds from the Unix epoch to PostgreSQL's, which is 2000-01-01.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const OUT_OF_RANGE: &str = "a time out of range";

impl Type<Postgres> for PgMoment {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1184))
    }
}

impl PgHasArrayType for PgMoment {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1185))
    }
}

impl Encode<'_, Postgres> for PgMoment {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let micros = self.0.timestamp_millis().checked_mul(1_000);
        let column = micros.and_then(|micros| micros.checked_sub(EPOCH_MICROS));
        <i64 as Encode<'_, Postgres>>::encode_by_ref(&column.ok_or(OUT_OF_RANGE)?, buffer)
    }
}

impl Decode<'_, Postgres> for PgMoment {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        // sqlx's own decoder would panic at `infinity`.
        let column = <i64 as Decode<'_, Postgres>>::decode(value)?;
        let micros = column.checked_add(EPOCH_MICROS).ok_or(OUT_OF_RANGE)?;
        let moment = DateTime::from_timestamp_millis(micros.div_euclid(1_000));
        Ok(Self(moment.ok_or(OUT_OF_RANGE)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_round_trips_and_no_column_has_a_nul() {
        let mark = MARK.to_string();
        for original in ["", "plain 글", "\0", "a\0\0b", &mark, &format!("{mark}0\0{mark}{mark}")]
        {
            let column = encoded(original);
            assert!(!column.contains('\0'));
            assert_eq!(text(column.into_owned()), original);
        }
        assert!(matches!(encoded("plain 글"), Cow::Borrowed(_)));
    }
}
