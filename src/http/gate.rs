//! What may enter beside signed tokens: guests, if they are let in, and the admin token.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The gate. A cheap handle.
#[derive(Clone)]
pub struct Gate {
    takes_guests: bool,
    admin_token_hash: Arc<[u8; 32]>,
}

impl Gate {
    /// A gate that opens for `admin_token`, which is kept only as a hash.
    #[must_use]
    pub fn new(takes_guests: bool, admin_token: &[u8]) -> Self {
        Self { takes_guests, admin_token_hash: Arc::new(Sha256::digest(admin_token).into()) }
    }

    /// Whether anybody may enter under a name.
    #[must_use]
    pub fn takes_guests(&self) -> bool {
        self.takes_guests
    }

    /// Whether `token` is the admin token. Hashes are compared, in constant time, so the answer's
    /// delay tells neither its length nor its beginning.
    #[must_use]
    pub fn is_admin_token(&self, token: &str) -> bool {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        hash.ct_eq(self.admin_token_hash.as_ref()).into()
    }
}
