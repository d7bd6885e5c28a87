//! One end of a connection through the proxy.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// How an end sees the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    Close,
    Reset,
}

/// The socket of one end.
pub(crate) struct Side {
    socket: Mutex<Option<Arc<TcpStream>>>,
    /// The proxy no longer reads from it or writes to it.
    pub(crate) gone: CancellationToken,
    /// The end has closed the connection itself.
    pub(crate) has_left: AtomicBool,
}

impl Side {
    pub(crate) fn new(socket: TcpStream) -> Self {
        let (gone, has_left) = (CancellationToken::new(), AtomicBool::new(false));
        Self { socket: Mutex::new(Some(Arc::new(socket))), gone, has_left }
    }

    /// Whether the end sends no more data.
    pub(crate) fn is_over(&self) -> bool {
        self.gone.is_cancelled() || self.has_left.load(Relaxed)
    }

    pub(crate) fn end(&self, parting: Parting) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(socket), Parting::Reset) = (&socket, parting) {
            socket.set_zero_linger().expect("an open socket");
        }
        self.gone.cancel();
    }

    fn socket(&self) -> Option<Arc<TcpStream>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// None at the end of the stream.
    pub(crate) async fn read(&self, bytes: &mut Vec<u8>) -> Option<()> {
        let socket = self.socket()?;
        loop {
            tokio::select! {
                () = self.gone.cancelled() => return None,
                ready = socket.readable() => ready.ok()?,
            }
            bytes.reserve(4_096);
            match socket.try_read_buf(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(read) if 0 < read => return Some(()),
                Ok(_) | Err(_) => {
                    self.has_left.store(true, Relaxed);
                    return None;
                }
            }
        }
    }

    /// As much as the socket accepts.
    pub(crate) async fn write(&self, mut bytes: &[u8]) -> Option<()> {
        let socket = self.socket()?;
        while !bytes.is_empty() {
            tokio::select! {
                () = self.gone.cancelled() => return None,
                ready = socket.writable() => ready.ok()?,
            }
            match socket.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => bytes = &bytes[written.ok()?..],
            }
        }
        Some(())
    }
}
