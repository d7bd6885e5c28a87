//! The signature of a webhook: HMAC-SHA256 of its time and its body.

use std::fmt::Write as _;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};

/// The secret of an endpoint; while it is rotated, two.
#[derive(Clone)]
pub struct WebhookSecret(Vec<Key>);

/// The secret stays out of logs.
impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(secrets.into_iter().map(|secret| Key::new(HMAC_SHA256, secret)).collect())
    }

    /// The value of `Galley-Signature` for a body that is sent at `time`, in seconds since 1970: a `v1` of
    /// each secret, in their order.
    #[must_use]
    pub fn sign(&self, time: i64, body: &[u8]) -> String {
        let mut value = format!("t={time}");
        for key in &self.0 {
            let mut mac = Context::with_key(key);
            mac.update(format!("{time}.").as_bytes());
            mac.update(body);
            value.push_str(",v1=");
            for byte in mac.sign().as_ref() {
                let _infallible = write!(value, "{byte:02x}");
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the README: `printf '1795269781.{}' | openssl dgst -sha256 -hmac SECRET`.
    #[test]
    fn a_signature_covers_time_and_body() {
        let old: &[u8] = b"0123456789abcdef";
        let secret = WebhookSecret::new([old]);
        let value = secret.sign(1_795_269_781, b"{}");
        let expected = "fbec494538345f5f2c2573f95c4eb5a2d1976a9cd8f96a5d44673150703b2c02";
        assert_eq!(value, format!("t=1795269781,v1={expected}"));
        assert_ne!(secret.sign(1_795_269_782, b"{}")[13..], value[13..]);
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
        let new: &[u8] = b"fedcba9876543210";
        let of_new = WebhookSecret::new([new]).sign(1_795_269_781, b"{}");
        let of_both = WebhookSecret::new([new, old]).sign(1_795_269_781, b"{}");
        assert_eq!(of_both, format!("{of_new},v1={expected}"));
    }
}
