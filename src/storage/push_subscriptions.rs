//! Browsers that receive pushes for their users.
//!
//! An endpoint belongs to the user who registered it last. Its address is a capability that only the browser and the server know.

use chrono::{DateTime, Utc};

use crate::domain::ids::PushSubscriptionId;

/// The language of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushLanguage {
    /// `ko`
    Korean,
    /// `en`
    English,
}

impl PushLanguage {
    /// The language of a tag of two letters.
    #[must_use]
    pub fn parse(tag: &str) -> Option<Self> {
        match tag {
            "ko" => Some(Self::Korean),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    /// The tag.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Korean => "ko",
            Self::English => "en",
        }
    }
}

/// The part of a subscription that the browser provides.
#[derive(Clone, PartialEq, Eq)]
pub struct PushAddress {
    /// The address of the push service.
    pub endpoint: String,
    /// The public key of the browser: an uncompressed point of P-256.
    pub p256dh: [u8; 65],
    /// The secret that the browser shares with this server.
    pub auth: [u8; 16],
    /// The language of the page.
    pub lang: Option<PushLanguage>,
    /// The end that the push service announced.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The address and the keys stay out of logs.
impl std::fmt::Debug for PushAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushAddress").finish_non_exhaustive()
    }
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    /// Its id.
    pub id: PushSubscriptionId,
    /// Where to send a push, and for which key to encrypt it.
    pub address: PushAddress,
    /// When its user registered it.
    pub created_at: DateTime<Utc>,
}

/// A stored subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPush {
    /// Its id.
    pub id: PushSubscriptionId,
    /// When its user registered it.
    pub created_at: DateTime<Utc>,
    /// Whether the endpoint was unknown before.
    pub is_new: bool,
}
