//! Sends the same random operations to memory and to Redis, and compares the replies. So the
//! model's results about the table (`src/locks/model`) hold for the scripts too.

use std::env;
use std::ops::Range;
use std::time::Duration;

use galley::domain::fence::Fence;
use galley::locks::{
    Claim, Claimed, HeldLock, LockName, ReclaimToken, Released, Takeover, Verdict, WaitOutcome,
    Waiter,
};
use tokio::time::{Instant, timeout};

use crate::support::backends::TestBackend;
use crate::support::fixtures::{LONG, claim, granted_in_turn, held, owner};
use crate::support::redis_server::TEST_TIMEOUT;

const QUESTIONS: usize = 400;
/// No side renews its waiters here, so six seconds later a waiter counts as dead, on each side at
/// its own moment. A machine too slow for all operations in that time runs fewer.
const ALIVE: Duration = Duration::from_secs(5);
/// One lock with a wait queue, and one without.
const NAMES: u64 = 2;
const PEOPLE: u64 = 3;

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_of<'a, T>(&mut self, some: &'a [T]) -> Option<&'a T> {
        let at = self.below(some.len().max(1) as u64);
        some.get(usize::try_from(at).expect("an index"))
    }
}

/// One backend, and the operations sent to it.
struct Side {
    backend: TestBackend,
    seed: u64,
    /// By the number of the claim.
    held: Vec<Option<HeldLock>>,
    waiting: Vec<Option<Waiter>>,
    /// Whether the claim left the queue.
    left: Vec<bool>,
    released: Vec<bool>,
    /// The highest fence of each lock.
    fences: Vec<Fence>,
}

/// The comparable part of a reply: fences and times differ between backends.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Granted { replaced: Option<String> },
    Busy { holder: String, waiting: usize },
    Spent,
    TestBackend { position: usize, holder: String },
    Released(Released),
    Verdict(Verdict),
    Left,
    Emptied,
}

/// An operation.
#[derive(Clone, Debug)]
enum Operation {
    Claim(usize, Claim),
    Wait(usize, Claim),
    Leave(usize),
    Release(usize),
    Renew(usize),
    Empty,
}

impl Side {
    fn new(backend: TestBackend, seed: u64) -> Self {
        Self {
            backend,
            seed,
            held: Vec::new(),
            waiting: Vec::new(),
            left: Vec::new(),
            released: Vec::new(),
            fences: vec![Fence::ZERO; 2],
        }
    }

    async fn execute(&mut self, operation: &Operation, claims: &[Claim]) -> Said {
        match operation {
            Operation::Claim(number, claim) => {
                let said = self.backend.locks.claim(claim).await;
                match said {
                    Ok(Claimed::Granted(grant)) => {
                        let replaced = grant.replaced.as_ref().map(|holder| holder.value.clone());
                        self.was_given(*number, claim, &grant);
                        Said::Granted { replaced }
                    }
                    Ok(Claimed::Busy(holder)) => {
                        Said::Busy { holder: holder.value, waiting: holder.waiting }
                    }
                    Err(_spent) => Said::Spent,
                }
            }
            Operation::Wait(number, claim) => {
                let mut waiting = self.backend.locks.wait(claim, LONG);
                self.left[*number] = true;
                match timeout(TEST_TIMEOUT, waiting.next()).await.expect("in time") {
                    Ok(WaitOutcome::Granted(grant)) => {
                        self.was_given(*number, claim, &grant);
                        Said::Granted { replaced: None }
                    }
                    Ok(WaitOutcome::Position(backend)) => {
                        self.waiting[*number] = Some(waiting);
                        Said::TestBackend {
                            position: backend.position,
                            holder: backend.holder.value,
                        }
                    }
                    Err(_spent) => Said::Spent,
                }
            }
            Operation::Leave(number) => {
                let Some(waiting) = self.waiting[*number].take() else { return Said::Left };
                drop(waiting);
                // The same operation in the background, and now.
                let it = &claims[*number];
                Said::Released(
                    self.backend.locks.release(&it.name, &it.value).await.expect("a reply"),
                )
            }
            Operation::Release(number) => {
                let Claim { name, value, .. } = &claims[*number];
                self.released[*number] = true;
                Said::Released(self.backend.locks.release(name, value).await.expect("a reply"))
            }
            Operation::Empty => {
                self.waiting.iter_mut().for_each(|waiting| *waiting = None);
                // After an empty restart the first to reassert is the holder, under any older
                // grant.
                self.fences.fill(Fence::ZERO);
                self.backend.empty().await;
                Said::Emptied
            }
            Operation::Renew(number) => {
                let held = self.held[*number].clone().expect("it was granted");
                let round = self.backend.locks.renew(&[held], LONG).await.expect("a reply");
                Said::Verdict(round.verdicts[0])
            }
        }
    }

    fn was_given(&mut self, number: usize, claim: &Claim, grant: &galley::locks::Grant) {
        let last = &mut self.fences[number_of(&claim.name)];
        assert!(*last <= grant.fence && claim.floor < grant.fence, "{last} then {}", grant.fence);
        *last = grant.fence;
        self.held[number] = Some(held(claim, grant));
    }

    /// The holder of each lock, and the length of its queue.
    async fn state(&self) -> Vec<Option<(String, usize)>> {
        let names: Vec<_> = (0..NAMES).map(|number| name(self.seed, number)).collect();
        let holders = self.backend.locks.holders(&names).await.expect("a reply");
        holders.into_iter().map(|it| it.map(|it| (it.value, it.waiting))).collect()
    }

    /// The waiters that received the lock accept it.
    async fn accept_hand_overs(&mut self, claims: &[Claim]) -> Vec<usize> {
        let mut had = Vec::new();
        for (value, _) in self.state().await.into_iter().flatten() {
            let number = claims.iter().position(|claim| claim.value == value);
            let Some(number) = number.filter(|number| self.waiting[*number].is_some()) else {
                continue;
            };
            let waiting = self.waiting[number].take().expect("it waits");
            let granted = timeout(TEST_TIMEOUT, granted_in_turn(waiting)).await.expect("in time");
            self.was_given(number, &claims[number], &granted.expect("a grant"));
            had.push(number);
        }
        had
    }
}

/// Each history has its own names.
fn name(seed: u64, number: u64) -> LockName {
    LockName::named(&format!("alike:{seed}:{number}"))
}

fn number_of(alike: &LockName) -> usize {
    usize::from(alike.key().ends_with(":1"))
}

/// The next operation, on an earlier claim or a new one.
fn question(dice: &mut Dice, claims: &mut Vec<Claim>, sides: &[Side; 2]) -> Operation {
    let waiting: Vec<_> = (0..claims.len()).filter(|at| sides[0].waiting[*at].is_some()).collect();
    // A waiter that leaves the queue releases in the background, after other releases of the lock.
    // The backend stores only the last released value. So for the lock with a queue, and for it
    // alone, no operation claims or renews a value that was released.
    let is_spent = |at: usize| sides[0].released[at] && number_of(&claims[at].name) == 1;
    let given: Vec<_> =
        (0..claims.len()).filter(|at| sides[0].held[*at].is_some() && !is_spent(*at)).collect();
    if dice.below(60) == 0 {
        return Operation::Empty;
    }
    match dice.below(10) {
        0..=1 if !given.is_empty() => Operation::Renew(*dice.one_of(&given).expect("one")),
        2..=4 if !claims.is_empty() => {
            // Later claims are more likely to hold the lock.
            let late = claims.len().saturating_sub(6);
            let at = (late..claims.len()).collect::<Vec<_>>();
            let at = *dice.one_of(&at).expect("one");
            if waiting.contains(&at) { Operation::Leave(at) } else { Operation::Release(at) }
        }
        5 if !waiting.is_empty() => Operation::Leave(*dice.one_of(&waiting).expect("one")),
        6 if !claims.is_empty() => {
            let at = usize::try_from(dice.below(claims.len() as u64)).expect("an index");
            // A repeated claim, maybe after its release. A waiter that left the queue has no claim.
            let (one, side) = (&claims[at], &sides[0]);
            let is_over = side.left[at] || is_spent(at);
            if is_over { Operation::Leave(at) } else { Operation::Claim(at, one.clone()) }
        }
        kind => {
            let person = format!("person{}", dice.below(PEOPLE));
            let waits = 8 <= kind;
            let mut one = claim(
                &name(sides[0].seed, u64::from(waits || dice.below(2) == 0)),
                &owner(&person, &person),
            );
            one.owner.pass = Some(ReclaimToken::of(&one.value));
            one.over = match dice.below(5) {
                0 => Takeover::SameOwner,
                1 => Takeover::Value(
                    dice.one_of(claims).map_or(String::new(), |it| it.value.clone()),
                ),
                2 => Takeover::ReclaimToken(ReclaimToken::of(
                    dice.one_of(claims).map_or("", |it| it.value.as_str()),
                )),
                _ => Takeover::None,
            };
            claims.push(one.clone());
            let number = claims.len() - 1;
            if waits { Operation::Wait(number, one) } else { Operation::Claim(number, one) }
        }
    }
}

async fn compare(seed: u64, both_backends: [TestBackend; 2]) {
    let mut sides = both_backends.map(|backend| Side::new(backend, seed));
    let (mut dice, mut claims, mut history) = (Dice(seed), Vec::new(), Vec::new());
    let began = Instant::now();
    for _ in 0..QUESTIONS {
        if ALIVE < began.elapsed() {
            break;
        }
        let operation = question(&mut dice, &mut claims, &sides);
        for side in &mut sides {
            side.held.resize(claims.len(), None);
            side.waiting.resize_with(claims.len(), || None);
            side.left.resize(claims.len(), false);
            side.released.resize(claims.len(), false);
        }
        history.push(operation.clone());
        let said = (
            sides[0].execute(&operation, &claims).await,
            sides[1].execute(&operation, &claims).await,
        );
        let notified = || {
            format!("GALLEY_SEED={seed}, after {:?}", &history[history.len().saturating_sub(8)..])
        };
        assert_eq!(said.0, said.1, "{}", notified());
        assert_eq!(sides[0].state().await, sides[1].state().await, "{}", notified());
        let accepted =
            (sides[0].accept_hand_overs(&claims).await, sides[1].accept_hand_overs(&claims).await);
        assert_eq!(accepted.0, accepted.1, "{}", notified());
    }
}

async fn both_backends() -> [TestBackend; 2] {
    [TestBackend::memory().await, TestBackend::redis().await]
}

/// From `first` on, or the seed that the environment requests.
fn seeds(first: u64, count: u64) -> Range<u64> {
    let execute = env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok());
    execute.map_or(first..first + count, |seed: u64| seed..seed + 1)
}

#[tokio::test]
async fn memory_and_redis_agree_in_random_histories() {
    for seed in seeds(1, 10) {
        let history = compare(seed, both_backends().await);
        timeout(Duration::from_secs(60), history).await.expect("in time");
    }
}
