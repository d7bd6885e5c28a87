//! Rejections of axum's extractors, in words of this server.
//!
//! A rejected body or query names the field and its fault. A sentence of a parser would be a part of the
//! contract that a newer crate changes, and it names types of this program.

use std::error::Error;
use std::fmt::Display;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use serde::de::value;
use serde_path_to_error::{Path, Segment};

use crate::http::error::ApiError;

/// Characters of a field's path in a problem. A client may send a name as long as its body.
const PATH_MAX: usize = 100;

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        match &rejection {
            JsonRejection::JsonDataError(error) => Self::Invalid(data_fault(error)),
            JsonRejection::JsonSyntaxError(error) => Self::Malformed(syntax_fault(error)),
            JsonRejection::MissingJsonContentType(_) => Self::UnsupportedMediaType,
            other => match other.status() {
                StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
                _ => Self::Malformed("the body ended before it was complete".to_owned()),
            },
        }
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        let cause = cause::<serde_path_to_error::Error<value::Error>>(&rejection);
        let fault = cause.and_then(|error| field_fault(error.path(), error.inner()));
        let field = cause.map(|error| path_of(error.path())).filter(|path| !path.is_empty());
        let other = || match field {
            Some(field) => format!("{field} has an unknown value"),
            None => "this address takes no such query".to_owned(),
        };
        Self::Malformed(fault.unwrap_or_else(other))
    }
}

/// An id that cannot be parsed matches no resource.
impl From<PathRejection> for ApiError {
    fn from(_: PathRejection) -> Self {
        Self::NotFound("thing")
    }
}

fn data_fault(rejection: &(dyn Error + 'static)) -> String {
    let Some(error) = cause::<serde_path_to_error::Error<serde_json::Error>>(rejection) else {
        return "the body has an unknown value".to_owned();
    };
    let (path, inner) = (error.path(), error.inner());
    if let Some(fault) = field_fault(path, inner) {
        return fault;
    }
    // A type of the domain rejects the value in its own words; `serde_json` adds the position.
    let text = inner.to_string();
    let own = text.split(" at line ").next().unwrap_or_default();
    format!("{}: {own}", path_of(path))
}

fn syntax_fault(rejection: &(dyn Error + 'static)) -> String {
    match cause::<serde_path_to_error::Error<serde_json::Error>>(rejection) {
        Some(error) if error.inner().is_eof() => "the body ends before its JSON does".to_owned(),
        Some(error) => {
            let (line, column) = (error.inner().line(), error.inner().column());
            format!("the body is not valid JSON from line {line}, column {column} on")
        }
        None => "the body is not valid JSON".to_owned(),
    }
}

/// The faults that serde reports, by the beginnings of its messages. None: a type's own message.
fn field_fault(path: &Path, error: &impl Display) -> Option<String> {
    let message = error.to_string();
    let named = |kind: &str| {
        let name = message.strip_prefix(kind)?.split('`').nth(1)?;
        Some(field_of(path, name))
    };
    if let Some(field) = named("missing field ") {
        return Some(format!("{field} is missing"));
    }
    if let Some(field) = named("unknown field ") {
        return Some(format!("{field} is not a known field"));
    }
    if let Some(field) = named("duplicate field ") {
        return Some(format!("{field} stands twice"));
    }
    let field = path_of(path);
    if message.starts_with("invalid type: ") {
        return Some(match field.as_str() {
            "" => "the body must be a JSON object".to_owned(),
            field => format!("{field} has the wrong type"),
        });
    }
    let of_serde = ["unknown variant ", "invalid value: ", "invalid length "];
    let is_of_serde = of_serde.iter().any(|kind| message.starts_with(kind));
    is_of_serde.then(|| format!("{field} has an unknown value"))
}

/// The path of the field `name`, which serde reports at the field or at the object around it.
fn field_of(path: &Path, name: &str) -> String {
    let is_there = path
        .iter()
        .next_back()
        .is_some_and(|last| matches!(last, Segment::Map { key } if key.as_str() == name));
    let object = path_of(path);
    if is_there || object.is_empty() && name.is_empty() {
        return object;
    }
    let whole = if object.is_empty() { name.to_owned() } else { format!("{object}.{name}") };
    whole.chars().take(PATH_MAX).collect()
}

/// The path as text, such as `reviews[0].id`; empty for the whole body.
fn path_of(path: &Path) -> String {
    if path.iter().next().is_none() {
        return String::new();
    }
    path.to_string().chars().take(PATH_MAX).collect()
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::{FromRequest as _, FromRequestParts as _, Query, Request};
    use axum::http::header::CONTENT_TYPE;
    use serde::Deserialize;

    use super::*;
    use crate::domain::ids::ReviewId;
    use crate::domain::seat::Role;
    use crate::http::extract::JsonBody;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its rejections count")]
    struct Fields {
        name: String,
        role: Option<Role>,
        count: Option<u8>,
        #[serde(default)]
        reviews: Vec<Named>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its rejections count")]
    struct Named {
        id: ReviewId,
    }

    async fn of_body(body: &str) -> String {
        let request = Request::builder().header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        let read = JsonBody::<Fields>::from_request(request, &()).await;
        read.err().expect("rejected").to_string()
    }

    async fn of_query(query: &str) -> String {
        let request = Request::builder().uri(format!("/?{query}")).body(()).expect("a request");
        let mut parts = request.into_parts().0;
        let read = Query::<Fields>::from_request_parts(&mut parts, &()).await;
        ApiError::from(read.expect_err("rejected")).to_string()
    }

    /// The messages of serde have these beginnings: a newer one that changes them fails here.
    #[tokio::test]
    async fn a_rejected_body_names_the_field_and_its_fault() {
        let id = ReviewId::generate();
        let of_reviews = |reviews: &str| format!(r#"{{"name":"x","reviews":[{reviews}]}}"#);
        let cases = [
            ("{}".to_owned(), "name is missing"),
            (r#"{"name":7}"#.to_owned(), "name has the wrong type"),
            (r#"{"name":"x","nmae":"y"}"#.to_owned(), "nmae is not a known field"),
            (r#"{"name":"x","name":"y"}"#.to_owned(), "name stands twice"),
            (r#"{"name":"x","role":"reader"}"#.to_owned(), "role has an unknown value"),
            (r#"{"name":"x","count":256}"#.to_owned(), "count has an unknown value"),
            (of_reviews("{}"), "reviews[0].id is missing"),
            (
                of_reviews(&format!(r#"{{"id":"{id}","of":1}}"#)),
                "reviews[0].of is not a known field",
            ),
            (of_reviews(r#"{"id":"7"}"#), "reviews[0].id: not a valid review id"),
            ("[]".to_owned(), "the body must be a JSON object"),
            ("7".to_owned(), "the body must be a JSON object"),
            ("{\"name\":".to_owned(), "the body ends before its JSON does"),
            ("{\n  name".to_owned(), "the body is not valid JSON from line 2, column 3 on"),
        ];
        for (body, fault) in cases {
            assert_eq!(of_body(&body).await, fault, "{body}");
        }
    }

    #[tokio::test]
    async fn a_rejected_query_names_the_field_and_its_fault() {
        let cases = [
            ("", "name is missing"),
            ("name=x&nmae=y", "nmae is not a known field"),
            ("name=x&name=y", "name stands twice"),
            ("name=x&role=reader", "role has an unknown value"),
            ("name=x&count=many", "count has an unknown value"),
        ];
        for (query, fault) in cases {
            assert_eq!(of_query(query).await, fault, "{query}");
        }
    }

    #[tokio::test]
    async fn a_long_name_of_a_field_is_cut() {
        let name = "n".repeat(10_000);
        let fault = of_body(&format!(r#"{{"name":"x","{name}":1}}"#)).await;
        assert_eq!(fault, format!("{} is not a known field", "n".repeat(PATH_MAX)));
    }
}
