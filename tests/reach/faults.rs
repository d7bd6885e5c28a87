//! The fault of a run, and its end.

use crate::plan::{Fault, RACKS, SILENCE};
use crate::queue::{Time, seconds};
use crate::world::{Event, SessionId, Stage, State, World};

/// A lecture: this share of the laptops sleeps for so many seconds, and wakes within so many more.
const LECTURE: (f64, f64, f64) = (0.1, 15.0, 10.0);

impl World<'_> {
    pub(crate) fn fault(&mut self, now: Time) {
        let until = now + seconds(self.plan.fault_for);
        match self.plan.fault {
            Fault::None => {}
            Fault::Server => self.lose_servers(now, |server| server == 0, 0.0),
            Fault::Rack => self.lose_servers(now, |server| server.is_multiple_of(RACKS), 1.0),
            Fault::Redis => self.redis[0].fail(until),
            Fault::Postgres => self.postgres.iter_mut().for_each(|it| it.fail(until)),
            Fault::Wake => self.sleep_together(now),
        }
        self.queue.put(until, Event::Repair);
    }

    fn lose_servers(&mut self, now: Time, is_lost: impl Fn(usize) -> bool, silence: f64) {
        for (number, server) in self.servers.iter_mut().enumerate() {
            if is_lost(number) {
                server.is_up = false;
                server.seats.fill(0);
                server.round_began.fill(None);
                // Their clients have them until the server has named them as saved.
                self.found.returned += server.pending.len() as u64;
                server.pending.clear();
            }
        }
        for id in 0..self.sessions.len() as SessionId {
            let session = &mut self.sessions[id as usize];
            let is_here = matches!(session.state, State::Seated | State::Joining);
            if !is_here || !is_lost(usize::from(session.server)) {
                continue;
            }
            if session.state == State::Seated {
                session.lost_at = Some(now);
            }
            session.state = State::Unaware;
            session.failures = 0;
            session.attempt = session.attempt.wrapping_add(1);
            let (least, most) = SILENCE;
            let noticed = silence * (least + self.random.unit() * (most - least));
            self.queue.put(now + seconds(noticed), Event::Join(Stage::Broken, id, session.attempt));
        }
    }

    fn sleep_together(&mut self, now: Time) {
        let (share, asleep, within) = LECTURE;
        for id in 0..self.sessions.len() as SessionId {
            if self.seated_at(id).is_some() && self.random.is(share) {
                let woken = asleep + within * self.random.unit();
                self.fall_asleep(now, id, now + seconds(woken));
            }
        }
    }

    pub(crate) fn repair(&mut self, now: Time) {
        for server in &mut self.servers {
            if !server.is_up {
                server.is_up = true;
                server.is_committing = false;
                server.renewed_at.fill(now);
            }
        }
    }
}
