//! The exchange of a token for Galley's own cookie: `POST /api/auth/session`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::Utc;

use crate::accounts::Accounts;
use crate::http::access::Access;
use crate::http::auth::caller::Caller;
use crate::http::auth::cookie;
use crate::http::auth::credential::CredentialSource;
use crate::http::auth::tokens::Tokens;
use crate::http::error::ApiError;
use crate::http::origin::{OriginCheck, Origins};

/// Signs the user of a bearer token in at this browser. The cookie carries no right of an administrator. A page
/// of a foreign site could otherwise sign its visitors in under an account of its choice.
pub(crate) async fn exchange(
    State(tokens): State<Tokens>,
    State(access): State<Access>,
    State(origins): State<Origins>,
    State(accounts): State<Accounts>,
    headers: HeaderMap,
    caller: Caller,
) -> Result<Response, ApiError> {
    if origins.check(&headers) == OriginCheck::Foreign {
        return Err(ApiError::ForeignOrigin);
    }
    if caller.by == CredentialSource::Cookie {
        return Err(ApiError::NeedsBearer);
    }
    if caller.identity.is_guest() {
        return Err(ApiError::GuestSession);
    }
    let age = access.session();
    let signed = tokens.sign(caller.user(), false, age, Utc::now());
    let signed = signed.map_err(|error| ApiError::Internal(error.to_string()))?;
    caller.confirm(&accounts).await?;
    Ok((StatusCode::NO_CONTENT, cookie::of(&signed.token, &origins, age)).into_response())
}
