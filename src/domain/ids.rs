//! Ids of entities. Each kind has its own type, so the compiler rejects one kind in place of
//! another.
//!
//! A client sees every id as an opaque string of `[A-Za-z0-9_-]{1,64}`. Galley generates ids as a
//! prefix and 32 hexadecimal digits (a version 4 UUID, 122 random bits). User ids may come from the
//! host application and are stored unchanged.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Longest id, in bytes.
pub const ID_BYTES_MAX: usize = 64;

/// The text is not an id of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {expected} id")]
pub struct InvalidId {
    expected: &'static str,
}

/// Declares an id type that is distinct from every other.
macro_rules! define_id {
    ($(#[$doc:meta])+ $name:ident, $prefix:literal) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Generates a new id with 122 random bits.
            #[must_use]
            pub fn generate() -> Self {
                Self(Uuid::new_v4())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix(concat!($prefix, "_"))
                    // 32 digits only: the parser also accepts braces, hyphens and URNs.
                    .filter(|hex| hex.len() == 32)
                    .and_then(|hex| Uuid::try_parse(hex).ok())
                    .map(Self)
                    .ok_or(InvalidId { expected: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

define_id! {
    /// Names one document. Grants no right, so logs may contain it.
    DocumentId, "doc"
}
define_id! {
    /// Names one share link. Grants no right without an invite, so logs may contain it.
    ShareLinkId, "shr"
}
define_id! {
    /// Names one renewed invite of a share link. Grants nothing: the invite is its keyed hash.
    InviteId, "inv"
}
define_id! {
    /// Names one personal link of a user. Grants nothing: the token is its keyed hash.
    PersonalLinkId, "ask"
}
define_id! {
    /// Names one request of a user to another.
    RequestId, "req"
}
define_id! {
    /// Names one session. It is the value of its seat's key in Redis, so logs should not contain it.
    SessionId, "ses"
}
define_id! {
    /// Names one decision of a writer about one or many suggestions.
    DecisionId, "dec"
}
define_id! {
    /// Names one reply to a review.
    ReplyId, "rpl"
}
define_id! {
    /// Names one version of a document's text.
    VersionId, "ver"
}
define_id! {
    /// Names one review offer. A signed-in user who knows it may claim the offer.
    OfferId, "off"
}
define_id! {
    /// Names one claim of a review offer.
    ClaimId, "clm"
}
define_id! {
    /// Names one acquisition of a lock. It is the value of the lock's key, so logs should not
    /// contain it.
    AcquisitionId, "acq"
}
define_id! {
    /// Names one access token (its `jti`), so that no two tokens are equal.
    TokenId, "tok"
}
define_id! {
    /// Names one browser that receives pushes for its user. Grants nothing, so logs may contain it.
    PushSubscriptionId, "psh"
}
define_id! {
    /// Names one webhook: one event for one endpoint. Grants nothing, so logs may contain it.
    WebhookId, "whk"
}
define_id! {
    /// The receipt of the deletion of a user. Who knows it may read how far the deletion is.
    DeletionId, "dlt"
}
define_id! {
    /// Names one HTTP request that came without an id, in its log lines and its response.
    HttpRequestId, "http"
}
define_id! {
    /// Names one server process from its start to its end.
    NodeId, "node"
}

/// Shortest id of a review, in bytes.
const REVIEW_ID_BYTES_MIN: usize = 16;

/// Names one review. The client of a typed suggestion chooses its id, so that a repeated request creates
/// one review: 16 to 64 of the characters of an id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReviewId {
    /// The text, and zeros after it.
    bytes: [u8; ID_BYTES_MAX],
    length: usize,
}

impl ReviewId {
    /// Generates a new id with 122 random bits.
    #[must_use]
    pub fn generate() -> Self {
        Self::of(&format!("rev_{}", Uuid::new_v4().simple()))
    }

    fn of(text: &str) -> Self {
        let mut bytes = [0; ID_BYTES_MAX];
        let length = text.len().min(ID_BYTES_MAX);
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self { bytes, length }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..self.length);
        text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }
}

impl fmt::Debug for ReviewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ReviewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ReviewId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_long_enough = text.len() >= REVIEW_ID_BYTES_MIN;
        let id = check_opaque(text, "review").map(Self::of)?;
        is_long_enough.then_some(id).ok_or(InvalidId { expected: "review" })
    }
}

impl Serialize for ReviewId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ReviewId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The beginning of the ids of deleted users.
const DELETED: &str = "del_";

/// Names a user. Opaque: the tokens of the host application carry their own user ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UserId(Arc<str>);

impl UserId {
    /// Generates a new id for a guest.
    #[must_use]
    pub fn generate() -> Self {
        Self(format!("usr_{}", Uuid::new_v4().simple()).into())
    }

    /// Whether the id has the form that [`generate`](Self::generate) produces.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        let digits = self.0.strip_prefix("usr_");
        digits.is_some_and(|hex| hex.len() == 32 && Uuid::try_parse(hex).is_ok())
    }

    /// Generates the id that a deleted user has in the documents of others.
    #[must_use]
    pub fn generate_deleted() -> Self {
        Self(format!("{DELETED}{}", Uuid::new_v4().simple()).into())
    }

    /// Whether it is the id of a deleted user. No token names one.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.0.starts_with(DELETED)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for UserId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        opaque(text, "user").map(Self)
    }
}

/// The id that a host application chose, if it has the alphabet and the length of an id.
fn opaque(text: &str, expected: &'static str) -> Result<Arc<str>, InvalidId> {
    check_opaque(text, expected).map(Into::into)
}

fn check_opaque<'a>(text: &'a str, expected: &'static str) -> Result<&'a str, InvalidId> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.is_empty() || text.len() > ID_BYTES_MAX || !text.bytes().all(allowed) {
        return Err(InvalidId { expected });
    }
    Ok(text)
}

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Longest id of a document in its host application, in bytes.
pub const EXTERNAL_ID_BYTES_MAX: usize = 128;

/// The id of a document in the host application, unique for its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(extend("pattern" = "^[A-Za-z0-9_.:-]{1,128}$")))]
#[serde(transparent)]
pub struct ExternalId(String);

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ExternalId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
        let is_id = (1..=EXTERNAL_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed);
        is_id.then(|| Self(text.to_owned())).ok_or(InvalidId { expected: "external" })
    }
}

impl<'de> Deserialize<'de> for ExternalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Names the owner of a lock: a user, a process, or any other claimant that a program names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    /// Generates a new id.
    #[must_use]
    pub fn generate() -> Self {
        Self(format!("own_{}", Uuid::new_v4().simple()).into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OwnerId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        opaque(text, "owner").map(Self)
    }
}

/// A process claims its own locks.
impl From<NodeId> for OwnerId {
    fn from(node: NodeId) -> Self {
        Self(node.to_string().into())
    }
}

/// The server's claims name their user. Both kinds of ids have one alphabet.
impl From<UserId> for OwnerId {
    fn from(user: UserId) -> Self {
        Self(user.0)
    }
}

impl From<OwnerId> for UserId {
    fn from(owner: OwnerId) -> Self {
        Self(owner.0)
    }
}

impl PartialEq<UserId> for OwnerId {
    fn eq(&self, user: &UserId) -> bool {
        self.0 == user.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_through_text() {
        let id = ShareLinkId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().len() <= ID_BYTES_MAX);
    }

    #[test]
    fn an_id_of_one_kind_does_not_parse_as_another() {
        let text = DocumentId::generate().to_string();
        assert_eq!(text.parse::<ShareLinkId>(), Err(InvalidId { expected: "shr" }));
    }

    #[test]
    fn other_spellings_of_a_uuid_are_rejected() {
        for text in ["shr_", "shr_{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "shr_é", ""] {
            assert!(text.parse::<ShareLinkId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_client_may_choose_the_id_of_a_review() {
        let id = ReviewId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["sug-2026_abcdef12", &"Z".repeat(64)] {
            assert_eq!(text.parse::<ReviewId>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "rev_short", &"a".repeat(15), &"a".repeat(65), "sug 2026 abcdefgh"] {
            assert!(text.parse::<ReviewId>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_external_id_has_a_fixed_alphabet() {
        for text in ["a", "essay:2026.11-29_1", &"a".repeat(128)] {
            assert_eq!(text.parse::<ExternalId>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "a b", "가", "a/b", "a%2Fb", &"a".repeat(129)] {
            assert!(text.parse::<ExternalId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_user_id_has_a_fixed_alphabet() {
        assert!("kim-2_A".parse::<UserId>().is_ok());
        for text in ["", "a b", "김", &"a".repeat(65), "a|b", "a:b"] {
            assert!(text.parse::<UserId>().is_err(), "{text}");
        }
    }
}
