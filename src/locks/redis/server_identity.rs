//! The server identity of a Redis node, read on each new connection. It has two uses.
//!
//! *Detection of an empty restart.* A Redis that restarted empty does not know the holders of its
//! locks; they reassert as soon as they reconnect. During the reassert grace no claim acquires a
//! lock that a holder may reassert. There are two signs of such a restart:
//!
//! - The run differs from the run that this process observed before. Or a Cluster node replaced
//!   another one, which may not have replicated all its data to it. The grace then holds for every
//!   lock.
//! - Redis has only just started, and so has this process, which therefore knows no earlier run.
//!   The grace then holds for locks with an earlier grant: the floor of the claim is above zero.
//!   Claims of other locks succeed at once, because at a first start no holder can reassert.
//!
//! The grace begins with the first call that Redis executes: a Cluster node that has just started
//! refuses all calls for two seconds, also those of holders.
//!
//! *The end of the previous connection.* A closed connection may still buffer a claim, and Redis
//! may execute it after the value's release is forgotten. So the first command of each connection
//! kills the previous one. A claim that Redis has not executed by then never is; the pending
//! release frees an executed one ([`crate::redis::pending_releases`]).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::REASSERT_GRACE;
use crate::redis::scripts::pipeline;
use galley_domain::fence::Fence;

/// Whether this process knew the node from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeOrigin {
    First,
    /// It replaces another node, which may not have replicated all its data to it.
    Later,
}

#[derive(Debug)]
pub(crate) struct ServerIdentity {
    origin: NodeOrigin,
    state: Mutex<IdentityState>,
}

#[derive(Debug, Default)]
struct IdentityState {
    met: Option<Met>,
    any: Grace,
    /// The grace of locks that only the database knows.
    given: Grace,
}

/// A time in which holders reassert.
#[derive(Clone, Copy, Debug, Default)]
enum Grace {
    #[default]
    None,
    /// This long, from the first executed call.
    Ahead(Duration),
    Until(Instant),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Met {
    /// The run id; it changes at each start.
    run: String,
    connection: Option<i64>,
}

impl ServerIdentity {
    pub(crate) fn new(origin: NodeOrigin) -> Self {
        Self { origin, state: Mutex::default() }
    }

    /// Adds the queries of the identity. They precede all other commands; [`Self::observe_run`] takes
    /// their replies.
    pub(crate) fn add_queries(pipeline: &mut Pipeline) {
        pipeline.cmd("INFO").arg("server").cmd("CLIENT").arg("ID");
    }

    /// Stores the observed run and kills the previous connection. Works, with less safety, if Redis
    /// permits none of these commands.
    pub(crate) async fn observe_run(
        &self,
        answers: &[RedisResult<Value>],
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<()> {
        let Some(end) = self.learn(answers) else { return Ok(()) };
        let mut last = pipeline();
        last.add_command(end);
        let answers: Vec<RedisResult<Value>> = last.query_async(connection).await?;
        // The usual reply is that the connection does not exist any more.
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        let not_permitted = ErrorKind::Server(ServerErrorKind::NoPerm);
        if refused.into_iter().any(|error| error.kind() == not_permitted) {
            tracing::warn!(
                "Redis does not permit this server to kill its previous connection: allow the user \
                 +client|kill, or Redis may execute a claim that is buffered there much later"
            );
        }
        Ok(())
    }

    /// The reassert grace of a lock without a grant in Redis, for a claim with this floor.
    pub(crate) fn grace(&self, floor: Fence) -> Duration {
        let [any, given] = self.graces().unwrap_or_default();
        if floor == Fence::ZERO { any } else { given }
    }

    /// The graces of any lock, and of a lock whose floor is above zero; `None` when both are over.
    pub(crate) fn graces(&self) -> Option<[Duration; 2]> {
        let state = self.state();
        let any = state.any.left();
        let graces = [any, any.max(state.given.left())];
        graces.iter().any(|grace| !grace.is_zero()).then_some(graces)
    }

    /// Redis executed a call: the graces begin.
    pub(crate) fn mark_serving(&self) {
        let mut state = self.state();
        state.any.begin();
        state.given.begin();
    }

    /// Stores the run. Returns the command that kills the previous connection, if that was to the
    /// same run: another run numbers its connections anew.
    fn learn(&self, answers: &[RedisResult<Value>]) -> Option<Cmd> {
        let info: String = answer(answers.first())?;
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let met = Met { run: field("run_id")?.to_owned(), connection: answer(answers.get(1)) };
        let uptime = field("uptime_in_seconds").and_then(|seconds| seconds.parse().ok());
        let uptime = uptime.map_or(Duration::MAX, Duration::from_secs);
        let mut state = self.state();
        match state.met.replace(met.clone()) {
            None if self.origin == NodeOrigin::First => {
                state.given = Grace::Ahead(REASSERT_GRACE.saturating_sub(uptime));
            }
            Some(last) if last.run == met.run => {
                let mut kill = redis::cmd("CLIENT");
                kill.arg("KILL").arg("ID").arg(last.connection?);
                return Some(kill);
            }
            None | Some(_) => {
                tracing::warn!(
                    "this is another run of Redis than before: new grants wait until holders reassert"
                );
                state.any = Grace::Ahead(REASSERT_GRACE);
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, IdentityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grace {
    fn left(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Ahead(all) => all,
            Self::Until(end) => end.saturating_duration_since(Instant::now()),
        }
    }

    fn begin(&mut self) {
        if let Self::Ahead(all) = *self {
            *self = Self::Until(Instant::now() + all);
        }
    }
}

fn answer<T: FromRedisValue>(answer: Option<&RedisResult<Value>>) -> Option<T> {
    redis::from_redis_value_ref(answer?.as_ref().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(run: &str, uptime: u64, connection: i64) -> [RedisResult<Value>; 2] {
        let info = format!("# Server\r\nrun_id:{run}\r\nuptime_in_seconds:{uptime}\r\n");
        [Ok(Value::BulkString(info.into_bytes())), Ok(Value::Int(connection))]
    }

    /// The graces of a lock without and with an earlier grant.
    fn graces(it: &ServerIdentity) -> (Duration, Duration) {
        (it.grace(Fence::ZERO), it.grace(Fence(1)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_young_redis_has_a_grace_only_for_locks_that_were_granted_before() {
        for (uptime, grace) in [(0, 2), (1, 1), (2, 0), (86_400, 0)] {
            let it = ServerIdentity::new(NodeOrigin::First);
            assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
            assert!(it.learn(&answers("a", uptime, 1)).is_none());
            assert_eq!(graces(&it), (Duration::ZERO, Duration::from_secs(grace)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_run_has_the_reassert_grace_whatever_its_uptime() {
        let it = ServerIdentity::new(NodeOrigin::First);
        it.learn(&answers("a", 9, 1));
        // As after a failover: the id belongs to another run, so the process kills no connection.
        assert!(it.learn(&answers("b", 86_400, 7)).is_none());
        // The grace does not run before Redis executes a call.
        tokio::time::advance(REASSERT_GRACE).await;
        assert_eq!(graces(&it), (REASSERT_GRACE, REASSERT_GRACE));
        it.mark_serving();
        tokio::time::advance(REASSERT_GRACE / 2).await;
        it.mark_serving();
        assert_eq!(graces(&it), (REASSERT_GRACE / 2, REASSERT_GRACE / 2));
        tokio::time::advance(REASSERT_GRACE / 2).await;
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_replacement_node_has_the_reassert_grace() {
        let it = ServerIdentity::new(NodeOrigin::Later);
        assert!(it.learn(&answers("a", 86_400, 1)).is_none());
        assert_eq!(graces(&it), (REASSERT_GRACE, REASSERT_GRACE));
        it.mark_serving();
        tokio::time::advance(REASSERT_GRACE).await;
        it.learn(&answers("a", 86_402, 2)).expect("the previous connection is killed");
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn the_previous_connection_to_the_same_run_is_killed() {
        let it = ServerIdentity::new(NodeOrigin::First);
        it.learn(&answers("a", 9, 4));
        let kill = it.learn(&answers("a", 9, 5)).expect("a command");
        assert!(kill.get_packed_command().ends_with(b"KILL\r\n$2\r\nID\r\n$1\r\n4\r\n"));
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test]
    async fn a_redis_without_identity_has_no_grace() {
        let it = ServerIdentity::new(NodeOrigin::First);
        let refused = || Err(redis::RedisError::from(std::io::Error::other("no right")));
        for answers in [vec![], vec![refused(), Ok(Value::Int(1))], vec![Ok(Value::Nil)]] {
            assert!(it.learn(&answers).is_none());
        }
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }
}
