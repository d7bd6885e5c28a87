//! `[limits]`

use serde::{Deserialize, Serialize};

use crate::domain::handle::Handle;
use crate::setting::{DAY, Lasting, Whole, list};

const MILLION: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
/// The largest value of a 32-bit setting in whole MiB.
const GIB_4_LESS: u64 = 4_095 * MIB;
/// The largest value of a setting of the disk.
const PIB: u64 = 1 << 50;

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    pub message_bytes: Whole<1_024, { 64 * MIB }>,
    pub document_bytes: Whole<65_536, { 256 * MIB }>,
    pub room_bytes: Whole<{ 16 * MIB }, GIB_4_LESS>,
    pub body_bytes: Whole<1_024, { 64 * MIB }>,
    pub messages_per_second: Whole<1, MILLION>,
    pub message_burst: Whole<1, MILLION>,
    pub connections: Whole<1, MILLION>,
    pub connections_per_address: Whole<1, MILLION>,
    pub buffered_bytes: Whole<MIB, GIB_4_LESS>,
    pub buffered_bytes_per_address: Whole<MIB, GIB_4_LESS>,
    pub buffered_bytes_per_user: Whole<MIB, GIB_4_LESS>,
    pub requests_per_second: Whole<1, MILLION>,
    pub request_burst: Whole<1, MILLION>,
    pub joins_per_second: Whole<1, MILLION>,
    pub join_burst: Whole<1, MILLION>,
    pub guests_per_second: Whole<1, MILLION>,
    pub guest_burst: Whole<1, MILLION>,
    pub user_documents: Whole<1, MILLION>,
    pub user_bytes: Whole<65_536, PIB, u64>,
    pub bin_retention: Lasting<0, { 3_650 * DAY }>,
    pub guest_bytes_per_hour: Whole<65_536, 0xFFFF_FFFF>,
    pub guest_requests_per_address: Whole<0, MILLION>,
    pub guest_claims_per_address: Whole<0, MILLION>,
    pub guest_handles_per_address: Whole<0, MILLION>,
    pub guest_requests_pending: Whole<0, MILLION>,
    #[serde(deserialize_with = "list")]
    pub reserved_handles: Vec<Handle>,
    pub stored_bytes: Whole<MIB, PIB, u64>,
}
