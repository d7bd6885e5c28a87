//! A session on its way to its seat, as its socket sees it.

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use crate::sessions::session::Holding;
use crate::yjs::protocol::{self, ClientFrame};

/// A session that is being seated, for its socket to tell what it hears meanwhile. The key may be its
/// own already, and who else asks for that asks whether its client lives.
#[derive(Clone, Debug, Default)]
pub struct Arriving(Arc<OnceLock<Arc<Holding>>>);

impl Arriving {
    /// Something arrived: any message, ping or pong is a sign of life.
    pub fn heard(&self) {
        if let Some(holding) = self.0.get() {
            holding.heard(Instant::now());
        }
    }

    /// A pong came: it may be the answer to a question.
    pub fn answered(&self, number: &[u8]) {
        if let Some(holding) = self.0.get() {
            holding.answered_by(number);
        }
    }

    /// Whose it is, from now on.
    pub(crate) fn is(&self, holding: &Arc<Holding>) {
        // Each ask is made once.
        let _first = self.0.set(Arc::clone(holding));
    }
}

/// Whether a message asks who is there. Before its seat is taken nobody is; but whoever asks wants to
/// know whether their server is, too (the page, when it has slept).
#[must_use]
pub fn is_question(message: &[u8]) -> bool {
    protocol::parse(message) == Ok(ClientFrame::QueryAwareness)
}

/// Whether a message is a sync step 1, which asks for what the client does not have.
#[must_use]
pub fn is_step_1(message: &[u8]) -> bool {
    matches!(protocol::parse(message), Ok(ClientFrame::SyncStep1(_)))
}
