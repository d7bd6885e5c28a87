//! A session during its claim, as its socket task uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use crate::sessions::session::Session;
use crate::yjs::protocol::{self, ClientFrame};

/// A session that claims its seat. Its socket reports signs of life here. The session may hold the
/// key already, and another session that claims the same seat may probe it.
#[derive(Clone, Debug, Default)]
pub struct Arriving(Arc<Claimant>);

#[derive(Debug, Default)]
struct Claimant {
    session: OnceLock<Arc<Session>>,
    /// The client closed its socket on purpose.
    has_left: AtomicBool,
}

impl Arriving {
    /// Records a sign of life: any message, ping or pong.
    pub fn heard(&self) {
        if let Some(session) = self.0.session.get() {
            session.heard(Instant::now());
        }
    }

    /// Records a pong, which may answer a liveness probe.
    pub fn answered(&self, number: &[u8]) {
        if let Some(session) = self.0.session.get() {
            session.answered_by(number);
        }
    }

    /// Records that the client gave up its claim. Without this call its connection broke, or its page
    /// was closed.
    pub fn leaves(&self) {
        self.0.has_left.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.0.has_left.load(Ordering::Relaxed)
    }

    /// None before the server has read the link.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.0.session.get().map(Arc::as_ref)
    }

    pub(crate) fn set_session(&self, session: &Arc<Session>) {
        // The first and only call: each request creates one session.
        let _first = self.0.session.set(Arc::clone(session));
    }
}

/// Whether a message is an awareness query. Before the grant the reply is empty. The page sends the
/// query after a sleep, to check the connection to its server.
#[must_use]
pub fn is_question(message: &[u8]) -> bool {
    protocol::parse(message) == Ok(ClientFrame::QueryAwareness)
}

/// Whether a message is a sync step 1, which requests the updates that the client does not have.
#[must_use]
pub fn is_step_1(message: &[u8]) -> bool {
    matches!(protocol::parse(message), Ok(ClientFrame::SyncStep1(_)))
}
