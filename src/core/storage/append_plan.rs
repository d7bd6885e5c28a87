//! Decides which updates of a group are stored, and under which numbers.
//!
//! Pure: an engine reads the [`AppendState`] in a transaction that isolates it, calls [`plan`], and writes
//! the [`AppendPlan`] in the same transaction. So all engines decide alike. A refused update also refuses
//! the later ones on the same document, which may depend on it (D7), and affects no other.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, UserId};
use crate::domain::seat::Seat;
use crate::storage::decode::{fence, parse};
use crate::storage::error::StorageError;
use crate::storage::guard::FenceGuard;
use crate::storage::log::{Append, Appended};

#[derive(Debug, Default)]
pub(super) struct AppendState {
    pub(super) last_seq: HashMap<DocumentId, i64>,
    /// The seats on active links.
    pub(super) seats: HashMap<Seat, RatifiedSeat>,
    /// The owners of the client ids that have one. An owner `None` is the server.
    pub(super) clients: HashMap<(DocumentId, u64), Option<UserId>>,
    pub(super) damage: Damage,
}

/// Rows that do not parse. Each refuses the updates that depend on it, and no others (G16).
#[derive(Debug, Default)]
pub(super) struct Damage {
    /// Seats with an invalid fence or document.
    pub(super) seats: HashSet<Seat>,
    /// Documents with a client id whose owner is invalid.
    pub(super) owners: HashSet<DocumentId>,
}

impl Damage {
    fn affects(&self, append: &Append) -> bool {
        self.owners.contains(&append.document)
            || append.guard.is_some_and(|guard| self.seats.contains(&guard.seat))
    }
}

impl AppendState {
    /// Whether it contains all rows that an update depends on. A client id without an owner is
    /// never in it.
    pub(super) fn covers(&self, append: &Append) -> bool {
        let document = append.document;
        self.last_seq.contains_key(&document)
            && append.guard.is_none_or(|guard| self.seats.contains_key(&guard.seat))
            && append.clients.iter().all(|client| self.clients.contains_key(&(document, *client)))
    }

    pub(super) fn entries(&self) -> usize {
        self.last_seq.len() + self.seats.len() + self.clients.len()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RatifiedSeat {
    pub(super) document: DocumentId,
    pub(super) fence: Fence,
}

impl RatifiedSeat {
    pub(super) fn of_row(document: &str, number: i64) -> Result<Self, StorageError> {
        Ok(Self { document: parse(document)?, fence: fence(number)? })
    }
}

#[derive(Debug, Default)]
pub(super) struct AppendPlan {
    /// The outcomes, by position in the group.
    pub(super) outcomes: Vec<Appended>,
    /// The updates to store: position in the group, and number.
    pub(super) rows: Vec<(usize, i64)>,
    pub(super) clients: Vec<(DocumentId, u64, Option<UserId>)>,
    /// The documents that change: last number and time.
    pub(super) documents: BTreeMap<DocumentId, (i64, DateTime<Utc>)>,
    /// The state of the database after the write.
    pub(super) after: AppendState,
}

impl AppendPlan {
    pub(super) fn stores_all(&self) -> bool {
        self.rows.len() == self.outcomes.len()
    }

    /// The state before the plan, without the rows that its refused updates depend on.
    pub(super) fn undone(self, batch: &[Append]) -> AppendState {
        let mut state = self.after;
        for (position, seq) in self.rows.into_iter().rev() {
            if let Some(append) = batch.get(position) {
                state.last_seq.insert(append.document, seq - 1);
            }
        }
        for (document, client, _) in self.clients {
            state.clients.remove(&(document, client));
        }
        let is_refused = |outcome: &Appended| !matches!(outcome, Appended::Stored { .. });
        for (append, _) in batch.iter().zip(&self.outcomes).filter(|(_, it)| is_refused(it)) {
            state.last_seq.remove(&append.document);
            if let Some(guard) = append.guard {
                state.seats.remove(&guard.seat);
            }
            for client in &append.clients {
                state.clients.remove(&(append.document, *client));
            }
        }
        state
    }
}

pub(super) fn plan(batch: &[Append], mut state: AppendState) -> AppendPlan {
    let mut plan = AppendPlan::default();
    let mut broken = HashSet::new();
    for (position, append) in batch.iter().enumerate() {
        let outcome = if broken.contains(&append.document) {
            Appended::Orphaned
        } else {
            decide(append, &state)
        };
        if let Appended::Stored { seq } = outcome {
            plan.rows.push((position, seq));
            plan.documents.insert(append.document, (seq, append.now));
            state.last_seq.insert(append.document, seq);
            bind_clients(append, &mut state, &mut plan);
        } else {
            broken.insert(append.document);
        }
        plan.outcomes.push(outcome);
    }
    // The next group reads a damaged row again: the operator may have repaired it.
    state.damage = Damage::default();
    plan.after = state;
    plan
}

/// (D6) The first user who writes under an id owns it, also within the group.
fn bind_clients(append: &Append, state: &mut AppendState, plan: &mut AppendPlan) {
    for &client in &append.clients {
        if let Entry::Vacant(vacant) = state.clients.entry((append.document, client)) {
            vacant.insert(append.user.clone());
            plan.clients.push((append.document, client, append.user.clone()));
        }
    }
}

fn decide(append: &Append, state: &AppendState) -> Appended {
    if state.damage.affects(append) {
        return Appended::Damaged;
    }
    let Some(&last) = state.last_seq.get(&append.document) else {
        return Appended::Gone;
    };
    if let Some(guard) = &append.guard
        && !holds(guard, append.document, state)
    {
        return Appended::Fenced;
    }
    if append.expected_seq.is_some_and(|expected| expected != last) {
        return Appended::Stale;
    }
    if last < append.after {
        return Appended::SetBack { last };
    }
    for &client in &append.clients {
        let owner = state.clients.get(&(append.document, client));
        // An id beyond the column's range cannot have an owner.
        if owner.is_some_and(|owner| *owner != append.user) || i64::try_from(client).is_err() {
            return Appended::ForeignClient { client };
        }
    }
    Appended::Stored { seq: last + 1 }
}

/// (D2) Checks the role too: the last check before the text changes (G10).
fn holds(guard: &FenceGuard, document: DocumentId, state: &AppendState) -> bool {
    guard.seat.role.may_edit_text()
        && state
            .seats
            .get(&guard.seat)
            .is_some_and(|ratified| ratified.fence == guard.fence && ratified.document == document)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::domain::ids::ShareLinkId;
    use crate::domain::seat::Role;

    fn edit(document: DocumentId, user: &str, clients: &[u64]) -> Append {
        Append {
            document,
            guard: None,
            update: Bytes::from_static(b"u"),
            clients: clients.to_vec(),
            user: Some(user.parse().unwrap()),
            expected_seq: None,
            after: 0,
            now: DateTime::UNIX_EPOCH,
        }
    }

    fn state(document: DocumentId, last: i64) -> AppendState {
        AppendState { last_seq: HashMap::from([(document, last)]), ..AppendState::default() }
    }

    #[test]
    fn d3_refused_updates_leave_no_gap_in_the_numbers() {
        let (document, other) = (DocumentId::generate(), DocumentId::generate());
        let stale = Append { expected_seq: Some(7), ..edit(other, "kim", &[]) };
        let batch = [edit(document, "kim", &[1]), stale, edit(document, "kim", &[1])];
        let mut state = state(document, 7);
        state.last_seq.insert(other, 3);
        let plan = plan(&batch, state);
        let stored = |seq| Appended::Stored { seq };
        assert_eq!(plan.outcomes, [stored(8), Appended::Stale, stored(9)]);
        assert_eq!(plan.rows, [(0, 8), (2, 9)]);
    }

    #[test]
    fn d3_a_database_that_was_set_back_refuses_an_edit_beyond_its_log() {
        let document = DocumentId::generate();
        let on = |after| Append { after, ..edit(document, "kim", &[1]) };
        let outcomes = plan(&[on(7), on(7)], state(document, 7)).outcomes;
        assert_eq!(outcomes, [Appended::Stored { seq: 8 }, Appended::Stored { seq: 9 }]);
        let outcomes = plan(&[on(7), on(7)], state(document, 6)).outcomes;
        assert_eq!(outcomes, [Appended::SetBack { last: 6 }, Appended::Orphaned]);
    }

    #[test]
    fn g16_a_damaged_row_refuses_only_the_updates_that_depend_on_it() {
        let (document, other) = (DocumentId::generate(), DocumentId::generate());
        let mut state = state(document, 7);
        state.last_seq.insert(other, 3);
        state.damage.owners.insert(document);
        let batch = [edit(document, "kim", &[1]), edit(other, "kim", &[1])];
        let plan = plan(&batch, state);
        assert_eq!(plan.outcomes, [Appended::Damaged, Appended::Stored { seq: 4 }]);
        assert!(plan.after.damage.owners.is_empty());
    }

    #[test]
    fn d7_an_update_that_may_depend_on_a_refused_one_is_not_stored_without_it() {
        let (document, other) = (DocumentId::generate(), DocumentId::generate());
        let stale = Append { expected_seq: Some(6), ..edit(document, "kim", &[1]) };
        let batch = [stale, edit(document, "kim", &[2]), edit(other, "kim", &[2])];
        let mut state = state(document, 7);
        state.last_seq.insert(other, 0);
        let plan = plan(&batch, state);
        let stored = Appended::Stored { seq: 1 };
        assert_eq!(plan.outcomes, [Appended::Stale, Appended::Orphaned, stored]);
        assert_eq!(plan.rows, [(2, 1)]);
        assert_eq!(plan.clients.len(), 1, "nor does it bind a client id");
    }

    #[test]
    fn d6_a_refused_update_binds_none_of_its_client_ids() {
        let document = DocumentId::generate();
        let first = plan(&[edit(document, "kim", &[1])], state(document, 0));
        assert_eq!(first.clients, [(document, 1, Some("kim".parse().unwrap()))]);
        let kims = || {
            let mut state = state(document, 1);
            state.clients.insert((document, 1), Some("kim".parse().unwrap()));
            state
        };
        let refused = plan(&[edit(document, "lee", &[2, 1])], kims());
        assert_eq!(refused.outcomes, [Appended::ForeignClient { client: 1 }]);
        assert!(refused.clients.is_empty());
        let taken = plan(&[edit(document, "lee", &[2])], kims());
        assert_eq!(taken.outcomes, [Appended::Stored { seq: 2 }]);
    }

    #[test]
    fn d6_a_user_cannot_write_under_a_client_id_of_the_server() {
        let document = DocumentId::generate();
        let server = Append { user: None, ..edit(document, "kim", &[9]) };
        let batch = [server.clone(), server.clone(), edit(document, "kim", &[9])];
        let outcomes = plan(&batch, state(document, 0)).outcomes;
        assert_eq!(outcomes[1], Appended::Stored { seq: 2 });
        assert_eq!(outcomes[2], Appended::ForeignClient { client: 9 });
    }

    #[test]
    fn d2_a_guard_holds_only_for_a_writer_on_that_document_under_that_fence() {
        let (document, other) = (DocumentId::generate(), DocumentId::generate());
        let link = ShareLinkId::generate();
        let mut state = state(document, 0);
        state.last_seq.insert(other, 0);
        for role in Role::ALL.iter().copied() {
            let ratified = RatifiedSeat { document, fence: Fence(5) };
            state.seats.insert(Seat::new(link, role), ratified);
        }
        let under = |document, role, fence| Append {
            guard: Some(FenceGuard { seat: Seat::new(link, role), fence: Fence(fence) }),
            ..edit(document, "kim", &[])
        };
        let batch = [
            under(document, Role::Writer, 4),
            under(document, Role::Writer, 6),
            under(document, Role::Reviewer, 5),
            under(other, Role::Writer, 5),
            under(document, Role::Writer, 5),
        ];
        let alone = |append: &Append| {
            let state = AppendState {
                last_seq: state.last_seq.clone(),
                seats: state.seats.clone(),
                ..AppendState::default()
            };
            plan(std::slice::from_ref(append), state).outcomes.remove(0)
        };
        let outcomes = batch.each_ref().map(alone);
        assert_eq!(outcomes[4], Appended::Stored { seq: 1 });
        assert!(outcomes[..4].iter().all(|outcome| *outcome == Appended::Fenced), "{outcomes:?}");
    }
}
