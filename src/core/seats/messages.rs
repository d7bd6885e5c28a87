//! The messages of other servers: to all servers, and to this one.

use tokio::time::interval;

use crate::domain::ids::NodeId;
use crate::pubsub::{Message, Reply, Request, Signal, Topic};
use crate::seats::Seats;
use crate::seats::peers::ANNOUNCED_EVERY;
use crate::telemetry::last_hour;

impl Seats {
    pub(super) async fn handle_cluster_messages(self) {
        let peers = &self.shared.peers;
        let mut cluster = self.shared.pubsub.subscribe(Topic::Cluster);
        let mut announcements = interval(ANNOUNCED_EVERY);
        loop {
            let signal = tokio::select! {
                () = self.shared.tasks.finished.cancelled() => return,
                signal = cluster.next() => signal,
                _ = announcements.tick() => {
                    peers.announce().await;
                    continue;
                }
            };
            match signal {
                Signal::Message { from, message: Message::Hello } => {
                    peers.heard(from).await;
                    peers.publish(from, Message::Hello).await;
                }
                Signal::Message { message: Message::Revoked(link), .. } => self.revoke_here(link),
                Signal::Message { message: Message::Deleted { document, deletion }, .. } => {
                    self.deleted_here(document, &deletion);
                }
                Signal::Message { message: Message::Evicted(session), .. } => {
                    self.evict_here(session);
                }
                Signal::Message { message: Message::Removed { link, user }, .. } => {
                    self.reviewer_removed_here(link, &user);
                }
                Signal::Message { .. } => {}
                // A revocation may be among the lost messages (G14). The comparison runs in a task
                // of its own, so that this one receives the next message at once.
                Signal::Gap => {
                    peers.announce().await;
                    self.reconcile_soon();
                }
            }
        }
    }

    pub(super) async fn handle_node_messages(self) {
        let peers = &self.shared.peers;
        let mut messages = self.shared.pubsub.subscribe(Topic::Node(peers.node()));
        let finished = &self.shared.tasks.finished;
        while let Some(signal) = finished.run_until_cancelled(messages.next()).await {
            match signal {
                Signal::Message { from, message: Message::Request { id, request } } => {
                    self.serve(from, id, request).await;
                }
                Signal::Message { from, message: Message::Reply { id, reply } } => {
                    peers.receive(from, id, reply);
                }
                Signal::Message { from, message: Message::Hello } => peers.heard(from).await,
                Signal::Message { .. } => {}
                // Replies to an earlier announcement may be among the lost messages.
                Signal::Gap => peers.announce().await,
            }
        }
    }

    async fn serve(&self, from: NodeId, id: u64, request: Request) {
        let peers = &self.shared.peers;
        let reply = match request {
            Request::Probe(session) => match self.serve_probe(from, id, session) {
                Some(reply) => reply,
                None => return,
            },
            Request::Replace { session, document } => self.end_for_takeover(session, document),
            Request::Facts(session) => self.facts_reply(session),
            Request::Name => peers.name_of(peers.node()).map_or(Reply::Gone, Reply::Name),
            Request::Series => {
                serde_json::to_string(&last_hour::minutes()).map_or(Reply::Gone, Reply::Series)
            }
        };
        peers.publish(from, Message::Reply { id, reply }).await;
    }
}
