//! An attacker: accounts, REST and sockets, all from an address of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, Stream, StreamExt as _};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WireError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::support::galley_process::Server;

/// The attackers' address; the honest pair has 127.0.0.1.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Longest wait for a response.
const ANSWER_MAX: Duration = Duration::from_secs(35);

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// The attackers' tools. A rejected call is a response like any other.
pub(crate) struct Attacker {
    url: String,
    address: IpAddr,
    http: Client,
}

/// A document of an attacker's, with both of its users.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) document: String,
    pub(crate) link: String,
    pub(crate) writer: String,
    pub(crate) reviewer: String,
}

impl Attacker {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        Self::of(server.url.clone(), ADDRESS)
    }

    fn of(url: String, address: IpAddr) -> Self {
        let http = Client::builder().local_address(address).timeout(ANSWER_MAX).build();
        Self { url, address, http: http.expect("a client") }
    }

    /// The same attacker at so many other addresses, from 127.0.10.1 on.
    pub(crate) fn at_addresses(&self, count: u8) -> Vec<Self> {
        let address = |last| IpAddr::V4(Ipv4Addr::new(127, 0, 10, last));
        (1..=count).map(|last| Self::of(self.url.clone(), address(last))).collect()
    }

    /// The token of a new guest. `None` when the server refuses the entry.
    pub(crate) async fn guest(&self) -> Option<String> {
        let (_, body) = self.post("", "/api/auth/guest", &json!({ "name": "Mallory" })).await?;
        Some(body["token"].as_str()?.to_owned())
    }

    /// A document with a writer and a reviewer, both new guests.
    pub(crate) async fn target(&self) -> Option<Target> {
        let (writer, reviewer) = (self.guest().await?, self.guest().await?);
        let new = json!({ "title": "target", "text": "" });
        let (_, document) = self.post(&writer, "/api/documents", &new).await?;
        let document = document["id"].as_str()?.to_owned();
        let path = format!("/api/documents/{document}/share-link");
        let (_, link) = self.post(&writer, &path, &json!({})).await?;
        let join = json!({ "invite": link["invite"]["token"] });
        let link = link["id"].as_str()?.to_owned();
        self.post(&reviewer, &format!("/api/share-links/{link}/join"), &join).await?;
        Some(Target { document, link, writer, reviewer })
    }

    /// Creates so many targets, as far as the server permits.
    pub(crate) async fn targets(&self, count: usize) -> Vec<Target> {
        let mut targets = Vec::new();
        for _ in 0..count {
            targets.extend(self.target().await);
        }
        targets
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Option<StatusCode> {
        let request = self.http.get(format!("{}{path}", self.url)).bearer_auth(token);
        let response = request.send().await.ok()?;
        let status = response.status();
        response.bytes().await.ok()?;
        Some(status)
    }

    /// Requests a file as a browser does, which accepts gzip.
    pub(crate) async fn get_packed(&self, path: &str) -> Option<usize> {
        let request = self.http.get(format!("{}{path}", self.url));
        let response = request.header("accept-encoding", "gzip").send().await.ok()?;
        Some(response.bytes().await.ok()?.len())
    }

    pub(crate) async fn post(
        &self,
        token: &str,
        path: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        self.send(Method::POST, token, path, body).await
    }

    pub(crate) async fn patch(&self, token: &str, path: &str, body: &Value) -> Option<StatusCode> {
        Some(self.send(Method::PATCH, token, path, body).await?.0)
    }

    /// Uploads a file, which becomes a document.
    pub(crate) async fn import(&self, token: &str, kind: &str, file: &[u8]) -> Option<StatusCode> {
        let request = self.http.post(format!("{}/api/documents/import", self.url));
        let request = request.bearer_auth(token).header("content-type", kind).body(file.to_vec());
        let response = request.send().await.ok()?;
        let status = response.status();
        response.bytes().await.ok()?;
        Some(status)
    }

    async fn send(
        &self,
        method: Method,
        token: &str,
        path: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        let mut request = self.http.request(method, format!("{}{path}", self.url)).json(body);
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.ok()?;
        let status = response.status();
        Some((status, response.json().await.unwrap_or_default()))
    }

    /// A connection that has sent nothing yet.
    pub(crate) async fn connect(&self) -> Option<TcpStream> {
        let address: SocketAddr = self.url.strip_prefix("http://")?.parse().ok()?;
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(SocketAddr::new(self.address, 0)).ok()?;
        timeout(ANSWER_MAX, socket.connect(address)).await.ok()?.ok()
    }

    /// A websocket. `None` when the server refuses the upgrade.
    pub(crate) async fn socket(&self, target: &Target, role: &str, query: &str) -> Option<Socket> {
        let token = if role == "writer" { &target.writer } else { &target.reviewer };
        let url = self.url.replacen("http", "ws", 1);
        let url = format!("{url}/ws/share-links/{}/{role}?{query}", target.link);
        let mut request = url.into_client_request().ok()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().ok()?);
        let stream = self.connect().await?;
        let config = WebSocketConfig::default();
        let opening = client_async_with_config(request, stream, Some(config));
        timeout(ANSWER_MAX, opening).await.ok()?.ok().map(|(socket, _)| socket)
    }
}

/// Sends a message; false when the server has closed the socket.
pub(crate) async fn send(socket: &mut Socket, message: Bytes) -> bool {
    socket.send(Message::Binary(message)).await.is_ok()
}

/// Reads everything the server sends until it closes the socket.
pub(crate) async fn drain(mut socket: impl Stream<Item = Result<Message, WireError>> + Unpin) {
    while let Some(Ok(_)) = socket.next().await {}
}
