//! `auth.oidc`

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::outgoing::destination::{Destination, HostScope};
use crate::setting::{FoundFaults, is_printable, words};

#[derive(Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct OidcSettings {
    pub issuer: String,
    pub client_id: String,
    /// None: a public client, which PKCE alone protects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    #[serde(deserialize_with = "words")]
    pub scopes: Vec<String>,
}

impl Default for OidcSettings {
    fn default() -> Self {
        let scopes = ["openid", "profile"].map(str::to_owned).to_vec();
        let (issuer, client_id) = (String::new(), String::new());
        Self { issuer, client_id, client_secret_file: None, scopes }
    }
}

impl OidcSettings {
    pub(crate) fn check(&self, faults: &mut FoundFaults) {
        let Self { issuer, client_id, client_secret_file, scopes } = self;
        let is_address = Destination::parse(issuer, HostScope::Authentic).is_ok();
        faults.unless(
            is_address && is_printable(issuer) && !issuer.contains(['?', '#']),
            &["auth.oidc.issuer"],
            "must be the provider's https:// address without a query, like https://id.example.com/realms/team, or \
             http:// of this host (127.0.0.1, localhost)",
        );
        faults.unless(
            !client_id.is_empty() && is_printable(client_id),
            &["auth.oidc.client_id"],
            "must be the id of this Galley at the provider: printable ASCII without spaces",
        );
        let has_file = client_secret_file.as_ref().is_none_or(|it| !it.as_os_str().is_empty());
        faults.unless(has_file, &["auth.oidc.client_secret_file"], "must not be empty");
        faults.unless(
            scopes.iter().any(|it| it == "openid") && scopes.iter().all(|it| is_printable(it)),
            &["auth.oidc.scopes"],
            "must be words with openid among them, like openid profile",
        );
    }
}
