//! The encryption of a push: RFC 8291 (keys of the browser) over RFC 8188 (`aes128gcm`).
//!
//! Only the browser reads a push; the push service sees its length, urgency and topic. Each push has a
//! key pair and a salt of its own, so no nonce repeats.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, ParsedPublicKey, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key, Tag};

pub const POINT_BYTES: usize = 65;
/// The secret that a browser shares with its server.
pub const AUTH_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 16;
/// The record size of the header. A push is one record, and push services accept no longer body.
const RECORD_BYTES: u32 = 4_096;
/// Ends the last record (RFC 8188 §2).
const LAST: u8 = 2;
/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// The browser's key is no point of the curve, or the system gives no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a push cannot be encrypted for this browser")]
pub struct NotEncrypted;

#[must_use]
pub fn is_point(bytes: &[u8]) -> bool {
    bytes.len() == POINT_BYTES
        && bytes.first() == Some(&UNCOMPRESSED)
        && ParsedPublicKey::try_from(UnparsedPublicKey::new(&ECDH_P256, bytes)).is_ok()
}

/// The result is the body of the request.
pub fn encrypt(
    payload: &[u8],
    browser: &[u8; POINT_BYTES],
    auth: &[u8; AUTH_BYTES],
) -> Result<Vec<u8>, NotEncrypted> {
    let own = PrivateKey::generate(&ECDH_P256).map_err(|_error| NotEncrypted)?;
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|_error| NotEncrypted)?;
    encrypt_with(payload, browser, auth, &own, &salt)
}

fn encrypt_with(
    payload: &[u8],
    browser: &[u8; POINT_BYTES],
    auth: &[u8; AUTH_BYTES],
    own: &PrivateKey,
    salt: &[u8; SALT_BYTES],
) -> Result<Vec<u8>, NotEncrypted> {
    let public = own.compute_public_key().map_err(|_error| NotEncrypted)?;
    let peer = UnparsedPublicKey::new(&ECDH_P256, browser);
    let input_key = agree(own, peer, NotEncrypted, |shared| {
        // HKDF with one block of output is two HMACs (RFC 5869 §2).
        let info = [b"WebPush: info\0".as_slice(), browser, public.as_ref(), &[1]];
        Ok(authenticate(authenticate(auth, &[shared]).as_ref(), &info))
    })?;
    let pseudo_random = authenticate(salt, &[input_key.as_ref()]);
    let derive = |info: &[u8]| authenticate(pseudo_random.as_ref(), &[info, &[1]]);
    let (key, nonce) =
        (derive(b"Content-Encoding: aes128gcm\0"), derive(b"Content-Encoding: nonce\0"));
    let key = key.as_ref().get(..KEY_BYTES).ok_or(NotEncrypted)?;
    let key = UnboundKey::new(&AES_128_GCM, key).map_err(|_error| NotEncrypted)?;
    let nonce = nonce.as_ref().get(..NONCE_LEN).ok_or(NotEncrypted)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_error| NotEncrypted)?;
    let mut record = payload.to_vec();
    record.push(LAST);
    let sealed = LessSafeKey::new(key).seal_in_place_append_tag(nonce, Aad::empty(), &mut record);
    sealed.map_err(|_error| NotEncrypted)?;

    let mut body = salt.to_vec();
    body.extend_from_slice(&RECORD_BYTES.to_be_bytes());
    body.push(u8::try_from(POINT_BYTES).unwrap_or(u8::MAX));
    body.extend_from_slice(public.as_ref());
    body.append(&mut record);
    Ok(body)
}

fn authenticate(key: &[u8], parts: &[&[u8]]) -> Tag {
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    context.sign()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
        let decoded = URL_SAFE_NO_PAD.decode(text).expect("base64url");
        decoded.try_into().expect("its length")
    }

    /// RFC 8291 Appendix A.
    #[test]
    fn the_example_of_rfc_8291_is_encrypted_byte_for_byte() {
        let own: [u8; 32] = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
        let own = PrivateKey::from_private_key(&ECDH_P256, &own).expect("a key");
        let browser = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        let payload = b"When I grow up, I want to be a watermelon";
        let body = encrypt_with(
            payload,
            &browser,
            &bytes("BTBZMqHH6r4Tts7J_aSIgg"),
            &own,
            &bytes("DGv6ra1nlYgDCS1FRnbzlw"),
        )
        .expect("encrypted");
        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3\
                        vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPX\
                        LWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
        assert_eq!(URL_SAFE_NO_PAD.encode(&body), expected);
    }

    #[test]
    fn two_pushes_have_no_bytes_of_key_or_salt_in_common() {
        let browser = PrivateKey::generate(&ECDH_P256)
            .and_then(|key| key.compute_public_key())
            .expect("a key");
        let browser: [u8; POINT_BYTES] = browser.as_ref().try_into().expect("a point");
        let [one, two] = [(); 2].map(|()| encrypt(b"text", &browser, &[7; 16]).expect("encrypted"));
        assert_eq!(one.len(), 16 + 4 + 1 + POINT_BYTES + 4 + 1 + 16);
        assert_ne!(one[..16], two[..16]);
        assert_ne!(one[21..86], two[21..86]);
    }

    #[test]
    fn only_a_point_of_the_curve_is_a_key() {
        let on_curve: [u8; POINT_BYTES] = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        assert!(is_point(&on_curve));
        let mut off_curve = on_curve;
        off_curve[64] ^= 1;
        let mut zero = [0; POINT_BYTES];
        zero[0] = 4;
        let mut compressed = vec![2];
        compressed.extend_from_slice(&on_curve[1..33]);
        for wrong in [off_curve.as_slice(), &zero, &compressed, &on_curve[..64], &[]] {
            assert!(!is_point(wrong));
        }
        assert_eq!(encrypt(b"text", &off_curve, &[0; 16]), Err(NotEncrypted));
    }
}
