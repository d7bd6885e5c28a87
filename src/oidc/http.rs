//! `GET /api/auth/oidc/…`: a browser on its way to the provider and back. Each ends on a page of Galley, also a failure.

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::Utc;
use serde::Deserialize;

use crate::http::access::Access;
use crate::http::auth::caller::Caller;
use crate::http::auth::cookie;
use crate::http::auth::tokens::Tokens;
use crate::http::error::ApiError;
use crate::http::extract::Query;
use crate::http::origin::Origins;
use crate::http::peer::Peer;
use crate::http::routes::Routes;
use crate::http::security_log::SecurityLog;
use crate::oidc::attempt::Attempt;
use crate::oidc::{CALLBACK, Fault, Oidc};
use crate::outgoing::destination::form;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/auth/oidc/start", start)
        .get(CALLBACK, callback)
        .get("/api/auth/oidc/sign-out", sign_out)
}

#[derive(Deserialize)]
struct StartQuery {
    #[serde(rename = "return")]
    return_to: Option<String>,
}

/// The provider's answer, in the query of the callback.
#[derive(Deserialize)]
pub(super) struct Answer {
    state: Option<String>,
    pub(super) code: Option<String>,
    pub(super) error: Option<String>,
    /// RFC 9207.
    pub(super) iss: Option<String>,
}

/// The provider, and the browser on its way.
struct Visit {
    oidc: Oidc,
    origins: Origins,
    log: SecurityLog,
    peer: Peer,
    /// A guest has no other sign-in than the cookie that a session would replace.
    is_guest: bool,
}

impl<S> FromRequestParts<S> for Visit
where
    S: Send + Sync,
    Origins: FromRef<S>,
    SecurityLog: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let oidc = parts.extensions.get::<Option<Oidc>>().cloned().flatten();
        let caller = Caller::from_request_parts(parts, state).await;
        Ok(Self {
            oidc: oidc
                .ok_or(ApiError::NotFound("sign-in here: the setting auth.oidc is missing"))?,
            origins: Origins::from_ref(state),
            log: SecurityLog::from_ref(state),
            peer: parts.extensions.get::<Peer>().copied().unwrap_or_default(),
            is_guest: caller.is_ok_and(|caller| caller.identity.is_guest()),
        })
    }
}

impl Visit {
    fn to_page(&self, path: &str) -> Redirect {
        Redirect::to(&format!("{}{path}", self.origins.page()))
    }

    /// The start page with the sentence of the fault, and the way back for another attempt.
    fn failed(&self, fault: &Fault, return_to: &str) -> Redirect {
        let outcome = fault.outcome();
        self.log.sign_in_failed(fault, self.peer);
        metrics::counter!("galley_sign_ins_total", "outcome" => outcome).increment(1);
        self.to_page(&format!("/?{}", form(&[("sign_in", outcome), ("return", return_to)])))
    }
}

/// `GET /api/auth/oidc/start?return=/d/…`: to the provider.
async fn start(
    visit: Visit,
    Query(query): Query<StartQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // Any other address would make a link to this server a link to another.
    let return_to = query.return_to.and_then(|text| visit.origins.own_path(&text));
    let return_to = return_to.unwrap_or_else(|| "/".to_owned());
    // A page of another site signs no visitor in: the page of the path has a button for it.
    if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") {
        return Ok(visit.to_page(&return_to).into_response());
    }
    if visit.is_guest {
        return Ok(visit.failed(&Fault::Guest, &return_to).into_response());
    }
    let attempt = Attempt::begin(return_to);
    let attempt = attempt.map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(match visit.oidc.authorization(&attempt).await {
        Ok(address) => {
            (attempt.cookie(&headers, &visit.origins), Redirect::to(&address)).into_response()
        }
        Err(fault) => visit.failed(&fault, &attempt.return_to).into_response(),
    })
}

/// `GET /api/auth/oidc/callback`: from the provider. The cookie of the sign-in ends, whatever the outcome.
async fn callback(
    visit: Visit,
    State(access): State<Access>,
    State(tokens): State<Tokens>,
    Query(answer): Query<Answer>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let state = answer.state.as_deref().unwrap_or_default();
    let Some(attempt) = Attempt::find(state, &headers, &visit.origins) else {
        return Ok(visit.failed(&Fault::Cookie, "/").into_response());
    };
    let completed = match visit.is_guest {
        true => Err(Fault::Guest),
        false => visit.oidc.complete(&attempt, &answer).await,
    };
    let ended = attempt.ended(&visit.origins);
    let user = match completed {
        Ok(user) => user,
        Err(fault) => return Ok((ended, visit.failed(&fault, &attempt.return_to)).into_response()),
    };
    let age = access.session();
    let signed = tokens.sign(&user, false, age, Utc::now());
    let signed = signed.map_err(|error| ApiError::Internal(error.to_string()))?;
    visit.log.signed_in(&user.id, visit.peer);
    metrics::counter!("galley_sign_ins_total", "outcome" => "signed-in").increment(1);
    let session = cookie::of(&signed.token, &visit.origins, age);
    Ok((ended, session, visit.to_page(&attempt.return_to)).into_response())
}

/// `GET /api/auth/oidc/sign-out`: the provider ends its session, too, and leads back to the start page.
async fn sign_out(visit: Visit) -> Redirect {
    let page = format!("{}/", visit.origins.page());
    match visit.oidc.end_session(&page).await {
        Some(address) => Redirect::to(&address),
        None => visit.to_page("/"),
    }
}

impl Fault {
    /// The name of the fault in the address of the start page, and in the metric.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Cookie => "cookie",
            Self::Guest => "guest",
            Self::Denied => "denied",
            Self::Refused(_) => "refused",
            Self::Away(_) => "away",
            Self::Invalid(_) => "invalid",
            Self::Nameless => "nameless",
        }
    }
}
