//! Sharded pub/sub: on a Cluster the messages of a room stay on the node of its slot.

use std::time::Duration;

use galley::domain::ids::{DocumentId, NodeId};
use galley::locks::Locks;
use galley::pubsub::{Message, Pubsub, PubsubError, Signal, Subscription, Topic};
use redis::Value;
use tokio::time::timeout;

use crate::locks::pubsub::{SECRET, presence};
use crate::support::fixtures::until;
use crate::support::redis_cluster::ClusterServer;
use crate::support::redis_server::{Server, TEST_TIMEOUT};

struct Room {
    topic: Topic,
    channel: String,
}

impl Room {
    fn new() -> Self {
        let document = DocumentId::generate();
        Self { topic: Topic::Room(document), channel: format!("share-link:room:{document}") }
    }
}

async fn connect(url: &str) -> Pubsub {
    Pubsub::connect(url, NodeId::generate(), SECRET).await.expect("a good address")
}

/// The subscribers of a channel at a node: plain, sharded.
async fn subscribers(node: &Server, channel: &str) -> (u64, u64) {
    let (_, plain): (String, u64) = node.run(&format!("PUBSUB NUMSUB {channel}")).await;
    let (_, sharded): (String, u64) = node.run(&format!("PUBSUB SHARDNUMSUB {channel}")).await;
    (plain, sharded)
}

/// Waits for this many sharded subscriptions of a room, and for the end of the plain ones.
async fn are_sharded(cluster: &ClusterServer, at: usize, room: &Room, number: u64) {
    until("all subscriptions are at the node of the slot", async || {
        let mut plain = 0;
        for node in cluster.primaries() {
            plain += subscribers(node, &room.channel).await.0;
        }
        plain == 0 && subscribers(&cluster.nodes[at], &room.channel).await.1 == number
    })
    .await;
}

async fn next(subscription: &mut Subscription) -> Signal {
    timeout(TEST_TIMEOUT, subscription.next()).await.expect("a signal in time")
}

/// Takes signals up to that message. Returns whether a gap was among them.
async fn hears(subscription: &mut Subscription, wanted: &Message) -> bool {
    let mut has_gap = false;
    loop {
        match next(subscription).await {
            Signal::Gap => has_gap = true,
            Signal::Message { message, .. } if message == *wanted => return has_gap,
            Signal::Message { .. } => {}
        }
    }
}

/// Publishes until a node takes the message.
async fn publish(pubsub: &Pubsub, room: &Room, message: &Message) {
    until("it is sent", async || pubsub.publish(room.topic, message).await.is_ok()).await;
}

/// Publishes until the message arrives: while rooms move, a gap may stand in its place.
async fn arrives(pubsub: &Pubsub, room: &Room, theirs: &mut Subscription, message: &Message) {
    until("it arrives", async || {
        let _unsent = pubsub.publish(room.topic, message).await;
        let heard = async { hears(theirs, message).await };
        timeout(Duration::from_millis(50), heard).await.is_ok()
    })
    .await;
}

/// A room of which `there` has heard a message of `here` by sharded pub/sub, and the primary of its slot.
async fn heard(
    cluster: &ClusterServer,
    here: &Pubsub,
    there: &Pubsub,
) -> (Room, usize, Subscription) {
    let room = Room::new();
    let mut theirs = there.subscribe(room.topic);
    let at = cluster.at(cluster.slot(&room.channel).await);
    are_sharded(cluster, at, &room, 1).await;
    publish(here, &room, &presence(1)).await;
    hears(&mut theirs, &presence(1)).await;
    (room, at, theirs)
}

async fn sent_over_the_bus(cluster: &ClusterServer) -> u64 {
    let mut sent = 0;
    for node in cluster.primaries() {
        let info: String = node.run("CLUSTER INFO").await;
        let number = |name: &str| {
            info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.parse::<u64>().ok())
        };
        sent += number("cluster_stats_messages_publish_sent:").unwrap_or(0);
    }
    sent
}

#[tokio::test]
async fn messages_of_rooms_put_nothing_on_the_bus_of_a_cluster() {
    const MESSAGES: usize = 30;
    let cluster = ClusterServer::start().await;
    let (here, there) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let rooms: Vec<_> = (0..10).map(|_| Room::new()).collect();
    let mut theirs: Vec<_> = rooms.iter().map(|room| there.subscribe(room.topic)).collect();
    let _ours: Vec<_> = rooms.iter().map(|room| here.subscribe(room.topic)).collect();
    for room in &rooms {
        let at = cluster.at(cluster.slot(&room.channel).await);
        are_sharded(&cluster, at, room, 2).await;
        publish(&here, room, &presence(0)).await;
    }
    for subscription in &mut theirs {
        hears(subscription, &presence(0)).await;
    }
    let before = sent_over_the_bus(&cluster).await;
    for number in 1..=MESSAGES {
        for room in &rooms {
            here.publish(room.topic, &presence(number)).await.expect("it is taken");
        }
    }
    for subscription in &mut theirs {
        for number in 1..=MESSAGES {
            let wanted = Signal::Message { from: here.node(), message: presence(number) };
            assert_eq!(next(subscription).await, wanted);
        }
    }
    assert_eq!(sent_over_the_bus(&cluster).await, before);
    // The messages of servers reach every node, as before.
    let mut of_servers = there.subscribe(Topic::Cluster);
    assert_eq!(next(&mut of_servers).await, Signal::Gap);
    here.publish(Topic::Cluster, &Message::Hello).await.expect("it is taken");
    hears(&mut of_servers, &Message::Hello).await;
    assert!(before < sent_over_the_bus(&cluster).await, "the count would show one on the bus");
    drop(theirs);
    for room in &rooms {
        let at = cluster.at(cluster.slot(&room.channel).await);
        are_sharded(&cluster, at, room, 1).await;
    }
}

#[tokio::test]
async fn rooms_follow_their_slot_and_have_a_gap() {
    let cluster = ClusterServer::start().await;
    let (here, there) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let room = Room::new();
    let (mut ours, mut theirs) = (here.subscribe(room.topic), there.subscribe(room.topic));
    let slot = cluster.slot(&room.channel).await;
    let (from, to) = (cluster.at(slot), (cluster.at(slot) + 1) % 3);
    are_sharded(&cluster, from, &room, 2).await;
    publish(&here, &room, &presence(1)).await;
    hears(&mut theirs, &presence(1)).await;
    for (number, way) in [(2, (from, to)), (3, (to, from))] {
        cluster
            .move_slot(slot, way, 0, async || {
                publish(&here, &room, &presence(100 + number)).await;
                hears(&mut theirs, &presence(100 + number)).await;
            })
            .await;
        are_sharded(&cluster, way.1, &room, 2).await;
        publish(&here, &room, &presence(number)).await;
        assert!(hears(&mut theirs, &presence(number)).await, "a message may be lost meanwhile");
        publish(&there, &room, &presence(number)).await;
        assert!(hears(&mut ours, &presence(number)).await);
    }
}

#[tokio::test]
async fn rooms_of_a_dead_primary_move_to_its_replica() {
    let mut cluster = ClusterServer::start_with(3, 3, &[]).await;
    let (here, there) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let (room, at, mut theirs) = heard(&cluster, &here, &there).await;
    cluster.nodes[at].stop().await;
    until("a subscription is at the new primary", async || {
        subscribers(&cluster.nodes[at + 3], &room.channel).await.1 == 1
    })
    .await;
    arrives(&here, &room, &mut theirs, &presence(2)).await;
}

/// A server that starts has no slot map yet. The gap must not go out on the plain channel, which has no subscriber.
#[tokio::test]
async fn a_loss_before_the_first_slot_map_is_a_gap() {
    let cluster = ClusterServer::start().await;
    let (there, other) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let (room, _, mut theirs) = heard(&cluster, &other, &there).await;
    let here = connect(&cluster.url()).await;
    // No task has run since: the message is lost.
    let published = here.publish(room.topic, &presence(2)).await;
    assert_eq!(published, Err(PubsubError::Unavailable));
    assert_eq!(next(&mut theirs).await, Signal::Gap);
}

#[tokio::test]
async fn rooms_use_plain_channels_while_the_cluster_is_not_well() {
    let mut cluster = ClusterServer::start().await;
    let (here, there) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let room = Room::new();
    let (_ours, mut theirs) = (here.subscribe(room.topic), there.subscribe(room.topic));
    let at = cluster.at(cluster.slot(&room.channel).await);
    are_sharded(&cluster, at, &room, 2).await;
    let dead = (at + 1) % 3;
    cluster.nodes[dead].stop().await;
    until("no subscription is at the node of the slot", async || {
        subscribers(&cluster.nodes[at], &room.channel).await.1 == 0
    })
    .await;
    arrives(&here, &room, &mut theirs, &presence(1)).await;
    cluster.nodes[dead].start_again_in_cluster().await;
    are_sharded(&cluster, at, &room, 2).await;
    arrives(&here, &room, &mut theirs, &presence(2)).await;
}

/// The user of `locks.url` may lack the rights: the messages of rooms are plain then, and arrive.
#[tokio::test]
async fn without_the_right_to_sharded_channels_rooms_use_plain_ones() {
    for missing in ["-ssubscribe", "-spublish"] {
        let cluster = ClusterServer::start().await;
        for node in cluster.primaries() {
            let user = format!("ACL SETUSER galley on >right ~* &* +@all {missing}");
            let _: Value = node.run(&user).await;
        }
        let url = cluster.url_as("galley:right@");
        let (here, there) = (connect(&url).await, connect(&url).await);
        let room = Room::new();
        let mut theirs = there.subscribe(room.topic);
        arrives(&here, &room, &mut theirs, &presence(1)).await;
        let locks = Locks::connect(&url).await.expect("a Cluster");
        locks.check().await.expect("locks need no such right");
        let warnings = locks.warnings();
        assert!(warnings.iter().any(|line| line.contains("ssubscribe")), "{warnings:?}");
    }
}
