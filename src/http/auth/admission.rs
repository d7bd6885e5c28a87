//! Admission of server tokens, and the row of the audit that precedes an act.
//!
//! Admission precedes every handler. It admits a server token to a route whose [grant](scopes::grant) the token has. A
//! route of users then receives the user whom `Galley-User` names as its caller, so no handler knows of
//! servers. The database has the row of an administrator's or a server's act before the act begins.

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, Method, StatusCode};
use chrono::DateTime;

use crate::accounts::Accounts;
use crate::domain::user::User;
use crate::http::auth::credential::{Credential, CredentialSource};
use crate::http::auth::deleting::Deleting;
use crate::http::auth::identity::Identity;
use crate::http::auth::named_user::{InvalidHeader, NamedUser};
use crate::http::auth::scopes::{self, Scopes};
use crate::http::error::ApiError;
use crate::http::peer::Peer;
use crate::http::request_id::RequestNames;
use crate::storage::audit::{Actor, AuditEntry};

/// Longest target in the audit, in characters: three ids have 196.
const TARGET_CHARS_MAX: usize = 256;

/// Routes whose handlers append their row in the transaction of the act.
const WITH_OWN_ROW: [(&str, &str); 4] = [
    ("DELETE", "/api/me"),
    ("DELETE", "/api/me/sessions"),
    ("DELETE", "/api/users/{id}"),
    ("DELETE", "/api/users/{id}/sessions"),
];

/// The parts of a request that admission reads, without its body.
pub(super) struct Presented {
    method: Method,
    route: Option<MatchedPath>,
    named: Result<Option<NamedUser>, InvalidHeader>,
}

impl Presented {
    pub(super) fn of(request: &Request) -> Self {
        let named = NamedUser::read(request.headers());
        Self { method: request.method().clone(), route: request.extensions().get().cloned(), named }
    }

    /// The credential as the handlers see it, and an unknown user to create.
    pub(super) async fn admit(
        self,
        presented: Credential,
        accounts: &Accounts,
        deleting: &Deleting,
    ) -> Result<(Credential, Option<User>), ApiError> {
        let Credential::Server { identity, .. } = presented else {
            return match (self.named, presented) {
                (Ok(None), presented) => Ok((presented, None)),
                // The handler names the fault of the token.
                (_, refused @ Credential::Refused { .. }) => Ok((refused, None)),
                (_, _) => Err(ApiError::ServerTokenRequired),
            };
        };
        let route = self.route.as_ref().map_or("", MatchedPath::as_str);
        let grant = scopes::grant(self.method.as_str(), route).ok_or(ApiError::NotForServers)?;
        let missing = grant.scopes.iter().find(|scope| !identity.scopes.has(**scope));
        missing.map_or(Ok(()), |scope| Err(ApiError::ScopeMissing(*scope)))?;
        let named = self.named.map_err(|InvalidHeader(fault)| ApiError::Invalid(fault))?;
        match named {
            named if !grant.is_of_user => {
                let named = named.map(|named| named.id);
                Ok((Credential::Server { identity, named }, None))
            }
            Some(named) if deleting.contains(&named.id) || named.id.is_deleted() => {
                Err(ApiError::Invalid("the user in Galley-User is deleted".to_owned()))
            }
            Some(named) => in_name_of(named, identity, accounts).await,
            None => {
                let needed = "this acts in the name of a user; name one in the header Galley-User";
                Err(ApiError::Invalid(needed.to_owned()))
            }
        }
    }
}

async fn in_name_of(
    named: NamedUser,
    server: Identity,
    accounts: &Accounts,
) -> Result<(Credential, Option<User>), ApiError> {
    let (user, is_new) = match (accounts.user(&named.id).await?, named.name) {
        (Some(user), _) => (user, false),
        (None, Some(name)) => (User { id: named.id, name }, true),
        (None, None) => {
            let unknown =
                "no user has the id in Galley-User yet; send a name in Galley-User-Name, too";
            return Err(ApiError::Invalid(unknown.to_owned()));
        }
    };
    // Issued before every token of the user, so that it never renames the user.
    let (issued_at, id) = (DateTime::UNIX_EPOCH, server.user.id);
    let identity = Identity { user: user.clone(), issued_at, scopes: Scopes::default(), ..server };
    let acting = Credential::Person { identity, by: CredentialSource::Bearer, server: Some(id) };
    Ok((acting, is_new.then_some(user)))
}

/// The row of this request for the audit. Handlers that append it in the transaction of their act extract it.
#[derive(Clone, Debug)]
pub struct Audited(pub AuditEntry);

impl Audited {
    /// `None`: the request proves no caller.
    fn of(method: &Method, path: &str, extensions: &Extensions) -> Option<Self> {
        let (by, user) = match extensions.get::<Credential>()? {
            Credential::Nothing | Credential::Refused { .. } => return None,
            Credential::AdminToken => (Actor::Admin, None),
            Credential::Server { identity, named } => {
                (Actor::Server(identity.user.id.clone()), named.clone())
            }
            Credential::Person { identity, server: Some(server), .. } => {
                (Actor::Server(server.clone()), Some(identity.user.id.clone()))
            }
            Credential::Person { identity, .. } => (Actor::User(identity.user.id.clone()), None),
        };
        let route = extensions.get::<MatchedPath>().map_or(path, MatchedPath::as_str);
        let parts = route.split('/').zip(path.split('/'));
        let ids: Vec<_> =
            parts.filter(|(name, _)| name.starts_with('{')).map(|(_, id)| id).collect();
        Some(Self(AuditEntry {
            by,
            user,
            action: format!("{method} {route}"),
            // Any text may stand in an address.
            target: ids.join("/").chars().take(TARGET_CHARS_MAX).collect(),
            status: None,
            request_id: RequestNames::of(extensions).id().to_owned(),
            peer: extensions.get::<Peer>().copied().unwrap_or_default().0.to_string(),
        }))
    }

    /// The row that precedes the act of a request, or the creation of its user. `None`: it needs none, or its handler
    /// appends it.
    pub(super) fn before(request: &Request, creates_user: bool) -> Option<AuditEntry> {
        let method = request.method();
        let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str)?;
        let is_safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if (is_safe && !creates_user) || WITH_OWN_ROW.contains(&(method.as_str(), route)) {
            return None;
        }
        let is_of_admin = route.starts_with("/api/admin/");
        let is_due = match request.extensions().get::<Credential>()? {
            Credential::Nothing | Credential::Refused { .. } => false,
            Credential::AdminToken => is_of_admin,
            Credential::Person { server: Some(_), .. } | Credential::Server { .. } => true,
            Credential::Person { identity, .. } => is_of_admin && identity.is_admin,
        };
        let entry = is_due.then(|| Self::of(method, request.uri().path(), request.extensions()));
        entry.flatten().map(|Self(entry)| entry)
    }

    /// Appends a further row for an act that failed after its row.
    pub(super) async fn after(mut entry: AuditEntry, status: StatusCode, accounts: &Accounts) {
        if status.is_success() {
            return;
        }
        entry.status = Some(status.as_u16().into());
        if let Err(error) = accounts.begin(&entry, None).await {
            let request = entry.request_id;
            tracing::warn!(%error, %status, request, "the audit misses that a call failed");
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Audited {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let entry = Self::of(&parts.method, parts.uri.path(), &parts.extensions);
        entry.ok_or(ApiError::Unauthenticated("this needs a token"))
    }
}
