//! Coming back to a lock that is still held.
//!
//! Who was cut off, or whose server died, has still a lock that nobody else can have before its
//! lease ends. A secret that was given to them with it says that they are who held it: with it they
//! take it over at once, on whatever server they arrive, before everybody in the line.
//!
//! The secret itself stays with its owner. The keeper has its hash, so that whoever reads the
//! keeper's data can come back to nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// What the keeper knows of a secret by which an owner may come back to a lock: its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass(String);

impl Pass {
    /// The pass of a secret, which must be long and random: a hash hides nothing that can be
    /// guessed.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(Sha256::digest(secret)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_shows_nothing_of_its_secret_and_is_that_of_no_other() {
        let pass = Pass::of("secret");
        assert_eq!(pass.as_str(), "K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols");
        assert_ne!(pass, Pass::of("secrets"));
        assert!(!format!("{pass:?}").contains("secret"));
    }
}
