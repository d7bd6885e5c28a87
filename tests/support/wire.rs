//! A byte proxy between one server and one of its services, Redis or PostgreSQL.
//!
//! It interprets no protocol, so that it serves both. It passes bytes, cuts every connection, or
//! swallows: connections stay open and no byte moves until the wire passes again.

use std::io;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The mode of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Existing connections end, new ones end at once.
    Cut,
    /// No byte arrives and no connection ends.
    Swallow,
}

/// The service at the far end.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Tcp(u16),
    Unix(PathBuf),
}

/// Ends when it is dropped.
pub(crate) struct Wire {
    pub(crate) port: u16,
    mode: watch::Sender<Mode>,
    stop: CancellationToken,
}

impl Wire {
    pub(crate) async fn to(target: Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (mode, stop) = (watch::Sender::new(Mode::Pass), CancellationToken::new());
        let accepting = accept(listener, target, mode.subscribe());
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { port, mode, stop }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.mode.send_replace(Mode::Cut);
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, target: Target, mode: watch::Receiver<Mode>) {
    let connections = TaskTracker::new();
    loop {
        let (client, _) = listener.accept().await.expect("a connection");
        if *mode.borrow() == Mode::Cut {
            continue;
        }
        let (target, mode) = (target.clone(), mode.clone());
        connections.spawn(async move {
            let _ended = client.set_nodelay(true);
            // Without a service the client sees its connection end.
            let _ended = match target {
                Target::Tcp(port) => match TcpStream::connect(("127.0.0.1", port)).await {
                    Ok(server) => {
                        let _ended = server.set_nodelay(true);
                        join(client, server.into_split(), mode).await
                    }
                    Err(error) => Err(error),
                },
                Target::Unix(path) => match UnixStream::connect(path).await {
                    Ok(server) => join(client, server.into_split(), mode).await,
                    Err(error) => Err(error),
                },
            };
        });
    }
}

/// Moves bytes in both directions until one end closes or the wire is cut.
async fn join<R, W>(
    client: TcpStream,
    (from_server, to_server): (R, W),
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (from_client, to_client) = client.into_split();
    let one = pump(from_client, to_server, mode.clone());
    let other = pump(from_server, to_client, mode.clone());
    tokio::select! {
        done = one => done,
        done = other => done,
        () = is_cut(&mut mode) => Ok(()),
    }
}

async fn is_cut(mode: &mut watch::Receiver<Mode>) {
    let _is_there = mode.wait_for(|mode| *mode == Mode::Cut).await.is_ok();
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1_024];
    loop {
        let length = from.read(&mut bytes).await?;
        if length == 0 {
            return Ok(());
        }
        let _is_there = mode.wait_for(|mode| *mode != Mode::Swallow).await.is_ok();
        to.write_all(&bytes[..length]).await?;
    }
}
