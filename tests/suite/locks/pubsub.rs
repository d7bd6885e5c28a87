//! Pub/sub between servers: a server receives every message of the others, or a gap.

use std::time::Duration;

use bytes::Bytes;
use galley::domain::fence::Fence;
use galley::domain::ids::{DocumentId, NodeId, SessionId};
use galley::domain::seat::Role;
use galley::pubsub::{
    Envelope, Message, Payload, Pubsub, PubsubError, SIGNALS_MAX, Signal, Subscription, Topic,
};
use tokio::time::{Instant, timeout};

use crate::support::fixtures::until;
use crate::support::redis_cluster::ClusterServer;
use crate::support::redis_server::{Server, TEST_TIMEOUT};

/// The shared secret of the servers of one service.
pub(crate) const SECRET: &[u8] = b"the secret of these servers";

async fn connect(server: &Server) -> Pubsub {
    Pubsub::connect(&server.url(), NodeId::generate(), SECRET).await.expect("a good address")
}

async fn next(subscription: &mut Subscription) -> Signal {
    timeout(TEST_TIMEOUT, subscription.next()).await.expect("a signal in time")
}

/// Subscribes, and waits until the subscription is in force.
async fn listening(pubsub: &Pubsub, topic: Topic) -> Subscription {
    let mut subscription = pubsub.subscribe(topic);
    assert_eq!(next(&mut subscription).await, Signal::Gap);
    subscription
}

fn room() -> Topic {
    Topic::Room(DocumentId::generate())
}

pub(crate) fn presence(number: usize) -> Message {
    Message::Presence(Bytes::from(number.to_string()))
}

#[tokio::test]
async fn messages_of_one_server_arrive_at_the_others_in_order_and_not_at_itself() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let (topic, other_topic) = (room(), room());
    let mut ours = listening(&here, topic).await;
    let mut theirs = listening(&there, topic).await;
    let mut elsewhere = listening(&there, other_topic).await;
    let said = [
        Message::Hello,
        Message::Update { seq: 1, fence: Fence(9), update: Bytes::from(vec![7; 300_000]) },
        Message::Event { to: Some(Role::Reviewer), json: "{}".to_owned() },
        Message::Evicted(SessionId::generate()),
    ];
    for message in &said {
        here.publish(topic, message).await.expect("it is taken");
    }
    for message in said {
        let wanted = Signal::Message { from: here.node(), message };
        assert_eq!(next(&mut theirs).await, wanted);
    }
    // The next message that the others receive is the last one: none of the above reached them.
    there.publish(topic, &Message::Hello).await.expect("it is taken");
    here.publish(other_topic, &presence(1)).await.expect("it is taken");
    let answer = Signal::Message { from: there.node(), message: Message::Hello };
    assert_eq!(next(&mut ours).await, answer);
    let wanted = Signal::Message { from: here.node(), message: presence(1) };
    assert_eq!(next(&mut elsewhere).await, wanted);
}

#[tokio::test]
async fn a_second_listener_of_a_room_begins_with_its_own_gap() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let topic = room();
    let mut first = listening(&there, topic).await;
    let mut second = listening(&there, topic).await;
    listening(&here, topic).await;
    here.publish(topic, &Message::Hello).await.expect("it is taken");
    let wanted = Signal::Message { from: here.node(), message: Message::Hello };
    assert_eq!(next(&mut first).await, wanted);
    assert_eq!(next(&mut second).await, wanted);
}

#[tokio::test]
async fn a_lost_connection_is_a_gap_and_delivery_resumes() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let topics: Vec<_> = (0..3).map(|_| room()).collect();
    let mut theirs = Vec::new();
    for topic in &topics {
        theirs.push(listening(&there, *topic).await);
    }
    let mut ours = listening(&here, Topic::Cluster).await;

    let killed: u64 = server.run("CLIENT KILL TYPE pubsub").await;

    assert_eq!(killed, 2);
    assert_eq!(next(&mut ours).await, Signal::Gap);
    for (topic, subscription) in topics.iter().zip(&mut theirs) {
        assert_eq!(next(subscription).await, Signal::Gap);
        here.publish(*topic, &presence(5)).await.expect("it is taken");
        let wanted = Signal::Message { from: here.node(), message: presence(5) };
        assert_eq!(next(subscription).await, wanted);
    }
}

/// Goal: a Redis whose ACL permits no channel accepts each connection and ends its subscription. The pauses
/// between the connections double all the same, from 25 ms to 500 ms; the jitter halves them at most.
#[tokio::test]
async fn connections_without_rights_on_channels_back_off() {
    const REFUSALS: u64 = 8;
    let server = Server::start().await;
    let _: String = server.run("ACL SETUSER relay on >word ~* +@all resetchannels").await;
    let url = server.url().replace("//", "//relay:word@");
    let began = Instant::now();
    let refused = Pubsub::connect(&url, NodeId::generate(), SECRET).await.expect("a good address");
    let _subscription = refused.subscribe(Topic::Cluster);
    until("refused subscriptions", async || {
        let stats: String = server.run("INFO commandstats").await;
        let line = stats.lines().find(|line| line.starts_with("cmdstat_subscribe:"));
        let count = line.and_then(|line| line.split_once("rejected_calls=")?.1.split(',').next());
        REFUSALS <= count.map_or(0, |count| count.parse().expect("a number"))
    })
    .await;
    let pauses = [25, 50, 100, 200, 400, 500, 500].map(Duration::from_millis);
    let (took, least) = (began.elapsed(), pauses.iter().sum::<Duration>() / 2);
    assert!(least <= took, "{REFUSALS} connections in {took:?}");
}

#[tokio::test]
async fn a_restart_of_redis_is_a_gap() {
    let mut server = Server::start().await;
    let there = connect(&server).await;
    let mut theirs = listening(&there, Topic::Cluster).await;
    server.stop().await;
    until("it is detected", async || there.publish(Topic::Cluster, &Message::Hello).await.is_err())
        .await;
    server.start_again().await;
    assert_eq!(next(&mut theirs).await, Signal::Gap);
}

#[tokio::test]
async fn an_unsent_message_is_a_gap_for_its_listeners() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let topic = room();
    let mut theirs = listening(&there, topic).await;
    listening(&here, Topic::Cluster).await;
    server.freeze().await;
    // To a room without listeners: the listener can only receive the notice of a loss.
    let elsewhere = room();
    while here.publish(elsewhere, &Message::Hello).await.is_ok() {}
    assert_eq!(here.publish(topic, &presence(1)).await, Err(PubsubError::Full));

    server.thaw().await;

    assert_eq!(next(&mut theirs).await, Signal::Gap);
}

#[tokio::test]
async fn a_flood_costs_a_slow_listener_a_gap_and_the_publisher_no_wait() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let topic = room();
    let mut theirs = listening(&there, topic).await;
    let mut end = listening(&there, Topic::Cluster).await;
    listening(&here, Topic::Cluster).await;
    for number in 0..3 * SIGNALS_MAX {
        here.publish(topic, &presence(number)).await.expect("it is taken");
    }
    // Published last; it arrives after all of the above has reached the other server.
    here.publish(Topic::Cluster, &Message::Hello).await.expect("it is taken");
    assert!(matches!(next(&mut end).await, Signal::Message { .. }));
    let mut heard = 0;
    loop {
        match next(&mut theirs).await {
            Signal::Gap => break,
            Signal::Message { message, .. } => assert_eq!(message, presence(heard)),
        }
        heard += 1;
    }
    assert_eq!(heard, SIGNALS_MAX);
}

#[tokio::test]
async fn publishing_to_a_frozen_redis_never_blocks_and_is_bounded() {
    let server = Server::start().await;
    let here = connect(&server).await;
    listening(&here, Topic::Cluster).await;
    server.freeze().await;
    let began = Instant::now();
    let mut refused = 0;
    for number in 0..10_000 {
        refused += usize::from(here.publish(Topic::Cluster, &presence(number)).await.is_err());
    }
    // Waiting only once in a hundred times would take minutes.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(0 < refused);
    server.thaw().await;
}

#[tokio::test]
async fn a_leaving_listener_unsubscribes_and_each_server_has_one_connection() {
    let server = Server::start().await;
    let there = connect(&server).await;
    let mut rooms = Vec::new();
    for _ in 0..1_200 {
        rooms.push(there.subscribe(room()));
    }
    for subscription in &mut rooms {
        assert_eq!(next(subscription).await, Signal::Gap);
    }
    let channels: Vec<String> = server.run("PUBSUB CHANNELS share-link:room:*").await;
    assert_eq!(channels.len(), 1_200);
    let clients: String = server.run("CLIENT LIST TYPE pubsub").await;
    assert_eq!(clients.lines().count(), 1);
    rooms.truncate(1);
    until("the others are left", async || {
        let channels: Vec<String> = server.run("PUBSUB CHANNELS share-link:room:*").await;
        channels.len() == 1
    })
    .await;
    drop((rooms, there));
    until("the connection is closed", async || {
        let clients: String = server.run("CLIENT LIST TYPE pubsub").await;
        clients.is_empty()
    })
    .await;
}

#[tokio::test]
async fn an_unreadable_message_is_a_gap() {
    let server = Server::start().await;
    let there = connect(&server).await;
    let mut theirs = listening(&there, Topic::Cluster).await;
    let _: u64 = server.run("PUBLISH share-link:cluster nonsense").await;
    assert_eq!(next(&mut theirs).await, Signal::Gap);
}

#[tokio::test]
async fn a_server_that_starts_before_redis_subscribes_when_redis_is_up() {
    let mut server = Server::start().await;
    server.stop().await;
    let there = connect(&server).await;
    let mut theirs = there.subscribe(Topic::Cluster);
    assert!(there.publish(Topic::Cluster, &Message::Hello).await.is_err());
    server.start_again().await;
    assert_eq!(next(&mut theirs).await, Signal::Gap);
}

#[tokio::test]
async fn a_single_server_receives_one_gap_and_no_message() {
    let alone = Pubsub::alone(NodeId::generate());
    let mut ours = listening(&alone, Topic::Cluster).await;
    alone.publish(Topic::Cluster, &Message::Hello).await.expect("it goes nowhere");
    tokio::time::pause();
    assert!(timeout(TEST_TIMEOUT, ours.next()).await.is_err());
}

#[tokio::test]
async fn on_a_cluster_all_servers_receive_messages_and_a_dead_node_is_a_gap() {
    let mut cluster = ClusterServer::start().await;
    let at = async |nodes: &[usize]| {
        let nodes: Vec<_> =
            nodes.iter().map(|at| format!("127.0.0.1:{}", cluster.nodes[*at].port())).collect();
        let url = format!("redis+cluster://{}", nodes.join(","));
        Pubsub::connect(&url, NodeId::generate(), SECRET).await.expect("a good address")
    };
    let (here, there) = (at(&[0, 1]).await, at(&[2]).await);
    // A room of that node would wait for its replica (`sharded_pubsub`).
    let topic = Topic::Cluster;
    let mut ours = listening(&here, topic).await;
    let mut theirs = listening(&there, topic).await;
    here.publish(topic, &presence(1)).await.expect("it is taken");
    let wanted = Signal::Message { from: here.node(), message: presence(1) };
    assert_eq!(next(&mut theirs).await, wanted);

    cluster.nodes[0].stop().await;
    assert_eq!(next(&mut ours).await, Signal::Gap);
    // Without that node some slots are unreachable, but the other servers are not.
    until("it is sent again", async || here.publish(topic, &presence(2)).await.is_ok()).await;
    let heard = async {
        while !matches!(next(&mut theirs).await, Signal::Message { message, .. } if message == presence(2))
        {
        }
    };
    timeout(TEST_TIMEOUT, heard).await.expect("a message");
}

/// Goal: a foreign message in Redis is a gap for the listeners of its channel, and no more. A
/// message of another installation is not even a gap.
#[tokio::test]
async fn g12_a_forged_message_is_a_gap_and_stops_no_server() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let stranger = Pubsub::connect(&server.url(), NodeId::generate(), b"another secret").await;
    let stranger = stranger.expect("a good address");
    let topic = room();
    let Topic::Room(document) = topic else { panic!("a room") };
    let mut theirs = listening(&there, topic).await;
    let mut redis = server.connection().await;
    let forged = Envelope {
        from: here.node(),
        sent_us: 0,
        payload: Payload::Message(Message::Update {
            seq: 1,
            fence: Fence(9),
            update: Bytes::new(),
        }),
    };
    let frames: [Vec<u8>; 5] = [
        Vec::new(),
        vec![0xff; 15],
        vec![0; 1_000_000],
        // As a server of an older version sends it.
        [&[2], &forged.encode()[1..], &[0; 16]].concat(),
        b"{\"event\":\"seat.lost\"}".to_vec(),
    ];
    for frame in frames {
        let channel = format!("share-link:room:{document}");
        let heard: i64 = redis::cmd("PUBLISH")
            .arg(&channel)
            .arg(frame)
            .query_async(&mut redis)
            .await
            .expect("sent");
        assert_eq!(heard, 1);
        assert_eq!(next(&mut theirs).await, Signal::Gap);
    }
    // Another installation on the same Redis, and a message without its seal.
    let mut heard = listening(&stranger, topic).await;
    until("it is sent", async || stranger.publish(topic, &Message::Hello).await.is_ok()).await;
    let frame = [forged.encode(), vec![0; 24]].concat();
    let _: i64 = redis::cmd("PUBLISH")
        .arg(format!("share-link:room:{document}"))
        .arg(frame)
        .query_async(&mut redis)
        .await
        .expect("sent");
    here.publish(topic, &Message::Hello).await.expect("it is taken");
    let wanted = Signal::Message { from: here.node(), message: Message::Hello };
    assert_eq!(next(&mut theirs).await, wanted);
    // A message of this installation is no gap for the other one either.
    let own = Message::Presence(Bytes::from_static(b"own"));
    let sibling = Pubsub::connect(&server.url(), NodeId::generate(), b"another secret").await;
    let sibling = sibling.expect("a good address");
    let _connected = listening(&sibling, topic).await;
    sibling.publish(topic, &own).await.expect("it is taken");
    assert_eq!(next(&mut heard).await, Signal::Message { from: sibling.node(), message: own });
}

/// The copy of a virtual machine has the id of its original. Each server takes the messages of the other one
/// for losses, and reads the database.
#[tokio::test]
async fn a_message_of_another_server_with_the_same_id_is_a_gap() {
    let (server, node, topic) = (Server::start().await, NodeId::generate(), room());
    let start = async || Pubsub::connect(&server.url(), node, SECRET).await.expect("an address");
    let (original, copy) = (start().await, start().await);
    let mut theirs = listening(&original, topic).await;
    let mut ours = listening(&copy, topic).await;
    original.publish(topic, &Message::Hello).await.expect("it is taken");
    assert_eq!(next(&mut ours).await, Signal::Gap);
    copy.publish(topic, &Message::Hello).await.expect("it is taken");
    assert_eq!(next(&mut theirs).await, Signal::Gap);
    let other = connect(&server).await;
    let _connected = listening(&other, topic).await;
    other.publish(topic, &Message::Hello).await.expect("it is taken");
    let wanted = Signal::Message { from: other.node(), message: Message::Hello };
    assert_eq!(next(&mut ours).await, wanted, "its own message is none");
}

/// The connection rejects a message that is too large while it is open and idle. The listeners
/// receive the gap at once, and not with the next message of the server.
#[tokio::test]
async fn g15_a_rejected_message_is_reported_as_a_gap_at_once() {
    let server = Server::start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let topic = room();
    let mut theirs = listening(&there, topic).await;
    until("it is sent", async || here.publish(topic, &Message::Hello).await.is_ok()).await;
    let wanted = Signal::Message { from: here.node(), message: Message::Hello };
    assert_eq!(next(&mut theirs).await, wanted);
    let too_large = Message::Presence(Bytes::from(vec![0; 33 * 1024 * 1024]));
    for _ in 0..3 {
        assert_eq!(here.publish(topic, &too_large).await, Err(PubsubError::Full));
        assert_eq!(next(&mut theirs).await, Signal::Gap);
    }
}
