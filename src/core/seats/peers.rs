//! The servers that this one has heard of.
//!
//! Each server announces itself to all others each minute ([`ANNOUNCED_EVERY`]) and when one of its
//! subscriptions becomes active; each of them replies. Without messages a server knows no peer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::NodeId;

pub(crate) const ANNOUNCED_EVERY: Duration = Duration::from_secs(60);

/// A server that has been silent for longer has ended.
const SILENCE_MAX: Duration = Duration::from_secs(150);

/// An ended server is named for this long.
const NAMED_FOR: Duration = Duration::from_secs(3_600);

/// A server announces itself again when its subscription is active, so a first request may be lost. A server of
/// a version without names answers each request by an announcement.
const REQUESTS_FOR_NAME_MAX: u8 = 8;

#[derive(Debug, Default)]
pub struct Peers(Mutex<HashMap<NodeId, Peer>>);

#[derive(Debug)]
struct Peer {
    heard: Instant,
    name: Option<String>,
    /// How often this server has requested the name.
    requested: u8,
}

impl Peers {
    /// Whether to request the name of the server.
    pub(crate) fn heard(&self, node: NodeId, now: Instant) -> bool {
        let mut peers = self.peers();
        let peer = peers.entry(node).or_insert(Peer { heard: now, name: None, requested: 0 });
        peer.heard = now;
        let requests = peer.name.is_none() && peer.requested < REQUESTS_FOR_NAME_MAX;
        peer.requested += u8::from(requests);
        requests
    }

    pub(crate) fn name(&self, node: NodeId, name: String) {
        if let Some(peer) = self.peers().get_mut(&node) {
            peer.name = Some(name);
        }
    }

    pub fn name_of(&self, node: NodeId) -> Option<String> {
        self.peers().get(&node)?.name.clone()
    }

    pub fn running_and_ended(&self, now: Instant) -> (Vec<NodeId>, Vec<NodeId>) {
        let mut peers = self.peers();
        peers.retain(|_, peer| now.duration_since(peer.heard) < NAMED_FOR);
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for (node, peer) in peers.iter() {
            let runs = now.duration_since(peer.heard) < SILENCE_MAX;
            if runs { running.push(*node) } else { ended.push(*node) }
        }
        (running, ended)
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<NodeId, Peer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_for_an_hour_after_its_end() {
        let (peers, node, began) = (Peers::default(), NodeId::generate(), Instant::now());
        let requested = (0..20).filter(|_| peers.heard(node, began)).count();
        assert_eq!(requested, usize::from(REQUESTS_FOR_NAME_MAX));
        assert_eq!(peers.running_and_ended(began + SILENCE_MAX / 2), (vec![node], vec![]));
        assert_eq!(peers.running_and_ended(began + SILENCE_MAX), (vec![], vec![node]));
        assert_eq!(peers.running_and_ended(began + NAMED_FOR), (vec![], vec![]));
        assert!(peers.heard(node, began), "it was forgotten");
        peers.name(node, "galley-1".to_owned());
        assert!(!peers.heard(node, began));
        assert_eq!(peers.name_of(node).as_deref(), Some("galley-1"));
    }
}
