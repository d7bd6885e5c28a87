//! A proxy for PostgreSQL that delays or loses one chosen reply and counts all of them. Its drop closes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::fixtures::apart;

/// The name of the socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

pub(crate) struct Proxy {
    folder: TempDir,
    database: String,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug, Default)]
struct Shared {
    /// The proxy delays the reply that contains this text, and all later replies.
    wanted: watch::Sender<Option<String>>,
    is_held: watch::Sender<bool>,
    /// The connection of a delayed reply ends without it.
    is_cut: AtomicBool,
    /// Replies that ended a round trip.
    replies: AtomicUsize,
}

/// `ReadyForQuery`: the end of a round trip, before one byte of state.
const READY: [u8; 5] = [b'Z', 0, 0, 0, 5];

impl Proxy {
    /// A proxy for a database whose server listens on a socket.
    pub(crate) fn to(url: &str) -> Self {
        let (server, database) = url.split_once('@').unwrap().1.rsplit_once('/').unwrap();
        let server = PathBuf::from(server.replace("%2F", "/"));
        let (folder, database) = (tempfile::tempdir().unwrap(), database.to_owned());
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let (shared, stop) = (Arc::<Shared>::default(), CancellationToken::new());
        let accepting = accept(listener, server.join(SOCKET), Arc::clone(&shared), stop.clone());
        apart(stop.clone().run_until_cancelled_owned(accepting));
        Self { folder, database, shared, _stop: stop.drop_guard() }
    }

    pub(crate) fn url(&self) -> String {
        let database = &self.database;
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://galley@{socket}/{database}")
    }

    /// The round trips since the last call.
    pub(crate) fn round_trips(&self) -> usize {
        self.shared.replies.swap(0, Ordering::Relaxed)
    }

    /// Delays the next reply that contains `text`.
    pub(crate) fn hold(&self, text: &str) {
        self.shared.wanted.send_replace(Some(text.to_owned()));
    }

    /// Waits until a reply is delayed.
    pub(crate) async fn holds(&self) {
        let mut held = self.shared.is_held.subscribe();
        held.wait_for(|is_held| *is_held).await.unwrap();
    }

    /// Ends the connection of the delayed reply, which its client does not receive.
    pub(crate) fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        self.heal();
    }

    /// Forwards the delayed reply.
    pub(crate) fn heal(&self) {
        self.shared.wanted.send_replace(None);
        self.shared.is_held.send_replace(false);
    }
}

async fn accept(
    listener: UnixListener,
    server: PathBuf,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = UnixStream::connect(&server).await.unwrap();
        let ((from_client, to_client), (from_server, to_server)) =
            (client.into_split(), server.into_split());
        let requests = pass(from_client, to_server, None);
        let answers = pass(from_server, to_client, Some(Arc::clone(&shared)));
        apart(stop.clone().run_until_cancelled_owned(requests));
        apart(stop.clone().run_until_cancelled_owned(answers));
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, holds: Option<Arc<Shared>>) {
    let mut bytes = vec![0; 64 * 1024];
    let mut last = Vec::new();
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if let Some(shared) = &holds {
            if !shared.let_through(&bytes[..read]).await {
                return;
            }
            shared.count(&mut last, &bytes[..read]);
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

impl Shared {
    /// Counts the ends of round trips. `last` holds the end of the bytes before, which may begin one.
    fn count(&self, last: &mut Vec<u8>, bytes: &[u8]) {
        last.extend_from_slice(bytes);
        let ends = last.windows(READY.len()).filter(|some| *some == READY).count();
        self.replies.fetch_add(ends, Ordering::Relaxed);
        last.drain(..last.len().saturating_sub(READY.len() - 1));
    }

    /// Waits while these bytes are to be delayed. False: their connection ends.
    async fn let_through(&self, bytes: &[u8]) -> bool {
        let mut wanted = self.wanted.subscribe();
        let is_in = |text: &String| bytes.windows(text.len()).any(|some| some == text.as_bytes());
        if wanted.borrow_and_update().as_ref().is_some_and(is_in) {
            self.is_held.send_replace(true);
            // `self` owns the sender, so the channel stays open.
            wanted.wait_for(Option::is_none).await.unwrap();
            return !self.is_cut.swap(false, Ordering::SeqCst);
        }
        true
    }
}
