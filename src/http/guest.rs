//! Entering: `POST /api/auth/guest` and `GET /api/me`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::ids::UserId;
use crate::domain::user::{User, parse_name};
use crate::http::auth::{Identity, Signed, Tokens};
use crate::http::caller::{By, COOKIE, Caller};
use crate::http::error::ApiError;
use crate::http::extract::JsonBody;
use crate::http::gate::Gate;
use crate::http::origin::{OriginCheck, Origins};

/// How long a guest is known. Their documents hang on it, so a page that is used keeps it alive.
const GUEST_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// What a guest brings.
#[derive(Deserialize)]
pub(crate) struct NewGuest {
    name: String,
}

/// A guest who is in.
#[derive(Serialize)]
struct Welcome<'a> {
    user: &'a User,
    token: &'a str,
    expires_at: DateTime<Utc>,
}

/// `POST /api/auth/guest`: a new person each time.
pub(crate) async fn enter(
    State(gate): State<Gate>,
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    headers: HeaderMap,
    JsonBody(guest): JsonBody<NewGuest>,
) -> Result<Response, ApiError> {
    if !gate.takes_guests() {
        return Err(ApiError::GuestsOff);
    }
    // Another site must not be able to log its visitors in here as somebody of its choice.
    if origins.check(&headers) == OriginCheck::Foreign {
        return Err(ApiError::ForeignOrigin);
    }
    let name = parse_name(&guest.name).map_err(|error| ApiError::Invalid(error.to_string()))?;
    let user = User { id: UserId::generate(), name };
    let signed = sign(&tokens, &user)?;
    let welcome = Welcome { user: &user, token: &signed.token, expires_at: signed.expires_at };
    let jar = CookieJar::new().add(cookie(&signed, &origins));
    Ok((StatusCode::CREATED, jar, Json(welcome)).into_response())
}

/// `GET /api/me`: the user. A guest's cookie past its half is exchanged for a fresh one.
pub(crate) async fn me(
    State(tokens): State<Tokens>,
    State(origins): State<Origins>,
    caller: Caller,
) -> Result<Response, ApiError> {
    let mut jar = CookieJar::new();
    if caller.by == By::Cookie && is_past_its_half(&caller.identity, Utc::now()) {
        jar = jar.add(cookie(&sign(&tokens, caller.user())?, &origins));
    }
    Ok((jar, Json(caller.user())).into_response())
}

/// Only tokens that were made as guests' are: an administrator's, or one of a host application,
/// ends when its maker said.
fn is_past_its_half(identity: &Identity, now: DateTime<Utc>) -> bool {
    let life = identity.expires_at - identity.issued_at;
    let is_guest = !identity.is_admin && life.to_std() == Ok(GUEST_TTL);
    is_guest && identity.expires_at - now < life / 2
}

fn sign(tokens: &Tokens, user: &User) -> Result<Signed, ApiError> {
    tokens
        .sign(user, false, GUEST_TTL, Utc::now())
        .map_err(|_unsignable| ApiError::Internal("a token could not be signed".to_owned()))
}

fn cookie(signed: &Signed, origins: &Origins) -> Cookie<'static> {
    Cookie::build((COOKIE, signed.token.clone()))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(origins.own().is_secure())
        .max_age(GUEST_TTL.try_into().unwrap_or_default())
        .build()
}

#[cfg(test)]
mod tests {
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
