//! Batch calls: one pipeline to each Redis node that stores some of the locks, to all nodes at
//! once.
//!
//! At most [`AHEAD`] chunks of a pipeline are in flight. Redis executes all input of a client
//! before it turns to the next client, so the chunks in flight are the delay of other clients.
//! While Redis executes one chunk, the caller builds the next.
//!
//! A script may touch one slot only. So a Cluster gets one call for each slot, and a single Redis
//! one call for every [`LOCKS_PER_CALL`] locks. A call that a node redirects is sent again, and
//! only that call. A node without a reply does not affect the calls of other nodes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use redis::{Pipeline, RedisError, Value};
use tokio::time::Instant;

use crate::name::LockName;
use crate::redis::call::{Calls, Topology, refused};
use crate::redis::cluster::Redirect;
use crate::redis::connection::{Link, Reply};
use crate::redis::node::Node;
use crate::redis::scripts::{LOCKS_PER_CALL, Script, pipeline};
use crate::redis::target::Redirection;
use crate::types::{CallError, LocksError, unexpected};

/// Passes of a call: redirects to the owner of the slot, and then, while the slot migrates, each
/// lock alone to the source or to the target.
const PASSES_MAX: u32 = 5;
/// Chunks in flight: enough for Redis to always have the next.
const AHEAD: usize = 2;

type Chunk = (Vec<BatchCall>, Result<Reply, CallError>);

#[derive(Debug)]
pub(crate) struct BatchCall {
    slot: u16,
    at: Vec<usize>,
    /// The node that an `ASK` reply named, for this pass.
    asking: Option<Arc<Node>>,
}

pub(crate) struct BatchSpec<'a, A: Fn(&[usize], &mut Pipeline)> {
    pub(crate) script: &'a Script,
    pub(crate) class: ConnectionClass,
    /// Adds the call for these positions: one command with a reply, and others whose replies are
    /// ignored.
    pub(crate) add: A,
    pub(crate) deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionClass {
    Calls,
    Renewals,
}

#[derive(Debug, Default)]
pub(crate) struct Replies {
    pub(crate) sent_at: Option<Instant>,
    pub(crate) replies: Vec<(Vec<usize>, Value)>,
    /// Why the other calls have no reply.
    pub(crate) fault: Option<LocksError>,
}

impl Calls {
    pub(crate) async fn run<A>(
        &self,
        mut batch_calls: Vec<BatchCall>,
        order: &BatchSpec<'_, A>,
    ) -> Replies
    where
        A: Fn(&[usize], &mut Pipeline),
    {
        let mut answers = Replies::default();
        for _pass in 0..PASSES_MAX {
            if batch_calls.is_empty() {
                break;
            }
            let all = std::mem::take(&mut batch_calls);
            let pipelines = self.by_node(all, order.class, order.deadline, &mut answers).await;
            let waits = matches!(self.route, Topology::Single(_));
            let sends = pipelines.into_iter().map(|(node, mine)| order.send(node, mine, waits));
            let replies = join_all(sends).await.into_iter();
            let chunks = replies
                .flat_map(|(node, chunks)| chunks.into_iter().map(move |it| (node.clone(), it)));
            for (node, (mine, answer)) in chunks {
                batch_calls.extend(self.collect_replies(&node, mine, answer, &mut answers));
            }
        }
        if !batch_calls.is_empty() {
            answers.fail(LocksError::Unavailable("the Cluster is migrating a slot".to_owned()));
        }
        answers
    }

    /// Collects one node's replies by call. Returns the calls to send again.
    fn collect_replies(
        &self,
        node: &Node,
        batch_calls: Vec<BatchCall>,
        answer: Result<Reply, CallError>,
        answers: &mut Replies,
    ) -> Vec<BatchCall> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                self.request_refresh();
                answers.fail(why.into());
                return Vec::new();
            }
        };
        let first = answers.sent_at.map_or(answer.sent_at, |first| first.min(answer.sent_at));
        answers.sent_at = Some(first);
        let mut again = Vec::new();
        let mut replies = answer.replies.into_iter();
        for call in batch_calls {
            match replies.next() {
                Some(Ok(value)) => answers.replies.push((call.at, value)),
                Some(Err(error)) => again.append(&mut self.send_on(node, call, &error, answers)),
                None => answers.fail(unexpected()),
            }
        }
        again
    }

    /// Handles an error reply. Returns the calls to send again.
    fn send_on(
        &self,
        node: &Node,
        call: BatchCall,
        error: &RedisError,
        answers: &mut Replies,
    ) -> Vec<BatchCall> {
        let Topology::Cluster(cluster) = &self.route else {
            answers.fail(refused(node, error).into());
            return Vec::new();
        };
        match cluster.redirect(node, call.slot, error) {
            Redirect::Elsewhere => vec![BatchCall { asking: None, ..call }],
            Redirect::Asking(there) => vec![BatchCall { asking: Some(there), ..call }],
            // The slot migrates: the source has some of these locks and the target the others.
            Redirect::Later(_) if call.at.len() > 1 => {
                let alone = |at: &usize| BatchCall { slot: call.slot, at: vec![*at], asking: None };
                call.at.iter().map(alone).collect()
            }
            Redirect::Later(why) | Redirect::Refused(why) => {
                answers.fail(why);
                Vec::new()
            }
        }
    }

    async fn by_node(
        &self,
        batch_calls: Vec<BatchCall>,
        class: ConnectionClass,
        deadline: Instant,
        answers: &mut Replies,
    ) -> Vec<(Arc<Node>, Vec<BatchCall>)> {
        let cluster = match &self.route {
            Topology::Single(node) => return vec![(Arc::clone(node), batch_calls)],
            Topology::Cluster(cluster) => cluster,
        };
        let mut pipelines: Vec<(Arc<Node>, Vec<BatchCall>)> = Vec::new();
        for call in batch_calls {
            let node = match (&call.asking, class) {
                (Some(there), _) => Ok(Arc::clone(there)),
                (None, ConnectionClass::Renewals) => cluster.owner_of_slot(call.slot),
                (None, ConnectionClass::Calls) => {
                    cluster.reachable_owner(call.slot, deadline).await
                }
            };
            let node = match node {
                Ok(node) => node,
                Err(why) => {
                    answers.fail(why.into());
                    continue;
                }
            };
            match pipelines.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &node)) {
                Some((_, mine)) => mine.push(call),
                None => pipelines.push((node, vec![call])),
            }
        }
        pipelines
    }

    pub(crate) fn slot(&self, name: &LockName) -> u16 {
        match &self.route {
            Topology::Single(_) => 0,
            Topology::Cluster(_) => name.slot(),
        }
    }

    fn request_refresh(&self) {
        if let Topology::Cluster(cluster) = &self.route {
            cluster.request_refresh();
        }
    }
}

impl<A: Fn(&[usize], &mut Pipeline)> BatchSpec<'_, A> {
    /// Sends calls in one pipeline. With `waits` it waits for a lost connection to reopen.
    /// Otherwise it fails at once: one of several nodes must not delay the others, and a reconnect
    /// is notified.
    async fn send(
        &self,
        node: Arc<Node>,
        batch_calls: Vec<BatchCall>,
        waits: bool,
    ) -> (Arc<Node>, Vec<Chunk>) {
        let link = match self.class {
            ConnectionClass::Calls => &node.calls,
            ConnectionClass::Renewals => &node.renewals,
        };
        if let Some(why) = link.lost().filter(|_| !waits) {
            return (node, vec![(batch_calls, Err(CallError::Unsent(why)))]);
        }
        let chunks = chunks(batch_calls).into_iter().enumerate();
        let sends = chunks.map(|(number, chunk)| self.send_chunk(link, number, chunk));
        let answers = stream::iter(sends).buffered(AHEAD).collect().await;
        (node, answers)
    }

    async fn send_chunk(&self, link: &Link, number: usize, chunk: Vec<BatchCall>) -> Chunk {
        if self.deadline <= Instant::now() {
            let why = LocksError::Unavailable("Redis does not answer".to_owned());
            return (chunk, Err(CallError::Unsent(why)));
        }
        let mut request = pipeline();
        // The later chunks follow on the same connection.
        if number == 0 {
            self.script.load(&mut request);
        }
        for call in &chunk {
            let way =
                if call.asking.is_some() { Redirection::Asking } else { Redirection::Straight };
            way.lead(&mut request);
            (self.add)(&call.at, &mut request);
        }
        let answer = link.query(&request, self.deadline).await;
        (chunk, answer)
    }
}

impl Replies {
    fn fail(&mut self, why: LocksError) {
        self.fault.get_or_insert(why);
    }
}

/// Splits a pipeline into chunks of [`LOCKS_PER_CALL`] locks or a few more.
fn chunks(batch_calls: Vec<BatchCall>) -> Vec<Vec<BatchCall>> {
    let mut chunks = Vec::new();
    let (mut chunk, mut locks) = (Vec::new(), 0);
    for call in batch_calls {
        locks += call.at.len();
        chunk.push(call);
        if locks >= LOCKS_PER_CALL {
            chunks.push(std::mem::take(&mut chunk));
            locks = 0;
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

/// Groups locks with the same slot and key into calls of at most [`LOCKS_PER_CALL`], in the order
/// of the first lock of each call.
pub(crate) fn batch_calls<K: Copy + Eq + Hash>(
    locks: impl Iterator<Item = (usize, (u16, K))>,
) -> Vec<BatchCall> {
    let mut batch_calls: Vec<BatchCall> = Vec::new();
    let mut by_key: HashMap<(u16, K), usize> = HashMap::new();
    let mut last: Option<((u16, K), usize)> = None;
    for (at, key) in locks {
        // Neighbours usually share a key, and on a single Redis nearly always.
        let index = match last {
            Some((last_key, index)) if last_key == key => Some(index),
            _ => by_key.get(&key).copied(),
        };
        let open = index.and_then(|index| Some((index, batch_calls.get_mut(index)?)));
        let index = match open {
            Some((index, call)) if call.at.len() < LOCKS_PER_CALL => {
                call.at.push(at);
                index
            }
            _ => {
                batch_calls.push(BatchCall { slot: key.0, at: vec![at], asking: None });
                by_key.insert(key, batch_calls.len() - 1);
                batch_calls.len() - 1
            }
        };
        last = Some((key, index));
    }
    batch_calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_call_has_locks_of_one_slot_and_one_lease_and_a_bounded_size() {
        let keys = [(1, 'a'), (1, 'a'), (2, 'a'), (1, 'b'), (1, 'a'), (2, 'a')];
        let got = batch_calls(keys.into_iter().enumerate());
        let at: Vec<_> = got.iter().map(|call| (call.slot, call.at.clone())).collect();
        assert_eq!(at, [(1, vec![0, 1, 4]), (2, vec![2, 5]), (1, vec![3])]);
        let many = batch_calls((0..2 * LOCKS_PER_CALL + 1).map(|at| (at, (0, ()))));
        let sizes: Vec<_> = many.iter().map(|call| call.at.len()).collect();
        assert_eq!(sizes, [LOCKS_PER_CALL, LOCKS_PER_CALL, 1]);
    }
}
