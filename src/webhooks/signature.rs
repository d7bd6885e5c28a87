//! The signature of a webhook: HMAC-SHA256 of its time and its body.

use std::fmt::Write as _;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};

#[derive(Clone)]
pub struct WebhookSecret(Key);

/// The secret stays out of logs.
impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(Key::new(HMAC_SHA256, secret))
    }

    /// The value of `Galley-Signature` for a body that is sent at `time`, in seconds since 1970.
    #[must_use]
    pub fn sign(&self, time: i64, body: &[u8]) -> String {
        let mut mac = Context::with_key(&self.0);
        mac.update(format!("{time}.").as_bytes());
        mac.update(body);
        let mut value = format!("t={time},v1=");
        for byte in mac.sign().as_ref() {
            let _infallible = write!(value, "{byte:02x}");
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
        let secret = WebhookSecret::new(b"0123456789abcdef");
        let value = secret.sign(1_795_269_781, b"{}");
        let expected = "fbec494538345f5f2c2573f95c4eb5a2d1976a9cd8f96a5d44673150703b2c02";
        assert_eq!(value, format!("t=1795269781,v1={expected}"));
        assert_ne!(secret.sign(1_795_269_782, b"{}")[13..], value[13..]);
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }
}
