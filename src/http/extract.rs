//! axum's extractors, failing in our words.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Request};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::http::error::ApiError;

/// A body that is a JSON object; failures are problem documents.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The query; failures are problem documents.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

/// Ids in the path; one that cannot be read is not found.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let axum::Json(Object(body)) = axum::Json::from_request(request, state).await?;
        Ok(Self(body))
    }
}

/// A JSON object, and nothing else: serde would also take an array for a struct, field by field.
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

/// The `limit` of a list: how many rows a page has. Read as text, so that all that is no such number
/// is refused alike.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Limit(String);

impl Limit {
    /// The number of rows, at most `most`.
    pub(crate) fn rows(&self, most: u32) -> Result<u32, ApiError> {
        let is_number = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number here has are more rows than a page has.
        match self.0.parse().unwrap_or(u32::MAX) {
            rows if is_number && rows != 0 => Ok(rows.min(most)),
            _ => Err(ApiError::Invalid("limit is a whole number, at least 1".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
