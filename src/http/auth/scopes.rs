//! The scopes of server tokens, and the routes that they open.
//!
//! A token whose `scope` names one of them is the product's own, and none of a user. One table says what each
//! opens: the [admission](crate::http::auth::admission) refuses every other route, so a new route is closed until it has
//! a row here. A test compares the table with the `OpenAPI` document.

use serde_json::Value;
use strum::{EnumString, IntoStaticStr};

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
pub enum Scope {
    #[strum(serialize = "documents:read")]
    DocumentsRead,
    #[strum(serialize = "documents:write")]
    DocumentsWrite,
    #[strum(serialize = "documents:delete")]
    DocumentsDelete,
    #[strum(serialize = "reviews:read")]
    ReviewsRead,
    #[strum(serialize = "reviews:write")]
    ReviewsWrite,
    #[strum(serialize = "users:export")]
    UsersExport,
    #[strum(serialize = "users:delete")]
    UsersDelete,
    #[strum(serialize = "audit:read")]
    AuditRead,
}

impl Scope {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The scopes of a token. Empty: it is the token of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Reads the claim `scope`: words of which those of other products mean nothing here. `None`: the claim names
    /// a scope of Galley in another form than a text.
    pub(crate) fn of(claim: Option<&Value>) -> Option<Self> {
        let scopes = |text: &str| {
            let named = text.split(' ').filter_map(|word| word.parse::<Scope>().ok());
            Self(named.fold(0, |all, scope| all | (1 << scope as u8)))
        };
        match claim {
            None => Some(Self::default()),
            Some(Value::String(text)) => Some(scopes(text)),
            // Some providers put a list into the tokens of their users.
            Some(Value::Array(list)) => {
                let mut words = list.iter().filter_map(Value::as_str);
                words.all(|word| scopes(word).is_empty()).then(Self::default)
            }
            Some(_) => Some(Self::default()),
        }
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }
}

/// The demands of a route on a server token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    method: &'static str,
    route: &'static str,
    /// The token has all of them.
    pub(crate) scopes: &'static [Scope],
    /// Whether the call acts in the name of a user, whom its header names.
    pub(crate) is_of_user: bool,
}

/// The grant of a route. `None`: no server token opens it.
pub(crate) fn grant(method: &str, route: &str) -> Option<&'static Grant> {
    let method = if method == "HEAD" { "GET" } else { method };
    GRANTS.iter().find(|grant| grant.method == method && grant.route == route)
}

const fn user(method: &'static str, route: &'static str, scopes: &'static [Scope]) -> Grant {
    Grant { method, route, scopes, is_of_user: true }
}

const fn product(method: &'static str, route: &'static str, scopes: &'static [Scope]) -> Grant {
    Grant { method, route, scopes, is_of_user: false }
}

const READ: &[Scope] = &[Scope::DocumentsRead];
const WRITE: &[Scope] = &[Scope::DocumentsWrite];
const DELETE: &[Scope] = &[Scope::DocumentsDelete];
const READ_REVIEWS: &[Scope] = &[Scope::ReviewsRead];
const REVIEW: &[Scope] = &[Scope::ReviewsWrite];
const END_USER: &[Scope] = &[Scope::UsersDelete];

#[rustfmt::skip]
const GRANTS: &[Grant] = &[
    user("GET", "/api/documents", READ),
    user("GET", "/api/documents/{id}", READ),
    user("GET", "/api/documents/{id}/text", READ),
    user("GET", "/api/documents/{id}/sections", READ),
    user("GET", "/api/documents/{id}/versions", READ),
    user("GET", "/api/documents/{id}/versions/{vid}", READ),
    user("GET", "/api/documents/{id}/versions/{vid}/diff", READ),
    user("GET", "/api/export-formats", READ),
    user("GET", "/api/share-links", READ),
    user("GET", "/api/share-links/{id}", READ),
    // The file may have the reviews.
    user("GET", "/api/share-links/{id}/export", &[Scope::DocumentsRead, Scope::ReviewsRead]),

    user("POST", "/api/documents", WRITE),
    user("POST", "/api/documents/import", WRITE),
    user("PUT", "/api/documents/by-external-id/{external_id}", WRITE),
    user("PATCH", "/api/documents/{id}", WRITE),
    user("PUT", "/api/documents/{id}/text", WRITE),
    user("POST", "/api/documents/{id}/restore", WRITE),
    user("PUT", "/api/documents/{id}/sections", WRITE),
    user("POST", "/api/documents/{id}/versions", WRITE),
    user("POST", "/api/documents/{id}/versions/{vid}/restore", WRITE),
    user("POST", "/api/documents/{id}/share-link", WRITE),
    user("DELETE", "/api/share-links/{id}", WRITE),
    user("POST", "/api/share-links/{id}/invite", WRITE),
    user("POST", "/api/share-links/{id}/join", WRITE),
    user("PUT", "/api/share-links/{id}/reviewer", WRITE),
    user("DELETE", "/api/share-links/{id}/reviewer", WRITE),
    user("DELETE", "/api/documents/{id}", DELETE),

    user("GET", "/api/share-links/{id}/reviews", READ_REVIEWS),
    user("GET", "/api/share-links/{id}/reviews/{rid}", READ_REVIEWS),
    user("POST", "/api/share-links/{id}/reviews", REVIEW),
    user("PATCH", "/api/share-links/{id}/reviews/{rid}", REVIEW),
    user("DELETE", "/api/share-links/{id}/reviews/{rid}", REVIEW),
    user("POST", "/api/share-links/{id}/reviews/{rid}/replies", REVIEW),
    user("PATCH", "/api/share-links/{id}/reviews/{rid}/replies/{reply}", REVIEW),
    user("DELETE", "/api/share-links/{id}/reviews/{rid}/replies/{reply}", REVIEW),
    user("POST", "/api/share-links/{id}/reviews/{rid}/accept", REVIEW),
    user("POST", "/api/share-links/{id}/reviews/{rid}/reject", REVIEW),
    user("POST", "/api/share-links/{id}/reviews/{rid}/resolve", REVIEW),
    user("POST", "/api/share-links/{id}/reviews/{rid}/reopen", REVIEW),
    user("POST", "/api/share-links/{id}/suggestions", REVIEW),
    user("POST", "/api/share-links/{id}/decisions", REVIEW),
    user("POST", "/api/share-links/{id}/decisions/{did}/undo", REVIEW),
    user("PUT", "/api/share-links/{id}/seen", REVIEW),
    user("POST", "/api/share-links/{id}/turn", REVIEW),

    product("GET", "/api/users/{id}/export", &[Scope::UsersExport]),
    product("DELETE", "/api/users/{id}", END_USER),
    product("GET", "/api/user-deletions/{receipt}", END_USER),
    product("DELETE", "/api/users/{id}/sessions", END_USER),
    product("GET", "/api/admin/audit", &[Scope::AuditRead]),
];

/// Method, route and scopes of each row, as the `OpenAPI` document writes them.
#[cfg(test)]
pub(crate) fn table() -> impl Iterator<Item = (String, &'static str, Vec<&'static str>)> {
    GRANTS.iter().map(|grant| {
        let scopes = grant.scopes.iter().map(|scope| scope.as_str()).collect();
        (grant.method.to_lowercase(), grant.route, scopes)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_galleys_scopes_make_a_server_token() {
        let of = |claim: Value| Scopes::of(Some(&claim)).map(|scopes| scopes.0);
        for claim in [
            json!("openid profile email"),
            json!(""),
            json!("documents documents:READ Documents:read"),
            json!("documents:read\u{a0}"),
            json!(null),
            json!(7),
            json!({}),
            json!(["openid", 7]),
        ] {
            assert_eq!(of(claim.clone()), Some(0), "{claim}");
        }
        assert_eq!(of(json!("openid  documents:read audit:read")), Some(0b1000_0001));
        assert_eq!(of(json!("reviews:write reviews:write")), Some(0b1_0000));
        for claim in [json!(["documents:read"]), json!(["openid", "x users:delete"])] {
            assert_eq!(of(claim.clone()), None, "{claim}");
        }
        assert_eq!(Scopes::of(None), Some(Scopes::default()));
    }

    #[test]
    fn a_route_is_closed_without_a_row() {
        assert!(grant("GET", "/api/me").is_none() && grant("DELETE", "/api/documents").is_none());
        let audit = grant("HEAD", "/api/admin/audit").expect("a row");
        assert!(audit.scopes == [Scope::AuditRead] && !audit.is_of_user);
    }
}
