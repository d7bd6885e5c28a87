//! Settings of sessions and rooms.

use std::time::Duration;

use crate::domain::lease::LeaseTerms;

#[derive(Clone, Copy, Debug)]
pub struct SeatTerms {
    pub lease: LeaseTerms,
    /// The server does not renew the seat of a client that is silent for this long.
    pub client_timeout: Duration,
    /// Resume grace: how long a seat stays reserved after the client's last frame when its socket
    /// breaks without a close.
    pub resume_grace: Duration,
    /// The server releases a seat after this long without activity; zero is never.
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

#[derive(Clone, Copy, Debug)]
pub struct HistoryTerms {
    /// Pause without an edit after which a version is due.
    pub pause: Duration,
    /// During continuous edits: the longest time between two versions.
    pub longest: Duration,
}

impl Default for HistoryTerms {
    fn default() -> Self {
        Self { pause: Duration::from_secs(60), longest: Duration::from_secs(5 * 60) }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RoomLimits {
    /// Longest websocket message, in bytes.
    pub message_bytes: usize,
    /// Largest document, in bytes of its log.
    pub document_bytes: usize,
    /// Sustained rate of messages of one socket, per second.
    pub messages_per_second: u32,
    pub message_burst: u32,
    /// Limit of a room's backlog while the database does not answer, in bytes.
    pub unsaved_bytes: usize,
    /// Limit of all open rooms of a server, in bytes of their logs.
    pub room_bytes: usize,
}

impl Default for RoomLimits {
    fn default() -> Self {
        Self {
            message_bytes: 2 * 1024 * 1024,
            document_bytes: 8 * 1024 * 1024,
            messages_per_second: 200,
            message_burst: 1_000,
            unsaved_bytes: 4 * 1024 * 1024,
            room_bytes: 168 * 1024 * 1024,
        }
    }
}
