//! The model of the leases ([`crate::locks::model`]) with sessions in place of guards. A session
//! whose renewals fail is uncertain; a successful renewal makes it held again.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::{DocumentId, SessionId, ShareLinkId};
use crate::domain::lease::LeaseTerms;
use crate::domain::seat::{Role, Seat};
use crate::locks::HeldLock;
use crate::locks::model::{DeadlineRule, TTL, check};
use crate::outbox::close::LostReason;
use crate::outbox::outbox;
use crate::sessions::session::{Session, SessionIdentity, SessionState};

impl DeadlineRule for Session {
    fn begin(held: HeldLock, ttl: Duration, sent_at: Instant, _now: Instant) -> Self {
        let identity = SessionIdentity {
            session: SessionId::generate(),
            seat: Seat::new(ShareLinkId::generate(), Role::Writer),
            document: DocumentId::generate(),
            user: held.owner.into(),
            resume: String::new(),
            wants_events: false,
            store_budget: None,
        };
        let session = Self::claiming(identity, outbox(1_000).0);
        session.granted(held.fence, held.since, terms(ttl).trusted_until(sent_at));
        session
    }

    fn renewed(&self, sent_at: Instant, _now: Instant) {
        Self::renewed(self, terms(TTL).trusted_until(sent_at));
    }

    fn may_write(&self, now: Instant) -> bool {
        Self::may_write(self, now)
    }

    fn is_renewable(&self, now: Instant) -> bool {
        self.check_deadline(now);
        self.state() != SessionState::Ended
    }

    fn end(&self) {
        self.lose(LostReason::Expired);
    }
}

fn terms(ttl: Duration) -> LeaseTerms {
    LeaseTerms { ttl, ..LeaseTerms::default() }
}

#[test]
fn g1_to_g6_hold_for_seats_in_two_thousand_random_schedules() {
    check::<Session>(5_000..7_000);
}
