//! A guest on another device: `POST /api/me/transfer` makes a code, `POST /api/auth/transfer` takes it.

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::accounts::Accounts;
use crate::http::access::Access;
use crate::http::auth::caller::Caller;
use crate::http::auth::guest::{takes_guest, welcome};
use crate::http::auth::tokens::Tokens;
use crate::http::error::{ApiError, Contract, Failure};
use crate::http::extract::JsonBody;
use crate::http::limit::Limiter;
use crate::http::origin::Origins;
use crate::http::peer::Peer;
use crate::http::routes::Routes;
use crate::http::security_log::SecurityLog;
use crate::transfer::{TransferError, Transfers};

pub(crate) fn routes() -> Routes {
    Routes::default().post("/api/auth/transfer", redeem).post("/api/me/transfer", create)
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "TransferCode"))]
pub(crate) struct TransferBody {
    /// Eight characters in two groups, as `04HM-ASW9`. Case, spaces and hyphens do not count.
    code: String,
    /// The start page, with the code in the fragment.
    #[cfg_attr(test, schemars(extend("format" = "uri")))]
    url: String,
    expires_at: DateTime<Utc>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Code"))]
pub(crate) struct CodeBody {
    code: String,
}

/// Proves that the server takes a code from this address and origin now. As an extractor it runs before
/// the body is read, so a rejected request costs no memory.
struct MayTry;

impl<S> FromRequestParts<S> for MayTry
where
    S: Send + Sync,
    Access: FromRef<S>,
    Origins: FromRef<S>,
    Limiter: FromRef<S>,
    SecurityLog: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        takes_guest(parts, state)?;
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
        Limiter::from_ref(state).check_transfer(peer).map_err(|retry_after| {
            SecurityLog::from_ref(state).transfer_refused("too many tries", peer);
            ApiError::TooManyRequests { retry_after }
        })?;
        Ok(Self)
    }
}

/// `POST /api/me/transfer`: a code that replaces an earlier one of this guest.
async fn create(
    State(access): State<Access>,
    State(origins): State<Origins>,
    State(accounts): State<Accounts>,
    Extension(transfers): Extension<Transfers>,
    caller: Caller,
) -> Result<(StatusCode, Json<TransferBody>), ApiError> {
    if !caller.identity.is_guest() {
        return Err(ApiError::NotAGuest);
    }
    if !access.takes_guests() {
        return Err(ApiError::GuestsOff);
    }
    let transfer = transfers.create(caller.user(), Utc::now()).await?;
    caller.confirm(&accounts).await?;
    let code = transfer.code.to_string();
    let url = format!("{}/#move={code}", origins.page());
    Ok((StatusCode::CREATED, Json(TransferBody { code, url, expires_at: transfer.expires_at })))
}

/// `POST /api/auth/transfer`: signs in the guest of the code.
async fn redeem(
    _may_try: MayTry,
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    Extension(transfers): Extension<Transfers>,
    State(log): State<SecurityLog>,
    peer: Option<Extension<Peer>>,
    JsonBody(body): JsonBody<CodeBody>,
) -> Result<Response, ApiError> {
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer);
    let user = transfers.take(&body.code, Utc::now()).await.inspect_err(|error| {
        if matches!(error, TransferError::WrongCode) {
            log.transfer_refused("wrong, used or expired", peer);
        }
    })?;
    log.transferred(&user.id, peer);
    welcome(StatusCode::OK, &user, &tokens, &origins)
}

impl Failure for TransferError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::WrongCode => (Is::NOT_FOUND, "transfer-code-invalid", "The code is not valid"),
            Self::NoRandomness => (Is::INTERNAL_SERVER_ERROR, "internal", "Our fault"),
            Self::Storage(error) => error.contract(),
        }
    }
}
