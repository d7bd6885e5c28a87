//! One script call to one connection: with `ASKING` after a redirect, and again after `NOSCRIPT`.

use std::sync::Arc;

use redis::{Cmd, ErrorKind, Pipeline, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::redis::connection::{Link, Reply};
use crate::redis::scripts::{Script, pipeline};
use crate::redis::server_identity::ServerIdentity;
use crate::types::{CallError, unexpected};

#[derive(Clone, Debug)]
pub(crate) struct CallTarget {
    pub(crate) link: Link,
    pub(crate) identity: Arc<ServerIdentity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirection {
    Straight,
    /// The node is importing the slot: the call needs `ASKING`.
    Asking,
}

impl Redirection {
    /// Adds `ASKING` before a command that follows an `ASK` redirect.
    pub(crate) fn lead(self, pipeline: &mut Pipeline) {
        if self == Self::Asking {
            pipeline.cmd("ASKING").ignore();
        }
    }
}

pub(crate) async fn call_at(
    end: &CallTarget,
    script: &Script,
    call: &impl Fn(&ServerIdentity) -> Cmd,
    way: Redirection,
    deadline: Instant,
) -> Result<(Instant, RedisResult<Value>), CallError> {
    let with = |lead: &dyn Fn(&mut Pipeline)| {
        let mut pipeline = pipeline();
        lead(&mut pipeline);
        way.lead(&mut pipeline);
        pipeline.add_command(call(&end.identity));
        pipeline
    };
    let (sent_at, reply) = match way {
        Redirection::Straight => end.link.query_one(|| call(&end.identity), deadline).await?,
        Redirection::Asking => {
            last(end.link.query_when_connected(|| with(&|_| {}), deadline).await?)?
        }
    };
    let (sent_at, reply) = match reply {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            let again = || with(&|pipeline| script.load(pipeline));
            last(end.link.query_when_connected(again, deadline).await?)?
        }
        reply => (sent_at, reply),
    };
    if reply.is_ok() {
        end.identity.mark_serving();
    }
    Ok((sent_at, reply))
}

fn last(answer: Reply) -> Result<(Instant, RedisResult<Value>), CallError> {
    let reply = answer.replies.into_iter().next().ok_or(CallError::Unknown(unexpected()))?;
    Ok((answer.sent_at, reply))
}
