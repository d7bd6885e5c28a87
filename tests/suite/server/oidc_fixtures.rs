//! A browser of a user who signs in at the provider of `auth.oidc`.

use std::collections::BTreeMap;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use serde_json::{Value, json};

use crate::support::galley_process::Server;
use crate::support::http_client::Client;
use crate::support::identity_provider::{IdentityProvider, query};

/// A server for the users of the provider, with these settings, too.
pub(crate) async fn server_of(provider: &IdentityProvider, settings: &[(&str, &str)]) -> Server {
    let oidc = json!({ "issuer": provider.issuer(), "client_id": "galley-team" }).to_string();
    Server::with(&[&[("AUTH__OIDC", oidc.as_str()), ("AUTH__GUESTS", "false")], settings].concat())
        .await
}

/// A browser: it stores cookies, and the test follows the redirects.
pub(crate) struct Browser<'a> {
    pub(crate) server: &'a Server,
    pub(crate) client: Client,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        let client = reqwest::Client::builder().redirect(Policy::none()).build().expect("a client");
        Self { server, client: Client::new(client), cookies: BTreeMap::new() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let cookies = cookies.collect::<Vec<_>>().join("; ");
        let request = self.client.get(format!("{}{path}", self.server.url));
        let answer = request.header(COOKIE, cookies).send().await.expect("an answer");
        for line in answer.headers().get_all(SET_COOKIE) {
            let line = line.to_str().expect("text");
            let (name, value) =
                line.split(';').next().and_then(|it| it.split_once('=')).expect("a cookie");
            match line.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer
    }

    /// The address of a redirect.
    pub(crate) async fn location(&mut self, path: &str) -> Url {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 303, "{path}");
        Url::parse(answer.headers()[LOCATION].to_str().expect("text")).expect("an address")
    }

    pub(crate) async fn start(&mut self, return_to: &str) -> Url {
        self.location(&format!("/api/auth/oidc/start?return={return_to}")).await
    }

    /// The way back from the provider with this answer.
    pub(crate) async fn answer(&mut self, pairs: &[(&str, &str)]) -> Url {
        let address = Url::parse_with_params("http://x/api/auth/oidc/callback", pairs);
        let address = address.expect("an address");
        self.location(&format!("{}?{}", address.path(), address.query().unwrap_or_default())).await
    }

    /// Signs in as the user of these claims, and returns where that leads.
    pub(crate) async fn sign_in(
        &mut self,
        provider: &IdentityProvider,
        claims: impl FnOnce(&mut Value),
    ) -> Url {
        let address = self.start("/d/doc_1").await;
        let mut of_kim = provider.id_claims(&address, "auth0|kim@example.com", "김민수");
        claims(&mut of_kim);
        let code = provider.grant(&address, of_kim);
        self.answer(&[("code", &code), ("state", &query(&address, "state"))]).await
    }

    pub(crate) async fn entry(&mut self) -> Value {
        self.get("/api/auth").await.json().await.expect("JSON")
    }

    pub(crate) fn is_signed_in(&self) -> bool {
        self.cookies.keys().any(|name| name.ends_with("galley_token"))
    }
}

/// The fault that the start page shows, and where another attempt leads.
pub(crate) fn fault(location: &Url) -> (String, String) {
    assert_eq!(location.path(), "/", "{location}");
    (query(location, "sign_in"), query(location, "return"))
}

pub(crate) fn is(name: &str, return_to: &str) -> (String, String) {
    (name.to_owned(), return_to.to_owned())
}
