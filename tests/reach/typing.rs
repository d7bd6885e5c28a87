//! Keys, their group commits, and reviews.

use std::collections::BTreeSet;

use crate::plan::{COMMIT_AGAIN, GROUP_MAX, GROUPS_APART, PENDING_MAX, TICK};
use crate::queue::{Time, seconds};
use crate::world::{Event, SessionId, State, World, us};

/// Keys of one burst, on average: then another pair types.
const BURST: f64 = 100.0;

impl World<'_> {
    pub(crate) fn key(&mut self, now: Time, pair: u32) {
        let ends = self.random.is(1.0 / BURST);
        let next = if ends { self.random.below(self.plan.pairs) as u32 } else { pair };
        let pause = 0.5 + self.random.unit();
        self.queue.put(now + seconds(pause / self.plan.rate), Event::Key(next));
        self.found.keys += 1;
        let writer = &mut self.sessions[2 * pair as usize];
        if writer.state != State::Seated {
            writer.kept += 1;
            return;
        }
        self.edit(now, 2 * pair, 1);
    }

    /// An edit of a writer with a seat, which stands for so many keys.
    pub(crate) fn edit(&mut self, now: Time, writer: SessionId, keys: u64) {
        let (costs, number) = (self.costs, self.sessions[writer as usize].server);
        let reviewer = self.sessions[writer as usize + 1];
        let server = &mut self.servers[usize::from(number)];
        let end = server.station.serve(now, us(costs.server_edit));
        let is_split = reviewer.state == State::Seated && reviewer.server != number;
        if PENDING_MAX <= server.pending.len() {
            self.found.returned += keys;
            return;
        }
        server.pending.push_back((now, is_split.then_some(writer)));
        // Further keys of the page travel in the same row.
        self.found.stored += keys - 1;
        let at = end.max(server.next_group_at);
        if !std::mem::replace(&mut server.is_committing, true) {
            self.queue.put(at, Event::Group(number));
        }
        if !is_split {
            let alone = us(self.random.skewed(costs.relay_p50, costs.relay_p99));
            let queued = (end - now) as f64 - us(costs.server_edit);
            self.found.relay.add((alone + queued.max(0.0)) as Time);
        }
    }

    pub(crate) fn group(&mut self, now: Time, number: u16) {
        let server = &mut self.servers[usize::from(number)];
        let rows = server.pending.len().min(GROUP_MAX);
        if !server.is_up || rows == 0 {
            server.is_committing = false;
            return;
        }
        if self.postgres.iter().any(|partition| partition.is_down(now)) {
            let (first, most) = COMMIT_AGAIN;
            server.commit_pause = (server.commit_pause * 2).clamp(first, most);
            self.queue.put(now + server.commit_pause, Event::Group(number));
            return;
        }
        server.commit_pause = 0;
        server.station.serve(now, us(self.costs.server_group));
        let parts = rows.min(self.plan.partitions);
        let work = self.costs.postgres_group + self.costs.postgres_row * (rows - 1) as f64;
        let first = self.random.below(self.plan.partitions);
        let mut end = now;
        for part in 0..parts {
            let partition = &mut self.postgres[(first + part) % self.plan.partitions];
            end = end.max(partition.serve(now, us(work / parts as f64)));
        }
        end += us(self.costs.commit_wait) as Time;
        self.found.groups += 1;
        self.found.stored += rows as u64;
        let stored: Vec<_> = self.servers[usize::from(number)].pending.drain(..rows).collect();
        let mut documents = BTreeSet::new();
        for (typed, split) in stored {
            self.found.saved.add(end - typed);
            // All edits of a document in this group are one message.
            let event = split.map(|it| match documents.insert(it) {
                true => Event::Publish(typed),
                false => Event::Receive(typed),
            });
            event.into_iter().for_each(|event| self.queue.put(end, event));
        }
        // Edits that arrive during the commit wait for the next group.
        let server = &mut self.servers[usize::from(number)];
        let (least, most, rest) = GROUPS_APART;
        server.next_group_at = end.max(now + ((end - now) * rest).clamp(least, most));
        self.queue.put(server.next_group_at, Event::Group(number));
    }

    /// A stored edit, typed at `typed`, goes to the server of the reviewer.
    pub(crate) fn publish(&mut self, now: Time, typed: Time) {
        let node = self.random.below(self.plan.nodes);
        self.found.commands += 1;
        if self.redis[node].is_down(now) {
            // The message is lost: the receiver's next tick finds the gap and reads the log.
            let tick = (TICK as f64 * self.random.unit()) as Time;
            return self.queue.put(now + tick, Event::Receive(typed));
        }
        let sent = self.redis[node].serve(now, us(self.costs.redis_message));
        self.queue.put(sent, Event::Receive(typed));
    }

    pub(crate) fn receive(&mut self, now: Time, typed: Time) {
        let receiver = self.random.below(self.plan.servers);
        let seen = self.servers[receiver].station.serve(now, us(self.costs.server_received));
        let alone = self.random.skewed(self.costs.relay_p50, self.costs.relay_p99);
        self.found.across.add(seen - typed + us(alone + self.costs.round_trip) as Time);
    }

    pub(crate) fn review(&mut self, now: Time) {
        let Some((id, server)) = self.someone(now, Event::Review) else { return };
        let partition = self.partition_of(id);
        self.servers[usize::from(server)].station.serve(now, us(self.costs.server_review));
        self.postgres[partition].serve(now, us(self.costs.postgres_review));
    }

    /// A random session and its server, if it is seated. Puts the next such event.
    pub(crate) fn someone(&mut self, now: Time, event: Event) -> Option<(SessionId, u16)> {
        self.put_next(now, event);
        let id = self.random.below(self.sessions.len()) as SessionId;
        Some((id, self.seated_at(id)?))
    }

    pub(crate) fn seated_at(&self, id: SessionId) -> Option<u16> {
        let session = self.sessions[id as usize];
        (session.state == State::Seated).then_some(session.server)
    }
}
