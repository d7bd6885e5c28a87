//! Which Redis is at the other end of a new connection, and what follows from that. Each node has
//! one of these.
//!
//! *It may have come back empty.* Then it has forgotten who holds its locks, and the holders say so
//! again as soon as they are connected to it. Until they have had the time to, a lock of which it
//! knows nothing is given to no newcomer. There are two signs of it. It is another run than the one
//! that this process spoke to before, or a node of a Cluster that came in the place of another, which
//! may not have told it all; that counts for every lock. Or it has only just started, and
//! this process as well, which therefore knows of no other run; that counts for locks of which the
//! database knows that they were given before, by the floor of the claim. Others are given at once:
//! a first start has nobody to wait for.
//!
//! That time begins with the first call that is carried out: a node of a Cluster that has just started
//! refuses everything for two seconds, also to those who come back.
//!
//! *The last connection may still hold a claim.* One that was given up can be stuck on its way, and
//! be delivered when its value is no longer known to be spent. So each connection has Redis end the
//! one before it, as the first thing it does: what was not carried out by then never is, and what
//! was is taken back by the release that follows ([`crate::locks::redis::pending_releases`]).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::locks::redis::node::Coming;
use crate::locks::redis::scripts::pipeline;

/// For how long a Redis that came back empty is left to those who held its locks. They try to
/// connect every half a second, and renew at once when they are.
pub(in crate::locks) const RETURN_GRACE: Duration = Duration::from_secs(2);

/// What this process knows of the Redis that it speaks to.
#[derive(Debug)]
pub(in crate::locks) struct Acquaintance {
    coming: Coming,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    met: Option<Met>,
    /// For how long holders of any lock may come back.
    any: Grace,
    /// For how long holders may of which only the database knows.
    given: Grace,
}

/// A time in which holders may come back.
#[derive(Clone, Copy, Debug, Default)]
enum Grace {
    #[default]
    None,
    /// As long as this, from the first call on that is carried out.
    Ahead(Duration),
    Until(Instant),
}

/// A Redis that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Met {
    /// Another after each start.
    run: String,
    /// What it calls the connection.
    connection: Option<i64>,
}

impl Acquaintance {
    /// With somebody who is not met yet.
    pub(in crate::locks) fn new(coming: Coming) -> Self {
        Self { coming, known: Mutex::default() }
    }

    /// Asks Redis who it is; to be sent before anything else, and the answers given to
    /// [`Self::meet`].
    pub(in crate::locks) fn ask(pipeline: &mut Pipeline) {
        pipeline.cmd("INFO").arg("server").cmd("CLIENT").arg("ID");
    }

    /// Reads who it is, and ends the connection before this one. Nothing of it has to be permitted.
    pub(in crate::locks) async fn meet(
        &self,
        answers: &[RedisResult<Value>],
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<()> {
        let Some(end) = self.learn(answers) else { return Ok(()) };
        let mut last = pipeline();
        last.add_command(end);
        let answers: Vec<RedisResult<Value>> = last.query_async(connection).await?;
        // That there is no such connection any more is the usual answer.
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        let not_permitted = ErrorKind::Server(ServerErrorKind::NoPerm);
        if refused.into_iter().any(|error| error.kind() == not_permitted) {
            tracing::warn!(
                "Redis does not permit to end the connection before this one: allow the user \
                 +client|kill, or a claim that is stuck there may be carried out much later"
            );
        }
        Ok(())
    }

    /// For how long the holder of a lock may still come back of which Redis knows nothing, if it is
    /// claimed with this floor.
    pub(in crate::locks) fn grace(&self, floor: Fence) -> Duration {
        let [any, given] = self.graces().unwrap_or_default();
        if floor == Fence::ZERO { any } else { given }
    }

    /// For how long holders may come back to any lock, and to one whose floor says that it was given
    /// before; none if that time is over.
    pub(in crate::locks) fn graces(&self) -> Option<[Duration; 2]> {
        let known = self.known();
        let any = known.any.left();
        let graces = [any, any.max(known.given.left())];
        graces.iter().any(|grace| !grace.is_zero()).then_some(graces)
    }

    /// It has carried out a call.
    pub(in crate::locks) fn serves(&self) {
        let mut known = self.known();
        known.any.begin();
        known.given.begin();
    }

    /// Notes who it is. Gives the command that ends the connection before this one, if there was
    /// one to the same Redis: another one numbers its connections anew.
    fn learn(&self, answers: &[RedisResult<Value>]) -> Option<Cmd> {
        let info: String = answer(answers.first())?;
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let met = Met { run: field("run_id")?.to_owned(), connection: answer(answers.get(1)) };
        let uptime = field("uptime_in_seconds").and_then(|seconds| seconds.parse().ok());
        let uptime = uptime.map_or(Duration::MAX, Duration::from_secs);
        let mut known = self.known();
        match known.met.replace(met.clone()) {
            None if self.coming == Coming::First => {
                known.given = Grace::Ahead(RETURN_GRACE.saturating_sub(uptime));
            }
            Some(last) if last.run == met.run => {
                let mut kill = redis::cmd("CLIENT");
                kill.arg("KILL").arg("ID").arg(last.connection?);
                return Some(kill);
            }
            None | Some(_) => {
                tracing::warn!(
                    "this is another Redis than before: its locks wait for who had them"
                );
                known.any = Grace::Ahead(RETURN_GRACE);
            }
        }
        None
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What was answered, if that was what was asked for.
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

    /// The graces of a lock that may never have been given, and of one that was.
    fn graces(it: &Acquaintance) -> (Duration, Duration) {
        (it.grace(Fence::ZERO), it.grace(Fence(1)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_redis_that_was_never_met_keeps_only_what_was_given_before_and_only_if_it_is_young() {
        for (uptime, grace) in [(0, 2), (1, 1), (2, 0), (86_400, 0)] {
            let it = Acquaintance::new(Coming::First);
            assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
            assert!(it.learn(&answers("a", uptime, 1)).is_none());
            assert_eq!(graces(&it), (Duration::ZERO, Duration::from_secs(grace)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_run_is_left_to_its_holders_however_long_it_has_been_running() {
        let it = Acquaintance::new(Coming::First);
        it.learn(&answers("a", 9, 1));
        // As after a failover: a connection of another Redis is not ours to end.
        assert!(it.learn(&answers("b", 86_400, 7)).is_none());
        // Nobody comes back before it does what it is told.
        tokio::time::advance(RETURN_GRACE).await;
        assert_eq!(graces(&it), (RETURN_GRACE, RETURN_GRACE));
        it.serves();
        tokio::time::advance(RETURN_GRACE / 2).await;
        it.serves();
        assert_eq!(graces(&it), (RETURN_GRACE / 2, RETURN_GRACE / 2));
        tokio::time::advance(RETURN_GRACE / 2).await;
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_in_the_place_of_another_is_left_to_the_holders_of_that_one() {
        let it = Acquaintance::new(Coming::Later);
        assert!(it.learn(&answers("a", 86_400, 1)).is_none());
        assert_eq!(graces(&it), (RETURN_GRACE, RETURN_GRACE));
        it.serves();
        tokio::time::advance(RETURN_GRACE).await;
        it.learn(&answers("a", 86_402, 2)).expect("the connection before is ended");
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_before_is_ended_where_it_is_the_same_redis() {
        let it = Acquaintance::new(Coming::First);
        it.learn(&answers("a", 9, 4));
        let kill = it.learn(&answers("a", 9, 5)).expect("a command");
        assert!(kill.get_packed_command().ends_with(b"KILL\r\n$2\r\nID\r\n$1\r\n4\r\n"));
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test]
    async fn a_redis_that_does_not_tell_is_taken_as_it_is() {
        let it = Acquaintance::new(Coming::First);
        let refused = || Err(redis::RedisError::from(std::io::Error::other("no right")));
        for answers in [vec![], vec![refused(), Ok(Value::Int(1))], vec![Ok(Value::Nil)]] {
            assert!(it.learn(&answers).is_none());
        }
        assert_eq!(graces(&it), (Duration::ZERO, Duration::ZERO));
    }
}
