//! A Redis Cluster for one test: primaries that share the slots evenly, and replicas. The test
//! kills it at its end.

use std::time::Duration;

use futures_util::future::join_all;
use redis::{FromRedisValue, RedisResult, Value};
use tokio::time::{interval, timeout};

use crate::support::redis_server::{Server, TEST_TIMEOUT};

/// Slots of a Cluster.
const SLOTS: u16 = 16_384;

pub(crate) struct ClusterServer {
    /// Primaries first.
    pub(crate) nodes: Vec<Server>,
    primaries: usize,
}

impl ClusterServer {
    /// Three primaries.
    pub(crate) async fn start() -> Self {
        Self::start_with(3, 0, &[]).await
    }

    /// This many primaries; each of the first ones has a replica. `arguments` apply to all nodes.
    pub(crate) async fn start_with(primaries: usize, replicas: usize, arguments: &[&str]) -> Self {
        let nodes = join_all((0..primaries + replicas).map(|_| node(arguments))).await;
        let cluster = Self { nodes, primaries };
        cluster.join().await;
        cluster
    }

    /// All nodes but the last of several, which the others report.
    pub(crate) fn url(&self) -> String {
        self.url_as("")
    }

    /// The address with credentials.
    pub(crate) fn url_as(&self, credentials: &str) -> String {
        let nodes = self.nodes.iter().take((self.nodes.len() - 1).max(1));
        let nodes: Vec<_> = nodes.map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{credentials}{}", nodes.join(","))
    }

    /// The first primaries.
    pub(crate) fn primaries(&self) -> &[Server] {
        &self.nodes[..self.primaries]
    }

    /// The index of the primary that served this slot at the start.
    pub(crate) fn at(&self, slot: u16) -> usize {
        (0..self.primaries).find(|at| range(*at, self.primaries).1 >= slot).expect("a primary")
    }

    /// The slot of a key.
    pub(crate) async fn slot(&self, key: &str) -> u16 {
        self.nodes[0].run(&format!("CLUSTER KEYSLOT {key}")).await
    }

    /// The node that served the key's slot at the start.
    pub(crate) async fn node_of(&self, key: &str) -> &Server {
        &self.nodes[self.at(self.slot(key).await)]
    }

    /// Runs one command on the node of a key.
    pub(crate) async fn run_at<T: FromRedisValue>(&self, key: &str, command: &str) -> T {
        self.node_of(key).await.run(command).await
    }

    async fn join(&self) {
        let first = &self.nodes[0];
        for (at, node) in self.primaries().iter().enumerate() {
            let (from, to) = range(at, self.primaries);
            let _: Value = node.run(&format!("CLUSTER ADDSLOTSRANGE {from} {to}")).await;
        }
        // Before the nodes meet, so that no two claim the same configuration epoch.
        for (at, node) in self.nodes.iter().enumerate() {
            let _: Value = node.run(&format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1)).await;
        }
        for node in &self.nodes[1..] {
            let (_name, bus): (String, u16) = node.run("CONFIG GET cluster-port").await;
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {bus}", node.port());
            let _: Value = first.run(&meet).await;
        }
        self.until("all know each other", async |cluster, node| {
            let node_list: String = node.run("CLUSTER NODES").await;
            node_list.lines().filter(|line| line.contains(" connected")).count()
                == cluster.nodes.len()
                && !node_list.contains("handshake")
        })
        .await;
        for (at, replica) in self.nodes.iter().enumerate().skip(self.primaries) {
            let id: String = self.nodes[at - self.primaries].run("CLUSTER MYID").await;
            let _: Value = replica.run(&format!("CLUSTER REPLICATE {id}")).await;
        }
        self.until("all is well", async |cluster, node| {
            let info: String = node.run("CLUSTER INFO").await;
            let roles: String = node.run("INFO replication").await;
            let node_list: String = node.run("CLUSTER NODES").await;
            let replicas = node_list.matches("slave").count();
            info.contains("cluster_state:ok")
                && replicas == cluster.nodes.len() - cluster.primaries
                && (roles.contains("role:master") || roles.contains("master_link_status:up"))
        })
        .await;
    }

    /// Waits until a condition holds on every node.
    async fn until(&self, what: &str, is_so: impl AsyncFn(&Self, &Server) -> bool) {
        let mut waiting: Vec<_> = self.nodes.iter().collect();
        let mut tick = interval(Duration::from_millis(20));
        let all_are = async {
            while let Some(node) = waiting.pop() {
                waiting.extend((!is_so(self, node).await).then_some(node));
                tick.tick().await;
            }
        };
        timeout(TEST_TIMEOUT, all_are).await.unwrap_or_else(|_late| panic!("not in time: {what}"));
    }

    /// Migrates a slot with its keys from one primary to another; pauses after this many keys and
    /// runs a closure.
    pub(crate) async fn move_slot(
        &self,
        slot: u16,
        (from, to): (usize, usize),
        keys_first: usize,
        meanwhile: impl AsyncFnOnce(),
    ) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let ids: [String; 2] = [source.run("CLUSTER MYID").await, target.run("CLUSTER MYID").await];
        let _: Value = target.run(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0])).await;
        let _: Value = source.run(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1])).await;
        self.move_keys(source, target, slot, keys_first).await;
        meanwhile().await;
        self.move_keys(source, target, slot, usize::MAX).await;
        for node in [target, source] {
            let _: Value = node.run(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[1])).await;
        }
    }

    async fn move_keys(&self, source: &Server, target: &Server, slot: u16, most: usize) {
        let keys: Vec<String> = source.run(&format!("CLUSTER GETKEYSINSLOT {slot} 1000")).await;
        for key in keys.into_iter().take(most) {
            let moved: RedisResult<Value> =
                source.try_run(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", target.port())).await;
            moved.expect("it is moved");
        }
    }
}

/// A node without a cluster.
async fn node(arguments: &[&str]) -> Server {
    let mut all = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
    // Replicas must not wait for fresh data before a fail-over.
    all.extend_from_slice(&["--cluster-replica-validity-factor", "0"]);
    all.extend_from_slice(&["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]);
    all.extend_from_slice(arguments);
    timeout(TEST_TIMEOUT, Server::start_in_cluster(&all)).await.expect("it starts in time")
}

fn range(at: usize, primaries: usize) -> (u16, u16) {
    let bound = |at: usize| {
        u16::try_from(usize::from(SLOTS) * at / primaries).expect("no more than there are slots")
    };
    (bound(at), bound(at + 1) - 1)
}

/// How long a replica may take to replace its dead primary.
pub(crate) const FAILOVER_MAX: Duration = Duration::from_secs(10);
