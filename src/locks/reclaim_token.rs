//! Reclaim of a lock that is still held.
//!
//! After a disconnect or a server crash the lock stays held until its lease ends. Its previous
//! owner received a secret with the grant. A claim with that secret takes the lock over at once, on
//! any server, and overtakes the wait queue.
//!
//! The owner stores the secret. The backend stores only its hash, so that a reader of the backend's
//! data cannot reclaim a lock.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The hash (SHA-256) of a reclaim secret, as the backend stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimToken(String);

impl ReclaimToken {
    /// The token of a secret, which must be long and random: a hash does not protect a secret that
    /// can be guessed.
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
    fn a_reclaim_token_reveals_no_secret_and_matches_no_other() {
        let pass = ReclaimToken::of("secret");
        assert_eq!(pass.as_str(), "K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols");
        assert_ne!(pass, ReclaimToken::of("secrets"));
        assert!(!format!("{pass:?}").contains("secret"));
    }
}
