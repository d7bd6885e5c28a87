//! What an operator may set about sessions and rooms.

use std::time::Duration;

use crate::domain::lease::LeaseTerms;

/// How long things last.
#[derive(Clone, Copy, Debug)]
pub struct SeatTerms {
    /// The lease of a seat.
    pub lease: LeaseTerms,
    /// A client not heard from for this long is not renewed.
    pub client_timeout: Duration,
    /// How long after its last sign of life a seat is kept when the socket dies without a close.
    pub resume_grace: Duration,
    /// A seat whose holder did nothing for this long is released; zero is never.
    pub idle_release: Duration,
}

impl Default for SeatTerms {
    fn default() -> Self {
        Self {
            lease: LeaseTerms::default(),
            client_timeout: Duration::from_secs(10),
            resume_grace: Duration::from_secs(8),
            idle_release: Duration::from_secs(30 * 60),
        }
    }
}

/// When versions are kept by themselves.
#[derive(Clone, Copy, Debug)]
pub struct HistoryTerms {
    /// After this long without an edit.
    pub pause: Duration,
    /// While the writing goes on without a pause: this often.
    pub longest: Duration,
}

impl Default for HistoryTerms {
    fn default() -> Self {
        Self { pause: Duration::from_secs(60), longest: Duration::from_secs(5 * 60) }
    }
}

/// How much one socket and one room may take.
#[derive(Clone, Copy, Debug)]
pub struct RoomLimits {
    /// Longest websocket message, in bytes.
    pub message_bytes: usize,
    /// Largest document, in bytes of its log.
    pub document_bytes: usize,
    /// Messages per second that a socket may send for long.
    pub messages_per_second: u32,
    /// Messages that it may send at once.
    pub message_burst: u32,
    /// What a room keeps for a database that does not answer, in bytes.
    pub unsaved_bytes: usize,
}

impl Default for RoomLimits {
    fn default() -> Self {
        Self {
            message_bytes: 2 * 1024 * 1024,
            document_bytes: 8 * 1024 * 1024,
            messages_per_second: 200,
            message_burst: 1_000,
            unsaved_bytes: 4 * 1024 * 1024,
        }
    }
}
