//! Invites: what opens a share link.
//!
//! An invite is an HMAC of the link's id under the server's secret: 256 bits that nobody can guess,
//! the same on every server and each time they are asked for, and kept nowhere. The database has
//! only their hash, so who reads it can open nothing; and revoking the link ends the invite, because
//! a new link has another id.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::domain::ids::ShareLinkId;

/// Says what the secret is used for here, so that no other use of it gives the same bytes.
const PURPOSE: &[u8] = b"galley invite\0";

/// Makes and checks invites. A cheap handle.
#[derive(Clone)]
pub struct Invites(Arc<[u8]>);

/// What opens one share link. Not printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Invite(String);

impl Invite {
    /// As it stands in a link's fragment.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the database keeps of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.0)
    }
}

impl fmt::Debug for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invite(***)")
    }
}

impl Invites {
    /// Invites under `secret`.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(secret.into())
    }

    /// The invite of a link.
    #[must_use]
    pub fn of(&self, link: ShareLinkId) -> Invite {
        // An HMAC takes a key of any length, so the empty answer is never given.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            return Invite(String::new());
        };
        mac.update(PURPOSE);
        mac.update(link.to_string().as_bytes());
        Invite(URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }
}

/// Whether `text` is the invite whose hash was kept; in constant time.
#[must_use]
pub fn opens(text: &str, kept: &[u8; 32]) -> bool {
    !text.is_empty() && bool::from(hash(text).ct_eq(kept))
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invite_is_the_same_on_every_server_and_another_for_every_link() {
        let link = ShareLinkId::generate();
        let (here, there) = (Invites::new(b"one secret"), Invites::new(b"one secret"));
        assert_eq!(here.of(link), there.of(link));
        assert_ne!(here.of(link), here.of(ShareLinkId::generate()));
        assert_ne!(here.of(link), Invites::new(b"another").of(link));
    }

    #[test]
    fn an_invite_has_at_least_128_bits_and_opens_only_its_link() {
        let invites = Invites::new(b"one secret");
        let invite = invites.of(ShareLinkId::generate());
        assert_eq!(invite.as_str().len(), 43);
        assert!(opens(invite.as_str(), &invite.hash()));
        let other = invites.of(ShareLinkId::generate());
        let longer = format!("{}x", invite.as_str());
        for wrong in ["", other.as_str(), &longer, "shr_0"] {
            assert!(!opens(wrong, &invite.hash()), "{wrong}");
        }
        assert!(!opens("", &hash("")));
    }
}
