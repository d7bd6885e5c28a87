//! Codes that sign a guest in on another device.
//!
//! A code has eight characters of Crockford's base 32, 40 random bits, and is valid for fifteen minutes
//! and for one sign-in. Its entropy is low, because a person types it. So the database stores its HMAC
//! under the server's secret, of which a reader of the database can compute none, and
//! [`http`](crate::http) limits the tries of an address.

pub(crate) mod http;
pub mod store;

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::user::User;
use crate::sharing::invite::Invites;
use crate::storage::Storage;
use crate::storage::error::StorageError;

/// Lifetime of a code that signs a guest in on another device: time to type eight characters.
const TRANSFER_TTL: TimeDelta = TimeDelta::minutes(15);

/// Separates this use of the secret from every other.
const PURPOSE: &[u8] = b"galley transfer code\0";

/// Crockford's base 32: no I, L, O and U, which look like digits or form words.
const ALPHABET: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CHARACTERS: usize = 8;

/// A code. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct TransferCode([u8; CHARACTERS]);

#[derive(Debug)]
pub struct Transfer {
    pub code: TransferCode,
    pub expires_at: DateTime<Utc>,
}

impl TransferCode {
    fn generate() -> Result<Self, TransferError> {
        getrandom::u64().map(Self::of_bits).map_err(|_error| TransferError::NoRandomness)
    }

    fn of_bits(bits: u64) -> Self {
        let mut left = bits << 24;
        Self([(); CHARACTERS].map(|()| {
            let digit = usize::try_from(left >> 59).unwrap_or(0);
            left <<= 5;
            ALPHABET.get(digit).copied().unwrap_or(b'0')
        }))
    }

    /// Reads a code as a person types it: in lower case, with spaces and hyphens, with O for 0 and with
    /// I or L for 1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut typed = text.bytes().filter(|byte| !matches!(byte, b' ' | b'-'));
        let mut code = [0; CHARACTERS];
        for digit in &mut code {
            let character = match typed.next()?.to_ascii_uppercase() {
                b'O' => b'0',
                b'I' | b'L' => b'1',
                other => other,
            };
            *digit = ALPHABET.contains(&character).then_some(character)?;
        }
        typed.next().is_none().then_some(Self(code))
    }
}

/// The form for a person: two groups of four.
impl fmt::Display for TransferCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at(CHARACTERS / 2);
        let text = |bytes| str::from_utf8(bytes).unwrap_or_default();
        write!(f, "{}-{}", text(first), text(second))
    }
}

impl fmt::Debug for TransferCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransferCode(***)")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("the code is wrong, used or expired; make a new one on the other device")]
    WrongCode,
    #[error("the system gives no random bytes")]
    NoRandomness,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Clone)]
pub struct Transfers {
    storage: Storage,
    invites: Invites,
}

impl Transfers {
    /// Hashed under the secret of `invites`.
    #[must_use]
    pub fn new(storage: Storage, invites: Invites) -> Self {
        Self { storage, invites }
    }

    /// In place of an earlier code.
    pub async fn create(&self, user: &User, now: DateTime<Utc>) -> Result<Transfer, TransferError> {
        let (code, expires_at) = (TransferCode::generate()?, now + TRANSFER_TTL);
        store::put_transfer(&self.storage, user, self.hash_of(&code), now, expires_at).await?;
        Ok(Transfer { code, expires_at })
    }

    /// A code that is wrong, used or expired has the same outcome.
    pub async fn take(&self, code: &str, now: DateTime<Utc>) -> Result<User, TransferError> {
        let code = TransferCode::parse(code).ok_or(TransferError::WrongCode)?;
        let user = store::take_transfer(&self.storage, self.hash_of(&code), now).await?;
        user.ok_or(TransferError::WrongCode)
    }

    fn hash_of(&self, code: &TransferCode) -> [u8; 32] {
        self.invites.authenticate(&[PURPOSE, &code.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_a_person_types_it() {
        let code = TransferCode::of_bits(0x0001_2345_6789);
        assert_eq!(code.to_string(), "04HM-ASW9");
        for typed in ["04HM-ASW9", "04hmasw9", " o4hm asw9 ", "O4HM--ASW9"] {
            assert_eq!(TransferCode::parse(typed).as_ref(), Some(&code), "{typed}");
        }
        assert_eq!(TransferCode::parse("1l0O-iIlL"), TransferCode::parse("1100-1111"));
    }

    #[test]
    fn a_text_that_is_no_code_is_refused() {
        let long = "0".repeat(3_000);
        for wrong in
            ["", "-", "04HM-ASW", "04HM-ASW99", "04HM-ASWU", "04HM_ASW9", "한글코드", &long]
        {
            assert_eq!(TransferCode::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_code_has_forty_random_bits() {
        let codes: Vec<_> = (0..64).map(|_| TransferCode::generate().expect("a code")).collect();
        for index in 0..CHARACTERS {
            assert!(codes.iter().any(|code| code.0[index] != codes[0].0[index]), "{index}");
        }
        let (lowest, highest) = (TransferCode::of_bits(0), TransferCode::of_bits(u64::MAX));
        assert_eq!(
            (lowest.to_string(), highest.to_string()),
            ("0000-0000".into(), "ZZZZ-ZZZZ".into())
        );
    }
}
