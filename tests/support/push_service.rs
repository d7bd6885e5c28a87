//! A push service of the tests, and the browser behind it: it verifies the signature of each push,
//! decrypts it with the browser's key, and misbehaves as a test asks.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::fixtures::found;
use crate::support::tls::TestTls;

/// The response to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Response {
    /// A status with these header lines.
    Status(u16, &'static str),
    /// 201 after this time.
    Late(Duration),
    /// The service reads the request and sends nothing.
    Silence,
    /// The service closes the connection after the request.
    Close,
    /// The service closes the connection in the middle of the request.
    CloseEarly,
    /// A head that never ends.
    EndlessHead,
    /// A refusal whose body never ends.
    EndlessBody,
    /// A refusal with one byte of its body at a time.
    SlowBody,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    /// Header lines, the names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The public key of the server that signed the push, after the check of its signature, audience
    /// and end; and the claims.
    pub(crate) fn signer(&self, origin: &str) -> (String, Value) {
        let value = self.header("authorization").expect("a signature");
        let (token, key) =
            value.strip_prefix("vapid t=").expect("VAPID").split_once(", k=").expect("a key");
        let point = URL_SAFE_NO_PAD.decode(key).expect("base64url");
        let mut rules = Validation::new(Algorithm::ES256);
        rules.set_audience(&[origin]);
        rules.leeway = 0;
        let claims = decode::<Value>(token, &DecodingKey::from_ec_der(&point), &rules);
        let claims = claims.expect("a valid token").claims;
        let left = claims["exp"].as_i64().expect("an end") - chrono::Utc::now().timestamp();
        assert!((0..=12 * 3_600).contains(&left), "{left} s");
        (key.to_owned(), claims)
    }
}

/// A browser that has subscribed.
pub(crate) struct Browser {
    key: PrivateKey,
    auth: [u8; 16],
    /// The part of the endpoint after the service.
    pub(crate) path: String,
}

/// A length of HKDF's output.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Browser {
    pub(crate) fn new() -> Self {
        let mut auth = [0; 16];
        getrandom::fill(&mut auth).expect("random bytes");
        let path = format!("/push/{}", URL_SAFE_NO_PAD.encode(auth));
        Self { key: PrivateKey::generate(&ECDH_P256).expect("a key"), auth, path }
    }

    /// Its `PushSubscription` as JSON.
    pub(crate) fn subscription(&self, service: &PushService) -> Value {
        self.subscription_at(&format!("{}{}", service.url, self.path))
    }

    pub(crate) fn subscription_at(&self, endpoint: &str) -> Value {
        let public = self.key.compute_public_key().expect("a point");
        json!({
            "endpoint": endpoint,
            "expirationTime": null,
            "keys": {
                "p256dh": URL_SAFE_NO_PAD.encode(public.as_ref()),
                "auth": URL_SAFE_NO_PAD.encode(self.auth),
            },
        })
    }

    /// The payload of a push (RFC 8291 §3.4, RFC 8188 §2).
    pub(crate) fn decrypt(&self, body: &[u8]) -> Value {
        let (salt, rest) = body.split_at(16);
        let (record_size, rest) = rest.split_at(4);
        assert!(body.len() <= 4_096 && record_size == 4_096_u32.to_be_bytes());
        assert_eq!(rest[0], 65);
        let (sender, sealed) = rest[1..].split_at(65);
        let own = self.key.compute_public_key().expect("a point");
        let info = [b"WebPush: info\0".as_slice(), own.as_ref(), sender];
        let peer = UnparsedPublicKey::new(&ECDH_P256, sender);
        let input =
            agree(&self.key, peer, "no point", |shared| Ok(expand(&self.auth, shared, &info, 32)));
        let input = input.expect("a shared secret");
        let key = expand(salt, &input, &[b"Content-Encoding: aes128gcm\0"], 16);
        let nonce = expand(salt, &input, &[b"Content-Encoding: nonce\0"], 12);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).expect("a key"));
        let nonce = Nonce::try_assume_unique_for_key(&nonce).expect("a nonce");
        let mut sealed = sealed.to_vec();
        let record = key.open_in_place(nonce, Aad::empty(), &mut sealed).expect("authentic");
        let end = record.iter().rposition(|byte| *byte != 0).expect("a delimiter");
        assert_eq!(record[end], 2, "the last record");
        serde_json::from_slice(&record[..end]).expect("JSON")
    }
}

fn expand(salt: &[u8], input: &[u8], info: &[&[u8]], length: usize) -> Vec<u8> {
    let mut output = vec![0; length];
    let key = Salt::new(HKDF_SHA256, salt).extract(input);
    key.expand(info, Length(length)).and_then(|okm| okm.fill(&mut output)).expect("expanded");
    output
}

/// The service, on a port of its own until it is dropped.
pub(crate) struct PushService {
    /// Scheme, host and port.
    pub(crate) url: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

struct Shared {
    received: Mutex<Vec<Received>>,
    /// The responses to come; after them every request gets 201.
    script: Mutex<VecDeque<Response>>,
    otherwise: Mutex<Response>,
    /// A request that contains one of these texts gets no response.
    silenced: Mutex<Vec<String>>,
    /// Connections so far, also those without a request.
    connections: Mutex<usize>,
    stop: CancellationToken,
}

impl Drop for PushService {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl PushService {
    /// Starts without TLS.
    pub(crate) async fn start() -> Self {
        Self::with(None).await
    }

    /// Starts with TLS, as `localhost`.
    pub(crate) async fn secure(tls: &TestTls) -> Self {
        Self::with(Some(tls)).await
    }

    async fn with(tls: Option<&TestTls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            script: Mutex::default(),
            otherwise: Mutex::new(Response::Status(201, "")),
            silenced: Mutex::default(),
            connections: Mutex::default(),
            stop: stop.clone(),
        });
        let accepting = Arc::clone(&shared).accept(listener, tls.map(TestTls::acceptor));
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(accepting));
        let host = if tls.is_some() { "https://localhost" } else { "http://127.0.0.1" };
        Self { url: format!("{host}:{port}"), shared, stop }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let port = self.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        ([127, 0, 0, 1], port).into()
    }

    /// The responses to the next requests.
    pub(crate) fn script(&self, responses: impl IntoIterator<Item = Response>) {
        self.shared.script.lock().expect("no panic").extend(responses);
    }

    /// The response to each request that is not in the script: 201, until this call.
    pub(crate) fn respond(&self, response: Response) {
        *self.shared.otherwise.lock().expect("no panic") = response;
    }

    /// Sends no response to requests whose body contains `text`.
    pub(crate) fn silence(&self, text: String) {
        self.shared.silenced.lock().expect("no panic").push(text);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.shared.connections.lock().expect("no panic")
    }

    /// Waits until this number of requests has arrived, and holds that no other one follows: a service sends a
    /// repeated one at once.
    pub(crate) async fn has_only(&self, count: usize) {
        self.has(count).await;
        sleep(Duration::from_millis(200)).await;
        assert_eq!(self.received().len(), count);
    }

    /// Waits until this number of requests has arrived.
    pub(crate) async fn has(&self, count: usize) -> Vec<Received> {
        found(async || {
            let received = self.received();
            if count <= received.len() { Ok(received) } else { Err((received.len(), count)) }
        })
        .await
    }
}

impl Shared {
    async fn accept(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            *self.connections.lock().expect("no panic") += 1;
            let serving = Arc::clone(&self).serve_securely(socket, tls.clone());
            TaskTracker::new().spawn(serving);
        }
    }

    async fn serve_securely(self: Arc<Self>, socket: TcpStream, tls: Option<TlsAcceptor>) {
        let Some(acceptor) = tls else { return self.serve(socket).await };
        if let Ok(secured) = acceptor.accept(socket).await {
            self.serve(secured).await;
        }
    }

    async fn serve(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) {
        let mut response = {
            let mut script = self.script.lock().expect("no panic");
            let otherwise = *self.otherwise.lock().expect("no panic");
            script.pop_front().unwrap_or(otherwise)
        };
        if matches!(response, Response::CloseEarly) {
            let mut some = [0; 64];
            let _read = socket.read(&mut some).await;
            return;
        }
        let Some(received) = read_request(&mut socket).await else { return };
        let body = String::from_utf8_lossy(&received.body);
        if self.silenced.lock().expect("no panic").iter().any(|text| body.contains(text)) {
            response = Response::Silence;
        }
        drop(body);
        self.received.lock().expect("no panic").push(received);
        let answering = answer(&mut socket, response);
        // The other end may close at any time.
        let _closed = self.stop.run_until_cancelled(answering).await;
    }
}

async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(head_end + 4);
    let head = String::from_utf8(bytes).expect("text");
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().expect("a length"));
    while body.len() < length {
        if socket.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { path, headers, body, at: Instant::now() })
}

async fn answer(
    socket: &mut (impl AsyncWrite + AsyncRead + Unpin),
    response: Response,
) -> std::io::Result<()> {
    const REFUSAL: &[u8] = b"HTTP/1.1 400 No\r\nContent-Type: text/plain\r\n\r\n";
    match response {
        Response::Status(status, lines) => {
            let head = format!("HTTP/1.1 {status} It\r\n{lines}Content-Length: 0\r\n\r\n");
            socket.write_all(head.as_bytes()).await?;
            socket.flush().await
        }
        Response::Late(pause) => {
            sleep(pause).await;
            socket.write_all(b"HTTP/1.1 201 It\r\nContent-Length: 0\r\n\r\n").await?;
            socket.flush().await
        }
        Response::Close | Response::CloseEarly => Ok(()),
        Response::Silence => {
            // Until the other end closes.
            let mut rest = Vec::new();
            socket.read_to_end(&mut rest).await.map(drop)
        }
        Response::EndlessHead => {
            socket.write_all(b"HTTP/1.1 201 It\r\n").await?;
            loop {
                socket.write_all(format!("X-Filler: {}\r\n", "x".repeat(1_000)).as_bytes()).await?;
            }
        }
        Response::EndlessBody => {
            socket.write_all(REFUSAL).await?;
            loop {
                socket.write_all(&[b'x'; 4_096]).await?;
            }
        }
        Response::SlowBody => {
            socket.write_all(REFUSAL).await?;
            loop {
                socket.write_all(b"x").await?;
                socket.flush().await?;
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}
