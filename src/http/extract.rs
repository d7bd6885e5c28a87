//! Extractors of axum whose rejections are problem documents.

use std::fmt;
use std::marker::PhantomData;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use futures_util::StreamExt as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use tokio::time::timeout;

use crate::http::ANSWER_MAX;
use crate::http::error::ApiError;
use crate::http::response_budget::BodyCharge;

/// Maximum length of a route's body in bytes. The router puts it into the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit(pub(crate) usize);

/// Maximum length of any body in bytes: `limits.body_bytes`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyMax(pub(crate) usize);

/// A body that is a JSON object. Its rejection is a problem document.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A text: the body itself as `text/plain`, or `{"text"}`.
pub(crate) struct TextBody(pub(crate) String);

pub(crate) struct RawBody<const MAX: usize>(pub(crate) Result<Bytes, ApiError>);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

/// Ids in the path. One that cannot be parsed is rejected as not found.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = read(&parts, body, body_limit(&parts)).await?;
        let request = Request::from_parts(parts, Body::from(body));
        let read = <axum::Json<_> as FromRequest<S>>::from_request(request, state).await?;
        let axum::Json(Object(body)) = read;
        Ok(Self(body))
    }
}

impl<S: Send + Sync> FromRequest<S> for TextBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        #[derive(serde::Deserialize)]
        struct InObject {
            text: String,
        }
        let media_type = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let is_plain = media_type.is_some_and(|it| it.trim_start().starts_with("text/plain"));
        if !is_plain {
            let reading = <JsonBody<InObject> as FromRequest<S>>::from_request(request, state);
            let JsonBody(InObject { text }) = reading.await?;
            return Ok(Self(text));
        }
        let (parts, body) = request.into_parts();
        let bytes = read(&parts, body, body_limit(&parts)).await?;
        let text = String::from_utf8(bytes.into());
        text.map(Self).map_err(|_error| ApiError::Malformed("the body is no UTF-8".to_owned()))
    }
}

fn body_limit(parts: &Parts) -> usize {
    let by_route = parts.extensions.get::<BodyLimit>().map_or(usize::MAX, |limit| limit.0);
    let by_server = parts.extensions.get::<BodyMax>().map_or(usize::MAX, |limit| limit.0);
    by_route.min(by_server)
}

impl<S: Send + Sync, const MAX: usize> FromRequest<S> for RawBody<MAX> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        Ok(Self(read(&parts, body, MAX).await))
    }
}

/// A body that the client may omit: no bytes, and no content type.
impl<S: Send + Sync, T: DeserializeOwned> OptionalFromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, ApiError> {
        let is_absent =
            request.body().is_end_stream() && !request.headers().contains_key(CONTENT_TYPE);
        if is_absent {
            return Ok(None);
        }
        <Self as FromRequest<S>>::from_request(request, state).await.map(Some)
    }
}

/// Reads a body of at most `limit` bytes. It rejects a longer `Content-Length` before it reads the body,
/// and reserves the announced length when the first bytes arrive: a buffer that grows in steps holds two
/// copies. The charge is the capacity of the buffer, since the allocator may reuse memory that another
/// body has touched.
///
/// A body that has not arrived within [`ANSWER_MAX`] is given up. The handler of a change runs in a task of
/// the server, which the end of its request does not end.
async fn read(parts: &Parts, body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let mut codings = parts.headers.get_all(CONTENT_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(ApiError::EncodedBody);
    }
    let too_slow = |_elapsed| ApiError::Unavailable("the body took too long".into());
    timeout(ANSWER_MAX, read_to_end(parts, body, limit)).await.map_err(too_slow)?
}

async fn read_to_end(parts: &Parts, body: Body, limit: usize) -> Result<Bytes, ApiError> {
    // Not the body's own hint: a layer around it drops the hint.
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let announced = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let charge = parts.extensions.get::<BodyCharge>();
    if limit < announced {
        return Err(ApiError::TooLarge);
    }
    let mut frames = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(frame) = frames.next().await {
        let broken = |_error| ApiError::Malformed("the body ended before it was complete".into());
        let frame = frame.map_err(broken)?;
        let length = whole.len() + frame.len();
        if limit < length {
            return Err(ApiError::TooLarge);
        }
        if whole.capacity() < length {
            // A body without an announced length doubles its buffer.
            let room = length.max(announced).max(limit.min(2 * whole.capacity()));
            let more = u64::try_from(room - whole.capacity()).unwrap_or(u64::MAX);
            charge.map_or(Ok(()), |charge| charge.grow(more))?;
            whole.reserve_exact(room - whole.len());
        }
        whole.extend_from_slice(&frame);
    }
    Ok(whole.into())
}

/// A JSON object only: serde would also read a struct from an array, field by field.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

/// The type reads text, so that every invalid number has the same rejection.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Limit(String);

impl Limit {
    pub(crate) fn rows(&self, most: u32) -> Result<u32, ApiError> {
        let is_number = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit());
        // A number with more digits than `u32` exceeds every page.
        match self.0.parse().unwrap_or(u32::MAX) {
            rows if is_number && rows != 0 => Ok(rows.min(most)),
            _ => Err(ApiError::Invalid("limit is a whole number, at least 1".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;
    use crate::http::byte_budget::{BudgetLimits, ByteBudget, Payer};
    use crate::http::peer::Peer;

    async fn read_frames(announced: Option<&str>) -> Result<Bytes, ApiError> {
        const SHARE: u64 = 75_000;
        let limits = BudgetLimits { all: 1_000_000, address: SHARE, user: SHARE };
        let budget = ByteBudget::new(limits);
        let charge = BodyCharge::new(budget.open(Payer::of(None, Peer::default())));
        let mut request = Request::builder().extension(charge);
        if let Some(length) = announced {
            request = request.header(CONTENT_LENGTH, length);
        }
        let frames = vec![Ok::<_, Infallible>(Bytes::from_static(&[b'a'; 100])); 700];
        let body = Body::from_stream(stream::iter(frames));
        let (parts, body) = request.body(body).expect("a request").into_parts();
        read(&parts, body, 100_000).await
    }

    /// A buffer grew by doubling, and its charge was the length of the bytes in it.
    #[tokio::test]
    async fn g17_a_body_is_charged_for_its_whole_buffer() {
        let whole = read_frames(Some("70000")).await.expect("room");
        assert_eq!(whole, vec![b'a'; 70_000]);
        let refused = read_frames(None).await;
        assert!(matches!(refused, Err(ApiError::TooManyRequests { .. })), "{refused:?}");
    }

    #[test]
    fn a_limit_is_a_number_from_one_up() {
        let rows = |text: &str| Limit(text.to_owned()).rows(100);
        assert!(matches!(rows("7"), Ok(7)));
        assert!(matches!(rows("100000"), Ok(100)));
        assert!(matches!(rows("99999999999999999999"), Ok(100)));
        for text in ["0", "-1", "", "+1", " 1", "1.0", "1e1", "x", "00", "\u{0661}"] {
            assert!(matches!(rows(text), Err(ApiError::Invalid(_))), "{text}");
        }
    }

    #[test]
    fn an_object_is_no_array() {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        let read = serde_json::from_str::<Object<Named>>;
        assert_eq!(read(r#"{"name":"x"}"#).expect("an object").0.name, "x");
        for text in [r#"["x"]"#, r#""x""#, "null", "7", "[]"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
