//! Whether some order satisfies the dependencies between the structs of an update.
//!
//! Structs of one client are ordered by their clocks. Structs of several clients may refer to each
//! other. In a cycle each waits for the others for ever, and `yrs` 0.28.1 cannot encode a document
//! again that has waiting structs.

/// The dependency of a struct on a unit of another client that only this update contains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) section: usize,
    pub(crate) clock: u32,
    /// The section of the unit.
    pub(crate) on: usize,
    /// The clock of the unit.
    pub(crate) unit: u32,
}

/// Whether some order satisfies all `needs`. They are grouped by section and ordered by clock;
/// `sections` is the number of sections.
///
/// Walks along the dependencies with an explicit stack. It satisfies each dependency once, so the
/// time is linear.
pub(crate) fn can_be_ordered(needs: &[Need], sections: usize) -> bool {
    let mut progress = Progress::new(needs, sections);
    let mut stack: Vec<Goal> = Vec::new();
    let mut waits = vec![false; sections];
    for section in 0..sections {
        stack.push(Goal { section, unit: u32::MAX });
        while let Some(goal) = stack.last().copied() {
            set(&mut waits, goal.section, true);
            let Some(need) = progress.obstacle(goal) else {
                set(&mut waits, goal.section, false);
                stack.pop();
                continue;
            };
            let wanted = Goal { section: need.on, unit: need.unit };
            if progress.obstacle(wanted).is_none() {
                progress.advance(goal.section);
            } else if waits.get(need.on).copied().unwrap_or(true) {
                // A cycle: an earlier goal on the stack waits for this section, at or before the
                // required unit.
                return false;
            } else {
                stack.push(wanted);
            }
        }
    }
    true
}

fn set(waits: &mut [bool], section: usize, to: bool) {
    if let Some(flag) = waits.get_mut(section) {
        *flag = to;
    }
}

/// The task of integrating section `section` up to and with `unit`.
#[derive(Clone, Copy)]
struct Goal {
    section: usize,
    unit: u32,
}

/// The progress of each section: the range of its unsatisfied needs.
struct Progress<'a> {
    needs: &'a [Need],
    open: Vec<std::ops::Range<usize>>,
}

impl<'a> Progress<'a> {
    fn new(needs: &'a [Need], sections: usize) -> Self {
        let mut open = vec![0..0; sections];
        let mut at = 0_usize;
        for group in needs.chunk_by(|one, next| one.section == next.section) {
            let end = at.saturating_add(group.len());
            if let Some(range) = group.first().and_then(|need| open.get_mut(need.section)) {
                *range = at..end;
            }
            at = end;
        }
        Self { needs, open }
    }

    /// The next need of a section, if it lies before the goal.
    fn obstacle(&self, goal: Goal) -> Option<Need> {
        let range = self.open.get(goal.section)?;
        let need = self.needs.get(range.clone())?.first()?;
        (need.clock <= goal.unit).then_some(*need)
    }

    fn advance(&mut self, section: usize) {
        if let Some(range) = self.open.get_mut(section) {
            range.start = range.start.saturating_add(1).min(range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(section: usize, clock: u32, on: usize, unit: u32) -> Need {
        Need { section, clock, on, unit }
    }

    #[test]
    fn clients_may_depend_on_each_other() {
        let needs = [need(0, 1, 1, 0), need(0, 2, 1, 1), need(1, 1, 0, 1), need(1, 2, 0, 2)];
        assert!(can_be_ordered(&needs, 2));
        assert!(can_be_ordered(&[], 3));
        assert!(can_be_ordered(&[need(0, 0, 1, 0), need(1, 0, 2, 5), need(1, 9, 0, 0)], 3));
    }

    #[test]
    fn g12_a_cycle_has_no_order() {
        assert!(!can_be_ordered(&[need(0, 0, 1, 0), need(1, 0, 0, 0)], 2));
        let three = [need(0, 5, 1, 5), need(1, 5, 2, 5), need(2, 5, 0, 5)];
        assert!(!can_be_ordered(&three, 3));
        // The last dependency points one unit before the cycle.
        let opened = [need(0, 5, 1, 5), need(1, 5, 2, 5), need(2, 5, 0, 4)];
        assert!(can_be_ordered(&opened, 3));
    }

    #[test]
    fn g13_a_long_chain_takes_neither_stack_nor_time() {
        let sections = 100_000;
        let mut needs: Vec<Need> = (1..sections).map(|at| need(at - 1, 0, at, 0)).collect();
        assert!(can_be_ordered(&needs, sections));
        needs.push(need(sections - 1, 0, 0, 0));
        assert!(!can_be_ordered(&needs, sections));
    }
}
