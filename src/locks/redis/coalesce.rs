//! Coalescing: concurrent claims and releases share one script call.
//!
//! While fewer than [`ALONE_MAX`] calls are in flight, the caller sends its call at once. Above
//! that, calls queue, and the task sends the next group when Redis answers one of two groups in
//! flight. Redis and the connection then pay their fixed cost once a group. The group's size is the
//! number of calls that arrived during the previous round trip, so no timer delays a call.
//!
//! Each call gets the reply that it would get alone. If Redis refuses one call of a group, or the
//! whole group because of one, the task sends each unanswered call alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::{RedisResult, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::redis::args::LockCall;
use crate::redis::connection::CALL_TIMEOUT;
use crate::redis::error::explain;
use crate::redis::reply::only;
use crate::redis::scripts::Scripts;
use crate::redis::server_identity::ServerIdentity;
use crate::redis::target::{CallTarget, Redirection, call_at};
use crate::types::{CallError, LocksError, unexpected};

/// Below this number of calls in flight the next call is sent alone.
const ALONE_MAX: usize = 2;
/// Calls in one group. The script blocks Redis for some 0.5 ms at this size.
const GROUP_MAX: usize = 100;
/// Groups in flight: the task builds one while Redis executes the other. No group takes more than
/// its share of all calls, otherwise the two merge into one that comes and goes as a whole.
const GROUPS_MAX: usize = 2;
/// Queued calls. A caller beyond that waits for room in the queue.
const QUEUED_MAX: usize = 4_096;

/// The reply to an item and when it was sent, or why there is no reply.
pub(crate) type Answer = Result<(Instant, RedisResult<Value>), CallError>;

#[derive(Debug)]
pub(crate) struct CallQueue {
    end: CallTarget,
    scripts: Arc<Scripts>,
    under_way: Arc<AtomicUsize>,
    queue: mpsc::Sender<QueuedCall>,
}

#[derive(Debug)]
struct QueuedCall {
    item: LockCall,
    deadline: Instant,
    reply_to: oneshot::Sender<Answer>,
}

pub(crate) struct Coalescer {
    end: CallTarget,
    scripts: Arc<Scripts>,
    under_way: Arc<AtomicUsize>,
    queued: mpsc::Receiver<QueuedCall>,
}

/// Counts a call as in flight until it is dropped.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallQueue {
    pub(crate) fn new(end: CallTarget, scripts: Arc<Scripts>) -> (Self, Coalescer) {
        let (queue, queued) = mpsc::channel(QUEUED_MAX);
        let under_way = Arc::<AtomicUsize>::default();
        let coalescer = Coalescer {
            end: end.clone(),
            scripts: Arc::clone(&scripts),
            under_way: Arc::clone(&under_way),
            queued,
        };
        (Self { end, scripts, under_way, queue }, coalescer)
    }

    /// Sends an item, alone or in a group. If the future is dropped, Redis may have executed the item
    /// or not.
    pub(crate) async fn send(&self, item: LockCall) -> Answer {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        let _one = UnderWay(&self.under_way);
        if others < ALONE_MAX {
            return send_alone(&self.end, &self.scripts, &item, deadline).await;
        }
        let (reply_to, reply) = oneshot::channel();
        let closed = || LocksError::Unavailable("the locks are closed".to_owned());
        let queued = QueuedCall { item, deadline, reply_to };
        self.queue.send(queued).await.map_err(|_closed| CallError::Unsent(closed()))?;
        reply.await.map_err(|_closed| CallError::Unknown(closed()))?
    }
}

impl Coalescer {
    pub(crate) async fn run(mut self) {
        let (mut group, mut under_way) = (Vec::new(), FuturesUnordered::new());
        loop {
            tokio::select! {
                Some(()) = under_way.next() => {}
                came = self.queued.recv(), if under_way.len() < GROUPS_MAX => {
                    let Some(first) = came else { break };
                    group.push(first);
                    // The callers that were just answered send their next calls: the yield lets
                    // them queue.
                    yield_now().await;
                    let share = self.under_way.load(Ordering::Relaxed).div_ceil(GROUPS_MAX);
                    while group.len() < share.min(GROUP_MAX) {
                        let Ok(next) = self.queued.try_recv() else { break };
                        group.push(next);
                    }
                    let group = std::mem::take(&mut group);
                    under_way.push(send_together(&self.end, &self.scripts, group));
                }
            }
        }
    }
}

async fn send_together(end: &CallTarget, scripts: &Scripts, mut group: Vec<QueuedCall>) {
    // Their callers are gone, and they were not sent.
    group.retain(|queued| !queued.reply_to.is_closed());
    let Some(deadline) = group.iter().map(|queued| queued.deadline).min() else { return };
    if end.link.is_silent()
        && let Err(fault) = probe(end, deadline).await
    {
        return reply_to_all(group, &CallError::Unsent(fault.into()));
    }
    let items = group.iter().map(|queued| &queued.item);
    let call = |whom: &ServerIdentity| scripts.coalesced(items.clone(), whom.graces());
    let (sent_at, mut answers) =
        match call_at(end, &scripts.coalesced, &call, Redirection::Straight, deadline).await {
            Ok((sent_at, Ok(Value::Array(answers)))) => (sent_at, answers.into_iter()),
            Ok((sent_at, Err(_refused))) => (sent_at, Vec::new().into_iter()),
            Ok((_, Ok(_))) => {
                return reply_to_all(group, &CallError::Unknown(unexpected()));
            }
            Err(fault) => return reply_to_all(group, &fault),
        };
    for QueuedCall { item, deadline, reply_to } in group {
        let answer = match answers.next() {
            Some(answer) => Ok((sent_at, Ok(answer))),
            None => send_alone(end, scripts, &item, deadline).await,
        };
        // A caller that is gone has registered a pending release.
        let _gone = reply_to.send(answer);
    }
}

/// Pings a Redis that did not reply in time, before the next group. A stalled Redis executes
/// everything that it received once it resumes. Each claim whose caller is gone then costs a
/// release.
async fn probe(end: &CallTarget, deadline: Instant) -> Result<(), CallError> {
    end.link
        .query_one(|| redis::cmd("PING"), deadline)
        .await?
        .1
        .map_err(|error| CallError::Refused(explain(&error)))?;
    Ok(())
}

fn reply_to_all(group: Vec<QueuedCall>, fault: &CallError) {
    for queued in group {
        let _gone = queued.reply_to.send(Err(fault.clone()));
    }
}

async fn send_alone(
    end: &CallTarget,
    scripts: &Scripts,
    item: &LockCall,
    deadline: Instant,
) -> Answer {
    let call = |whom: &ServerIdentity| scripts.coalesced([item].into_iter(), whom.graces());
    let (sent_at, reply) =
        call_at(end, &scripts.coalesced, &call, Redirection::Straight, deadline).await?;
    match reply.map(only) {
        Ok(Some(answer)) => Ok((sent_at, Ok(answer))),
        Ok(None) => Err(CallError::Unknown(unexpected())),
        Err(error) => Ok((sent_at, Err(error))),
    }
}
