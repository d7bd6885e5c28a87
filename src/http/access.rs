//! The ways to authenticate: a signed token, a guest's entry if the settings allow it, or the admin
//! token.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};

use crate::http::origin::Origin;

#[derive(Clone)]
pub struct Access {
    takes_guests: bool,
    is_secure: bool,
    sign_in_url: Option<Arc<str>>,
    sign_out_url: Option<Arc<str>>,
    session: Duration,
    admin_token_hash: Digest,
}

impl Access {
    /// A policy with `admin_token`, of which it stores only the hash.
    #[must_use]
    pub fn new(takes_guests: bool, admin_token: &[u8]) -> Self {
        let admin_token_hash = digest(&SHA256, admin_token);
        Self {
            takes_guests,
            is_secure: false,
            sign_in_url: None,
            sign_out_url: None,
            session: Duration::ZERO,
            admin_token_hash,
        }
    }

    #[must_use]
    pub fn under_https(self, is_secure: bool) -> Self {
        Self { is_secure, ..self }
    }

    #[must_use]
    pub fn with_sign_in(self, url: Option<&str>) -> Self {
        Self { sign_in_url: url.map(Arc::from), ..self }
    }

    /// With the sign-in of `auth.oidc` under the origin of Galley's page.
    #[must_use]
    pub fn with_oidc(self, page: Option<&Origin>) -> Self {
        let Some(page) = page else { return self };
        Self {
            sign_in_url: Some(format!("{page}/api/auth/oidc/start?return={{return}}").into()),
            sign_out_url: Some(format!("{page}/api/auth/oidc/sign-out").into()),
            ..self
        }
    }

    #[must_use]
    pub fn with_session(self, session: Duration) -> Self {
        Self { session, ..self }
    }

    /// Lifetime of the cookie for a user of a host application.
    #[must_use]
    pub fn session(&self) -> Duration {
        self.session
    }

    /// Whether browsers reach the server by https. It decides which cookie carries the token.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The page that signs in users without a token: an address with `{return}` in it.
    #[must_use]
    pub fn sign_in_url(&self) -> Option<&str> {
        self.sign_in_url.as_deref()
    }

    /// The page that ends the provider's session, after that of this server.
    #[must_use]
    pub fn sign_out_url(&self) -> Option<&str> {
        self.sign_out_url.as_deref()
    }

    #[must_use]
    pub fn takes_guests(&self) -> bool {
        self.takes_guests
    }

    /// Whether `token` is the admin token. The function compares hashes in constant time, so its
    /// duration reveals neither the token's length nor its beginning.
    #[must_use]
    pub fn is_admin_token(&self, token: &str) -> bool {
        let hash = digest(&SHA256, token.as_bytes());
        verify_slices_are_equal(hash.as_ref(), self.admin_token_hash.as_ref()).is_ok()
    }
}
