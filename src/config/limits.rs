//! `[limits]`: one table names each key with its type and its range.

use std::time::Duration;

use crate::config::parse::Reader;
use crate::domain::handle::Handle;

const MILLION: u32 = 1_000_000;
const MIB: u32 = 1_048_576;
/// The largest value of a 32-bit setting in whole MiB.
const GIB_4_LESS: u32 = 4_095 * MIB;
/// Ten years, less some leap days.
const DAYS_3650: Duration = Duration::from_hours(3_650 * 24);

section! {
    "limits" LimitSettings, reader: {
        check_document(reader, message_bytes.zip(document_bytes));
        let shares = [buffered_bytes, buffered_bytes_per_address, buffered_bytes_per_user];
        if let ([Some(all), Some(address), Some(user)], Some(body), Some(message)) =
            (shares, body_bytes, message_bytes)
        {
            check_shares(reader, [all, address, user], body.max(message));
        }
    };
    /// Longest websocket message.
    message_bytes: u32 = number(1_024..=64 * MIB);
    /// Largest document, with the marks that deleted text leaves.
    document_bytes: u32 = number(65_536..=256 * MIB);
    /// Bytes of all open documents.
    room_bytes: u32 = number(16 * MIB..=GIB_4_LESS);
    /// Longest request body.
    body_bytes: u32 = number(1_024..=64 * MIB);
    /// Websocket messages of a session per second, on average.
    messages_per_second: u32 = number(1..=MILLION);
    /// Websocket messages that a session may send at once.
    message_burst: u32 = number(1..=MILLION);
    /// Open connections.
    connections: u32 = number(1..=MILLION);
    /// Open connections of an address. Its share of the free ones may be less.
    connections_per_address: u32 = number(1..=MILLION);
    /// Bytes held in memory for clients.
    buffered_bytes: u32 = number(MIB..=GIB_4_LESS);
    /// The same for an address.
    buffered_bytes_per_address: u32 = number(MIB..=GIB_4_LESS);
    /// The same for a user.
    buffered_bytes_per_user: u32 = number(MIB..=GIB_4_LESS);
    /// Requests of a user per second, on average.
    requests_per_second: u32 = number(1..=MILLION);
    /// Requests that a user may send at once.
    request_burst: u32 = number(1..=MILLION);
    /// Websockets that a user opens per second, on average.
    joins_per_second: u32 = number(1..=MILLION);
    /// Websockets that a user may open at once.
    join_burst: u32 = number(1..=MILLION);
    /// Guests that enter from an address per second, on average.
    guests_per_second: u32 = number(1..=MILLION);
    /// Guests that may enter from an address at once.
    guest_burst: u32 = number(1..=MILLION);
    /// Documents of a user.
    user_documents: u32 = number(1..=MILLION);
    /// Bytes of a user's documents.
    user_bytes: u64 = large_number(65_536..=1 << 50);
    /// How long a deleted document stays in the bin; zero: there is no bin.
    bin_retention: Duration = duration(Duration::ZERO..=DAYS_3650);
    /// Bytes that the guests of an address store in an hour.
    guest_bytes_per_hour: u32 = number(65_536..=u32::MAX);
    /// Requests that the guests of an address send in a day; zero: any number. The next two as well.
    guest_requests_per_address: u32 = number(0..=MILLION);
    /// Places of offers that they claim.
    guest_claims_per_address: u32 = number(0..=MILLION);
    /// Handles that they choose.
    guest_handles_per_address: u32 = number(0..=MILLION);
    /// Pending requests of guests to one user; zero: no bound of their own.
    guest_requests_pending: u32 = number(0..=MILLION);
    /// Handles that no user may have.
    reserved_handles: Vec<Handle> = handles;
    /// Size of the database in bytes above which it accepts nothing new.
    stored_bytes: u64 = large_number(1 << 20..=1 << 50);
}

fn check_document(reader: &mut Reader, read: Option<(u32, u32)>) {
    if read.is_some_and(|(message, document)| document < message) {
        let what =
            "must be at least limits.message_bytes: a whole document may come in one message";
        reader.fault("limits.document_bytes", what);
    }
}

/// The buffered bytes of all, of an address and of a user, and the longest transfer.
fn check_shares(reader: &mut Reader, [all, address, user]: [u32; 3], longest: u32) {
    if user / 2 < longest {
        let what = "must be at least twice limits.body_bytes and limits.message_bytes: one of \
                    them may be in transfer while a response is";
        reader.fault("limits.buffered_bytes_per_user", what);
    }
    if address < user || all / 4 < address {
        let what = "must be at least limits.buffered_bytes_per_user, and at most a quarter of \
                    limits.buffered_bytes: no address holds more than it leaves to others";
        reader.fault("limits.buffered_bytes_per_address", what);
    }
}
