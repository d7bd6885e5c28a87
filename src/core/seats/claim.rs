//! Acquisition of a seat: from a socket's request to a session that holds the seat.
//!
//! ```text
//! link and role ─► registry (R1) ─► claim the key ─► ratify the fence ─► seated
//!                                     │ busy             │ rejected: claim again above it
//!                                     ▼
//!                     own dead session? ─► takeover        else ─► wait, or 4409
//! ```
//!
//! A takeover or a resume skips the probe: one script grants the key to the new session. The server
//! of the replaced session receives a message ([`liveness`](crate::seats::liveness)).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounds::allowances::Bucket;
use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, ShareLinkId};
use crate::domain::limits::FLUSH_TIMEOUT;
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::locks::{Claim, Claimed, Grant, Holder, LockName, Takeover};
use crate::outbox::close::{Close, LostReason, NOT_YOUR_ROLE};
use crate::outbox::event::Event;
use crate::outbox::{Outbox, OutboxReader, outbox};
use crate::pubsub::Topic;
use crate::rooms::RoomError;
use crate::rooms::room::peers::{Step, peer_message};
use crate::seats::Seats;
use crate::seats::handle::SeatHandle;
use crate::seats::joining::Arriving;
use crate::sessions::session::{Session, SessionIdentity, SessionState, pass_of};
use crate::storage::error::StorageError;
use crate::storage::seats::{Ratified, SeatLookup};
use crate::storage::users::changes;

/// Claims for one seat before the session is rejected. Each further claim means that another
/// session acquired the seat or raised the fence.
const CLAIM_TRIES: usize = 4;
/// Joins a second, fewer than one server with two cores seats (`tests/bench/RESULTS.md`).
const JOINS_A_SECOND: usize = 2_000;
/// The shortest and the longest time for clients of a lost server to reconnect in, in ms.
const RECONNECT_WITHIN: (usize, usize) = (600, 4_000);

#[derive(Clone, Debug)]
pub struct SeatRequest {
    pub user: User,
    /// The signing time of the token that carries the name.
    pub issued_at: DateTime<Utc>,
    pub link: ShareLinkId,
    pub role: Role,
    pub wants_events: bool,
    pub store_budget: Option<Bucket>,
    /// The resume token of a seat whose socket broke.
    pub resume: Option<String>,
    /// Whether the claim replaces the user's own session on any server.
    pub takes_over: bool,
    /// The longest wait in the queue of a taken seat. Zero: no wait.
    pub waits: Duration,
    /// Fires when the client disconnects during the wait.
    pub gone: CancellationToken,
    pub arriving: Arriving,
}

impl SeatRequest {
    /// The holder that the claim may replace without a liveness probe.
    fn over(&self) -> Takeover {
        if self.takes_over {
            return Takeover::SameOwner;
        }
        self.resume.as_deref().and_then(pass_of).map_or(Takeover::None, Takeover::ReclaimToken)
    }
}

impl Seats {
    /// An outbox that fits a whole document and some frames, and its reader for the socket.
    #[must_use]
    pub fn outbox(&self) -> (Outbox, OutboxReader) {
        outbox(self.limits().document_bytes * 2)
    }

    /// Acquires a seat for a session whose socket sends the content of `outbox`. If the seat is taken,
    /// the server may probe the holder, and the session may wait. Not cancel safe: await it to its end.
    /// `request.gone` ends a wait.
    pub async fn acquire_seat(
        &self,
        request: SeatRequest,
        outbox: Outbox,
    ) -> Result<SeatHandle, Close> {
        let started = Instant::now();
        let role = request.role;
        let seated = self.try_acquire(request, outbox).await;
        let outcome = match &seated {
            Ok(_) => "granted",
            Err(Close::SeatTaken { .. } | Close::WaitedInVain) => "taken",
            Err(Close::Unavailable(_)) => "unavailable",
            Err(_) => "refused",
        };
        metrics::counter!("galley_seat_claims_total", "role" => role.as_str(), "outcome" => outcome)
            .increment(1);
        metrics::histogram!("galley_seat_wait_seconds").record(started.elapsed().as_secs_f64());
        seated
    }

    async fn try_acquire(&self, request: SeatRequest, outbox: Outbox) -> Result<SeatHandle, Close> {
        self.not_draining()?;
        let seat = Seat::new(request.link, request.role);
        let SeatLookup { link, floor, .. } = self.authorize(&request, seat).await?;
        let identity = SessionIdentity {
            session: SessionId::generate(),
            seat,
            document: link.document_id,
            user: request.user.clone(),
            resume: resume_secret(),
            wants_events: request.wants_events,
            store_budget: request.store_budget.clone(),
        };
        let session = Arc::new(Session::claiming(identity, outbox));
        request.arriving.set_session(&session);
        self.shared.registry.enter(Arc::clone(&session));
        // A second check: a drain that began in between may have copied the registry before this
        // entry.
        if let Err(close) = self.not_draining() {
            self.shared.registry.leave(&session);
            session.end();
            return Err(close);
        }
        match self.claim(&session, &request, floor).await {
            Ok(()) => {}
            Err(close) => {
                self.shared.registry.leave(&session);
                session.end();
                self.announce_failed_join(&session).await;
                // A revocation or eviction in between takes precedence over the outcome of the
                // claim.
                return Err(session.lost_reason().map_or(close, Close::Lost));
            }
        }
        self.enter_room(session).await
    }

    fn not_draining(&self) -> Result<(), Close> {
        let is_draining = self.shared.draining.load(Ordering::Acquire);
        if is_draining { Err(Close::Restart("draining")) } else { Ok(()) }
    }

    /// Reads the caller's link and role. The ratification detects a revocation or a grant after
    /// this read.
    async fn authorize(&self, request: &SeatRequest, seat: Seat) -> Result<SeatLookup, Close> {
        let lookup = self.shared.storage.seat_lookup(seat).await.map_err(|error| {
            tracing::warn!(%error, "a share link cannot be read");
            match error {
                // A reconnecting client would read the same row.
                StorageError::Corrupt(_) => Close::Forbidden("document-damaged"),
                StorageError::Unavailable(_)
                | StorageError::Pooled(_)
                | StorageError::Full(_)
                | StorageError::Unsupported(_)
                | StorageError::Refused(_) => Close::Unavailable("storage"),
            }
        })?;
        let active = lookup.filter(|lookup| lookup.link.revoked_at.is_none());
        let Some(lookup) = active else {
            return Err(self.close_of_link(seat.link, &request.user.id).await);
        };
        let may_claim = match request.role {
            Role::Writer => lookup.link.writer.id == request.user.id,
            Role::Reviewer => {
                lookup.link.reviewer.as_ref().is_some_and(|r| r.id == request.user.id)
            }
        };
        if !may_claim {
            return Err(Close::Forbidden(NOT_YOUR_ROLE));
        }
        self.rename(request, &lookup).await;
        Ok(lookup)
    }

    /// Stores the token's name if it differs from the stored name, or its time if the token is
    /// newer. The row of the link contains both already, so a claim reads nothing more. The claim
    /// waits for a new name only; a task stores a new time. A failure costs the user a name and not
    /// the seat.
    async fn rename(&self, request: &SeatRequest, lookup: &SeatLookup) {
        let stored = match request.role {
            Role::Writer => Some(&lookup.link.writer),
            Role::Reviewer => lookup.link.reviewer.as_ref(),
        };
        let stored = stored.map(|stored| stored.name.as_str()).zip(lookup.named_at);
        if !changes(stored, &request.user.name, request.issued_at) {
            return;
        }
        let is_renamed = stored.is_none_or(|(name, _)| name != request.user.name);
        let (shared, user, issued_at) =
            (Arc::clone(&self.shared), request.user.clone(), request.issued_at);
        let saving = async move {
            // The server stores new times one at a time. So edits do not wait for the commits of
            // many simultaneous joins. A new name waits for no other user.
            let _permit =
                if is_renamed { None } else { shared.background_commits.acquire().await.ok() };
            if let Err(error) = shared.storage.save_user(&user, issued_at).await {
                tracing::warn!(%error, "the name in a token cannot be stored");
            }
        };
        if is_renamed {
            saving.await;
        } else {
            #[expect(clippy::disallowed_methods, reason = "one for each join")]
            self.shared.tasks.tracker.spawn(saving);
        }
    }

    async fn claim(
        &self,
        session: &Arc<Session>,
        request: &SeatRequest,
        mut floor: Fence,
    ) -> Result<(), Close> {
        let identity = &session.identity;
        let mut over = request.over();
        for _ in 0..CLAIM_TRIES {
            if session.state() == SessionState::Ended {
                break;
            }
            let claim = self.claim_of(session, floor, over.clone());
            let claimed = self.shared.locks.claim(&claim).await.map_err(|error| {
                tracing::warn!(%error, "a seat cannot be claimed");
                Close::Unavailable("locks")
            })?;
            let grant = match claimed {
                Claimed::Granted(grant) => grant,
                Claimed::Busy(holder) => match self.takeover_target(&holder, request).await {
                    Some(takeover) => {
                        over = takeover;
                        continue;
                    }
                    None if request.waits.is_zero() => return Err(taken(&holder, &request.user)),
                    None => self.wait_in_queue(session, &claim, request).await?,
                },
            };
            // Only the first grant may replace a session. If another session holds the key by now,
            // it claimed later. Without this rule two mutual takeovers would both end without a
            // seat.
            over = Takeover::None;
            match self.ratify(session, &grant).await? {
                Ratified::Accepted => return self.granted(session, &grant),
                // The session still holds the key. The next claim mints a fence above the
                // database's.
                Ratified::Refused { last } => floor = last,
                Ratified::Gone => {
                    self.release_key(identity).await;
                    return Err(self.close_of_link(identity.seat.link, &identity.user.id).await);
                }
                Ratified::NotTheReviewer => {
                    self.release_key(identity).await;
                    return Err(Close::Forbidden(NOT_YOUR_ROLE));
                }
            }
        }
        self.release_key(identity).await;
        Err(Close::Unavailable("seat-contended"))
    }

    fn claim_of(&self, session: &Session, floor: Fence, over: Takeover) -> Claim {
        let identity = &session.identity;
        Claim {
            name: LockName::seat(identity.seat),
            value: identity.session.to_string(),
            owner: session.owner(self.shared.pubsub.node()),
            floor,
            ttl: self.shared.terms.lease.ttl,
            over,
        }
    }

    /// The session that this claim may replace after a probe: a dead session of the same user. A
    /// wrong resume token is no error; the claim continues without it.
    async fn takeover_target(&self, holder: &Holder, request: &SeatRequest) -> Option<Takeover> {
        if holder.owner.id != request.user.id {
            return None;
        }
        // The exact value: in between another session of the user may have acquired the seat.
        (!self.is_alive(holder).await).then(|| Takeover::Value(holder.value.clone()))
    }

    /// Ends the previous session and flushes its pending edits *before* the new fence is ratified.
    /// Afterwards the database rejects them.
    async fn flush_previous_session(&self, session: &Session, grant: &Grant) -> Result<(), Close> {
        session.set_pending_fence(grant.fence);
        if let Some(loser) = self.shared.registry.insert_seat(session) {
            loser.lose(LostReason::TakenOver);
        }
        if session.state() == SessionState::Ended {
            // A later grant replaced this session, or its link was revoked in between.
            self.release_key(&session.identity).await;
            return Err(Close::Left);
        }
        if let Some(former) = &grant.replaced {
            self.flush_elsewhere(session, former).await;
        }
        let identity = &session.identity;
        if identity.seat.role.may_edit_text()
            && let Some(room) = self.shared.rooms.find(identity.document)
            && !room.flushed_within(FLUSH_TIMEOUT).await
        {
            self.release_key(identity).await;
            return Err(Close::Unavailable("storage"));
        }
        Ok(())
    }

    async fn ratify(&self, session: &Session, grant: &Grant) -> Result<Ratified, Close> {
        self.flush_previous_session(session, grant).await?;
        let identity = &session.identity;
        let (seat, session_id, user) = (identity.seat, identity.session, &identity.user.id);
        let ratified =
            self.shared.storage.ratify(seat, grant.fence, session_id, user, Utc::now()).await;
        match ratified {
            Ok(ratified) => Ok(ratified),
            Err(error) => {
                self.release_key(identity).await;
                tracing::warn!(%error, "a seat cannot be ratified");
                Err(Close::Unavailable("storage"))
            }
        }
    }

    fn granted(&self, session: &Arc<Session>, grant: &Grant) -> Result<(), Close> {
        let until = self.shared.terms.lease.trusted_until(grant.sent_at);
        let now = Instant::now();
        session.heard(now);
        session.record_activity(now);
        session.granted(grant.fence, grant.since, until);
        if let Some(registration) = self.register(session, grant.sent_at) {
            session.set_registration(registration);
        }
        if session.state() == SessionState::Held {
            return Ok(());
        }
        // The link was revoked, or the session evicted, during the claim.
        self.release_in_background(&session.identity);
        Err(session.lost_reason().map_or(Close::NoSuchLink, Close::Lost))
    }

    async fn enter_room(&self, session: Arc<Session>) -> Result<SeatHandle, Close> {
        let identity = &session.identity;
        let lease_ms = self.shared.terms.lease.ttl.as_millis();
        let granted = Event::SeatGranted {
            session: identity.session,
            role: identity.seat.role,
            fence: session.fence(),
            lease_ms: u64::try_from(lease_ms).unwrap_or(u64::MAX),
            resume: &identity.resume,
            user: &identity.user,
            message_bytes: self.limits().message_bytes,
            reconnect_within_ms: reconnect_within_ms(
                self.shared.registry.len(),
                self.shared.terms.resume_grace,
            ),
        };
        // A session whose claim began before the drain is not seated either.
        let joined = match self.not_draining() {
            Ok(()) => self.shared.rooms.join(&session, &granted).await.map_err(close_for),
            Err(close) => Err(close),
        };
        match joined {
            Ok(room) => {
                let (user, document) = (&identity.user.id, identity.document);
                let (session_id, fence) = (identity.session, session.fence());
                tracing::info!(seat = %identity.seat, %document, %user, session = %session_id, %fence, "seated");
                Ok(SeatHandle::new(self.clone(), session, room))
            }
            Err(close) => {
                self.release_seat(&session).await;
                self.announce_failed_join(&session).await;
                Err(close)
            }
        }
    }

    /// The claim succeeded and the join failed. Publishes `peer.left` for the replaced session,
    /// because no other code path does.
    async fn announce_failed_join(&self, session: &Session) {
        let (fence, document) = (session.fence(), session.identity.document);
        if fence == Fence::ZERO {
            return;
        }
        if let Some(room) = self.shared.rooms.find(document) {
            return room.announce_failed_join(session);
        }
        let message = peer_message(Step::Left, &session.identity, fence);
        if let Err(error) = self.shared.pubsub.publish(Topic::Room(document), &message).await {
            tracing::debug!(%document, %error, "the other servers find the holder at their next tick");
        }
    }

    /// Releases a seat: the session leaves the registry first, then the key is released (R1).
    pub(crate) async fn release_seat(&self, session: &Session) {
        session.end();
        if self.shared.registry.leave(session).is_some() {
            self.release_key(&session.identity).await;
            self.announce_departure(session);
        }
    }

    /// Releases a key. Without a reply of Redis, [`Locks`](crate::locks::Locks) retries the release.
    pub(crate) async fn release_key(&self, identity: &SessionIdentity) {
        let (name, value) = (LockName::seat(identity.seat), identity.session.to_string());
        if let Err(error) = self.shared.locks.release(&name, &value).await {
            tracing::warn!(%error, seat = %identity.seat, "a release is pending");
        }
    }

    pub(crate) fn release_in_background(&self, identity: &SessionIdentity) {
        let (name, value) = (LockName::seat(identity.seat), identity.session.to_string());
        self.shared.locks.release_in_background(name, value);
    }
}

/// The bound of a client's random first pause, by the sessions of this server: if it is lost, they all join others at
/// once. If only the socket broke, the client is to return within the grace. The simulation of a million pairs gives
/// the figures (`tests/reach/RESULTS.md`).
fn reconnect_within_ms(sessions: usize, grace: Duration) -> usize {
    let (shortest, longest) = RECONNECT_WITHIN;
    let half = usize::try_from(grace.as_millis() / 2).unwrap_or(longest);
    (sessions * 1_000 / JOINS_A_SECOND).min(half).clamp(shortest, longest)
}

pub(crate) fn taken(holder: &Holder, requester: &User) -> Close {
    Close::SeatTaken {
        holder: holder.owner.clone().into(),
        since: holder.has_grant().then_some(holder.since),
        own: holder.owner.id == requester.id,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function of `map_err`")]
fn close_for(error: RoomError) -> Close {
    match error {
        RoomError::NoSuchDocument => Close::NoSuchLink,
        RoomError::RoomFull => Close::TooMuch("room-full"),
        RoomError::MemorySpent => Close::Unavailable("memory"),
        RoomError::Unreadable
        | RoomError::TooCostly
        | RoomError::Busy
        | RoomError::StorageSpent
        | RoomError::Storage(_) => Close::Unavailable("storage"),
    }
}

fn resume_secret() -> String {
    let mut bytes = [0_u8; 32];
    match getrandom::fill(&mut bytes) {
        Ok(()) => URL_SAFE_NO_PAD.encode(bytes),
        // Unreachable without entropy: the session id uses the same source and panics first.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_a_larger_server_reconnect_over_a_longer_time() {
        let within = |seconds| {
            [0, 1_200, 4_000, 100_000]
                .map(|sessions| reconnect_within_ms(sessions, Duration::from_secs(seconds)))
        };
        assert_eq!(within(8), [600, 600, 2_000, 4_000]);
        assert_eq!(within(3), [600, 600, 1_500, 1_500]);
        assert_eq!(within(0), [600; 4]);
    }
}
