//! Signing in: `GET /api/auth`, `POST /api/auth/guest`, and the user at `/api/me`.

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::accounts::Accounts;
use crate::domain::ids::UserId;
use crate::domain::line::Line;
use crate::domain::user::User;
use crate::http::access::Access;
use crate::http::auth::caller::Caller;
use crate::http::auth::cookie::{self, SetCookies};
use crate::http::auth::credential::CredentialSource;
use crate::http::auth::tokens::{GUEST_TTL, Identity, Signed, Tokens};
use crate::http::error::ApiError;
use crate::http::extract::JsonBody;
use crate::http::limit::Limiter;
use crate::http::origin::{OriginCheck, Origins};
use crate::http::peer::Peer;
use crate::http::security_log::SecurityLog;
use crate::sharing::Sharing;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Entry {
    guests: bool,
    /// The host application's sign-in page, with `{return}` for the page's own address.
    sign_in_url: Option<String>,
    /// The page that ends the sign-in elsewhere, for a user who signed in there.
    sign_out_url: Option<String>,
    user: Option<MeBody>,
    /// The end of the token, of a replaced cookie that of the new one.
    expires_at: Option<DateTime<Utc>>,
}

/// `GET /api/auth`: needs no token, so that a page can offer a sign-in. It replaces a cookie as
/// `GET /api/me` does.
pub(crate) async fn entry(
    State(access): State<Access>,
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    State(sharing): State<Sharing>,
    State(accounts): State<Accounts>,
    caller: Result<Caller, ApiError>,
) -> Result<Response, ApiError> {
    let mut entry = Entry {
        guests: access.takes_guests(),
        sign_in_url: access.sign_in_url().map(str::to_owned),
        sign_out_url: None,
        user: None,
        expires_at: None,
    };
    let Ok(caller) = caller else { return Ok(Json(entry).into_response()) };
    let (cookies, user, expires_at) =
        match present(&tokens, &origins, &sharing, &accounts, &caller).await {
            // Revoked on another server within this tick.
            Err(ApiError::TokenRefused(_)) => return Ok(Json(entry).into_response()),
            presented => presented?,
        };
    if !caller.identity.is_guest() {
        entry.sign_out_url = access.sign_out_url().map(str::to_owned);
    }
    (entry.user, entry.expires_at) = (Some(user), Some(expires_at));
    Ok((cookies, Json(entry)).into_response())
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NewGuest {
    /// 1 to 80 characters: a visible character, no invisible, control or direction characters; trimmed.
    name: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Welcome<'a> {
    user: &'a User,
    /// A bearer token; also in the cookie.
    token: &'a str,
    /// When it ends.
    expires_at: DateTime<Utc>,
}

impl<'a> Welcome<'a> {
    fn of(user: &'a User, signed: &'a Signed) -> Self {
        Self { user, token: &signed.token, expires_at: signed.expires_at }
    }
}

/// Signs a guest in: the token in the body and in the cookie.
pub(crate) fn welcome(
    status: StatusCode,
    user: &User,
    tokens: &Tokens,
    origins: &Origins,
) -> Result<Response, ApiError> {
    let signed = sign(tokens, user)?;
    let body = Welcome::of(user, &signed);
    let cookies = cookie::of(&signed.token, origins, GUEST_TTL);
    Ok((status, cookies, Json(body)).into_response())
}

/// Proves that the server accepts a guest from this address and origin now. As an extractor it runs
/// before the body is read, so a rejected request costs no memory.
pub(crate) struct Admitted;

impl<S> FromRequestParts<S> for Admitted
where
    S: Send + Sync,
    Access: FromRef<S>,
    Origins: FromRef<S>,
    Limiter: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        takes_guest(parts, state)?;
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
        let entry = Limiter::from_ref(state).check_entry(peer);
        entry.map_err(|retry_after| ApiError::TooManyRequests { retry_after })?;
        Ok(Self)
    }
}

/// Rejects a guest's sign-in where the settings allow none, and from a page of another site.
pub(crate) fn takes_guest<S>(parts: &Parts, state: &S) -> Result<(), ApiError>
where
    Access: FromRef<S>,
    Origins: FromRef<S>,
{
    if !Access::from_ref(state).takes_guests() {
        return Err(ApiError::GuestsOff);
    }
    // The check prevents another site from signing its visitors in under an account of its choice.
    let origin = Origins::from_ref(state).check(&parts.headers);
    if matches!(origin, OriginCheck::Allowed | OriginCheck::Foreign) {
        return Err(ApiError::ForeignOrigin);
    }
    Ok(())
}

/// `POST /api/auth/guest`: creates a new user each time.
pub(crate) async fn enter(
    _admitted: Admitted,
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    State(log): State<SecurityLog>,
    peer: Option<Extension<Peer>>,
    JsonBody(guest): JsonBody<NewGuest>,
) -> Result<Response, ApiError> {
    let name =
        Line::Name.parse(&guest.name).map_err(|error| ApiError::Invalid(error.to_string()))?;
    let user = User { id: UserId::generate(), name };
    log.guest_entered(&user.id, peer.map_or_else(Peer::default, |Extension(peer)| peer));
    welcome(StatusCode::CREATED, &user, &tokens, &origins)
}

/// The user of the caller.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Me"))]
struct MeBody {
    #[serde(flatten)]
    user: User,
    /// Whether guests may send requests to the user.
    guest_requests: bool,
}

/// A guest under another name: the token contains the name.
#[derive(Serialize)]
struct Renamed<'a> {
    #[serde(flatten)]
    me: MeBody,
    #[serde(flatten)]
    welcome: Welcome<'a>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MeChange {
    /// 1 to 80 characters: a visible character, no invisible, control or direction characters; trimmed. For
    /// guests only.
    name: Option<String>,
    /// False: the server refuses further requests of guests to the user; pending ones stay.
    guest_requests: Option<bool>,
}

/// `GET /api/me`: the user. The server replaces a guest's cookie in the second half of its lifetime, and
/// when the guest has another name since, because another device gave it.
pub(crate) async fn me(
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    State(sharing): State<Sharing>,
    State(accounts): State<Accounts>,
    caller: Caller,
) -> Result<Response, ApiError> {
    let (cookies, user, _end) = present(&tokens, &origins, &sharing, &accounts, &caller).await?;
    Ok((cookies, Json(user)).into_response())
}

async fn present(
    tokens: &Tokens,
    origins: &Origins,
    sharing: &Sharing,
    accounts: &Accounts,
    caller: &Caller,
) -> Result<(SetCookies, MeBody, DateTime<Utc>), ApiError> {
    let (stored, guest_requests) = sharing.stored(caller.user()).await?;
    let (mut cookies, mut end) = (AppendHeaders(Vec::new()), caller.identity.expires_at);
    if !caller.identity.is_guest() {
        return Ok((cookies, MeBody { user: caller.user().clone(), guest_requests }, end));
    }
    let is_old =
        is_past_its_half(&caller.identity, Utc::now()) || stored.name != caller.user().name;
    if caller.by == CredentialSource::Cookie && is_old {
        let Signed { token, expires_at } = sign(tokens, &stored)?;
        caller.confirm(accounts).await?;
        (cookies, end) = (cookie::of(&token, origins, GUEST_TTL), expires_at);
    }
    Ok((cookies, MeBody { user: stored, guest_requests }, end))
}

/// `PATCH /api/me`: whether the user takes requests of guests, and a guest's corrected name. Users of a
/// host application have theirs from its tokens.
pub(crate) async fn change(
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    State(sharing): State<Sharing>,
    State(accounts): State<Accounts>,
    caller: Caller,
    JsonBody(body): JsonBody<MeChange>,
) -> Result<Response, ApiError> {
    if body.name.is_some() && !caller.identity.is_guest() {
        return Err(ApiError::NameFromHost);
    }
    let id = caller.user().id.clone();
    if let Some(takes) = body.guest_requests {
        sharing.set_guest_requests(caller.user(), takes).await?;
    }
    let Some(name) = body.name else {
        return me(State(tokens), State(origins), State(sharing), State(accounts), caller).await;
    };
    let user = sharing.rename_guest(id, &name, Utc::now()).await?;
    let (_, guest_requests) = sharing.stored(&user).await?;
    let signed = sign(&tokens, &user)?;
    caller.confirm(&accounts).await?;
    let welcome = Welcome::of(&user, &signed);
    let body = Renamed { me: MeBody { user: user.clone(), guest_requests }, welcome };
    Ok((cookie::of(&signed.token, &origins, GUEST_TTL), Json(body)).into_response())
}

/// The server renews only a guest's token. An administrator's token, or one of a host application, ends
/// at the time that its issuer set.
fn is_past_its_half(identity: &Identity, now: DateTime<Utc>) -> bool {
    let life = identity.expires_at - identity.issued_at;
    identity.is_guest() && identity.expires_at - now < life / 2
}

fn sign(tokens: &Tokens, user: &User) -> Result<Signed, ApiError> {
    tokens
        .sign(user, false, GUEST_TTL, Utc::now())
        .map_err(|_unsignable| ApiError::Internal("a token could not be signed".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn only_a_guests_token_past_its_half_is_renewed() {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let user = User { id: UserId::generate(), name: "Kim".to_owned() };
        let now = Utc::now();
        let identity = |is_admin, ttl| {
            let signed = tokens.sign(&user, is_admin, ttl, now).expect("signed");
            tokens.verify(&signed.token).expect("valid")
        };
        let guest = identity(false, GUEST_TTL);
        assert!(!is_past_its_half(&guest, now + TimeDelta::days(14)));
        assert!(is_past_its_half(&guest, now + TimeDelta::days(16)));
        assert!(!is_past_its_half(&identity(true, GUEST_TTL), now + TimeDelta::days(16)));
        let hour = Duration::from_secs(3_600);
        assert!(!is_past_its_half(&identity(false, hour), now + TimeDelta::minutes(59)));
    }
}
