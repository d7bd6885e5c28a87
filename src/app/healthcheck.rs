//! `galley healthcheck`: a request to the server of these settings, for a container without another client.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Of the connection and of each read: `/readyz` responds in a fifth of a second.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Requests `path` of the server that listens at `listen`; any status but 200 is an error.
pub fn request(listen: SocketAddr, path: &str) -> io::Result<()> {
    // The system connects the address of all interfaces, `0.0.0.0`, to this host.
    let mut stream = TcpStream::connect_timeout(&listen, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    match response.split_once("\r\n\r\n") {
        Some((head, _)) if head.starts_with("HTTP/1.1 200 ") => Ok(()),
        Some((_, body)) => Err(io::Error::other(body.trim().to_owned())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
