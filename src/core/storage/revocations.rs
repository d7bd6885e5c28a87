//! Tokens that are refused before their end: all of a user from before a moment, or a single one.
//!
//! A server reads the rows at its start, and the new ones at each tick; it queries none for a request.

use std::borrow::Borrow;

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;

/// Whose tokens a revocation refuses: a user's, a single one, or all. No id of a user has a colon or a star.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenSubject(pub(crate) String);

impl TokenSubject {
    pub const ALL: &'static str = "*";
    const TOKEN: &'static str = "token:";

    /// Every user. The purge leaves such a row in place of the rows that it deletes.
    #[must_use]
    pub fn all() -> Self {
        Self(Self::ALL.to_owned())
    }

    #[must_use]
    pub fn user(id: &UserId) -> Self {
        Self(id.to_string())
    }

    /// By the hash of the token without its signature: of some algorithms another signature is valid, too.
    #[must_use]
    pub fn token(hash: &str) -> Self {
        Self([Self::TOKEN, hash].concat())
    }

    #[must_use]
    pub fn is_token(&self) -> bool {
        self.0.starts_with(Self::TOKEN)
    }
}

impl Borrow<str> for TokenSubject {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    pub subject: TokenSubject,
    /// Tokens that were issued up to this time are refused.
    pub before: DateTime<Utc>,
    /// No token of the subject that was issued before lives longer.
    pub until: DateTime<Utc>,
}
