//! The user in whose name a server calls: the headers `Galley-User` and `Galley-User-Name`.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::domain::ids::UserId;
use crate::domain::line::Line;

const USER: HeaderName = HeaderName::from_static("galley-user");
/// Percent-encoded UTF-8: clients of HTTP send no other letters than those of Latin 1.
const USER_NAME: HeaderName = HeaderName::from_static("galley-user-name");

/// The fault of a header, for the caller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidHeader(pub(crate) String);

/// The value of a header that stands once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, InvalidHeader> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(InvalidHeader(format!("send the header {name} once"))),
        (first, None) => Ok(first.map(HeaderValue::as_bytes)),
    }
}

/// The user whom a server names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedUser {
    pub(crate) id: UserId,
    /// For an unknown one.
    pub(crate) name: Option<String>,
}

impl NamedUser {
    pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Self>, InvalidHeader> {
        let invalid = |what: &str| InvalidHeader(what.to_owned());
        let (id, name) = (only(headers, &USER)?, only(headers, &USER_NAME)?);
        let Some(id) = id else {
            let alone = invalid("Galley-User-Name needs the id of the user in Galley-User");
            return name.map_or(Ok(None), |_| Err(alone));
        };
        let id = str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| invalid("Galley-User: letters, digits, _ and -, at most 64"))?;
        let name = name.map(|name| {
            let name =
                decoded(name).ok_or_else(|| invalid("Galley-User-Name: percent-encoded UTF-8"))?;
            Line::Name
                .parse(&name)
                .map_err(|error| InvalidHeader(format!("Galley-User-Name: {error}")))
        });
        Ok(Some(Self { id, name: name.transpose()? }))
    }
}

/// `None`: the bytes are no percent-encoded UTF-8.
fn decoded(text: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let (byte, left) = match (first, after) {
            (b'%', [high, low, left @ ..]) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                (u8::try_from(digit(high)? * 16 + digit(low)?).ok()?, left)
            }
            (b'%', _) => return None,
            (plain, left) => (*plain, left),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn named(headers: &[(&HeaderName, &[u8])]) -> Result<Option<NamedUser>, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).expect("a value"));
        }
        NamedUser::read(&map).map_err(|InvalidHeader(fault)| fault)
    }

    #[test]
    fn a_server_names_one_user_and_the_name_is_percent_encoded() {
        let kim = |name: Option<&str>| {
            Ok(Some(NamedUser { id: "kim".parse().expect("an id"), name: name.map(str::to_owned) }))
        };
        assert_eq!(named(&[]), Ok(None));
        assert_eq!(named(&[(&USER, b"kim")]), kim(None));
        for name in [
            "%EA%B9%80%eb%af%bc%ec%88%98".as_bytes(),
            "김민수".as_bytes(),
            b" %EA%B9%80\xEB\xAF\xBC\xEC\x88\x98",
        ] {
            assert_eq!(named(&[(&USER, b"kim"), (&USER_NAME, name)]), kim(Some("김민수")));
        }
        let plain: &[u8] = b"100%25 Kim";
        assert_eq!(named(&[(&USER, b"kim"), (&USER_NAME, plain)]), kim(Some("100% Kim")));
        let long = "x".repeat(81);
        for name in
            [&b""[..], b"%", b"%4", b"%zz", b"%ff", b"\xff", b"%0A", b"%00", b" ", long.as_bytes()]
        {
            assert!(named(&[(&USER, b"kim"), (&USER_NAME, name)]).is_err(), "{name:?}");
        }
        for id in
            [&b""[..], b"kim lee", b"kim@example.com", "김".as_bytes(), b"\xff", long.as_bytes()]
        {
            assert!(named(&[(&USER, id)]).is_err(), "{id:?}");
        }
        for headers in [
            &[(&USER_NAME, plain)][..],
            &[(&USER, b"kim"), (&USER, b"kim")],
            &[(&USER, b"kim"), (&USER_NAME, plain), (&USER_NAME, plain)],
        ] {
            assert!(named(headers).is_err(), "{headers:?}");
        }
    }
}
