//! Single script calls: claims, releases, queries.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

use crate::name::LockName;
use crate::redis::args::LockCall;
use crate::redis::cluster::{Cluster, Redirect};
use crate::redis::connection::CALL_TIMEOUT;
use crate::redis::error::explain;
use crate::redis::node::{IN_FLIGHT_MAX, Node};
use crate::redis::reply;
use crate::redis::scripts::{Script, Scripts};
use crate::redis::server_identity::ServerIdentity;
use crate::redis::target::{Redirection, call_at};
use crate::redis_client::{Address, jittered};
use crate::types::{CallError, LocksError, QueuedClaim, Released};
use galley_domain::fence::Fence;

/// Pause before the retry of a call after `TRYAGAIN` or `CLUSTERDOWN`.
const PAUSE: Duration = Duration::from_millis(50);
/// Redirects in a row before a call pauses, in case the redirects form a cycle.
const HOPS_MAX: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) route: Topology,
    pub(crate) scripts: Arc<Scripts>,
}

#[derive(Clone, Debug)]
pub(crate) enum Topology {
    Single(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Calls {
    /// Sends a claim or release. Retries it if Redis did not have the script or redirected the
    /// call: both mean that no node executed it.
    pub(crate) async fn call(&self, item: LockCall) -> Result<(Instant, Value), CallError> {
        let script = &self.scripts.one_lock;
        let deadline = Instant::now() + CALL_TIMEOUT;
        let _in_flight = match &self.route {
            Topology::Single(node) => Some(turn_at(node, deadline).await?),
            Topology::Cluster(_) => None,
        };
        let call = |whom: &ServerIdentity| self.scripts.one_lock(&item, whom.graces());
        self.call_script(&item.name, script, call, deadline).await
    }

    /// Calls any script for one lock. `call` builds the command anew for each node, once a
    /// connection to that node is open.
    async fn call_script(
        &self,
        name: &LockName,
        script: &Script,
        call: impl Fn(&ServerIdentity) -> Cmd,
        deadline: Instant,
    ) -> Result<(Instant, Value), CallError> {
        match &self.route {
            Topology::Single(node) => {
                let (sent_at, reply) =
                    call_at(&node.end(), script, &call, Redirection::Straight, deadline).await?;
                Ok((sent_at, reply.map_err(|error| refused(node, &error))?))
            }
            Topology::Cluster(cluster) => {
                call_in(cluster, name.slot(), script, &call, deadline).await
            }
        }
    }

    /// Fails when the slot map is not loaded yet.
    pub(crate) async fn nodes(&self) -> Result<Vec<Arc<Node>>, LocksError> {
        match &self.route {
            Topology::Single(node) => Ok(vec![Arc::clone(node)]),
            Topology::Cluster(cluster) => {
                Ok(cluster.some_view(Instant::now() + CALL_TIMEOUT).await?.nodes().to_vec())
            }
        }
    }

    /// The address of the lock's node by the local slot map. Equal for all locks that share a node.
    pub(crate) fn address_of(&self, name: &LockName) -> Option<Address> {
        match &self.route {
            Topology::Single(node) => Some(node.address.clone()),
            Topology::Cluster(cluster) => {
                cluster.owner_of_slot(name.slot()).ok().map(|node| node.address.clone())
            }
        }
    }

    /// The reassert grace of the lock's node, for a claim with this floor: for that time an earlier
    /// holder may still reassert. Zero if the node is unknown.
    pub(crate) fn grace(&self, name: &LockName, floor: Fence) -> Duration {
        match &self.route {
            Topology::Single(node) => node.identity.grace(floor),
            Topology::Cluster(cluster) => cluster
                .owner_of_slot(name.slot())
                .map_or(Duration::ZERO, |node| node.identity.grace(floor)),
        }
    }

    pub(crate) async fn release(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, CallError> {
        let call = self.scripts.release(name, value, rest);
        let (_sent_at, reply) = self.call(call).await?;
        reply::released(&reply).map_err(CallError::Unknown)
    }

    pub(crate) async fn waiters(
        &self,
        name: &LockName,
        most: usize,
    ) -> Result<Vec<QueuedClaim>, CallError> {
        let call = |_: &ServerIdentity| self.scripts.waiters(name, most);
        let deadline = Instant::now() + CALL_TIMEOUT;
        let (_sent_at, reply) =
            self.call_script(name, &self.scripts.waiters, call, deadline).await?;
        reply::waiters(&reply).map_err(CallError::Unknown)
    }
}

impl Node {
    pub(crate) async fn query(&self, pipeline: &Pipeline) -> Result<Vec<Value>, CallError> {
        let answer = self.calls.query(pipeline, Instant::now() + CALL_TIMEOUT).await?;
        answer
            .replies
            .into_iter()
            .map(|reply| reply.map_err(|error| refused(self, &error)))
            .collect()
    }
}

async fn call_in(
    cluster: &Cluster,
    slot: u16,
    script: &Script,
    call: &impl Fn(&ServerIdentity) -> Cmd,
    deadline: Instant,
) -> Result<(Instant, Value), CallError> {
    let (mut asking, mut hops) = (None, 0);
    loop {
        let (node, way) = match asking.take() {
            Some(node) => (node, Redirection::Asking),
            None => (cluster.reachable_owner(slot, deadline).await?, Redirection::Straight),
        };
        let (sent_at, reply) = call_at(&node.end(), script, call, way, deadline).await?;
        let error = match reply {
            Ok(value) => return Ok((sent_at, value)),
            Err(error) => error,
        };
        hops += 1;
        let why = match cluster.redirect(&node, slot, &error) {
            Redirect::Elsewhere if hops < HOPS_MAX => continue,
            Redirect::Asking(there) if hops < HOPS_MAX => {
                asking = Some(there);
                continue;
            }
            Redirect::Elsewhere | Redirect::Asking(_) => explain(&error),
            Redirect::Later(why) => why,
            Redirect::Refused(why) => return Err(CallError::Refused(why)),
        };
        let pause = jittered(PAUSE);
        if deadline <= Instant::now() + pause {
            return Err(CallError::Unsent(why));
        }
        sleep(pause).await;
        hops = 0;
    }
}

/// A permit to send a claim or release to a node that answers. A stalled Redis executes all that it
/// received once it resumes, and each claim whose caller is gone then costs a release: so of the calls
/// that follow a silence two are sent, and the others `PING` first.
async fn turn_at(node: &Node, deadline: Instant) -> Result<SemaphorePermit<'_>, CallError> {
    let silent = || LocksError::Unavailable("Redis does not answer".to_owned());
    let permit = timeout_at(deadline, node.in_flight.acquire()).await;
    let permit = permit.ok().and_then(Result::ok).ok_or_else(|| CallError::Unsent(silent()))?;
    if node.in_flight.available_permits() + 2 < IN_FLIGHT_MAX && node.calls.is_silent() {
        let ping = node.calls.query_one(|| redis::cmd("PING"), deadline).await;
        let (_sent_at, answer) = ping.map_err(|fault| CallError::Unsent(fault.into()))?;
        answer.map_err(|error| CallError::Unsent(explain(&error)))?;
    }
    Ok(permit)
}

pub(crate) fn refused(node: &Node, error: &RedisError) -> CallError {
    if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
        // The node became a replica: the next connection resolves the address again.
        node.reopen();
    }
    CallError::Refused(explain(error))
}
