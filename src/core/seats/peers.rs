//! The servers that this one has heard of.
//!
//! Each server announces itself to all others each minute ([`ANNOUNCED_EVERY`]) and when one of its
//! subscriptions becomes active; each of them replies. Without messages a server knows no peer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::NodeId;

pub(crate) const ANNOUNCED_EVERY: Duration = Duration::from_secs(60);

/// A server that has been silent for longer has ended.
const SILENCE_MAX: Duration = Duration::from_secs(150);

/// An ended server is named for this long.
const NAMED_FOR: Duration = Duration::from_secs(3_600);

#[derive(Debug, Default)]
pub struct Peers(Mutex<HashMap<NodeId, Instant>>);

impl Peers {
    pub(crate) fn heard(&self, node: NodeId, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(node, now);
    }

    pub fn running_and_ended(&self, now: Instant) -> (Vec<NodeId>, Vec<NodeId>) {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|_, heard| now.duration_since(*heard) < NAMED_FOR);
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for (node, heard) in peers.iter() {
            let runs = now.duration_since(*heard) < SILENCE_MAX;
            if runs { running.push(*node) } else { ended.push(*node) }
        }
        (running, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_for_an_hour_after_its_end() {
        let (peers, node, began) = (Peers::default(), NodeId::generate(), Instant::now());
        peers.heard(node, began);
        assert_eq!(peers.running_and_ended(began + SILENCE_MAX / 2), (vec![node], vec![]));
        assert_eq!(peers.running_and_ended(began + SILENCE_MAX), (vec![], vec![node]));
        assert_eq!(peers.running_and_ended(began + NAMED_FOR), (vec![], vec![]));
    }
}
