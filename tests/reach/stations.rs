//! A component with service times: jobs wait in order of arrival for one of its cores.
//!
//! The service time of a job is known when it arrives, so the end of the job is, too. A station needs no event of its own,
//! but its jobs have to arrive in order of time.

use crate::queue::{SECOND, Time};

#[derive(Clone, Debug)]
pub(crate) struct Station {
    /// When each core has finished the jobs that have arrived.
    free_at: Vec<Time>,
    /// Service time by second of arrival.
    busy: Vec<Time>,
    down_until: Time,
}

impl Station {
    pub(crate) fn new(cores: usize, seconds: usize) -> Self {
        Self { free_at: vec![0; cores], busy: vec![0; seconds + 1], down_until: 0 }
    }

    /// Returns when a job that arrives `now` and takes `work` nanoseconds of one core ends.
    pub(crate) fn serve(&mut self, now: Time, work: f64) -> Time {
        let work = work as Time;
        if let Some(busy) = self.busy.get_mut((now / SECOND) as usize) {
            *busy += work;
        }
        let Some(core) = self.free_at.iter_mut().min() else { return now };
        *core = now.max(*core) + work;
        *core
    }

    /// No job is served before `until`: the queue is lost, and callers see [`Station::is_down`].
    pub(crate) fn fail(&mut self, until: Time) {
        self.down_until = until;
        self.free_at.fill(until);
    }

    pub(crate) fn is_down(&self, now: Time) -> bool {
        now < self.down_until
    }

    /// Busy cores on average in a second of the run.
    pub(crate) fn busy_cores(&self, second: usize) -> f64 {
        self.busy.get(second).map_or(0.0, |busy| *busy as f64 / SECOND as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::US;
    use crate::random::Random;

    /// The mean wait before service of Poisson arrivals, in service times.
    fn mean_wait(load: f64) -> f64 {
        const JOBS: u64 = 300_000;
        let service = (100 * US) as f64;
        let (mut station, mut random) = (Station::new(1, 0), Random::new(11));
        let (mut now, mut waits) = (0.0, 0.0);
        for _ in 0..JOBS {
            now += random.exponential(service / load);
            let end = station.serve(now as Time, service);
            waits += (end - now as Time) as f64 - service;
        }
        waits / JOBS as f64 / service
    }

    /// M/D/1 has the mean wait ρ / 2(1 - ρ) service times (Pollaczek and Khinchine).
    #[test]
    fn the_wait_before_one_core_is_that_of_the_formula() {
        for load in [0.3, 0.6, 0.8] {
            let (found, formula) = (mean_wait(load), load / (2.0 * (1.0 - load)));
            assert!((found / formula - 1.0).abs() < 0.05, "at {load}: {found}, not {formula}");
        }
    }

    #[test]
    fn a_failed_station_serves_again_after_its_outage() {
        let mut station = Station::new(1, 10);
        station.serve(0, 5.0 * SECOND as f64);
        station.fail(3 * SECOND);
        assert!(station.is_down(2 * SECOND) && !station.is_down(3 * SECOND));
        assert_eq!(station.serve(3 * SECOND, 1.0), 3 * SECOND + 1);
    }
}
