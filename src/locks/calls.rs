//! Single calls of scripts: claims, releases, questions.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, ErrorKind, Pipeline, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::locks::fault::{Fault, explain};
use crate::locks::link::{Answer, Link, PATIENCE};
use crate::locks::name::LockName;
use crate::locks::reply;
use crate::locks::scripts::{Script, Scripts, pipeline};
use crate::locks::words::Released;

/// The connection for everything but renewals, and the scripts it calls.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) link: Link,
    pub(super) scripts: Arc<Scripts>,
}

impl Calls {
    /// Calls a script once; once more if Redis did not know it. The call is made when there is a
    /// connection to send it on.
    pub(super) async fn call(
        &self,
        script: &Script,
        call: impl Fn() -> Cmd,
    ) -> Result<(Instant, Value), Fault> {
        let deadline = Instant::now() + PATIENCE;
        let once = || {
            let mut once = pipeline();
            once.add_command(call());
            once
        };
        let (sent_at, reply) = only(self.link.ask_whoever_is_there(once, deadline).await?)?;
        match reply {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let again = || {
                    let mut again = pipeline();
                    script.load(&mut again);
                    again.add_command(call());
                    again
                };
                let (sent_at, reply) =
                    only(self.link.ask_whoever_is_there(again, deadline).await?)?;
                Ok((sent_at, self.checked(reply)?))
            }
            reply => Ok((sent_at, self.checked(reply)?)),
        }
    }

    /// Sends commands and gives their answers, of which none may be an error.
    pub(super) async fn ask(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        let answer = self.link.ask(pipeline, Instant::now() + PATIENCE).await?;
        answer.replies.into_iter().map(|reply| self.checked(reply)).collect()
    }

    /// Compares and gives back; nobody gets it for `rest`.
    pub(super) async fn release(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, Fault> {
        let call = || self.scripts.release(name, value, rest);
        let (_sent_at, reply) = self.call(&self.scripts.release, call).await?;
        reply::released(&reply).map_err(Fault::Unknown)
    }

    fn checked(&self, reply: RedisResult<Value>) -> Result<Value, Fault> {
        reply.map_err(|error| {
            if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
                // The primary is elsewhere now: look its address up again.
                self.link.reopen();
            }
            Fault::Refused(explain(&error))
        })
    }
}

fn only(answer: Answer) -> Result<(Instant, RedisResult<Value>), Fault> {
    let reply = answer.replies.into_iter().next().ok_or(Fault::Unknown(reply::unexpected()))?;
    Ok((answer.sent_at, reply))
}
