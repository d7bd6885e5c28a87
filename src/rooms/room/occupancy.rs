//! Who sits where, as far as this server knows: one state a seat.
//!
//! Word of it comes by many ways, and not in order: from a session here, from other servers, again
//! from a server that was asked who is there, and from a look at the locks. The fence of the grant
//! puts it in order: what is said of an older grant than the one that is known is no news, and a
//! grant that has left does not come back.

use tokio::time::{Duration, Instant};

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::domain::limits::SESSIONS_PER_ROOM_MAX;
use crate::domain::seat::Seat;
use crate::domain::user::User;

/// Where somebody sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeatLocation {
    /// On this server.
    Here,
    /// On another one.
    There(NodeId),
    /// They gave way to another session of the same person, which has yet to say where it is.
    Moved,
}

/// Somebody in a seat.
#[derive(Clone, Debug)]
pub(super) struct Occupant {
    fence: Fence,
    pub(super) user: User,
    pub(super) place: SeatLocation,
    /// Since when the locks do not know of them.
    missed_since: Option<Instant>,
}

/// A seat.
#[derive(Debug)]
struct SeatOccupancy {
    seat: Seat,
    identity: Option<Occupant>,
    /// The last grant that is known to have left.
    left: Fence,
}

/// The seats of a room, by share link and role.
#[derive(Debug, Default)]
pub(super) struct Occupancy(Vec<SeatOccupancy>);

/// Somebody sat down.
#[derive(Debug)]
pub(super) struct Replaced {
    /// Who sat there until then.
    pub(super) before: Option<Occupant>,
}

impl Occupancy {
    /// Somebody sits there by the grant `fence`. None if that is no news.
    pub(super) fn came(
        &mut self,
        seat: Seat,
        fence: Fence,
        user: &User,
        place: SeatLocation,
    ) -> Option<Replaced> {
        let chair = self.chair(seat)?;
        if fence <= chair.left {
            return None;
        }
        if let Some(identity) = chair.identity.as_mut().filter(|identity| fence <= identity.fence) {
            if fence == identity.fence {
                identity.missed_since = None;
            }
            return None;
        }
        let identity = Occupant { fence, user: user.clone(), place, missed_since: None };
        Some(Replaced { before: chair.identity.replace(identity) })
    }

    /// The grant `fence` is over, and so are those before it. Returns who has left by that.
    pub(super) fn left(&mut self, seat: Seat, fence: Fence) -> Option<Occupant> {
        let chair = self.chair(seat)?;
        chair.left = chair.left.max(fence);
        chair.identity.take_if(|identity| identity.fence <= fence)
    }

    /// The session of the grant `fence` gave way to another one of its person.
    pub(super) fn moved(&mut self, seat: Seat, fence: Fence) {
        if let Some(identity) = self.identity(seat).filter(|identity| identity.fence == fence) {
            identity.place = SeatLocation::Moved;
        }
    }

    /// The locks know of the grant `holder` for that seat, or of none. Returns who is found to have
    /// left: whoever they have not known of for `patience`. They may come back: by a word of their
    /// own server.
    pub(super) fn looked(
        &mut self,
        seat: Seat,
        holder: Option<Fence>,
        now: Instant,
        patience: Duration,
    ) -> Option<Occupant> {
        let chair = self.0.iter_mut().find(|chair| chair.seat == seat)?;
        let identity =
            chair.identity.as_mut().filter(|identity| identity.place != SeatLocation::Here)?;
        // By a later grant somebody sits there who is about to say so.
        if holder.is_some_and(|holder| identity.fence <= holder) {
            identity.missed_since = None;
            return None;
        }
        let missed_since = *identity.missed_since.get_or_insert(now);
        chair.identity.take_if(|_| patience <= now.saturating_duration_since(missed_since))
    }

    /// The locks could not be asked: what they did not know before says nothing any more.
    pub(super) fn could_not_look(&mut self) {
        for identity in self.0.iter_mut().filter_map(|chair| chair.identity.as_mut()) {
            identity.missed_since = None;
        }
    }

    /// Everybody who sits somewhere.
    pub(super) fn taken(&self) -> impl Iterator<Item = (Seat, Fence, &Occupant)> {
        self.0.iter().filter_map(|chair| {
            let identity = chair.identity.as_ref()?;
            Some((chair.seat, identity.fence, identity))
        })
    }

    /// Whether anybody sits on that server.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.taken().any(|(_, _, identity)| identity.place == SeatLocation::There(node))
    }

    fn identity(&mut self, seat: Seat) -> Option<&mut Occupant> {
        self.0.iter_mut().find(|chair| chair.seat == seat)?.identity.as_mut()
    }

    /// None if there are too many.
    fn chair(&mut self, seat: Seat) -> Option<&mut SeatOccupancy> {
        let known = self.0.iter().position(|chair| chair.seat == seat);
        let index = match known {
            Some(index) => index,
            None => {
                // Those of links that were revoked.
                if SESSIONS_PER_ROOM_MAX <= self.0.len() {
                    self.0.retain(|chair| chair.identity.is_some());
                }
                if SESSIONS_PER_ROOM_MAX <= self.0.len() {
                    return None;
                }
                self.0.push(SeatOccupancy { seat, identity: None, left: Fence::ZERO });
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

    const PATIENCE: Duration = Duration::from_secs(8);

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
    fn what_is_said_late_of_an_older_grant_is_no_news() {
        let (mut occupancy, seat, kim) = (Occupancy::default(), seat(), kim());
        assert!(occupancy.came(seat, Fence(1), &kim, SeatLocation::Here).is_some());
        let change = occupancy.came(seat, Fence(3), &kim, there()).expect("a later one");
        assert_eq!(change.before.expect("the first").fence, Fence(1));
        assert!(occupancy.came(seat, Fence(2), &kim, there()).is_none(), "it was between the two");
        assert!(occupancy.left(seat, Fence(2)).is_none());
        assert_eq!(occupancy.taken().count(), 1);
        assert!(occupancy.left(seat, Fence(3)).is_some());
        assert!(occupancy.came(seat, Fence(3), &kim, there()).is_none(), "and does not come back");
        assert_eq!(occupancy.taken().count(), 0);
    }

    #[test]
    fn who_left_before_they_came_takes_those_before_them_along() {
        let (mut occupancy, seat, kim) = (Occupancy::default(), seat(), kim());
        occupancy.came(seat, Fence(1), &kim, SeatLocation::Here);
        assert!(occupancy.left(seat, Fence(2)).is_some());
        assert!(occupancy.came(seat, Fence(2), &kim, there()).is_none());
    }

    #[tokio::test]
    async fn whom_the_locks_do_not_know_for_long_has_left_and_may_say_otherwise() {
        let (mut occupancy, seat, kim) = (Occupancy::default(), seat(), kim());
        let (now, node) = (Instant::now(), there());
        occupancy.came(seat, Fence(5), &kim, node);
        let mut look = |holder, after| occupancy.looked(seat, holder, now + after, PATIENCE);
        assert!(look(None, Duration::ZERO).is_none());
        assert!(look(None, Duration::from_millis(70)).is_none(), "however often it is asked");
        assert!(look(Some(Fence(6)), PATIENCE).is_none());
        assert!(look(None, PATIENCE * 2).is_none(), "counted anew");
        occupancy.could_not_look();
        assert!(occupancy.looked(seat, None, now + PATIENCE * 4, PATIENCE).is_none());
        assert!(occupancy.looked(seat, None, now + PATIENCE * 5, PATIENCE).is_some());
        assert!(occupancy.came(seat, Fence(5), &kim, node).is_some(), "they are there after all");
    }

    #[tokio::test]
    async fn who_sits_here_is_not_looked_for_elsewhere_until_they_move() {
        let (mut occupancy, seat, now) = (Occupancy::default(), seat(), Instant::now());
        occupancy.came(seat, Fence(5), &kim(), SeatLocation::Here);
        assert!(occupancy.looked(seat, None, now, Duration::ZERO).is_none());
        occupancy.moved(seat, Fence(5));
        assert!(occupancy.looked(seat, None, now, Duration::ZERO).is_some());
    }
}
