//! Closes a connection on which a request body was left unread, and announces it in the response.
//!
//! A request that is rejected before its body is read (too long, no token, another media type) leaves
//! the rest of the body on the connection. hyper reads what has arrived and closes the connection
//! otherwise. Without the header a client would send its next request into a closed connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};

/// A body up to this size arrives with its head, and hyper removes it from the connection in any case.
const SHORT_BYTES: u64 = 4 * 1_024;

pub(crate) async fn close_after(request: Request, next: Next) -> Response {
    if request.body().size_hint().upper().is_some_and(|bytes| bytes <= SHORT_BYTES) {
        return next.run(request).await;
    }
    let was_read = Arc::<AtomicBool>::default();
    let ends = Arc::clone(&was_read);
    let request = request.map(|body| {
        let end = stream::once(async move {
            ends.store(true, Ordering::Relaxed);
            Ok::<_, axum::Error>(Bytes::new())
        });
        Body::from_stream(body.into_data_stream().chain(end))
    });
    let mut response = next.run(request).await;
    let is_open = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if !is_open && !was_read.load(Ordering::Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
