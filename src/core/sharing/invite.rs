//! Invites: the secrets that open share links.
//!
//! An invite is an HMAC of the link's id under the server's secret: 256 bits. Every server computes
//! the same invite on each request, and none stores it. The database stores only its hash, so a
//! reader of the database can open no link. A revocation ends the invite, because a new link has
//! another id. A renewal ends it, because a renewed invite has a random id of its own: a database that
//! was set back never brings a void invite into force again.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use crate::domain::ids::{InviteId, PersonalLinkId, ShareLinkId};
use crate::storage::invites::NewInvite;
use crate::storage::packed::sha256;

/// Separates this use of the secret from every other: no other HMAC gives the same bytes.
const PURPOSE: &[u8] = b"galley invite\0";
/// Separates a renewed invite from the first one of its link.
const RENEWED: &[u8] = b"\0renewed\0";
/// Separates the tokens of personal links from invites.
const PERSONAL: &[u8] = b"galley personal link\0";

#[derive(Clone)]
pub struct Invites(Arc<Key>);

/// `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Invite(String);

impl Invite {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

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
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(Arc::new(Key::new(HMAC_SHA256, secret)))
    }

    /// The first invite of a link.
    #[must_use]
    pub fn of(&self, link: ShareLinkId) -> Invite {
        self.text(&[PURPOSE, link.to_string().as_bytes()])
    }

    /// The invite of a link that has this id; `None`: its first one.
    #[must_use]
    pub fn in_force(&self, link: ShareLinkId, invite: Option<InviteId>) -> Invite {
        let Some(id) = invite else { return self.of(link) };
        let (link, id) = (link.to_string(), id.to_string());
        self.text(&[PURPOSE, link.as_bytes(), RENEWED, id.as_bytes()])
    }

    /// A new invite for a link, which replaces every older one.
    #[must_use]
    pub fn renewed(&self, link: ShareLinkId, now: DateTime<Utc>) -> NewInvite {
        let id = InviteId::generate();
        NewInvite { id, hash: self.in_force(link, Some(id)).hash(), now }
    }

    /// The token of a personal link. Its id is random, so a renewal voids the older token.
    #[must_use]
    pub fn personal(&self, link: PersonalLinkId) -> Invite {
        self.text(&[PERSONAL, link.to_string().as_bytes()])
    }

    fn text(&self, parts: &[&[u8]]) -> Invite {
        Invite(URL_SAFE_NO_PAD.encode(self.authenticate(parts)))
    }

    /// The HMAC of `parts` under the server's secret.
    pub fn authenticate(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut mac = [0; 32];
        mac.copy_from_slice(context.sign().as_ref());
        mac
    }
}

/// Whether `text` is the invite with the stored hash; in constant time.
#[must_use]
pub fn opens(text: &str, stored: &[u8; 32]) -> bool {
    !text.is_empty() && verify_slices_are_equal(&hash(text), stored).is_ok()
}

/// The hash of the text of an invite or of a personal link, as the database stores it.
#[must_use]
pub fn hash(text: &str) -> [u8; 32] {
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invite_is_equal_on_every_server_and_different_for_each_link() {
        let link = ShareLinkId::generate();
        let (here, there) = (Invites::new(b"one secret"), Invites::new(b"one secret"));
        assert_eq!(here.of(link), there.of(link));
        assert_ne!(here.of(link), here.of(ShareLinkId::generate()));
        assert_ne!(here.of(link), Invites::new(b"another").of(link));
    }

    #[test]
    fn a_renewed_invite_opens_its_link_and_the_older_ones_do_not() {
        let (invites, link) = (Invites::new(b"one secret"), ShareLinkId::generate());
        let (one, two) = (InviteId::generate(), InviteId::generate());
        let renewed = [None, Some(one), Some(two)].map(|id| invites.in_force(link, id));
        assert_eq!(renewed[0], invites.of(link));
        for (at, invite) in renewed.iter().enumerate() {
            for (other, hash) in renewed.iter().map(Invite::hash).enumerate() {
                assert_eq!(opens(invite.as_str(), &hash), at == other);
            }
        }
        assert_ne!(renewed[1], invites.in_force(ShareLinkId::generate(), Some(one)));
    }

    #[test]
    fn the_token_of_a_personal_link_is_no_invite_and_differs_for_each_link() {
        let (here, there) = (Invites::new(b"one secret"), Invites::new(b"one secret"));
        let link = PersonalLinkId::generate();
        assert_eq!(here.personal(link), there.personal(link));
        assert_eq!(here.personal(link).as_str().len(), 43);
        assert_ne!(here.personal(link), here.personal(PersonalLinkId::generate()));
        assert_ne!(here.personal(link), Invites::new(b"another").personal(link));
        assert_eq!(hash(here.personal(link).as_str()), here.personal(link).hash());
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
