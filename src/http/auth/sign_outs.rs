//! The end of sign-ins: of one token by `POST /api/auth/leave`, of all tokens of a user by
//! `DELETE /api/me/sessions` and `DELETE /api/users/{id}/sessions`.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use crate::accounts::Accounts;
use crate::domain::ids::UserId;
use crate::http::auth::admission::Audited;
use crate::http::auth::caller::{Admin, Caller};
use crate::http::auth::cookie;
use crate::http::auth::tokens::Tokens;
use crate::http::error::ApiError;
use crate::http::extract::Path;
use crate::http::origin::Origins;
use crate::http::peer::Peer;
use crate::http::routes::Routes;
use crate::http::security_log::SecurityLog;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/auth/leave", leave)
        .delete("/api/me/sessions", everywhere)
        .delete("/api/users/{id}/sessions", everywhere_of)
}

/// `POST /api/auth/leave`: ends the token, and removes it from the browser, also when the database is away.
///
/// The response has no `Clear-Site-Data`: `"cookies"` would end the sign-ins of the host application and
/// of its other subdomains, and `"storage"` would delete edits that no server has. The page asks the
/// user about those.
async fn leave(
    State(accounts): State<Accounts>,
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    State(log): State<SecurityLog>,
    peer: Option<Extension<Peer>>,
    caller: Caller,
) -> Response {
    log.signed_out(&caller.user().id, peer.map_or_else(Peer::default, |Extension(peer)| peer));
    let ended = accounts.sign_out(caller.identity.token, caller.identity.expires_at).await;
    match ended {
        Ok(revocation) => {
            tokens.revocations().take([revocation]);
            (StatusCode::NO_CONTENT, cookie::none(&origins)).into_response()
        }
        Err(error) => (cookie::none(&origins), ApiError::from(error)).into_response(),
    }
}

/// `DELETE /api/me/sessions`
async fn everywhere(
    State(accounts): State<Accounts>,
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    caller: Caller,
    Audited(entry): Audited,
) -> Result<Response, ApiError> {
    let revocation = accounts.sign_out_everywhere(&caller.user().id, &entry).await?;
    tokens.revocations().take([revocation]);
    Ok((StatusCode::NO_CONTENT, cookie::none(&origins)).into_response())
}

/// `DELETE /api/users/{id}/sessions`: for an administrator, or a server with the scope. The user may be a server.
async fn everywhere_of(
    State(accounts): State<Accounts>,
    State(tokens): State<Tokens>,
    _admin: Admin,
    Path(user): Path<UserId>,
    Audited(entry): Audited,
) -> Result<StatusCode, ApiError> {
    let revocation = accounts.sign_out_everywhere(&user, &entry).await?;
    tokens.revocations().take([revocation]);
    Ok(StatusCode::NO_CONTENT)
}
