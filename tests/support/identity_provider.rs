//! An identity provider of the tests: publishes its keys, signs tokens, rotates, and misbehaves as a test asks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use chrono::Utc;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
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

/// The response of the provider to a request for its keys.
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
        let keys = self.shared.keys.lock().expect("no panic");
        let Key { id, key } = keys.last().expect("a key");
        let header = Header { kid: Some(id.clone()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, key).expect("signed")
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
        let publishes = *self.publishes.lock().expect("no panic");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if socket.read_buf(&mut head).await.unwrap_or_default() == 0 {
                return;
            }
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_followed = !head.starts_with(b"GET /jwks.json ");
        let (status, lines, body) = match publishes {
            Publishes::Nothing => return,
            Publishes::Redirect if !is_followed => {
                (302, "Location: /moved.json\r\n", String::new())
            }
            Publishes::Html => (200, "", "<!doctype html><title>Sign in</title>".to_owned()),
            other => (200, "Content-Type: application/json\r\n", self.document(other)),
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

    fn document(&self, publishes: Publishes) -> String {
        let mut keys: Vec<_> =
            self.keys.lock().expect("no panic").iter().map(Key::public).collect();
        match publishes {
            Publishes::NoKey => keys.clear(),
            Publishes::OctKey => {
                keys =
                    vec![json!({ "kty": "oct", "kid": "first", "k": "c2VjcmV0", "alg": "HS256" })];
            }
            Publishes::OneIdTwice => keys.push(Key::generate("first").public()),
            Publishes::TooMuch => keys[0]["x5c"] = json!(["x".repeat(300 * 1024)]),
            _ => {}
        }
        json!({ "keys": keys }).to_string()
    }
}
