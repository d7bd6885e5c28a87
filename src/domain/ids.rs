//! Names of things. Each kind has a type of its own, so that one cannot pass for another.
//!
//! From outside every id is an opaque string of `[A-Za-z0-9_-]{1,64}`. Ids that Galley makes are
//! a prefix and 32 hexadecimal digits (a version 4 UUID, 122 random bits). User ids may come from
//! the host application and are kept as they are.

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

/// Declares an id that the compiler will not let you pass for another.
macro_rules! define_id {
    ($(#[$doc:meta])+ $name:ident, $prefix:literal) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// A new one: 122 random bits, never handed out before.
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
                    // 32 digits only: the parser also takes braces, hyphens and URNs.
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
    /// Names one document. Grants nothing, so it may be logged.
    DocumentId, "doc"
}
define_id! {
    /// Names one share link. Grants nothing without an invite, so it may be logged.
    ShareLinkId, "shr"
}
define_id! {
    /// Names one session; the value of its seat's key in Redis, so it is a secret of sorts.
    SessionId, "ses"
}
define_id! {
    /// Names one review.
    ReviewId, "rev"
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
    /// Names one acquisition of a lock; its key's value, so it is a secret of sorts.
    AcquisitionId, "acq"
}
define_id! {
    /// Names one question of a server to the others.
    QuestionId, "qst"
}
define_id! {
    /// Names one access token (its `jti`), so that no two are the same.
    TokenId, "tok"
}
define_id! {
    /// Names one server process, for as long as it runs.
    NodeId, "node"
}

/// Names a user. Opaque: the host application's tokens bring their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UserId(Arc<str>);

impl UserId {
    /// A new one, for a guest.
    #[must_use]
    pub fn generate() -> Self {
        Self(format!("usr_{}", Uuid::new_v4().simple()).into())
    }

    /// Whether the id has the form of one that [`generate`](Self::generate) makes.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        let digits = self.0.strip_prefix("usr_");
        digits.is_some_and(|hex| hex.len() == 32 && Uuid::try_parse(hex).is_ok())
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
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if text.is_empty() || ID_BYTES_MAX < text.len() || !text.bytes().all(allowed) {
            return Err(InvalidId { expected: "user" });
        }
        Ok(Self(text.into()))
    }
}

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_trip_through_text() {
        let id = ShareLinkId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().len() <= ID_BYTES_MAX);
    }

    #[test]
    fn one_kind_of_id_is_not_taken_for_another() {
        let text = DocumentId::generate().to_string();
        assert_eq!(text.parse::<ShareLinkId>(), Err(InvalidId { expected: "shr" }));
    }

    #[test]
    fn other_spellings_of_a_uuid_are_refused() {
        for text in ["shr_", "shr_{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "shr_é", ""] {
            assert!(text.parse::<ShareLinkId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_user_id_keeps_to_its_alphabet() {
        assert!("kim-2_A".parse::<UserId>().is_ok());
        for text in ["", "a b", "김", &"a".repeat(65), "a|b", "a:b"] {
            assert!(text.parse::<UserId>().is_err(), "{text}");
        }
    }
}
