//! `/openapi.json`, the contract for programs, and `/docs`, which shows it.
//!
//! The document is written by hand beside the routes; a test holds one against the other, both
//! ways.

use std::sync::{Arc, LazyLock};

use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Redirect, Response};
use utoipa_swagger_ui::Config;

use crate::http::error::ApiError;
use crate::http::headers::Policy;

/// The `OpenAPI` document.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

/// The documentation asks nobody else: no online validator.
static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::new(["/openapi.json"]).validator_url("none")));

/// `GET /openapi.json`
pub(crate) async fn openapi() -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, OPENAPI).into_response()
}

/// `GET /docs`: its files are beside it, so its address ends with a slash.
pub(crate) async fn redirect() -> Redirect {
    Redirect::permanent("/docs/")
}

/// `GET /docs/`
pub(crate) async fn page(State(policy): State<Policy>) -> Result<Response, ApiError> {
    serve("index.html", &policy)
}

/// `GET /docs/{*file}`
pub(crate) async fn file(
    State(policy): State<Policy>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    serve(&name, &policy)
}

fn serve(name: &str, policy: &Policy) -> Result<Response, ApiError> {
    let file = utoipa_swagger_ui::serve(name, Arc::clone(&CONFIG))
        .map_err(|error| ApiError::Internal(error.to_string()))?
        .ok_or(ApiError::NotFound("page"))?;
    let headers = [(CONTENT_TYPE, file.content_type), (CACHE_CONTROL, "no-cache".to_owned())];
    let policy = [(CONTENT_SECURITY_POLICY, policy.of_docs())];
    let packed = file.gzpipped.then_some([(CONTENT_ENCODING, "gzip")]);
    let body = file.bytes.into_owned();
    Ok(match packed {
        Some(packed) => (headers, policy, packed, body).into_response(),
        None => (headers, policy, body).into_response(),
    })
}
