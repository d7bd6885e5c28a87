//! axum's extractors, failing in our words.

use axum::extract::{FromRequest, FromRequestParts};

use crate::http::error::ApiError;

/// A JSON body; failures are problem documents.
#[derive(FromRequest)]
#[from_request(via(axum::Json), rejection(ApiError))]
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The query; failures are problem documents.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

/// Ids in the path; one that cannot be read is not found.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);
