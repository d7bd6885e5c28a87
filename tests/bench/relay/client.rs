//! The smallest possible client: it requests the room's document and waits for the reply.

use std::net::Ipv4Addr;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use galley::domain::seat::Role;
use galley::yjs::protocol::{self, ClientFrame};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};

use crate::support::redis_server::TEST_TIMEOUT;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The sizes of the read and write buffers. The library's default is 128 KiB for the life of the
/// socket, and one process has thousands of sockets.
const BUFFER_BYTES: usize = 4 * 1_024;

/// The buffers of the clients and of the relay that copies.
pub(crate) fn buffers() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(BUFFER_BYTES).write_buffer_size(BUFFER_BYTES)
}

/// The page's query: events for saves and presence.
pub(crate) const EVENTS: &str = "?events=1";

/// The address and message format of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Galley's addresses; the relay that copies has the same.
    Galley,
    /// The room is the path.
    YWebsocket,
    /// The room's name is in front of each message, and the first one is a token.
    Hocuspocus,
}

/// The address of a room, and the tokens for it.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) link: String,
    pub(crate) writer_token: String,
    pub(crate) reviewer_token: String,
    /// The query after the path: [`EVENTS`], or nothing.
    pub(crate) query: &'static str,
    pub(crate) dialect: Dialect,
}

impl Address {
    /// The message as it goes over the wire.
    pub(crate) fn wrap(&self, message: &Bytes) -> Bytes {
        if self.dialect != Dialect::Hocuspocus {
            return message.clone();
        }
        let mut wrapped = BytesMut::new();
        wrapped.put_u8(u8::try_from(self.link.len()).expect("a short name"));
        wrapped.put_slice(self.link.as_bytes());
        wrapped.put_slice(message);
        wrapped.freeze()
    }

    /// The message that came over the wire.
    pub(crate) fn unwrap(&self, data: &Bytes) -> Bytes {
        let name = if self.dialect == Dialect::Hocuspocus { 1 + self.link.len() } else { 0 };
        data.slice(name.min(data.len())..)
    }

    fn path(&self, role: Role) -> String {
        let Self { link, query, .. } = self;
        match self.dialect {
            Dialect::Galley => format!("/ws/share-links/{link}/{}{query}", role.as_str()),
            Dialect::YWebsocket => format!("/{link}"),
            Dialect::Hocuspocus => "/".to_owned(),
        }
    }

    fn token(&self, role: Role) -> &str {
        match role {
            Role::Writer => &self.writer_token,
            Role::Reviewer => &self.reviewer_token,
        }
    }
}

/// Acquires a seat. Returns the socket and the room's document, once the server has sent it.
pub(crate) async fn enter(address: &Address, role: Role) -> (Socket, Bytes) {
    enter_from(Ipv4Addr::UNSPECIFIED, address, role).await
}

/// The same from that address of this machine.
pub(crate) async fn enter_from(source: Ipv4Addr, address: &Address, role: Role) -> (Socket, Bytes) {
    /// An authentication with empty token and version.
    const HELLO: &[u8] = &[2, 0, 0, 0];
    let url = format!("{}{}", address.url.replacen("http", "ws", 1), address.path(role));
    let mut request = url.into_client_request().expect("a request");
    let bearer = format!("Bearer {}", address.token(role)).parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    let server = address.url.rsplit('/').next().expect("an address");
    let server = lookup_host(server).await.expect("a host").next().expect("one address");
    let client = TcpSocket::new_v4().expect("a socket");
    if !source.is_unspecified() {
        client.bind((source, 0).into()).expect("a free port");
    }
    let stream = client.connect(server).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket option");
    let stream = MaybeTlsStream::Plain(stream);
    let connecting = client_async_with_config(request, stream, Some(buffers()));
    let (mut socket, _) = connecting.await.expect("a handshake");
    if address.dialect == Dialect::Hocuspocus {
        send(&mut socket, address.wrap(&Bytes::from_static(HELLO))).await;
    }
    send(&mut socket, address.wrap(&protocol::sync_step1(&[0]))).await;
    loop {
        let message = timeout(TEST_TIMEOUT, socket.next()).await.expect("an answer in time");
        let message = message.expect("an open socket").expect("a frame");
        if let Message::Close(close) = message {
            panic!("not let in as {role:?}: {close:?}");
        }
        let data = address.unwrap(&message.into_data());
        if let Ok(ClientFrame::SyncStep2(update)) = protocol::parse(&data) {
            let had = data.slice_ref(update);
            return (socket, had);
        }
    }
}

async fn send(socket: &mut Socket, message: Bytes) {
    socket.send(Message::Binary(message)).await.expect("it is sent");
}
