//! The schedule of one run, generated from a seed. It is stored as data, so that the model can
//! replay it and shorten it to the steps that cause a failure.

/// A random number generator (splitmix64) with equal results for equal seeds on every platform.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }

    /// An index into a list of that length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True with a probability of `times` percent.
    pub(crate) fn in_a_hundred(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    /// A number from `least` up to, and without, `end`.
    pub(crate) fn between(&mut self, least: u64, end: u64) -> u64 {
        least + self.below(end - least)
    }
}

/// A millisecond and a second, in µs.
pub(crate) const MS: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// One event, and the delay since the previous one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Delay in µs.
    pub(crate) after: u64,
    pub(crate) what: What,
    /// The seed of the event's random choices: the affected session, the fate of messages.
    pub(crate) luck: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A client claims a seat.
    Comes(Manner),
    /// A holder's client closes the page, or a waiter gives up.
    Leaves,
    /// A client goes silent; its socket stays open.
    GoesSilent,
    /// The server ends a session: idle, evicted, revoked.
    LetGo,
    /// The holders write.
    Writes,
    /// A server halts for so many µs; its clock runs on.
    Pauses(u64),
    /// A server halts for so many µs, and its clock stands still.
    Sleeps(u64),
    /// A server is killed, and a new one starts.
    Dies,
    /// The backend is unreachable for so many µs.
    Outage(u64),
    /// The backend's clock steps forward or back by so many µs.
    Step(i64),
    /// The backend restarts empty.
    Empties,
    /// The replica catches up.
    Copies,
    /// The backend takes a snapshot.
    Saves,
    /// The backend restarts with a snapshot: an RDB or AOF file, which may be old.
    GoesBack,
    /// The replica, with its last state, replaces the backend.
    FailsOver,
    /// The network changes its behaviour.
    Network(Network),
}

/// The manner of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Acquires or is rejected.
    Tries,
    /// Enters the wait queue.
    Waits,
    /// Replaces a session of the same user.
    TakesOver,
    /// Resumes or replaces a silent session of the same user.
    Resumes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// All messages arrive soon.
    Fair,
    /// All messages arrive, after up to a second each way.
    Slow,
    /// The network loses a quarter of the requests, and a quarter of the replies to the others.
    Lossy,
}

/// Generates the plan of a seed.
pub(crate) fn plan(seed: u64, steps: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    (0..steps).map(|_| step(&mut dice)).collect()
}

fn step(dice: &mut Dice) -> Step {
    let after = match dice.below(100) {
        0..25 => dice.below(20 * MS),
        25..75 => dice.between(20 * MS, SECOND),
        75..95 => dice.between(SECOND, 4 * SECOND),
        _ => dice.between(4 * SECOND, 14 * SECOND),
    };
    Step { after, what: what(dice), luck: dice.roll() }
}

fn what(dice: &mut Dice) -> What {
    match dice.below(100) {
        0..10 => What::Comes(Manner::Tries),
        10..24 => What::Comes(Manner::Waits),
        24..29 => What::Comes(Manner::TakesOver),
        29..33 => What::Comes(Manner::Resumes),
        33..45 => What::Leaves,
        45..49 => What::GoesSilent,
        49..51 => What::LetGo,
        51..72 => What::Writes,
        72..79 => What::Pauses(dice.between(100 * MS, 16 * SECOND)),
        79..80 => What::Sleeps(dice.between(SECOND, 16 * SECOND)),
        80..82 => What::Dies,
        82..85 => What::Outage(dice.between(50 * MS, 9 * SECOND)),
        85..87 => What::Step(dice.between(10 * MS, 20 * SECOND).cast_signed()),
        87..89 => What::Step(-dice.between(10 * MS, 20 * SECOND).cast_signed()),
        89..91 => What::Empties,
        91..92 => What::Copies,
        92..93 => What::Saves,
        93..94 => What::FailsOver,
        94..95 => What::GoesBack,
        95..98 => What::Network(Network::Fair),
        98..99 => What::Network(Network::Slow),
        _ => What::Network(Network::Lossy),
    }
}

/// Removes the steps without which the plan still fails.
pub(crate) fn shrunk(plan: &[Step], fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut shortest = plan.to_vec();
    let mut size = shortest.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < shortest.len() {
            let end = (at + size).min(shortest.len());
            let shorter: Vec<_> = shortest[..at].iter().chain(&shortest[end..]).copied().collect();
            if fails(&shorter) {
                shortest = shorter;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    shortest
}
