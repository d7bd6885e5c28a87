//! Renewal and holder queries for many locks in batches.
//!
//! A failure leaves the verdict of its own locks unknown. It does not affect other locks.

use std::time::Duration;

use redis::{Pipeline, Value};
use tokio::time::Instant;

use crate::GRANT_TTL;
use crate::name::LockName;
use crate::redis::call::{Calls, Topology};
use crate::redis::connection::CALL_TIMEOUT;
use crate::redis::pipeline::{BatchCall, BatchSpec, ConnectionClass, batch_calls};
use crate::redis::reply;
use crate::redis::scripts::millis;
use crate::types::{HeldLock, Holder, LocksError, Round, Verdict, unexpected};

/// The least time that a renewal round grants one node of a Cluster.
const NODE_TIMEOUT_MIN: Duration = Duration::from_millis(50);

impl Calls {
    /// Renews each lock for its TTL, and extends the grants at the positions that `extends` names. A
    /// Cluster node that does not reply within `node_timeout` times out. Fails with [`LocksError`] when
    /// no lock has a verdict.
    pub(crate) async fn renew(
        &self,
        held: &[(&HeldLock, Duration)],
        extends: &[bool],
        node_timeout: Duration,
    ) -> Result<Round, LocksError> {
        let (scripts, key_format) = (&self.scripts, self.scripts.key_format);
        let deadline = Instant::now() + self.node_timeout(held, node_timeout);
        let some = |at: &[usize]| -> Vec<_> {
            at.iter().filter_map(|at| held.get(*at).copied()).collect()
        };
        let renewal = BatchSpec {
            script: &scripts.renew,
            class: ConnectionClass::Renewals,
            add: |at: &[usize], request: &mut Pipeline| {
                request.add_command(scripts.renew(&some(at)));
                let extended = at.iter().filter(|at| extends.get(**at) == Some(&true));
                for (held, _ttl) in extended.filter_map(|at| held.get(*at)) {
                    let grant = held.name.grant_key(key_format);
                    request.cmd("PEXPIRE").arg(grant).arg(millis(GRANT_TTL)).ignore();
                }
            },
            deadline,
        };
        let all = self.batch_calls(held, 0..held.len());
        let answers = self.run(all, &renewal).await;
        let mut verdicts = vec![Verdict::Unknown; held.len()];
        let refused = write(&answers.replies, &mut verdicts)?;
        let mut fault = answers.fault;
        if !refused.is_empty() {
            let reassertion = BatchSpec {
                script: &scripts.reassert,
                class: ConnectionClass::Renewals,
                add: |at: &[usize], request: &mut Pipeline| {
                    request.add_command(scripts.reassert(&some(at)));
                },
                deadline,
            };
            let back = self.run(self.batch_calls(held, refused), &reassertion).await;
            for at in write(&back.replies, &mut verdicts)? {
                put(&[at], vec![Verdict::Lost], &mut verdicts);
            }
            fault = fault.or(back.fault);
        }
        let Some(sent_at) = answers.sent_at else { return Err(fault.unwrap_or_else(unexpected)) };
        if let Some(error) = fault {
            if verdicts.iter().all(|verdict| *verdict == Verdict::Unknown) {
                return Err(error);
            }
            tracing::warn!(%error, "some locks were not renewed");
        }
        Ok(Round { sent_at, verdicts })
    }

    pub(crate) async fn holders(
        &self,
        names: &[LockName],
    ) -> Result<Vec<Option<Holder>>, LocksError> {
        let some = |at: &[usize]| -> Vec<_> {
            at.iter().filter_map(|at| names.get(*at).cloned()).collect()
        };
        let question = BatchSpec {
            script: &self.scripts.holders,
            class: ConnectionClass::Calls,
            add: |at: &[usize], request: &mut Pipeline| {
                request.add_command(self.scripts.holders(&some(at)));
            },
            deadline: Instant::now() + CALL_TIMEOUT,
        };
        let slots = names.iter().enumerate().map(|(at, name)| (at, (self.slot(name), ())));
        let answers = self.run(batch_calls(slots), &question).await;
        if let Some(error) = answers.fault {
            return Err(error);
        }
        let mut holders = vec![None; names.len()];
        for (at, reply) in &answers.replies {
            put(at, reply::holders(reply, at.len())?, &mut holders);
        }
        Ok(holders)
    }

    fn batch_calls(
        &self,
        held: &[(&HeldLock, Duration)],
        at: impl IntoIterator<Item = usize>,
    ) -> Vec<BatchCall> {
        let of = |at: usize| {
            let (held, ttl) = held.get(at)?;
            Some((at, (self.slot(&held.name), *ttl)))
        };
        batch_calls(at.into_iter().filter_map(of))
    }

    /// The time-out of a round for one Redis node. One node of several must not use up the time
    /// that the shortest lease leaves for all.
    fn node_timeout(&self, held: &[(&HeldLock, Duration)], most: Duration) -> Duration {
        let shortest = held.iter().map(|(_held, ttl)| *ttl).min().unwrap_or(CALL_TIMEOUT);
        match &self.route {
            Topology::Single(_) => CALL_TIMEOUT,
            Topology::Cluster(_) => (shortest / 6).min(most).clamp(NODE_TIMEOUT_MIN, CALL_TIMEOUT),
        }
    }
}

fn put<T>(at: &[usize], what: Vec<T>, results: &mut [T]) {
    for (at, what) in at.iter().zip(what) {
        if let Some(result) = results.get_mut(*at) {
            *result = what;
        }
    }
}

/// Translates the bytes of the replies to verdicts. Returns the positions whose locks have another
/// value or none; those have no verdict yet.
fn write(
    replies: &[(Vec<usize>, Value)],
    verdicts: &mut [Verdict],
) -> Result<Vec<usize>, LocksError> {
    let mut refused = Vec::new();
    for (at, reply) in replies {
        for (at, letter) in at.iter().zip(reply::verdicts(reply, at.len())?) {
            let verdict = match letter {
                b'1' => Verdict::Renewed,
                b'2' => Verdict::Reasserted,
                _ => {
                    refused.push(*at);
                    continue;
                }
            };
            if let Some(result) = verdicts.get_mut(*at) {
                *result = verdict;
            }
        }
    }
    Ok(refused)
}
