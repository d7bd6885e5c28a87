//! Pagination: `limit` and `cursor`, and the start of the next page.

use std::str::FromStr;

use serde::Deserialize;

use crate::http::error::ApiError;
use crate::http::extract::Limit;
use crate::storage::pagination::{Cursor, Page};

#[derive(Deserialize)]
pub(crate) struct PageQuery {
    pub(crate) limit: Option<Limit>,
    pub(crate) cursor: Option<String>,
}

pub(crate) struct PageRequest<Id> {
    limit: u32,
    before: Option<Cursor<Id>>,
}

impl PageQuery {
    /// Parses the query: `default` rows without a limit, and at most `most`.
    pub(crate) fn parse<Id: FromStr>(
        self,
        default: u32,
        most: u32,
    ) -> Result<PageRequest<Id>, ApiError> {
        let limit = self.limit.map_or(Ok(default), |limit| limit.rows(most))?;
        let before = self.cursor.map(|cursor| cursor.parse()).transpose();
        let before = before.map_err(|error| ApiError::Invalid(format!("cursor: {error}")))?;
        Ok(PageRequest { limit, before })
    }
}

impl<Id: Clone + std::fmt::Display> PageRequest<Id> {
    /// The page to read. Its extra row shows whether a next page exists.
    pub(crate) fn page(&self) -> Page<Id> {
        Page { limit: self.limit + 1, before: self.before.clone() }
    }

    /// Removes the extra row, and returns the cursor of the next page if there was one.
    pub(crate) fn cut<T>(
        &self,
        rows: &mut Vec<T>,
        cursor: impl Fn(&T) -> Cursor<Id>,
    ) -> Option<String> {
        let wanted = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = wanted < rows.len();
        rows.truncate(wanted);
        rows.last().filter(|_| more).map(|last| cursor(last).to_string())
    }
}
