//! Turns at something scarce: a few places, given out fairly.
//!
//! # Invariants (G16, G17)
//!
//! - **F1** Each asker has one place at a time, and each address so many that one is left for others.
//! - **F2** A free place goes to the address that has the fewest, and of those to the one that was served
//!   longest ago; within an address to the asker that was served longest ago. So a thousand requests
//!   of one user delay another user by the one that is under way.
//! - **F3** A place comes back when its [`Turn`] is dropped, also where its asker has stopped waiting.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task_local;

use crate::domain::ids::{DocumentId, UserId};

task_local! {
    /// The user and the address of the request that runs in this task.
    static REQUEST: (UserId, IpAddr);
}

/// Carries out a request in the name of its user and address: texts that it needs are built at their
/// turn.
pub async fn in_the_name_of<T>(
    user: UserId,
    address: IpAddr,
    request: impl Future<Output = T>,
) -> T {
    REQUEST.scope((user, address), request).await
}

/// Work for another task, in the name of the request in this one.
pub(super) fn passed_on<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let request = REQUEST.try_with(Clone::clone).ok();
    async move {
        match request {
            Some(request) => REQUEST.scope(request, work).await,
            None => work.await,
        }
    }
}

/// The cause of some work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asker {
    /// A request of a user.
    User(UserId, IpAddr),
    /// The server itself, for a document.
    Server(DocumentId),
}

impl Asker {
    /// The user of the request in this task; without one, the server.
    pub(super) fn now(document: DocumentId) -> Self {
        let user = REQUEST.try_with(|(user, address)| Self::User(user.clone(), *address));
        user.unwrap_or(Self::Server(document))
    }

    /// All that the server does itself counts as one address.
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::User(_, address) => Some(*address),
            Self::Server(_) => None,
        }
    }
}

/// Places and those who wait for one. Cloning is shallow.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    per_address: usize,
    addresses: HashMap<Option<IpAddr>, Address>,
    /// Turns that were given.
    given: u64,
}

#[derive(Debug, Default)]
struct Address {
    running: usize,
    served: u64,
    askers: HashMap<Asker, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    is_running: bool,
    served: u64,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    asker: Asker,
}

impl Turns {
    pub(super) fn new(places: usize, per_address: usize) -> Self {
        let state = State { free: places, per_address, addresses: HashMap::new(), given: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a turn.
    pub(super) async fn take(&self, asker: Asker) -> Option<Turn> {
        let (sender, turn) = oneshot::channel();
        {
            let mut state = self.lock();
            let address = state.addresses.entry(asker.address()).or_default();
            address.askers.entry(asker).or_default().waiting.push_back(sender);
        }
        self.give();
        // The sender is dropped only with all of this.
        turn.await.ok()
    }

    /// How many places are free.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.lock().free
    }

    /// Gives free places to those whose turn it is.
    fn give(&self) {
        loop {
            let next = self.lock().next();
            let Some((asker, sender)) = next else { return };
            // Outside of the lock: a turn for which nobody waits any more comes back at once (F3).
            let _came_back = sender.send(Turn { turns: self.clone(), asker });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().end(&self.asker);
        self.turns.give();
    }
}

impl State {
    /// Whose turn it is (F1, F2).
    fn next(&mut self) -> Option<(Asker, oneshot::Sender<Turn>)> {
        let per_address = self.per_address;
        let may_run = |address: &Address| {
            address.running < per_address && address.askers.values().any(Queue::may_run)
        };
        let addresses = self.addresses.iter_mut().filter(|_| 0 < self.free);
        let (_, address) = addresses
            .filter(|(_, address)| may_run(address))
            .min_by_key(|(_, address)| (address.running, address.served))?;
        let askers = address.askers.iter_mut().filter(|(_, queue)| queue.may_run());
        let (asker, queue) = askers.min_by_key(|(_, queue)| queue.served)?;
        let sender = queue.waiting.pop_front()?;
        self.given = self.given.saturating_add(1);
        self.free = self.free.saturating_sub(1);
        (queue.is_running, queue.served) = (true, self.given);
        address.running = address.running.saturating_add(1);
        address.served = self.given;
        Some((asker.clone(), sender))
    }

    fn end(&mut self, asker: &Asker) {
        self.free = self.free.saturating_add(1);
        let Some(address) = self.addresses.get_mut(&asker.address()) else { return };
        address.running = address.running.saturating_sub(1);
        if let Some(queue) = address.askers.get_mut(asker) {
            queue.is_running = false;
            if queue.waiting.is_empty() {
                address.askers.remove(asker);
            }
        }
        if address.askers.is_empty() {
            self.addresses.remove(&asker.address());
        }
    }
}

impl Queue {
    fn may_run(&self) -> bool {
        !self.is_running && !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    fn asker(user: &str, address: u8) -> Asker {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, address));
        Asker::User(user.parse().expect("an id"), address)
    }

    /// Waits for a turn in a task, once it stands in the queue.
    async fn waits(turns: &Turns, asker: Asker) -> JoinHandle<Turn> {
        let turns = turns.clone();
        #[expect(clippy::disallowed_methods, reason = "a test has no tracker")]
        let waits = tokio::spawn(async move { turns.take(asker).await.expect("a turn") });
        yield_now().await;
        waits
    }

    async fn settle() {
        for _ in 0..10 {
            yield_now().await;
        }
    }

    /// Goal (M2): one user who asks for many texts has one place, and no other user waits for them.
    #[tokio::test]
    async fn g17_one_user_has_one_place_however_often_they_ask() {
        let turns = Turns::new(4, 3);
        let mut greedy = Vec::new();
        for _ in 0..24 {
            greedy.push(waits(&turns, asker("lee", 1)).await);
        }
        assert_eq!(turns.free(), 3);
        let honest = waits(&turns, asker("kim", 1)).await.await.expect("at once");
        let other = waits(&turns, asker("park", 2)).await.await.expect("at once");
        assert_eq!(turns.free(), 1);
        drop((honest, other));
        for one in greedy {
            drop(one.await.expect("their turn comes"));
        }
        assert_eq!(turns.free(), 4);
        assert!(turns.lock().addresses.is_empty(), "nothing is kept of those who are gone");
    }

    /// Goal (M2): a crowd of users of one address leaves a place for others.
    #[tokio::test]
    async fn g17_an_address_leaves_a_place_for_others() {
        let turns = Turns::new(4, 3);
        let mut crowd = Vec::new();
        for user in 0..50 {
            crowd.push(waits(&turns, asker(&format!("guest-{user}"), 1)).await);
        }
        assert_eq!(turns.free(), 1);
        let own = waits(&turns, Asker::Server(DocumentId::generate())).await;
        drop(own.await.expect("at once"));
        // With all places taken, the next one is for the address that has none.
        let first = waits(&turns, asker("kim", 2)).await.await.expect("at once");
        let late = waits(&turns, asker("park", 3)).await;
        settle().await;
        assert!(!late.is_finished());
        drop(crowd.remove(0).await.expect("it was given"));
        settle().await;
        assert!(late.is_finished());
        drop((first, late.await.expect("a turn")));
    }

    /// Goal: users of one address take turns, and who asked a hundred times comes once in each round.
    #[tokio::test]
    async fn g17_users_take_turns() {
        let turns = Turns::new(1, 1);
        let running = waits(&turns, asker("lee", 1)).await.await.expect("at once");
        let (mut greedy, mut honest) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            greedy.push(waits(&turns, asker("lee", 1)).await);
        }
        for _ in 0..2 {
            honest.push(waits(&turns, asker("kim", 1)).await);
        }
        drop(running);
        for waits in honest {
            // Before or after one of the other's, and not after all.
            drop(greedy.remove(0));
            drop(waits.await.expect("a turn"));
        }
        assert!(6 < greedy.len());
    }

    #[tokio::test]
    async fn a_turn_of_which_the_asker_is_gone_comes_back() {
        let turns = Turns::new(1, 1);
        let running = waits(&turns, asker("lee", 1)).await.await.expect("at once");
        let gone = waits(&turns, asker("kim", 1)).await;
        gone.abort();
        assert!(gone.await.is_err());
        let late = waits(&turns, asker("park", 2)).await;
        drop(running);
        drop(late.await.expect("a turn"));
        assert_eq!(turns.free(), 1);
    }
}
