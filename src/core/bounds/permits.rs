//! A fair semaphore: a few permits, shared fairly among users and addresses.
//!
//! # Invariants (G16, G17)
//!
//! - **F1** Each requester holds at most one permit, and each address at most `per_address`. The server
//!   sets `per_address` below the number of permits, so one remains for others.
//! - **F2** A free permit goes to the address with the fewest permits; among equals, to the least
//!   recently served address. Within an address it goes to the least recently served requester. So a
//!   thousand requests of one user delay another user by the running one only.
//! - **F3** Dropping a [`Permit`] frees it. A grant to a request whose future was dropped frees
//!   its permit at once.
//! - **F4** Dropping the future of a request removes it from the queue. Waiting requests of users have
//!   a bound for each user, each address and the server. The server's own requests have no bound: a
//!   room causes few.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::limits::{
    TEXTS_WAITING_MAX, TEXTS_WAITING_PER_ADDRESS_MAX, TEXTS_WAITING_PER_USER_MAX,
};

/// The holder of a permit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Requester {
    /// A user, and the network of the request.
    User(UserId, IpAddr),
    /// The server itself, for a document.
    Server(DocumentId),
}

impl Requester {
    /// `None`: all requests of the server itself share this one address.
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::User(_, address) => Some(*address),
            Self::Server(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Permits(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    per_address: usize,
    addresses: HashMap<Option<IpAddr>, Address>,
    /// Grants so far; the clock of `served`.
    given: u64,
    /// Tickets so far. Each waiting request has its own.
    tickets: u64,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Address {
    running: usize,
    served: u64,
    waiting: usize,
    requesters: HashMap<Requester, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    is_running: bool,
    served: u64,
    waiting: VecDeque<(u64, oneshot::Sender<Permit>)>,
}

/// Its drop frees it (F3).
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    requester: Requester,
    /// The permit is already free; the drop does nothing.
    is_over: bool,
}

/// Its drop removes the request from the queue (F4).
struct Waiter<'a> {
    permits: &'a Permits,
    requester: Requester,
    ticket: u64,
}

impl Permits {
    pub fn new(permits: usize, per_address: usize) -> Self {
        let state = State {
            free: permits,
            per_address,
            addresses: HashMap::new(),
            given: 0,
            tickets: 0,
            waiting: 0,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a permit. `None`: the queue is full (F4). Cancel safe: the drop withdraws the request.
    pub async fn take(&self, requester: Requester) -> Option<Permit> {
        let (sender, permit) = oneshot::channel();
        let ticket = self.lock().join(&requester, sender)?;
        let _waiter = Waiter { permits: self, requester, ticket };
        self.give();
        // The sender is queued until the grant; only the drop of this future withdraws it.
        permit.await.ok()
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.lock().free
    }

    fn give(&self) {
        loop {
            let next = self.lock().next();
            let Some((requester, sender)) = next else { return };
            let permit = Permit { permits: self.clone(), requester, is_over: false };
            // Sends outside of the lock. The loop ends a permit whose request was dropped (F3): the
            // permit's own drop would recurse into this function once for each such request.
            if let Err(mut permit) = sender.send(permit) {
                permit.is_over = true;
                self.lock().end(&permit.requester);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_over {
            self.permits.lock().end(&self.requester);
            self.permits.give();
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.permits.lock().withdraw(&self.requester, self.ticket);
    }
}

impl State {
    /// Adds a request to the queue of its requester. `None`: a queue is full (F4).
    fn join(&mut self, requester: &Requester, sender: oneshot::Sender<Permit>) -> Option<u64> {
        if matches!(requester, Requester::User(..)) {
            let address = self.addresses.get(&requester.address());
            let queue = address.and_then(|address| address.requesters.get(requester));
            let is_full = self.waiting >= TEXTS_WAITING_MAX
                || address.is_some_and(|it| it.waiting >= TEXTS_WAITING_PER_ADDRESS_MAX)
                || queue.is_some_and(|it| it.waiting.len() >= TEXTS_WAITING_PER_USER_MAX);
            if is_full {
                return None;
            }
        }
        self.tickets = self.tickets.saturating_add(1);
        let address = self.addresses.entry(requester.address()).or_default();
        let queue = address.requesters.entry(requester.clone()).or_default();
        queue.waiting.push_back((self.tickets, sender));
        address.waiting = address.waiting.saturating_add(1);
        if matches!(requester, Requester::User(..)) {
            self.waiting = self.waiting.saturating_add(1);
        }
        Some(self.tickets)
    }

    fn withdraw(&mut self, requester: &Requester, ticket: u64) {
        let Some(address) = self.addresses.get_mut(&requester.address()) else { return };
        let Some(queue) = address.requesters.get_mut(requester) else { return };
        let Ok(at) = queue.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket) else {
            return;
        };
        queue.waiting.remove(at);
        address.waiting = address.waiting.saturating_sub(1);
        if matches!(requester, Requester::User(..)) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.forget_unused(requester);
    }

    /// Takes the next request from its queue and books its permit (F1, F2).
    fn next(&mut self) -> Option<(Requester, oneshot::Sender<Permit>)> {
        let per_address = self.per_address;
        let may_run = |address: &Address| {
            address.running < per_address && address.requesters.values().any(Queue::may_run)
        };
        let addresses = self.addresses.iter_mut().filter(|_| self.free > 0);
        let (_, address) = addresses
            .filter(|(_, address)| may_run(address))
            .min_by_key(|(_, address)| (address.running, address.served))?;
        let requesters = address.requesters.iter_mut().filter(|(_, queue)| queue.may_run());
        let (requester, queue) = requesters.min_by_key(|(_, queue)| queue.served)?;
        let (_, sender) = queue.waiting.pop_front()?;
        address.waiting = address.waiting.saturating_sub(1);
        if matches!(requester, Requester::User(..)) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.given = self.given.saturating_add(1);
        self.free = self.free.saturating_sub(1);
        (queue.is_running, queue.served) = (true, self.given);
        address.running = address.running.saturating_add(1);
        address.served = self.given;
        Some((requester.clone(), sender))
    }

    fn end(&mut self, requester: &Requester) {
        self.free = self.free.saturating_add(1);
        let Some(address) = self.addresses.get_mut(&requester.address()) else { return };
        address.running = address.running.saturating_sub(1);
        if let Some(queue) = address.requesters.get_mut(requester) {
            queue.is_running = false;
        }
        self.forget_unused(requester);
    }

    /// Removes a requester without permit and request, and an address without requesters.
    fn forget_unused(&mut self, requester: &Requester) {
        let Some(address) = self.addresses.get_mut(&requester.address()) else { return };
        let queue = address.requesters.get(requester);
        if queue.is_some_and(|queue| !queue.is_running && queue.waiting.is_empty()) {
            address.requesters.remove(requester);
        }
        if address.requesters.is_empty() {
            self.addresses.remove(&requester.address());
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

    use std::pin::Pin;
    use std::task::{Context, Waker};

    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    fn requester(user: &str, address: u8) -> Requester {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, address));
        Requester::User(user.parse().expect("an id"), address)
    }

    /// Spawns a task that waits for a permit; returns once its request is queued.
    async fn waits(permits: &Permits, requester: Requester) -> JoinHandle<Permit> {
        let permits = permits.clone();
        #[expect(clippy::disallowed_methods, reason = "a test has no tracker")]
        let waits = tokio::spawn(async move { permits.take(requester).await.expect("a permit") });
        yield_now().await;
        waits
    }

    async fn run_tasks() {
        for _ in 0..10 {
            yield_now().await;
        }
    }

    /// Goal: a user with many requests holds one permit, and no other user waits for them.
    #[tokio::test]
    async fn g17_one_user_holds_one_permit_for_any_number_of_requests() {
        let permits = Permits::new(4, 3);
        let mut greedy = Vec::new();
        for _ in 0..24 {
            greedy.push(waits(&permits, requester("lee", 1)).await);
        }
        assert_eq!(permits.free(), 3);
        let honest = waits(&permits, requester("kim", 1)).await.await.expect("at once");
        let other = waits(&permits, requester("park", 2)).await.await.expect("at once");
        assert_eq!(permits.free(), 1);
        drop((honest, other));
        for one in greedy {
            drop(one.await.expect("a permit for each request"));
        }
        assert_eq!(permits.free(), 4);
        assert!(permits.lock().addresses.is_empty(), "the state retains no finished request");
    }

    /// Goal: many users of one address leave a permit for other addresses.
    #[tokio::test]
    async fn g17_one_address_leaves_a_permit_for_others() {
        let permits = Permits::new(4, 3);
        let mut crowd = Vec::new();
        for user in 0..50 {
            crowd.push(waits(&permits, requester(&format!("guest-{user}"), 1)).await);
        }
        assert_eq!(permits.free(), 1);
        let own = waits(&permits, Requester::Server(DocumentId::generate())).await;
        drop(own.await.expect("at once"));
        // No permit is free; the next free one goes to the address without a permit.
        let first = waits(&permits, requester("kim", 2)).await.await.expect("at once");
        let late = waits(&permits, requester("park", 3)).await;
        run_tasks().await;
        assert!(!late.is_finished());
        drop(crowd.remove(0).await.expect("a granted permit"));
        run_tasks().await;
        assert!(late.is_finished());
        drop((first, late.await.expect("a permit")));
    }

    /// Goal: permits alternate between the users of one address; a user with many requests gets one
    /// permit in each round.
    #[tokio::test]
    async fn g17_permits_alternate_between_the_users_of_an_address() {
        let permits = Permits::new(1, 1);
        let running = waits(&permits, requester("lee", 1)).await.await.expect("at once");
        let (mut greedy, mut honest) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            greedy.push(waits(&permits, requester("lee", 1)).await);
        }
        for _ in 0..2 {
            honest.push(waits(&permits, requester("kim", 1)).await);
        }
        drop(running);
        for waits in honest {
            // The other user's next request runs before or after this one; its later ones wait.
            drop(greedy.remove(0));
            drop(waits.await.expect("a permit"));
        }
        assert!(greedy.len() > 6);
    }

    #[tokio::test]
    async fn the_permit_of_a_cancelled_request_is_freed() {
        let permits = Permits::new(1, 1);
        let running = waits(&permits, requester("lee", 1)).await.await.expect("at once");
        let gone = waits(&permits, requester("kim", 1)).await;
        gone.abort();
        assert!(gone.await.is_err());
        let late = waits(&permits, requester("park", 2)).await;
        drop(running);
        drop(late.await.expect("a permit"));
        assert_eq!(permits.free(), 1);
    }

    /// A queued request without a task. `None`: the queue is full.
    fn queued(
        permits: &Permits,
        requester: Requester,
    ) -> Option<Pin<Box<impl Future<Output = Option<Permit>>>>> {
        let mut request = Box::pin(permits.take(requester));
        let polled = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        polled.is_pending().then_some(request)
    }

    #[tokio::test]
    async fn g17_twenty_thousand_abandoned_requests_leave_the_queue_at_once() {
        let permits = Permits::new(1, 1);
        let running = permits.take(requester("lee", 1)).await.expect("at once");
        let server = || Requester::Server(DocumentId::generate());
        let abandoned: Vec<_> = (0..20_000).map(|_| queued(&permits, server())).collect();
        assert!(abandoned.iter().all(Option::is_some), "the server's own requests have no bound");
        drop(abandoned);
        for _ in 0..20_000 {
            drop(
                queued(&permits, requester("kim", 1)).expect("an abandoned request takes no room"),
            );
        }
        let requesters: usize =
            permits.lock().addresses.values().map(|address| address.requesters.len()).sum();
        assert_eq!(requesters, 1, "the queue retains the running requester only");
        let late = waits(&permits, requester("park", 2)).await;
        drop(running);
        drop(late.await.expect("a permit"));
        assert_eq!(permits.free(), 1);
    }

    /// The receivers are dropped while their requests remain queued, as in a race with `give`.
    #[tokio::test]
    async fn g17_permits_of_requests_without_a_receiver_are_freed_without_recursion() {
        let permits = Permits::new(1, 1);
        let running = permits.take(requester("lee", 1)).await.expect("at once");
        let document = DocumentId::generate();
        for _ in 0..20_000 {
            let (sender, _gone) = oneshot::channel();
            permits.lock().join(&Requester::Server(document), sender).expect("a ticket");
        }
        let late = waits(&permits, requester("park", 2)).await;
        drop(running);
        drop(late.await.expect("a permit"));
        assert_eq!(permits.free(), 1);
        assert!(permits.lock().addresses.is_empty());
    }

    #[tokio::test]
    async fn g17_the_number_of_waiting_requests_has_a_bound() {
        let permits = Permits::new(1, 1);
        let running = permits.take(requester("lee", 1)).await.expect("at once");
        let mut waiting = Vec::new();
        for _ in 0..TEXTS_WAITING_PER_USER_MAX {
            waiting.push(queued(&permits, requester("kim", 2)).expect("room"));
        }
        assert!(permits.take(requester("kim", 2)).await.is_none());
        for user in TEXTS_WAITING_PER_USER_MAX..TEXTS_WAITING_PER_ADDRESS_MAX {
            waiting.push(queued(&permits, requester(&format!("guest-{user}"), 2)).expect("room"));
        }
        assert!(permits.take(requester("park", 2)).await.is_none());
        for user in TEXTS_WAITING_PER_ADDRESS_MAX..TEXTS_WAITING_MAX {
            let address = u8::try_from(3 + user % 200).expect("an address");
            waiting.push(
                queued(&permits, requester(&format!("guest-{user}"), address)).expect("room"),
            );
        }
        assert!(permits.take(requester("park", 250)).await.is_none());
        drop(waiting);
        drop(running);
        drop(permits.take(requester("park", 250)).await.expect("room again"));
        let state = permits.lock();
        assert!(state.addresses.is_empty() && state.waiting == 0);
    }
}
