//! Occupancy: the session in each seat, as far as this server knows.
//!
//! Reports arrive by several paths and out of order: from a session of this server, from other
//! servers, from replies to `Hello`, and from a poll of the locks. The fence of the grant orders them.
//! A report about an older grant than the known one changes nothing. A grant that left stays left.

use tokio::time::{Duration, Instant};

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::domain::limits::SESSIONS_PER_ROOM_MAX;
use crate::domain::seat::Seat;
use crate::domain::user::User;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeatLocation {
    Here,
    There(NodeId),
    /// Another session of the same user took the seat over, and its server has not reported it yet.
    Moved,
}

#[derive(Clone, Debug)]
pub(super) struct Occupant {
    fence: Fence,
    pub(super) user: User,
    pub(super) location: SeatLocation,
    /// The time since which the locks do not show the grant.
    missed_since: Option<Instant>,
}

#[derive(Debug)]
struct SeatOccupancy {
    seat: Seat,
    occupant: Option<Occupant>,
    /// The highest fence of a grant that left.
    left: Fence,
}

#[derive(Debug, Default)]
pub(super) struct Occupancy(Vec<SeatOccupancy>);

#[derive(Debug)]
pub(super) struct ReplacedOccupant {
    pub(super) before: Option<Occupant>,
}

impl Occupancy {
    /// A session holds the seat by the grant `fence`. `None` if the occupancy does not change.
    pub(super) fn join(
        &mut self,
        seat: Seat,
        fence: Fence,
        user: &User,
        location: SeatLocation,
    ) -> Option<ReplacedOccupant> {
        let entry = self.entry(seat)?;
        if fence <= entry.left {
            return None;
        }
        if let Some(occupant) = entry.occupant.as_mut().filter(|occupant| fence <= occupant.fence) {
            if fence == occupant.fence {
                occupant.missed_since = None;
            }
            return None;
        }
        let occupant = Occupant { fence, user: user.clone(), location, missed_since: None };
        Some(ReplacedOccupant { before: entry.occupant.replace(occupant) })
    }

    /// The grant `fence` ended, and so did all earlier ones. Returns the occupant that left by it.
    pub(super) fn left(&mut self, seat: Seat, fence: Fence) -> Option<Occupant> {
        let entry = self.entry(seat)?;
        entry.left = entry.left.max(fence);
        entry.occupant.take_if(|occupant| occupant.fence <= fence)
    }

    /// Another session of the same user took the seat over from the grant `fence`.
    pub(super) fn moved(&mut self, seat: Seat, fence: Fence) {
        if let Some(occupant) = self.occupant(seat).filter(|occupant| occupant.fence == fence) {
            occupant.location = SeatLocation::Moved;
        }
    }

    /// The locks show the grant `holder` for that seat, or none. Removes and returns an occupant whose
    /// grant they have not shown for `missing_max`. A later report of its server restores it.
    pub(super) fn observe(
        &mut self,
        seat: Seat,
        holder: Option<Fence>,
        now: Instant,
        missing_max: Duration,
    ) -> Option<Occupant> {
        let entry = self.0.iter_mut().find(|entry| entry.seat == seat)?;
        let occupant =
            entry.occupant.as_mut().filter(|occupant| occupant.location != SeatLocation::Here)?;
        // The server of a later grant is about to report it.
        if holder.is_some_and(|holder| occupant.fence <= holder) {
            occupant.missed_since = None;
            return None;
        }
        let missed_since = *occupant.missed_since.get_or_insert(now);
        entry.occupant.take_if(|_| missing_max <= now.saturating_duration_since(missed_since))
    }

    /// The query of the locks failed. The time without a grant starts anew, because it must be
    /// observed without interruption.
    pub(super) fn forget_absences(&mut self) {
        for occupant in self.0.iter_mut().filter_map(|entry| entry.occupant.as_mut()) {
            occupant.missed_since = None;
        }
    }

    pub(super) fn taken(&self) -> impl Iterator<Item = (Seat, Fence, &Occupant)> {
        self.0.iter().filter_map(|entry| {
            let occupant = entry.occupant.as_ref()?;
            Some((entry.seat, occupant.fence, occupant))
        })
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.taken().any(|(_, _, occupant)| occupant.location == SeatLocation::There(node))
    }

    fn occupant(&mut self, seat: Seat) -> Option<&mut Occupant> {
        self.0.iter_mut().find(|entry| entry.seat == seat)?.occupant.as_mut()
    }

    /// The state of a seat, created on demand. `None` if the room has too many.
    fn entry(&mut self, seat: Seat) -> Option<&mut SeatOccupancy> {
        let existing = self.0.iter().position(|entry| entry.seat == seat);
        let index = match existing {
            Some(index) => index,
            None => {
                // Drops empty seats, such as those of revoked links.
                if self.0.len() >= SESSIONS_PER_ROOM_MAX {
                    self.0.retain(|entry| entry.occupant.is_some());
                }
                if self.0.len() >= SESSIONS_PER_ROOM_MAX {
                    return None;
                }
                // A link has two seats, and most documents have one link; a push would reserve four.
                if self.0.is_empty() {
                    self.0.reserve_exact(2);
                }
                self.0.push(SeatOccupancy { seat, occupant: None, left: Fence::ZERO });
                self.0.len() - 1
            }
        };
        self.0.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ShareLinkId;
    use crate::domain::seat::Role;

    const MISSING_MAX: Duration = Duration::from_secs(8);

    fn seat() -> Seat {
        Seat::new(ShareLinkId::generate(), Role::Writer)
    }

    fn kim() -> User {
        User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() }
    }

    fn there() -> SeatLocation {
        SeatLocation::There(NodeId::generate())
    }

    #[test]
    fn a_late_report_of_an_older_grant_changes_nothing() {
        let (mut occupancy, seat, kim) = (Occupancy::default(), seat(), kim());
        assert!(occupancy.join(seat, Fence(1), &kim, SeatLocation::Here).is_some());
        let change = occupancy.join(seat, Fence(3), &kim, there()).expect("a later one");
        assert_eq!(change.before.expect("the first").fence, Fence(1));
        assert!(occupancy.join(seat, Fence(2), &kim, there()).is_none(), "between the two");
        assert!(occupancy.left(seat, Fence(2)).is_none());
        assert_eq!(occupancy.taken().count(), 1);
        assert!(occupancy.left(seat, Fence(3)).is_some());
        assert!(occupancy.join(seat, Fence(3), &kim, there()).is_none(), "it stays left");
        assert_eq!(occupancy.taken().count(), 0);
    }

    #[test]
    fn a_leave_before_its_join_removes_the_older_grants_too() {
        let (mut occupancy, seat, kim) = (Occupancy::default(), seat(), kim());
        occupancy.join(seat, Fence(1), &kim, SeatLocation::Here);
        assert!(occupancy.left(seat, Fence(2)).is_some());
        assert!(occupancy.join(seat, Fence(2), &kim, there()).is_none());
    }

    #[tokio::test]
    async fn a_peer_without_a_grant_leaves_after_the_limit_and_may_return() {
        let (mut occupancy, seat, kim) = (Occupancy::default(), seat(), kim());
        let (now, node) = (Instant::now(), there());
        occupancy.join(seat, Fence(5), &kim, node);
        let mut observe = |holder, after| occupancy.observe(seat, holder, now + after, MISSING_MAX);
        assert!(observe(None, Duration::ZERO).is_none());
        assert!(observe(None, Duration::from_millis(70)).is_none(), "however often the room polls");
        assert!(observe(Some(Fence(6)), MISSING_MAX).is_none());
        assert!(observe(None, MISSING_MAX * 2).is_none(), "the count starts anew");
        occupancy.forget_absences();
        assert!(occupancy.observe(seat, None, now + MISSING_MAX * 4, MISSING_MAX).is_none());
        assert!(occupancy.observe(seat, None, now + MISSING_MAX * 5, MISSING_MAX).is_some());
        assert!(
            occupancy.join(seat, Fence(5), &kim, node).is_some(),
            "its server reports it again"
        );
    }

    #[tokio::test]
    async fn a_local_session_is_not_polled_until_a_takeover_moves_it() {
        let (mut occupancy, seat, now) = (Occupancy::default(), seat(), Instant::now());
        occupancy.join(seat, Fence(5), &kim(), SeatLocation::Here);
        assert!(occupancy.observe(seat, None, now, Duration::ZERO).is_none());
        occupancy.moved(seat, Fence(5));
        assert!(occupancy.observe(seat, None, now, Duration::ZERO).is_some());
    }
}
