//! What happens in one run of the model: made from a seed, kept as data, so that a run can be
//! repeated, and cut down to what it takes to fail.

/// A source of numbers (splitmix64) that gives the same ones for the same seed, everywhere.
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

    /// Below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }

    /// An index into something of that length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// So many times of a hundred.
    pub(crate) fn in_a_hundred(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    /// From `least` up to, and without, `end`.
    pub(crate) fn between(&mut self, least: u64, end: u64) -> u64 {
        least + self.below(end - least)
    }
}

/// A millisecond and a second, in µs.
pub(crate) const MS: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// One thing that happens, and how long after the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// µs.
    pub(crate) after: u64,
    pub(crate) what: What,
    /// What is left to chance in it: whom it happens to, what becomes of what is sent.
    pub(crate) luck: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Somebody comes, and wants a seat.
    Comes(Manner),
    /// Somebody who sits closes the page, or somebody who waits gives up.
    Leaves,
    /// A client goes silent, its socket half open.
    GoesSilent,
    /// Somebody who sits is let go by the server: idle, evicted, revoked.
    LetGo,
    /// Those who sit write.
    Writes,
    /// A server stops for so many µs, and goes on: its clock went on too.
    Pauses(u64),
    /// The same, and its clock stood still.
    Sleeps(u64),
    /// A server is killed, and another one started.
    Dies,
    /// The keeper cannot be reached for so many µs.
    Outage(u64),
    /// The keeper's clock goes forward or back, by so many µs.
    Step(i64),
    /// The keeper is started again, empty.
    Empties,
    /// A replica catches up.
    Copies,
    /// The keeper stores its state.
    Saves,
    /// The keeper is started again with a state that it stored: an RDB or AOF file, which may be old.
    GoesBack,
    /// The replica takes the keeper's place, as it stood when it last caught up.
    FailsOver,
    /// The network is another one.
    Network(Network),
}

/// How somebody comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Seated or refused.
    Tries,
    /// Stays in the line.
    Waits,
    /// Ends their own session elsewhere.
    TakesOver,
    /// To the place of their own session that is silent.
    Resumes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// All arrives, soon.
    Fair,
    /// All arrives, after up to a second each way.
    Slow,
    /// A quarter is lost on the way there, a quarter of the rest on the way back.
    Lossy,
}

/// What happens in the run of that seed.
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

/// The same plan without the steps that it fails without, too.
pub(crate) fn shrunk(plan: &[Step], fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut kept = plan.to_vec();
    let mut size = kept.len() / 2;
    while 0 < size {
        let mut at = 0;
        while at < kept.len() {
            let end = (at + size).min(kept.len());
            let shorter: Vec<_> = kept[..at].iter().chain(&kept[end..]).copied().collect();
            if fails(&shorter) {
                kept = shorter;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    kept
}
