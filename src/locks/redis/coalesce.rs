//! Calls that come at the same time go together.
//!
//! While few are under way, each is sent at once. Once there are more, those that come gather, and go
//! in one call of the script as soon as one of two such groups is answered: Redis and the connection
//! do once for all what would otherwise be done for each. How many go together comes of itself: those
//! that came while the ones before were on their way. So nobody waits for company.
//!
//! Each is answered as if it had been sent alone; also where Redis refuses one of several, or all of
//! them for the sake of one: then each is asked again by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::{RedisResult, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::locks::redis::args::Item;
use crate::locks::redis::call::{End, Way, call_at};
use crate::locks::redis::connection::PATIENCE;
use crate::locks::redis::error::{Fault, explain};
use crate::locks::redis::reply::unexpected;
use crate::locks::redis::scripts::Scripts;
use crate::locks::redis::server_identity::Acquaintance;
use crate::locks::types::LocksError;

/// While fewer than so many calls are under way, the next goes alone.
const ALONE_MAX: usize = 2;
/// Calls that go together. Redis does nothing else meanwhile: some 0.5 ms.
const TOGETHER_MAX: usize = 100;
/// Groups that are under way: while Redis works on one, the next is made. For that none may have more
/// than its share of all, or they would come and go together.
const GROUPS_MAX: usize = 2;
/// Calls that may gather; more of them wait in turn.
const GATHERED_MAX: usize = 4_096;

/// The answer to an item and when it was asked, or why there is none.
pub(in crate::locks) type Answer = Result<(Instant, RedisResult<Value>), Fault>;

/// Where calls of one connection gather.
#[derive(Debug)]
pub(in crate::locks) struct Together {
    end: End,
    scripts: Arc<Scripts>,
    /// Asked and not answered.
    under_way: Arc<AtomicUsize>,
    gathers: mpsc::Sender<Gathered>,
}

/// One that does not go alone.
#[derive(Debug)]
struct Gathered {
    item: Item,
    deadline: Instant,
    tells: oneshot::Sender<Answer>,
}

/// The task's side.
pub(in crate::locks) struct Conductor {
    end: End,
    scripts: Arc<Scripts>,
    under_way: Arc<AtomicUsize>,
    gathered: mpsc::Receiver<Gathered>,
}

/// Counts one that is under way, for as long as this lives.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Together {
    /// Nothing gathers until the conductor runs.
    pub(in crate::locks) fn new(end: End, scripts: Arc<Scripts>) -> (Self, Conductor) {
        let (gathers, gathered) = mpsc::channel(GATHERED_MAX);
        let under_way = Arc::<AtomicUsize>::default();
        let conductor = Conductor {
            end: end.clone(),
            scripts: Arc::clone(&scripts),
            under_way: Arc::clone(&under_way),
            gathered,
        };
        (Self { end, scripts, under_way, gathers }, conductor)
    }

    /// Asks, alone or with others.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it may have been asked or not.
    pub(in crate::locks) async fn ask(&self, item: Item) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        let _one = UnderWay(&self.under_way);
        if others < ALONE_MAX {
            return ask_alone(&self.end, &self.scripts, &item, deadline).await;
        }
        let (tells, told) = oneshot::channel();
        let closed = || LocksError::Unavailable("the locks are closed".to_owned());
        let gathered = Gathered { item, deadline, tells };
        self.gathers.send(gathered).await.map_err(|_closed| Fault::Unsent(closed()))?;
        told.await.map_err(|_closed| Fault::Unknown(closed()))?
    }
}

impl Conductor {
    /// Sends what gathers until nobody can ask any more.
    pub(in crate::locks) async fn run(mut self) {
        let (mut group, mut under_way) = (Vec::new(), FuturesUnordered::new());
        loop {
            tokio::select! {
                Some(()) = under_way.next() => {}
                came = self.gathered.recv(), if under_way.len() < GROUPS_MAX => {
                    let Some(first) = came else { break };
                    group.push(first);
                    // Those that were just answered come again: let them.
                    yield_now().await;
                    let share = self.under_way.load(Ordering::Relaxed).div_ceil(GROUPS_MAX);
                    while group.len() < share.min(TOGETHER_MAX) {
                        let Ok(next) = self.gathered.try_recv() else { break };
                        group.push(next);
                    }
                    let group = std::mem::take(&mut group);
                    under_way.push(ask_together(&self.end, &self.scripts, group));
                }
            }
        }
    }
}

/// Asks for all at once, and tells each.
async fn ask_together(end: &End, scripts: &Scripts, mut group: Vec<Gathered>) {
    // Nobody waits for these any more, and they were not sent.
    group.retain(|gathered| !gathered.tells.is_closed());
    let Some(deadline) = group.iter().map(|gathered| gathered.deadline).min() else { return };
    if end.link.is_silent()
        && let Err(fault) = probe(end, deadline).await
    {
        return tell_all(group, &Fault::Unsent(fault.into()));
    }
    let items = group.iter().map(|gathered| &gathered.item);
    let call = |whom: &Acquaintance| scripts.several(items.clone(), whom);
    let (sent_at, mut answers) =
        match call_at(end, &scripts.several, &call, Way::Straight, deadline).await {
            Ok((sent_at, Ok(Value::Array(answers)))) => (sent_at, answers.into_iter()),
            Ok((sent_at, Err(_refused))) => (sent_at, Vec::new().into_iter()),
            Ok((_, Ok(_))) => {
                return tell_all(group, &Fault::Unknown(unexpected()));
            }
            Err(fault) => return tell_all(group, &fault),
        };
    for Gathered { item, deadline, tells } in group {
        let answer = match answers.next() {
            Some(answer) => Ok((sent_at, Ok(answer))),
            None => ask_alone(end, scripts, &item, deadline).await,
        };
        // Who does not wait any more makes up for it.
        let _gone = tells.send(answer);
    }
}

/// Asks for a sign of life. A Redis that hangs carries out all that was sent when it goes on: each claim
/// that nobody waits for any more would cost a release then. So a group is sent after this is answered.
async fn probe(end: &End, deadline: Instant) -> Result<(), Fault> {
    end.link
        .ask_one(|| redis::cmd("PING"), deadline)
        .await?
        .1
        .map_err(|error| Fault::Refused(explain(&error)))?;
    Ok(())
}

fn tell_all(group: Vec<Gathered>, fault: &Fault) {
    for gathered in group {
        let _gone = gathered.tells.send(Err(fault.clone()));
    }
}

async fn ask_alone(end: &End, scripts: &Scripts, item: &Item, deadline: Instant) -> Answer {
    let call = |whom: &Acquaintance| scripts.several([item].into_iter(), whom);
    let (sent_at, reply) = call_at(end, &scripts.several, &call, Way::Straight, deadline).await?;
    match reply.map(only) {
        Ok(Some(answer)) => Ok((sent_at, Ok(answer))),
        Ok(None) => Err(Fault::Unknown(unexpected())),
        Err(error) => Ok((sent_at, Err(error))),
    }
}

/// The one answer of a call for one.
pub(in crate::locks) fn only(reply: Value) -> Option<Value> {
    let Value::Array(mut answers) = reply else { return None };
    if answers.len() == 1 { answers.pop() } else { None }
}
