//! Work of servers without their clients: idle work, renewal rounds, comparisons with the database.

use crate::plan::{ROUND_AGAIN, SEATS_AT_ONCE, TICK, TRUSTED};
use crate::queue::{SECOND, Time};
use crate::world::{BEAT, Event, World, us};

impl World<'_> {
    /// Pings and the like are spread over the tick.
    pub(crate) fn beat(&mut self, now: Time, server: u16) {
        self.queue.put(now + BEAT, Event::Beat(server));
        let idle = us(self.costs.server_idle) * BEAT as f64 / SECOND as f64;
        let work = f64::from(self.seats_of(server)) * idle;
        let server = &mut self.servers[usize::from(server)];
        if server.is_up && 0.0 < work {
            server.station.serve(now, work);
        }
    }

    pub(crate) fn tick(&mut self, now: Time, number: u16) {
        self.queue.put(now + TICK, Event::Tick(number));
        let seats = self.seats_of(number);
        let server = &mut self.servers[usize::from(number)];
        if !server.is_up {
            return;
        }
        self.found.commands += self.costs.commands_tick as u64;
        self.queue.put(now, Event::Compare(number, seats));
        let rounds = server.seats.iter().zip(&mut server.round_began).enumerate();
        for (node, (seats, began)) in rounds {
            if began.is_some() {
                // The former round has not ended.
                self.found.missed_renewals += u64::from(*seats);
            } else if 0 < *seats {
                *began = Some(now);
                self.queue.put(now, Event::Renew(number, node as u16, *seats));
            } else {
                server.renewed_at[node] = now;
            }
        }
    }

    /// One call renews 250 locks; the next follows its answer.
    pub(crate) fn renew(&mut self, now: Time, number: u16, node: u16, left: u32) {
        let at = usize::from(node);
        let server = &mut self.servers[usize::from(number)];
        let Some(began) = server.round_began[at].filter(|_| server.is_up) else { return };
        if self.redis[at].is_down(now) {
            server.round_began[at] = Some(now + ROUND_AGAIN);
            let seats = server.seats[at];
            return self.queue.put(now + ROUND_AGAIN, Event::Renew(number, node, seats));
        }
        let some = left.min(SEATS_AT_ONCE);
        if 0 < some {
            self.found.commands += 1;
            let work = us(self.costs.redis_renewal) * f64::from(some);
            let end = self.redis[at].serve(now, work);
            return self.queue.put(end, Event::Renew(number, node, left - some));
        }
        if TRUSTED < now - server.renewed_at[at] {
            self.found.uncertain_seats += u64::from(server.seats[at]);
        }
        server.renewed_at[at] = began;
        server.round_began[at] = None;
        self.found.rounds.add(now - began);
    }

    pub(crate) fn compare(&mut self, now: Time, server: u16, left: u32) {
        let some = left.min(SEATS_AT_ONCE);
        if some == 0 || !self.servers[usize::from(server)].is_up {
            return;
        }
        let partition = self.random.below(self.plan.partitions);
        // The next tick repeats it.
        if self.postgres[partition].is_down(now) {
            return;
        }
        let a_second = us(self.costs.postgres_idle) * f64::from(some);
        let end = self.postgres[partition].serve(now, a_second * TICK as f64 / SECOND as f64);
        self.queue.put(end, Event::Compare(server, left - some));
    }
}
