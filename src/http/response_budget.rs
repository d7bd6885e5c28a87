//! Charges large responses until they are sent, and the bytes that a request holds.
//!
//! A response is in memory until the client has read it, and a client may read slowly. The server
//! charges a large response to the [budget](crate::http::byte_budget) and sends it in pieces, so that
//! the charge lasts until the last piece is sent. [`JsonBody`](crate::http::extract::JsonBody) adds the
//! bytes of a request body to the charge that this layer puts into the request; that charge lasts until
//! the handler returns.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::http::auth::credential::Credential;
use crate::http::byte_budget::{ByteBudget, Charge, OverBudget, Payer};
use crate::http::error::ApiError;
use crate::http::peer::Peer;

/// A response of this size is large: the kernel's socket buffer does not accept it at once.
const LARGE_BYTES: u64 = 64 * 1_024;
const PIECE_BYTES: usize = 64 * 1_024;

#[derive(Clone)]
pub(crate) struct BodyCharge(Arc<Mutex<Charge>>);

impl BodyCharge {
    pub(crate) fn new(charge: Charge) -> Self {
        Self(Arc::new(Mutex::new(charge)))
    }

    pub(crate) fn grow(&self, bytes: u64) -> Result<(), OverBudget> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).grow(bytes)
    }
}

pub(crate) async fn charge(
    State(budget): State<ByteBudget>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    let payer = Payer::new(request.extensions().get::<Credential>(), peer);
    let body = BodyCharge::new(budget.open(payer.clone()));
    request.extensions_mut().insert(body.clone());
    let response = next.run(request).await;
    drop(body);
    let Some(length) = response.body().size_hint().exact().filter(|all| *all >= LARGE_BYTES) else {
        return response;
    };
    let mut charge = budget.open(payer);
    if let Err(over) = charge.grow(length) {
        return ApiError::from(over).into_response();
    }
    let (mut head, body) = response.into_parts();
    // The body is in memory already, in one piece.
    let Ok(whole) = to_bytes(body, usize::MAX).await else {
        return ApiError::Internal("an answer could not be read".to_owned()).into_response();
    };
    head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    Response::from_parts(head, pieces(whole, charge))
}

/// Sends the body piece by piece, together with its charge.
fn pieces(whole: Bytes, charge: Charge) -> Body {
    let pieces = stream::unfold((whole, charge), |(mut rest, charge)| async {
        let piece = rest.split_to(PIECE_BYTES.min(rest.len()));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (rest, charge)))
    });
    // The unfold panics if it is polled after its end.
    Body::from_stream(pieces.fuse())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::byte_budget::BudgetLimits;

    #[tokio::test]
    async fn g17_a_response_in_pieces_is_whole_and_charged_to_the_last() {
        let budget =
            ByteBudget::new(BudgetLimits { all: 300_000, address: 300_000, user: 300_000 });
        let payer = Payer::new(None, Peer::default());
        let is_full = || budget.open(payer.clone()).grow(150_000).is_err();
        let whole = Bytes::from(vec![7; 200_000]);
        let mut charge = budget.open(payer.clone());
        charge.grow(200_000).expect("room");
        let body = pieces(whole.clone(), charge);
        assert!(is_full());
        let mut body = body.into_data_stream();
        let mut read = Vec::new();
        while let Some(piece) = body.next().await {
            read.extend(piece.expect("a piece"));
        }
        assert_eq!(read, whole);
        assert!(body.next().await.is_none());
        assert!(!is_full());
    }
}
