//! The discovery document of a provider: its endpoints, and where its token endpoint takes the client's secret.

use serde::Deserialize;

use crate::outgoing::destination::{Destination, HostScope};

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// How the server proves to the token endpoint that it is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientProof {
    /// `client_secret_basic`, the default of the standard.
    Basic,
    /// `client_secret_post`
    Post,
    /// A public client.
    None,
}

#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) authorization: Destination,
    pub(super) token: Destination,
    pub(super) keys: Destination,
    pub(super) userinfo: Option<Destination>,
    pub(super) end_session: Option<Destination>,
    pub(super) proof: ClientProof,
}

/// The address of the document (`OpenID` Connect Discovery §4).
pub(super) fn address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

impl Endpoints {
    /// Reads the document of `issuer`. The fault names what an operator or the provider corrects.
    pub(super) fn of(document: &[u8], issuer: &str, has_secret: bool) -> Result<Self, String> {
        let found: Document = serde_json::from_slice(document).map_err(|_error| {
            "the response is no discovery document (JSON with issuer, authorization_endpoint, token_endpoint \
             and jwks_uri)"
        })?;
        if found.issuer != issuer {
            let named: String =
                found.issuer.chars().filter(char::is_ascii_graphic).take(200).collect();
            return Err(format!(
                "its issuer is {named}: set auth.oidc.issuer to exactly that text"
            ));
        }
        let endpoint = |name: &str, address: &str| {
            let parsed = Destination::parse(address, HostScope::Authentic);
            parsed.map_err(|error| format!("its {name} is no address to trust: {error}"))
        };
        let optional = |name: &str, address: Option<String>| {
            address.map(|address| endpoint(name, &address)).transpose()
        };
        let methods = found.token_endpoint_auth_methods_supported;
        let takes = |method: &str| match &methods {
            Some(methods) => methods.iter().any(|it| it == method),
            None => method == "client_secret_basic",
        };
        let proof = match () {
            () if !has_secret => ClientProof::None,
            () if takes("client_secret_basic") => ClientProof::Basic,
            () if takes("client_secret_post") => ClientProof::Post,
            () => {
                return Err(
                    "it takes a secret by neither client_secret_basic nor client_secret_post"
                        .to_owned(),
                );
            }
        };
        Ok(Self {
            authorization: endpoint("authorization_endpoint", &found.authorization_endpoint)?,
            token: endpoint("token_endpoint", &found.token_endpoint)?,
            keys: endpoint("jwks_uri", &found.jwks_uri)?,
            userinfo: optional("userinfo_endpoint", found.userinfo_endpoint)?,
            end_session: optional("end_session_endpoint", found.end_session_endpoint)?,
            proof,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://id.example.com/realms/team";

    fn document() -> Value {
        json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example.com/authorize?realm=team",
            "token_endpoint": "https://id.example.com/token",
            "jwks_uri": "https://keys.example.com/jwks.json",
            "response_types_supported": ["code"],
        })
    }

    fn read(document: &Value, has_secret: bool) -> Result<Endpoints, String> {
        Endpoints::of(document.to_string().as_bytes(), ISSUER, has_secret)
    }

    #[test]
    fn the_secret_goes_where_the_provider_takes_it() {
        let mut document = document();
        for (methods, proof) in [
            (Value::Null, Some(ClientProof::Basic)),
            (json!(["client_secret_post", "client_secret_basic"]), Some(ClientProof::Basic)),
            (json!(["private_key_jwt", "client_secret_post"]), Some(ClientProof::Post)),
            (json!(["private_key_jwt"]), None),
        ] {
            document["token_endpoint_auth_methods_supported"] = methods.clone();
            assert_eq!(read(&document, true).ok().map(|it| it.proof), proof, "{methods}");
            assert_eq!(read(&document, false).ok().map(|it| it.proof), Some(ClientProof::None));
        }
    }

    #[test]
    fn a_document_of_another_issuer_or_without_tls_is_a_fault_with_its_remedy() {
        for (member, value, fault) in [
            (
                "issuer",
                json!("https://id.example.com/realms/team/"),
                "set auth.oidc.issuer to exactly that",
            ),
            ("issuer", json!(7), "no discovery document"),
            ("token_endpoint", Value::Null, "no discovery document"),
            ("token_endpoint", json!("http://id.example.com/token"), "its scheme is not https"),
            ("authorization_endpoint", json!("javascript:alert(1)"), "its scheme is not https"),
            ("jwks_uri", json!("keys"), "it is no URL"),
            ("end_session_endpoint", json!("http://id.example.com/out"), "its scheme is not https"),
        ] {
            let mut document = document();
            document[member] = value;
            let found = read(&document, false).expect_err(member);
            assert!(found.contains(fault), "{member}: {found}");
        }
        let plain = Endpoints::of(b"<html>", ISSUER, false).expect_err("no JSON");
        assert!(plain.contains("no discovery document"), "{plain}");
    }

    #[test]
    fn the_document_stands_below_the_issuer() {
        for issuer in [ISSUER, "https://id.example.com/realms/team/"] {
            assert_eq!(address(issuer), format!("{ISSUER}/.well-known/openid-configuration"));
        }
    }
}
