//! `[limits]`

use serde::{Deserialize, Serialize};

use crate::config::values::{DAY, Lasting, Whole, list};
use crate::domain::handle::Handle;

const MILLION: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
/// The largest value of a 32-bit setting in whole MiB.
const GIB_4_LESS: u64 = 4_095 * MIB;
/// The largest value of a setting of the disk.
const PIB: u64 = 1 << 50;

/// `[limits]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Longest websocket message.
    pub message_bytes: Whole<1_024, { 64 * MIB }>,
    /// Largest document, with the marks that deleted text leaves.
    pub document_bytes: Whole<65_536, { 256 * MIB }>,
    /// Bytes of all open documents.
    pub room_bytes: Whole<{ 16 * MIB }, GIB_4_LESS>,
    /// Longest request body.
    pub body_bytes: Whole<1_024, { 64 * MIB }>,
    /// Websocket messages of a session per second, on average.
    pub messages_per_second: Whole<1, MILLION>,
    /// Websocket messages that a session may send at once.
    pub message_burst: Whole<1, MILLION>,
    /// Open connections.
    pub connections: Whole<1, MILLION>,
    /// Open connections of an address. Its share of the free ones may be less.
    pub connections_per_address: Whole<1, MILLION>,
    /// Bytes held in memory for clients.
    pub buffered_bytes: Whole<MIB, GIB_4_LESS>,
    /// Bytes held in memory for the clients of an address.
    pub buffered_bytes_per_address: Whole<MIB, GIB_4_LESS>,
    /// Bytes held in memory for the clients of a user.
    pub buffered_bytes_per_user: Whole<MIB, GIB_4_LESS>,
    /// Requests of a user per second, on average.
    pub requests_per_second: Whole<1, MILLION>,
    /// Requests that a user may send at once.
    pub request_burst: Whole<1, MILLION>,
    /// Websockets that a user opens per second, on average.
    pub joins_per_second: Whole<1, MILLION>,
    /// Websockets that a user may open at once.
    pub join_burst: Whole<1, MILLION>,
    /// Guests that enter from an address per second, on average.
    pub guests_per_second: Whole<1, MILLION>,
    /// Guests that may enter from an address at once.
    pub guest_burst: Whole<1, MILLION>,
    /// Documents of a user.
    pub user_documents: Whole<1, MILLION>,
    /// Bytes of a user's documents.
    pub user_bytes: Whole<65_536, PIB, u64>,
    /// How long a deleted document stays in the bin; zero: there is no bin.
    pub bin_retention: Lasting<0, { 3_650 * DAY }>,
    /// Bytes that the guests of an address store in an hour.
    pub guest_bytes_per_hour: Whole<65_536, 0xFFFF_FFFF>,
    /// Requests that the guests of an address send in a day; zero: any number. The next two as well.
    pub guest_requests_per_address: Whole<0, MILLION>,
    /// Places of offers that they claim.
    pub guest_claims_per_address: Whole<0, MILLION>,
    /// Handles that they choose.
    pub guest_handles_per_address: Whole<0, MILLION>,
    /// Pending requests of guests to one user; zero: no bound of their own.
    pub guest_requests_pending: Whole<0, MILLION>,
    /// Handles that no user may have.
    #[serde(deserialize_with = "list")]
    pub reserved_handles: Vec<Handle>,
    /// Size of the database in bytes above which it accepts nothing new.
    pub stored_bytes: Whole<MIB, PIB, u64>,
}
