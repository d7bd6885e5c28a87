//! The rights of sessions to their seats, which every tick reads from the database.
//!
//! A later grant, an eviction, a revocation or the end of a reviewer takes the right of a session, and its message
//! may be lost: the acting server died before it. The same rights name the cause when a renewal finds a key gone.
//!
//! A database that was set back by a failover or a restore has lost grants: its fence is below that of the
//! session, and it rejects every write of the seat until the server ratifies the fence again. A set-back may lose
//! the grants of thousands of seats, and a grant whose document is locked is a commit of its own. So a task of its own ratifies,
//! [`GRANTS_RATIFIED_AT_ONCE`] at a time: the revocations of the next tick wait for none of them (G16).

use std::slice::from_ref;
use std::sync::Arc;

use chrono::Utc;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::domain::limits::{GRANTS_RATIFIED_AT_ONCE, PROBE_TIMEOUT};
use crate::locks::LockName;
use crate::outbox::close::LostReason;
use crate::seats::Seats;
use crate::sessions::session::Session;
use crate::storage::error::StorageError;
use crate::storage::seats::{Ratified, SeatRight};

impl Seats {
    /// Ratifies the lost grants that each tick finds, until the sessions have finished.
    pub(super) async fn ratify_lost_grants(self, mut lost: mpsc::Receiver<Vec<Arc<Session>>>) {
        let ratify = async {
            while let Some(sessions) = lost.recv().await {
                let ratify = |session| self.ratify_lost(session);
                stream::iter(&sessions).for_each_concurrent(GRANTS_RATIFIED_AT_ONCE, ratify).await;
            }
        };
        let _finished: Option<()> = self.shared.tasks.finished.run_until_cancelled(ratify).await;
    }

    /// The rights of these sessions, by position, read in one statement.
    pub(super) async fn rights_of(
        &self,
        sessions: &[Arc<Session>],
    ) -> Result<Vec<Option<SeatRight>>, StorageError> {
        let seats = sessions.iter().map(|it| (it.identity.seat, it.identity.user.id.clone()));
        self.shared.storage.seat_rights(&Vec::from_iter(seats)).await
    }

    /// Ends a session that has no right to its seat, with the cause. A right to a fence that is not above the
    /// session's own changes nothing.
    pub(super) async fn end_without_right(&self, session: &Arc<Session>, right: SeatRight) {
        let fence = session.fence();
        let reason = match right {
            SeatRight::Revoked => {
                tracing::info!(seat = %session.identity.seat, "the server found a revoked link");
                return self.lose_with_link(session).await;
            }
            SeatRight::Removed => LostReason::Removed,
            SeatRight::Ratified(ratified) if ratified <= fence => return,
            SeatRight::Ratified(ratified) if ratified.evicts(fence) => LostReason::Evicted,
            SeatRight::Ratified(_) => LostReason::TakenOver,
        };
        let seat = session.identity.seat;
        tracing::info!(%seat, reason = reason.as_str(), "the server found a session without a right");
        self.lose(session, reason);
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
            match self.rights_of(from_ref(session)).await.as_deref() {
                Ok([Some(right)]) => self.end_without_right(session, *right).await,
                Ok(_) => {}
                Err(error) => tracing::debug!(%seat, %error, "the right to a seat cannot be read"),
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
}
