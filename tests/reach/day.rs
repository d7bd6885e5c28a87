//! A day of visits, and what each minute of it demands of the components.
//!
//! Visits, sleeps and reviews are events; typing is a rate. The day has a sample of the pairs, each of which stands for
//! several.

use crate::costs::Costs;
use crate::plan::{GROUPS_APART, Plan};
use crate::queue::{Queue, SECOND, Time, seconds};
use crate::random::Random;

const MINUTE: Time = 60 * SECOND;
pub(crate) const MINUTES: usize = 24 * 60;
/// Pairs of the sample.
const SAMPLE: usize = 20_000;
/// The length of a visit: median and 99th percentile, in seconds.
const VISIT: (f64, f64) = (2_400.0, 14_400.0);
/// The mean of that distribution.
const VISIT_MEAN: f64 = 3_230.0;
/// Arrivals by hour of the day, against those of the busiest.
const BY_HOUR: [f64; 24] = [
    0.15, 0.08, 0.05, 0.04, 0.04, 0.06, 0.12, 0.3, 0.65, 0.95, 1.0, 0.9, 0.7, 0.85, 1.0, 0.95, 0.8,
    0.6, 0.55, 0.65, 0.7, 0.6, 0.45, 0.28,
];
/// At each full hour from 9 to 17 this share of the open sessions wakes within a minute.
const LECTURE: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Minute,
    Arrive,
    Leave,
    Sleep,
    Lecture,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Minute {
    /// Open pairs at its start, and joins of sessions.
    pub(crate) pairs: f64,
    pub(crate) joins: f64,
}

/// Busy cores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    pub(crate) servers: f64,
    pub(crate) redis: f64,
    pub(crate) postgres: f64,
}

#[derive(Debug)]
pub(crate) struct Day {
    pub(crate) minutes: Vec<Minute>,
    pub(crate) arrived: u64,
    pub(crate) left: u64,
    pub(crate) open: u64,
}

impl Day {
    /// The day before whose visits fills the first hours.
    pub(crate) fn of(plan: &Plan) -> Self {
        let (mut queue, mut random) = (Queue::new(), Random::new(plan.seed));
        let sample = SAMPLE.min(plan.pairs);
        let weight = plan.pairs as f64 / sample as f64;
        let arrival = VISIT_MEAN / sample as f64;
        let mut day =
            Self { minutes: vec![Minute::default(); MINUTES], arrived: 0, left: 0, open: 0 };
        queue.put(0, Event::Arrive);
        (9..=17).for_each(|hour| queue.put(DAY + hour * 60 * MINUTE, Event::Lecture));
        (0..2 * MINUTES as Time).for_each(|minute| queue.put(minute * MINUTE, Event::Minute));
        while let Some((now, event)) = queue.next_before(2 * DAY) {
            match event {
                Event::Arrive => {
                    queue.put(now + seconds(random.exponential(arrival)), Event::Arrive);
                    day.arrive(now, (weight, plan.sleeps), &mut random, &mut queue);
                }
                Event::Minute => {
                    let open = day.open as f64 * weight;
                    day.minute(now).into_iter().for_each(|minute| minute.pairs = open);
                }
                Event::Leave => {
                    day.open -= 1;
                    day.left += 1;
                }
                Event::Sleep => day.join(now, weight),
                Event::Lecture => day.join(now, weight * 2.0 * LECTURE * day.open as f64),
            }
        }
        day
    }

    fn arrive(
        &mut self,
        now: Time,
        (weight, sleeps): (f64, f64),
        random: &mut Random,
        queue: &mut Queue<Event>,
    ) {
        if !random.is(BY_HOUR[(now / (60 * MINUTE) % 24) as usize]) {
            return;
        }
        let length = random.skewed(VISIT.0, VISIT.1);
        self.open += 1;
        self.arrived += 1;
        self.join(now, 2.0 * weight);
        queue.put(now + seconds(length), Event::Leave);
        // Of both machines, at random times of the visit.
        let pause = 3_600.0 / (2.0 * sleeps);
        let mut at = random.exponential(pause);
        while at < length {
            queue.put(now + seconds(at), Event::Sleep);
            at += random.exponential(pause);
        }
    }

    fn minute(&mut self, at: Time) -> Option<&mut Minute> {
        self.minutes.get_mut((at.checked_sub(DAY)? / MINUTE) as usize)
    }

    fn join(&mut self, now: Time, sessions: f64) {
        if let Some(minute) = self.minute(now) {
            minute.joins += sessions;
        }
    }

    pub(crate) fn demands(&self, plan: &Plan, costs: &Costs) -> Vec<Demand> {
        self.minutes.iter().map(|minute| demand(minute, plan, costs)).collect()
    }

    /// The most that any minute demands of each component.
    pub(crate) fn peak(&self, plan: &Plan, costs: &Costs) -> Demand {
        let demands = self.demands(plan, costs);
        let most = |of: fn(&Demand) -> f64| demands.iter().map(of).fold(0.0, f64::max);
        Demand {
            servers: most(|it| it.servers),
            redis: most(|it| it.redis),
            postgres: most(|it| it.postgres),
        }
    }
}

const DAY: Time = 24 * 60 * MINUTE;

/// Busy cores of each component in one minute.
fn demand(minute: &Minute, plan: &Plan, costs: &Costs) -> Demand {
    let edits = minute.pairs * plan.typing * plan.rate;
    let (joins, sessions) = (minute.joins / 60.0, 2.0 * minute.pairs);
    let reviews = minute.pairs * plan.reviews / 3_600.0;
    let servers = plan.servers as f64;
    let groups = groups(edits / servers, costs) * servers;
    let split = edits * plan.split;
    let us = 1e-6;
    Demand {
        servers: us
            * (edits * costs.server_edit
                + groups * costs.server_group
                + joins * costs.server_join
                + reviews * costs.server_review
                + sessions * costs.server_idle
                + split * costs.server_received),
        redis: us
            * (joins * costs.redis_claim
                + sessions / 4.0 * costs.redis_renewal
                + split * costs.redis_message),
        postgres: us
            * (groups * costs.postgres_group
                + (edits - groups) * costs.postgres_row
                + joins * costs.postgres_join
                + reviews * costs.postgres_review
                + sessions * costs.postgres_idle),
    }
}

/// Group commits a second of a server with so many edits a second.
fn groups(edits: f64, costs: &Costs) -> f64 {
    let (least, most, rest) = GROUPS_APART;
    let commit = (costs.postgres_group + costs.commit_wait) / 1e6;
    let apart = (commit * rest as f64).clamp(least as f64 / 1e9, most as f64 / 1e9);
    edits / (1.0 + edits * apart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs;

    #[test]
    fn each_visit_ends_or_is_open_and_the_busiest_minute_has_the_pairs_of_the_plan() {
        let plan = Plan::of(400, 2, 1, 1);
        let day = Day::of(&plan);
        assert_eq!(day.arrived, day.left + day.open);
        let most = day.minutes.iter().map(|it| it.pairs).fold(0.0, f64::max);
        assert!((0.85..1.15).contains(&(most / 400.0)), "{most}");
        let again = Day::of(&plan);
        assert_eq!(day.arrived, again.arrived, "one seed, one day");
        let costs = costs::made_up();
        let (some, more) = (day.peak(&plan, &costs), Day::of(&Plan { seed: 2, ..plan }));
        assert!(0.0 < some.redis && some.redis < some.servers, "{some:?}");
        assert_ne!(day.arrived, more.arrived, "another seed, another day");
    }
}
