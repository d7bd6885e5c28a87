//! Repair of grants that a database has lost through a failover or a restore.
//!
//! The seat's lock and the server still have the grant, and no ratified fence was ever higher. The
//! database rejects every write of the seat until the server ratifies the fence again. So at each
//! tick the server compares the fences of all held seats with the ratified ones.
//!
//! A set-back may lose the grants of thousands of seats, and each ratification is one commit. So a
//! separate task compares and ratifies, [`GRANTS_RATIFIED_AT_ONCE`] at a time. The revocations of
//! the next tick wait for none of them (G16).
//!
//! That comparison also finds sessions whose seat a later grant or an eviction took, when the acting
//! server died before its message. It also names the cause when a renewal finds a key gone.

use std::collections::HashMap;
use std::slice::from_ref;
use std::sync::Arc;

use chrono::Utc;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, timeout};

use crate::domain::fence::Fence;
use crate::domain::limits::{GRANTS_RATIFIED_AT_ONCE, PROBE_TIMEOUT};
use crate::domain::seat::Seat;
use crate::locks::LockName;
use crate::outbox::close::LostReason;
use crate::seats::SeatService;
use crate::seats::reconcile::COMPARED_AT_ONCE;
use crate::sessions::session::{Session, SessionState};
use crate::storage::seats::Ratified;

impl SeatService {
    /// Starts a search for lost grants, or schedules one more after the running one.
    pub(super) fn ratify_again_soon(&self) {
        self.shared.ratifying_due.notify_one();
    }

    /// Ratifies lost grants whenever a search is due, until the sessions have finished.
    pub(super) async fn ratify_when_due(self) {
        let finished = self.shared.finished.clone();
        let ratify = async {
            loop {
                self.shared.ratifying_due.notified().await;
                self.ratify_again().await;
            }
        };
        let _finished: Option<()> = finished.run_until_cancelled(ratify).await;
    }

    /// Ratifies the grants of this server's sessions that the database has lost. The server
    /// ratifies a grant before its session counts as seated, so a lower fence means an older
    /// database.
    async fn ratify_again(&self) {
        let held = |phase| {
            matches!(phase, SessionState::Held | SessionState::Uncertain | SessionState::Away)
        };
        let mut seated = self.shared.registry.seated();
        seated.retain(|session| held(session.state()));
        let mut lost = Vec::new();
        for sessions in seated.chunks(COMPARED_AT_ONCE) {
            let seats: Vec<_> = sessions.iter().map(|session| session.identity.seat).collect();
            let fences: HashMap<Seat, Fence> = match self.shared.storage.fences(&seats).await {
                Ok(fences) => fences.into_iter().collect(),
                Err(error) => {
                    tracing::debug!(%error, "the ratified fences cannot be read");
                    // The next tick repeats the query.
                    break;
                }
            };
            self.end_overtaken(sessions, &fences).await;
            let is_lost = |session: &&Arc<Session>| {
                let ratified = fences.get(&session.identity.seat);
                ratified.is_some_and(|ratified| *ratified < session.fence())
            };
            lost.extend(sessions.iter().filter(is_lost).cloned());
        }
        stream::iter(lost)
            .for_each_concurrent(GRANTS_RATIFIED_AT_ONCE, async |session| {
                self.ratify_lost(&session).await;
            })
            .await;
    }

    /// Ends a session whose renewal found its key gone, with the cause.
    ///
    /// A revocation, the end of a reviewer and an eviction release the key. Their message may be lost,
    /// and the renewal may come before the comparison of the tick, so this reads the database too:
    /// [`GRANTS_RATIFIED_AT_ONCE`] sessions at a time, each for [`PROBE_TIMEOUT`] at most. Beyond it the
    /// session ends without its cause.
    pub(super) async fn end_without_key(&self, session: &Arc<Session>) {
        let (seat, user) = (session.identity.seat, &session.identity.user.id);
        match self.shared.locks.holder(&LockName::seat(seat)).await {
            Ok(Some(holder)) if holder.owner.id == *user => {
                return self.lose(session, LostReason::TakenOver);
            }
            Ok(_) | Err(_) => {}
        }
        let end_for_cause = async {
            let _permit = self.shared.cause_permits.acquire().await;
            // A revoked link has no fences.
            match self.shared.storage.revoked_among(&[seat.link]).await {
                Ok(revoked) if !revoked.is_empty() => return self.lose_with_link(session).await,
                Ok(_) => {}
                Err(error) => tracing::debug!(%seat, %error, "a share link cannot be read"),
            }
            match self.shared.storage.fences(&[seat]).await {
                Ok(fences) => {
                    self.end_overtaken(from_ref(session), &HashMap::from_iter(fences)).await;
                }
                Err(error) => tracing::debug!(%seat, %error, "the ratified fence cannot be read"),
            }
        };
        let _in_time = timeout(PROBE_TIMEOUT, end_for_cause).await;
        // Without effect on a session that has ended.
        self.lose(session, LostReason::Expired);
    }

    /// Ratifies one grant that the database has lost, if its session may still write.
    async fn ratify_lost(&self, session: &Arc<Session>) {
        if !session.may_write(Instant::now()) {
            return;
        }
        let (identity, fence) = (&session.identity, session.fence());
        let (seat, session_id, user) = (identity.seat, identity.session, &identity.user.id);
        match self.shared.storage.ratify(seat, fence, session_id, user, Utc::now()).await {
            Ok(Ratified::Accepted) => {
                tracing::error!(%seat, %fence, "the database had lost a grant; ratified again");
            }
            Ok(Ratified::Refused { .. } | Ratified::Gone | Ratified::NotTheReviewer) => {}
            Err(error) => tracing::warn!(%seat, %error, "a lost grant cannot be ratified"),
        }
    }

    /// Ends the sessions whose fence is below the ratified one: the database rejects their writes.
    /// The server that raised the fence died before its message, and a renewal does not compare
    /// fences.
    async fn end_overtaken(&self, seated: &[Arc<Session>], fences: &HashMap<Seat, Fence>) {
        let mut overtaken = Vec::new();
        for session in seated {
            let ratified = fences.get(&session.identity.seat).copied();
            overtaken.extend(ratified.filter(|it| session.fence() < *it).map(|it| (session, it)));
        }
        if overtaken.is_empty() {
            return;
        }
        let links: Vec<_> =
            overtaken.iter().map(|(session, _)| session.identity.seat.link).collect();
        // A revocation or the end of a reviewer also raises the fences, with close codes of their own.
        let revoked = match self.shared.storage.revoked_among(&links).await {
            Ok(revoked) => revoked,
            // The next tick repeats the query.
            Err(error) => return tracing::debug!(%error, "share links cannot be read"),
        };
        let sessions = overtaken.iter().map(|(session, _)| *session);
        let Some(removed) = self.former_reviewers_among(sessions).await else { return };
        for (session, ratified) in overtaken {
            let seat = session.identity.seat;
            if revoked.contains(&seat.link) {
                self.lose_with_link(session).await;
                continue;
            }
            let reason = if removed.contains(&session.identity.session) {
                LostReason::Removed
            } else if ratified.0 == session.fence().0.saturating_add(1) {
                // An eviction raises the fence by one. A new grant's fence is a time in µs. The word is
                // wrong for a grant of a Redis whose clock was set back below the last fence.
                LostReason::Evicted
            } else {
                LostReason::TakenOver
            };
            tracing::info!(%seat, reason = reason.as_str(), "the tick found a higher fence");
            self.lose(session, reason);
        }
    }
}
