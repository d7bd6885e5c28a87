//! Bounds of the delivery of webhooks.

use std::time::Duration;

use crate::domain::limits::WEBHOOK_LEASE;
use crate::outgoing::OUTGOING_TIMEOUT;

/// The pause after the first failed attempt; each further one doubles it.
pub(super) const WEBHOOK_DELAY_FIRST: Duration = Duration::from_secs(1);
/// Longest pause between two attempts: 50 attempts in a day.
pub(super) const WEBHOOK_DELAY_MAX: Duration = Duration::from_mins(30);
/// The most of a receiver's `Retry-After` that counts.
pub(super) const WEBHOOK_RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// The most that an attempt takes, with its wait for a connection: it ends before the lease.
pub const WEBHOOK_ATTEMPT_MAX: Duration = Duration::from_secs(12);
/// First attempts of one server for one endpoint at once.
pub(super) const WEBHOOK_FIRST_AT_ONCE: usize = 8;
/// Repeated attempts of one server for one endpoint at once. They have slots of their own: documents whose
/// webhooks fail leave all of [`WEBHOOK_FIRST_AT_ONCE`] to the others.
pub(super) const WEBHOOK_REPEATED_AT_ONCE: usize = 4;
/// A longer attempt gives its slot back. Thirty documents whose first webhooks hang occupy the slots for three
/// times this, so another document waits for a third of a second.
pub(super) const WEBHOOK_SLOT_MAX: Duration = Duration::from_millis(100);
/// Attempts of one server for one endpoint that are longer than that. Each holds a connection; beyond it
/// they hold their slots.
pub(super) const WEBHOOK_SLOW_AT_ONCE: usize = 32;
/// Look-ups of one endpoint's host at once. A name that no server of names resolves takes a thread each.
pub(super) const WEBHOOK_LOOKUPS_MAX: usize = 2;
/// The poll of the database for webhooks of other servers, and for those that are due again.
pub(super) const WEBHOOK_TICK: Duration = Duration::from_secs(2);
/// Dead webhooks that one request makes pending again.
pub(super) const WEBHOOKS_REPLAYED_AT_ONCE: u64 = 10_000;
const _: () = assert!(OUTGOING_TIMEOUT.as_millis() < WEBHOOK_ATTEMPT_MAX.as_millis());
const _: () = assert!(WEBHOOK_ATTEMPT_MAX.as_millis() + 2_000 < WEBHOOK_LEASE.as_millis());
