//! Fair bounds of the requests under way: in all, for a host, and for all hosts that do not work.
//!
//! A client names the host of its push service, so an attacker can run many slow ones. All hosts without
//! a success share half of the slots and half of the queue. The other half remains for the hosts whose
//! last request succeeded, and each of those has a part of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::domain::limits::OUTGOING_MAX;
use crate::outgoing::OUTGOING_PER_HOST_MAX;

/// Requests at once to all hosts whose last request failed or that had none: half of the connections
/// remains for hosts that work.
const OUTGOING_UNPROVEN_MAX: usize = OUTGOING_MAX / 2;
/// Requests that wait for one of [`OUTGOING_MAX`]. Beyond it a request fails at once.
const OUTGOING_WAITING_MAX: usize = 1_024;
const _: () = assert!(OUTGOING_PER_HOST_MAX < OUTGOING_UNPROVEN_MAX);

/// Idle hosts whose success the server remembers. There are about ten push services.
const PROVEN_HOSTS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Clone)]
pub(super) struct HostSlots(Arc<Inner>);

struct Inner {
    all: Arc<Semaphore>,
    unproven: Arc<Semaphore>,
    hosts: Mutex<HashMap<String, Host>>,
}

struct Host {
    slots: Arc<Semaphore>,
    is_proven: bool,
    /// Running or waiting.
    requests: usize,
    /// The end of the last request.
    used_at: Instant,
}

pub(super) struct HostSlot {
    entry: Entry,
    is_proven: bool,
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>, OwnedSemaphorePermit),
}

/// Counts a request of a host, from the wait on.
struct Entry {
    slots: HostSlots,
    host: String,
}

impl HostSlots {
    pub(super) fn new() -> Self {
        Self(Arc::new(Inner {
            all: Arc::new(Semaphore::new(OUTGOING_MAX)),
            unproven: Arc::new(Semaphore::new(OUTGOING_UNPROVEN_MAX)),
            hosts: Mutex::default(),
        }))
    }

    /// Waits for a slot. Requests of one host take turns in order of arrival.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future leaves the queue.
    pub(super) async fn take(&self, host: &str) -> Result<HostSlot, Full> {
        let (entry, own, is_proven) = self.enter(host)?;
        let own = own.acquire_owned().await.map_err(|_closed| Full)?;
        let unproven = if is_proven {
            None
        } else {
            Some(Arc::clone(&self.0.unproven).acquire_owned().await.map_err(|_closed| Full)?)
        };
        let all = Arc::clone(&self.0.all).acquire_owned().await.map_err(|_closed| Full)?;
        Ok(HostSlot { entry, is_proven, _permits: (own, unproven, all) })
    }

    fn enter(&self, host: &str) -> Result<(Entry, Arc<Semaphore>, bool), Full> {
        let mut hosts = self.hosts();
        let is_proven = hosts.get(host).is_some_and(|host| host.is_proven);
        let under_way: usize = hosts.values().map(|host| host.requests).sum();
        let unproven: usize =
            hosts.values().filter(|host| !host.is_proven).map(|host| host.requests).sum();
        let is_full = under_way >= OUTGOING_MAX + OUTGOING_WAITING_MAX
            || !is_proven && unproven >= OUTGOING_UNPROVEN_MAX + OUTGOING_WAITING_MAX / 2;
        if is_full {
            return Err(Full);
        }
        let found = hosts.entry(host.to_owned()).or_insert_with(|| Host {
            slots: Arc::new(Semaphore::new(OUTGOING_PER_HOST_MAX)),
            is_proven: false,
            requests: 0,
            used_at: Instant::now(),
        });
        found.requests += 1;
        let entry = Entry { slots: self.clone(), host: host.to_owned() };
        Ok((entry, Arc::clone(&found.slots), found.is_proven))
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostSlot {
    /// Whether the last request of the host had succeeded when this one got its slot.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Remembers whether the host works.
    pub(super) fn prove(&self, is_proven: bool) {
        if let Some(host) = self.entry.slots.hosts().get_mut(&self.entry.host) {
            host.is_proven = is_proven;
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut hosts = self.slots.hosts();
        let Some(host) = hosts.get_mut(&self.host) else { return };
        host.requests = host.requests.saturating_sub(1);
        host.used_at = Instant::now();
        if host.requests > 0 {
            return;
        }
        if !host.is_proven {
            hosts.remove(&self.host);
            return;
        }
        // Many hosts that succeed once each do not displace a service in use.
        let idle = || hosts.iter().filter(|(_, host)| host.is_proven && host.requests == 0);
        if idle().count() > PROVEN_HOSTS_MAX
            && let Some(oldest) = idle().min_by_key(|(_, host)| host.used_at)
        {
            let oldest = oldest.0.clone();
            hosts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    fn now(slots: &HostSlots, host: &str) -> Option<HostSlot> {
        slots.take(host).now_or_never().and_then(Result::ok)
    }

    #[test]
    fn g17_hosts_that_do_not_work_leave_half_of_the_slots() {
        let slots = HostSlots::new();
        let service = now(&slots, "push.example").expect("a slot");
        service.prove(true);
        drop(service);
        let slow: Vec<_> =
            (0..OUTGOING_MAX).map_while(|n| now(&slots, &format!("{n}.evil.example"))).collect();
        assert_eq!(slow.len(), OUTGOING_UNPROVEN_MAX);
        assert!(now(&slots, "push.example").is_some());
        assert!(now(&slots, "new.example").is_none());
        drop(slow);
        assert!(now(&slots, "new.example").is_some());
    }

    /// Goal: hosts that succeed once each leave the place of a service in use.
    #[tokio::test(start_paused = true)]
    async fn g17_many_proven_hosts_displace_no_service_in_use() {
        let slots = HostSlots::new();
        let succeed = async |host: &str| {
            now(&slots, host).expect("a slot").prove(true);
            advance(Duration::from_millis(1)).await;
        };
        for number in 0..2 * PROVEN_HOSTS_MAX {
            succeed("push.example").await;
            succeed(&format!("{number}.evil.example")).await;
        }
        assert_eq!(slots.hosts().len(), PROVEN_HOSTS_MAX);
        assert!(now(&slots, "push.example").expect("a slot").is_proven());
    }

    #[test]
    fn g13_one_host_has_a_bound_of_its_own_and_the_queue_has_one() {
        let slots = HostSlots::new();
        let held: Vec<_> = (0..OUTGOING_MAX).map_while(|_| now(&slots, "a.example")).collect();
        assert_eq!(held.len(), OUTGOING_PER_HOST_MAX);
        assert!(now(&slots, "b.example").is_some());
        let mut waiting = Vec::new();
        let service = now(&slots, "push.example").expect("a slot");
        service.prove(true);
        drop(service);
        for _ in held.len()..OUTGOING_UNPROVEN_MAX + OUTGOING_WAITING_MAX / 2 {
            let mut take = Box::pin(slots.take("a.example"));
            assert!(take.as_mut().now_or_never().is_none());
            waiting.push(take);
        }
        assert!(matches!(slots.take("c.example").now_or_never(), Some(Err(Full))));
        assert!(now(&slots, "push.example").is_some(), "a host that works has the other half");
        drop(waiting);
        assert!(now(&slots, "c.example").is_some());
        drop(held);
        let hosts: Vec<_> = slots.hosts().keys().cloned().collect();
        assert_eq!(hosts, ["push.example"], "an idle host without a success has no row");
    }
}
