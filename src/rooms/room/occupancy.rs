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
pub(super) enum Place {
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
    pub(super) place: Place,
    /// Since when the locks do not know of them.
    missed_since: Option<Instant>,
}

/// A seat.
#[derive(Debug)]
struct Chair {
    seat: Seat,
    sitter: Option<Occupant>,
    /// The last grant that is known to have left.
    left: Fence,
}

/// The seats of a room, by share link and role.
#[derive(Debug, Default)]
pub(super) struct Chairs(Vec<Chair>);

/// Somebody sat down.
#[derive(Debug)]
pub(super) struct Change {
    /// Who sat there until then.
    pub(super) before: Option<Occupant>,
}

impl Chairs {
    /// Somebody sits there by the grant `fence`. None if that is no news.
    pub(super) fn came(
        &mut self,
        seat: Seat,
        fence: Fence,
        user: &User,
        place: Place,
    ) -> Option<Change> {
        let chair = self.chair(seat)?;
        if fence <= chair.left {
            return None;
        }
        if let Some(sitter) = chair.sitter.as_mut().filter(|sitter| fence <= sitter.fence) {
            if fence == sitter.fence {
                sitter.missed_since = None;
            }
            return None;
        }
        let sitter = Occupant { fence, user: user.clone(), place, missed_since: None };
        Some(Change { before: chair.sitter.replace(sitter) })
    }

    /// The grant `fence` is over, and so are those before it. Returns who has left by that.
    pub(super) fn left(&mut self, seat: Seat, fence: Fence) -> Option<Occupant> {
        let chair = self.chair(seat)?;
        chair.left = chair.left.max(fence);
        chair.sitter.take_if(|sitter| sitter.fence <= fence)
    }

    /// The session of the grant `fence` gave way to another one of its person.
    pub(super) fn moved(&mut self, seat: Seat, fence: Fence) {
        if let Some(sitter) = self.sitter(seat).filter(|sitter| sitter.fence == fence) {
            sitter.place = Place::Moved;
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
        let sitter = chair.sitter.as_mut().filter(|sitter| sitter.place != Place::Here)?;
        // By a later grant somebody sits there who is about to say so.
        if holder.is_some_and(|holder| sitter.fence <= holder) {
            sitter.missed_since = None;
            return None;
        }
        let missed_since = *sitter.missed_since.get_or_insert(now);
        chair.sitter.take_if(|_| patience <= now.saturating_duration_since(missed_since))
    }

    /// The locks could not be asked: what they did not know before says nothing any more.
    pub(super) fn could_not_look(&mut self) {
        for sitter in self.0.iter_mut().filter_map(|chair| chair.sitter.as_mut()) {
            sitter.missed_since = None;
        }
    }

    /// Everybody who sits somewhere.
    pub(super) fn taken(&self) -> impl Iterator<Item = (Seat, Fence, &Occupant)> {
        self.0.iter().filter_map(|chair| {
            let sitter = chair.sitter.as_ref()?;
            Some((chair.seat, sitter.fence, sitter))
        })
    }

    /// Whether anybody sits on that server.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.taken().any(|(_, _, sitter)| sitter.place == Place::There(node))
    }

    fn sitter(&mut self, seat: Seat) -> Option<&mut Occupant> {
        self.0.iter_mut().find(|chair| chair.seat == seat)?.sitter.as_mut()
    }

    /// None if there are too many.
    fn chair(&mut self, seat: Seat) -> Option<&mut Chair> {
        let known = self.0.iter().position(|chair| chair.seat == seat);
        let index = match known {
            Some(index) => index,
            None => {
                // Those of links that were revoked.
                if SESSIONS_PER_ROOM_MAX <= self.0.len() {
                    self.0.retain(|chair| chair.sitter.is_some());
                }
                if SESSIONS_PER_ROOM_MAX <= self.0.len() {
                    return None;
                }
                self.0.push(Chair { seat, sitter: None, left: Fence::ZERO });
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

    fn there() -> Place {
        Place::There(NodeId::generate())
    }

    #[test]
    fn what_is_said_late_of_an_older_grant_is_no_news() {
        let (mut chairs, seat, kim) = (Chairs::default(), seat(), kim());
        assert!(chairs.came(seat, Fence(1), &kim, Place::Here).is_some());
        let change = chairs.came(seat, Fence(3), &kim, there()).expect("a later one");
        assert_eq!(change.before.expect("the first").fence, Fence(1));
        assert!(chairs.came(seat, Fence(2), &kim, there()).is_none(), "it was between the two");
        assert!(chairs.left(seat, Fence(2)).is_none());
        assert_eq!(chairs.taken().count(), 1);
        assert!(chairs.left(seat, Fence(3)).is_some());
        assert!(chairs.came(seat, Fence(3), &kim, there()).is_none(), "and does not come back");
        assert_eq!(chairs.taken().count(), 0);
    }

    #[test]
    fn who_left_before_they_came_takes_those_before_them_along() {
        let (mut chairs, seat, kim) = (Chairs::default(), seat(), kim());
        chairs.came(seat, Fence(1), &kim, Place::Here);
        assert!(chairs.left(seat, Fence(2)).is_some());
        assert!(chairs.came(seat, Fence(2), &kim, there()).is_none());
    }

    #[tokio::test]
    async fn whom_the_locks_do_not_know_for_long_has_left_and_may_say_otherwise() {
        let (mut chairs, seat, kim) = (Chairs::default(), seat(), kim());
        let (now, node) = (Instant::now(), there());
        chairs.came(seat, Fence(5), &kim, node);
        let mut look = |holder, after| chairs.looked(seat, holder, now + after, PATIENCE);
        assert!(look(None, Duration::ZERO).is_none());
        assert!(look(None, Duration::from_millis(70)).is_none(), "however often it is asked");
        assert!(look(Some(Fence(6)), PATIENCE).is_none());
        assert!(look(None, PATIENCE * 2).is_none(), "counted anew");
        chairs.could_not_look();
        assert!(chairs.looked(seat, None, now + PATIENCE * 4, PATIENCE).is_none());
        assert!(chairs.looked(seat, None, now + PATIENCE * 5, PATIENCE).is_some());
        assert!(chairs.came(seat, Fence(5), &kim, node).is_some(), "they are there after all");
    }

    #[tokio::test]
    async fn who_sits_here_is_not_looked_for_elsewhere_until_they_move() {
        let (mut chairs, seat, now) = (Chairs::default(), seat(), Instant::now());
        chairs.came(seat, Fence(5), &kim(), Place::Here);
        assert!(chairs.looked(seat, None, now, Duration::ZERO).is_none());
        chairs.moved(seat, Fence(5));
        assert!(chairs.looked(seat, None, now, Duration::ZERO).is_some());
    }
}
