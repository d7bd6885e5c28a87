//! An identity provider of the tests: publishes its keys, signs tokens, rotates, and misbehaves as a test asks. It
//! also speaks `OpenID` Connect: discovery, codes with PKCE, and userinfo.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::galley_process::Server;
use crate::support::rest_client::Person;

pub(crate) const ISSUER: &str = "https://id.example.com/";
pub(crate) const AUDIENCE: &str = "galley";
const JSON: &str = "Content-Type: application/json\r\n";

/// The response of the provider to a request for its keys, for its discovery document, or for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Publishes {
    Keys,
    /// It closes each connection.
    Nothing,
    NoKey,
    /// The keys, in more than 256 KiB.
    TooMuch,
    /// A byte a second.
    Slowly,
    /// A redirect to the keys.
    Redirect,
    Html,
    /// A symmetric key alone.
    OctKey,
    /// Two keys under one id.
    OneIdTwice,
    /// 401: it knows no such client.
    Refusal,
}

/// A code that its token endpoint takes once.
struct Grant {
    claims: Value,
    challenge: String,
    redirect_uri: String,
}

struct Key {
    id: String,
    key: EncodingKey,
}

impl Key {
    fn generate(id: &str) -> Self {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        Self { id: id.to_owned(), key: EncodingKey::from_ec_der(made.expect("a key").as_ref()) }
    }

    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.key).expect("signed")
    }

    fn public(&self) -> Value {
        let made = Jwk::from_encoding_key(&self.key, Algorithm::ES256).expect("a public key");
        let mut made = serde_json::to_value(made).expect("JSON");
        made["kid"] = json!(self.id);
        made
    }
}

/// On a port of its own until it is dropped.
pub(crate) struct IdentityProvider {
    /// The address of its key set.
    pub(crate) url: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

struct Shared {
    publishes: Mutex<Publishes>,
    /// The last one signs.
    keys: Mutex<Vec<Key>>,
    requests: AtomicUsize,
    issued: AtomicUsize,
    exchanges: Mutex<Publishes>,
    grants: Mutex<HashMap<String, Grant>>,
    /// Head and body of each request for tokens.
    exchanged: Mutex<Vec<String>>,
    /// Members of the discovery document, which has its own ones beside them; null removes one.
    discovery: Mutex<Value>,
    userinfo: Mutex<Value>,
    issuer: String,
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl IdentityProvider {
    pub(crate) async fn start() -> Self {
        Self::publishing(Publishes::Keys).await
    }

    pub(crate) async fn publishing(what: Publishes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            publishes: Mutex::new(what),
            keys: Mutex::new(vec![Key::generate("first")]),
            requests: AtomicUsize::new(0),
            issued: AtomicUsize::new(0),
            exchanges: Mutex::new(Publishes::Keys),
            grants: Mutex::default(),
            exchanged: Mutex::default(),
            discovery: Mutex::new(json!({})),
            userinfo: Mutex::new(json!({})),
            issuer: format!("http://{address}"),
        });
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let accepting = Arc::clone(&shared).accept(listener, stop.clone(), tasks.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { url: format!("http://{address}/jwks.json"), shared, stop }
    }

    /// From the next request on.
    pub(crate) fn publish(&self, what: Publishes) {
        *self.shared.publishes.lock().expect("no panic") = what;
    }

    /// The same of its token endpoint.
    pub(crate) fn exchange(&self, what: Publishes) {
        *self.shared.exchanges.lock().expect("no panic") = what;
    }

    /// Its issuer for `OpenID` Connect.
    pub(crate) fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// Changes its discovery document.
    pub(crate) fn discover(&self, members: Value) {
        *self.shared.discovery.lock().expect("no panic") = members;
    }

    pub(crate) fn set_userinfo(&self, claims: Value) {
        *self.shared.userinfo.lock().expect("no panic") = claims;
    }

    /// Head and body of each request for tokens.
    pub(crate) fn exchanged(&self) -> Vec<String> {
        self.shared.exchanged.lock().expect("no panic").clone()
    }

    /// The claims of an ID token for the sign-in that this address begins.
    pub(crate) fn id_claims(&self, authorization: &Url, subject: &str, name: &str) -> Value {
        let mut claims = Self::claims(subject, name, 300);
        claims["iss"] = json!(self.issuer());
        claims["aud"] = json!(query(authorization, "client_id"));
        claims["nonce"] = json!(query(authorization, "nonce"));
        claims
    }

    /// Signs the user of these claims in at this address. Returns the code.
    pub(crate) fn grant(&self, authorization: &Url, claims: Value) -> String {
        let of = |name: &str| query(authorization, name);
        assert_eq!(
            (of("response_type"), of("code_challenge_method")),
            ("code".into(), "S256".into())
        );
        let grant =
            Grant { claims, challenge: of("code_challenge"), redirect_uri: of("redirect_uri") };
        let mut grants = self.shared.grants.lock().expect("no panic");
        let code = format!("code/{}+", self.shared.issued.fetch_add(1, Ordering::Relaxed));
        grants.insert(code.clone(), grant);
        code
    }

    /// Signs with a new key. The set has it at once, and the former ones no more.
    pub(crate) fn rotate(&self, id: &str) {
        *self.shared.keys.lock().expect("no panic") = vec![Key::generate(id)];
    }

    /// How often the set was requested.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// A server that accepts this provider's tokens, with these settings too.
    pub(crate) async fn server(&self, settings: &[(&str, &str)]) -> Server {
        let own = [
            ("AUTH__JWKS_URL", self.url.as_str()),
            ("AUTH__ISSUER", ISSUER),
            ("AUTH__AUDIENCE", AUDIENCE),
        ];
        Server::with(&[&own, settings].concat()).await
    }

    /// The claims of a user, whose token ends after that many seconds. The server takes it 30 s longer.
    pub(crate) fn claims(subject: &str, name: &str, seconds: i64) -> Value {
        let now = Utc::now().timestamp();
        json!({ "iss": ISSUER, "aud": [AUDIENCE, "another"], "sub": subject, "name": name,
            "iat": now - 300, "exp": now + seconds })
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.shared.keys.lock().expect("no panic").last().expect("a key").sign(claims)
    }

    /// The public key that verifies its tokens.
    pub(crate) fn public(&self) -> Value {
        self.shared.keys.lock().expect("no panic").last().expect("a key").public()
    }

    /// A user with a token of five minutes. `id` is that of the server.
    pub(crate) fn person(&self, id: &str, name: &str) -> Person {
        let token = self.sign(&Self::claims(id, name, 300));
        Person { id: id.to_owned(), name: name.to_owned(), token }
    }
}

impl Shared {
    async fn accept(
        self: Arc<Self>,
        listener: TcpListener,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) {
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            let serving = Arc::clone(&self).serve(socket);
            tasks.spawn(stop.clone().run_until_cancelled_owned(serving));
        }
    }

    async fn serve(self: Arc<Self>, mut socket: TcpStream) {
        let mut read = Vec::new();
        let end = loop {
            if let Some(at) = read.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            if socket.read_buf(&mut read).await.unwrap_or_default() == 0 {
                return;
            }
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut body = read.split_off(end);
        let head = String::from_utf8(read).expect("text");
        let length = head.to_lowercase();
        let length = length.split_once("content-length: ");
        let length = length.and_then(|(_, it)| it.lines().next()?.parse().ok()).unwrap_or(0);
        while body.len() < length {
            socket.read_buf(&mut body).await.expect("a whole request");
        }
        let body = String::from_utf8(body).expect("text");
        let path = head.split(' ').nth(1).expect("a path");
        let which = if path == "/token" { &self.exchanges } else { &self.publishes };
        let publishes = *which.lock().expect("no panic");
        let (status, lines, body) = match publishes {
            Publishes::Nothing => return,
            Publishes::Redirect if path != "/moved.json" => {
                (302, "Location: /moved.json\r\n", String::new())
            }
            Publishes::Html => (200, "", "<!doctype html><title>Sign in</title>".to_owned()),
            Publishes::Refusal => (401, JSON, json!({ "error": "invalid_client" }).to_string()),
            other => {
                let (status, mut document) = match path {
                    "/token" => self.tokens(&head, &body),
                    "/.well-known/openid-configuration" => (200, self.discovered()),
                    "/userinfo" => (200, self.userinfo.lock().expect("no panic").clone()),
                    _ => (200, self.document(other)),
                };
                if other == Publishes::TooMuch {
                    document["more"] = json!("x".repeat(300 * 1024));
                }
                (status, JSON, document.to_string())
            }
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status} It\r\n{lines}Content-Length: {length}\r\n\r\n");
        // The other end may close at any time.
        let _closed = socket.write_all(head.as_bytes()).await;
        let chunk = if publishes == Publishes::Slowly { 1 } else { length.max(1) };
        for chunk in body.as_bytes().chunks(chunk) {
            if socket.write_all(chunk).await.is_err() {
                return;
            }
            if publishes == Publishes::Slowly {
                sleep(Duration::from_secs(1)).await;
            }
        }
    }

    fn discovered(&self) -> Value {
        let issuer = &self.issuer;
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize?realm=team"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/jwks.json"),
            "userinfo_endpoint": format!("{issuer}/userinfo"),
            "end_session_endpoint": format!("{issuer}/logout"),
        });
        let changed = self.discovery.lock().expect("no panic").clone();
        document
            .as_object_mut()
            .expect("an object")
            .extend(changed.as_object().cloned().unwrap_or_default());
        document
    }

    /// Takes a code once, with the verifier and the address that belong to it.
    fn tokens(&self, head: &str, body: &str) -> (u16, Value) {
        self.exchanged.lock().expect("no panic").push(format!("{head}{body}"));
        let form = Url::parse(&format!("http://form/?{body}")).expect("a form");
        let grant = self.grants.lock().expect("no panic").remove(&query(&form, "code"));
        let challenge = digest(&SHA256, query(&form, "code_verifier").as_bytes());
        let challenge = URL_SAFE_NO_PAD.encode(challenge);
        let redirect_uri = query(&form, "redirect_uri");
        let is_granted = |it: &Grant| it.challenge == challenge && it.redirect_uri == redirect_uri;
        match grant.filter(is_granted) {
            None => (400, json!({ "error": "invalid_grant" })),
            Some(Grant { claims, .. }) => {
                let keys = self.keys.lock().expect("no panic");
                let id_token = keys.last().expect("a key").sign(&claims);
                (
                    200,
                    json!({ "id_token": id_token, "access_token": "access", "token_type": "Bearer" }),
                )
            }
        }
    }

    fn document(&self, publishes: Publishes) -> Value {
        let mut keys: Vec<_> =
            self.keys.lock().expect("no panic").iter().map(Key::public).collect();
        match publishes {
            Publishes::NoKey => keys.clear(),
            Publishes::OctKey => {
                keys =
                    vec![json!({ "kty": "oct", "kid": "first", "k": "c2VjcmV0", "alg": "HS256" })];
            }
            Publishes::OneIdTwice => keys.push(Key::generate("first").public()),
            _ => {}
        }
        json!({ "keys": keys })
    }
}

/// A parameter of the address, or an empty text.
pub(crate) fn query(address: &Url, name: &str) -> String {
    let found = address.query_pairs().find(|(it, _)| it == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}
