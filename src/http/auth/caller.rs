//! The rights that the credential of a request grants.
//!
//! [`identify`] verifies the token once, before every handler, and stores the result in the request.
//! Handlers then demand rights by type: [`Caller`] for a user, [`Admin`] for an administrator. A handler
//! gets a `User` in no other way, so it cannot omit the check.

use std::fmt;

use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::Method;
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::accounts::Accounts;
use crate::bounds::permits::Requester;
use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::http::access::Access;
use crate::http::auth::admission::{Audited, Presented};
use crate::http::auth::credential::{Credential, CredentialSource};
use crate::http::auth::tokens::{Identity, Tokens};
use crate::http::error::ApiError;
use crate::http::limit::Limiter;
use crate::http::origin::{OriginCheck, Origins};
use crate::http::peer::{Peer, network};
use crate::http::security_log::SecurityLog;
use crate::sharing::Sharing;
use crate::tasks::Tasks;

/// The services that [`identify`] uses.
#[derive(Clone)]
pub(crate) struct Checks {
    pub(crate) tokens: Tokens,
    pub(crate) access: Access,
    pub(crate) limiter: Limiter,
    pub(crate) origins: Origins,
    pub(crate) log: SecurityLog,
    pub(crate) accounts: Accounts,
    pub(crate) tasks: Tasks,
}

pub(crate) async fn identify(
    State(checks): State<Checks>,
    mut request: Request,
    next: Next,
) -> Response {
    let Checks { tokens, access, limiter, origins, log, .. } = &checks;
    let presented = Credential::read(request.headers(), tokens, access);
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    // The websocket handler counts after the upgrade, when it can answer with a close code.
    let is_socket = request.uri().path().starts_with("/ws/");
    if !is_socket && let Err(retry_after) = limiter.check(&presented, peer) {
        return ApiError::TooManyRequests { retry_after }.into_response();
    }
    if let Credential::Refused { by: CredentialSource::Bearer, .. } = presented
        && let Err(retry_after) = limiter.check_refused_bearer(peer)
    {
        return ApiError::TooManyRequests { retry_after }.into_response();
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let user = presented.user().cloned();
    let admitted =
        Presented::of(&request).admit(presented, &checks.accounts, tokens.deleting()).await;
    let response = match admitted {
        Ok((presented, new_user)) => {
            request.extensions_mut().insert(presented);
            audited(&checks, request, next, new_user).await
        }
        Err(error) => error.into_response(),
    };
    log.refused(&response, peer, user.as_ref(), origin.as_ref(), origins);
    response
}

/// Runs the handler, behind its row in the audit if the act needs one. Without the row the act does not happen.
/// The row of a failure follows also for a client that disconnects.
async fn audited(
    Checks { accounts, tasks, .. }: &Checks,
    request: Request,
    next: Next,
    new_user: Option<User>,
) -> Response {
    let entry = Audited::before(&request, new_user.is_some());
    let Some(entry) = entry else { return next.run(request).await };
    let accounts = accounts.clone();
    let act = async move {
        if let Err(error) = accounts.begin(&entry, new_user.as_ref()).await {
            return ApiError::from(error).into_response();
        }
        let response = next.run(request).await;
        Audited::after(entry, response.status(), &accounts).await;
        response
    };
    tasks.complete(act).await
}

/// A user with a valid token. An unsafe method with a cookie also carries one of the server's origins.
#[derive(Clone, Debug)]
pub struct Caller {
    pub identity: Identity,
    pub by: CredentialSource,
    peer: Peer,
}

impl Caller {
    #[must_use]
    pub fn user(&self) -> &User {
        &self.identity.user
    }

    /// The user and the network under which builds of texts queue.
    #[must_use]
    pub fn requester(&self) -> Requester {
        Requester::User(self.user().id.clone(), network(self.peer.0))
    }

    /// Refuses a token that another server revoked within this tick: it signs no new one. The caller has made the new
    /// sign-in before, so that a later revocation covers it.
    pub(crate) async fn confirm(&self, accounts: &Accounts) -> Result<(), ApiError> {
        let Identity { user, token, issued_at, .. } = &self.identity;
        match accounts.is_revoked(&user.id, token, *issued_at).await? {
            true => Err(ApiError::TokenRefused("revoked")),
            false => Ok(()),
        }
    }

    /// Stores the name in the token, unless a newer token carried another. The first write that refers
    /// to a guest stores the guest's name, and only `PATCH /api/me` changes it.
    pub(crate) async fn save_name(&self, sharing: &Sharing) -> Result<(), ApiError> {
        if self.identity.is_guest() {
            return Ok(());
        }
        Ok(sharing.save_name(self.user(), self.identity.issued_at).await?)
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Origins: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Credential>() {
            None
            | Some(Credential::Nothing | Credential::AdminToken | Credential::Server { .. }) => {
                Err(ApiError::Unauthenticated("this needs a token"))
            }
            Some(Credential::Refused { cause, .. }) => Err(ApiError::TokenRefused(cause.0)),
            Some(Credential::Person { identity, by, .. }) => {
                let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
                let caller = Self { identity: identity.clone(), by: *by, peer };
                witness(caller.by, parts, &Origins::from_ref(state))?;
                Ok(caller)
            }
        }
    }
}

/// An administrator: the admin token, a user's token with the `admin` claim, or a server token on the routes that
/// its scopes open.
#[derive(Clone, Debug)]
pub enum Admin {
    Token,
    Person(UserId),
    /// Admission has compared its scopes with the route.
    Server(UserId),
}

/// The form for log lines.
impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("the admin token"),
            Self::Person(id) => id.fmt(f),
            Self::Server(id) => write!(f, "the server {id}"),
        }
    }
}

impl<S> FromRequestParts<S> for Admin
where
    S: Send + Sync,
    Origins: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Credential>() {
            None | Some(Credential::Nothing) => {
                Err(ApiError::Unauthenticated("this needs the admin token"))
            }
            Some(Credential::Refused { cause, .. }) => Err(ApiError::TokenRefused(cause.0)),
            Some(Credential::AdminToken) => Ok(Self::Token),
            Some(Credential::Server { identity, .. }) => Ok(Self::Server(identity.user.id.clone())),
            Some(Credential::Person { identity, .. }) if !identity.is_admin => {
                Err(ApiError::NotAdmin)
            }
            // A server in the name of a user has no rights of an administrator.
            Some(Credential::Person { by, identity, .. }) => {
                witness(*by, parts, &Origins::from_ref(state))?;
                Ok(Self::Person(identity.user.id.clone()))
            }
        }
    }
}

/// Rejects a cookie without one of the server's origins; a missing `Origin` proves nothing.
fn witness(by: CredentialSource, parts: &Parts, origins: &Origins) -> Result<(), ApiError> {
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    match (by, origins.check(&parts.headers)) {
        (CredentialSource::Bearer, _) | (CredentialSource::Cookie, OriginCheck::Ours) => Ok(()),
        (CredentialSource::Cookie, _) if is_safe => Ok(()),
        (CredentialSource::Cookie, _) => Err(ApiError::ForeignOrigin),
    }
}
