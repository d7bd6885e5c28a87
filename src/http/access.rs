//! How users enter: by signed tokens, as guests if they are let in, or by the admin token.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The gate. A cheap handle.
#[derive(Clone)]
pub struct Gate {
    takes_guests: bool,
    is_secure: bool,
    sign_in_url: Option<Arc<str>>,
    admin_token_hash: Arc<[u8; 32]>,
}

impl Gate {
    /// A gate that opens for `admin_token`, which is kept only as a hash.
    #[must_use]
    pub fn new(takes_guests: bool, admin_token: &[u8]) -> Self {
        let admin_token_hash = Arc::new(Sha256::digest(admin_token).into());
        Self { takes_guests, is_secure: false, sign_in_url: None, admin_token_hash }
    }

    /// The same for a server that browsers reach by https, or not.
    #[must_use]
    pub fn under_https(self, is_secure: bool) -> Self {
        Self { is_secure, ..self }
    }

    /// The same with the address at which users without a sign-in get one.
    #[must_use]
    pub fn with_sign_in(self, url: Option<&str>) -> Self {
        Self { sign_in_url: url.map(Arc::from), ..self }
    }

    /// Whether browsers reach the server by https, and so which cookie carries the token.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Where users without a sign-in get one: an address with `{return}` in it.
    #[must_use]
    pub fn sign_in_url(&self) -> Option<&str> {
        self.sign_in_url.as_deref()
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
