//! The database of the model: the last fence of each seat, and the accepted writes.

use crate::model::{Lawful, Number, Wrong, breach};
use galley_domain::fence::Fence;

pub(crate) struct Database {
    seats: Vec<Row>,
    wrong: Option<Wrong>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    ratified: Fence,
    /// The session that holds that grant.
    whose: Option<Number>,
    /// The highest fence of an accepted write.
    taken: Fence,
}

/// A pending write to the database.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    Ratify { who: Number, key: usize, fence: Fence },
    Write { key: usize, fence: Fence },
}

impl Database {
    pub(crate) fn new(keys: usize, wrong: Option<Wrong>) -> Self {
        Self { seats: vec![Row::default(); keys], wrong }
    }

    /// The last ratified fence.
    pub(crate) fn floor(&self, key: usize) -> Fence {
        self.seats[key].ratified
    }

    /// Ratifies a grant: its fence exceeds all others, or repeats the last one.
    pub(crate) fn ratify(&mut self, key: usize, who: Number, fence: Fence) -> Result<(), Fence> {
        let row = &mut self.seats[key];
        if fence < row.ratified || (fence == row.ratified && row.whose != Some(who)) {
            return Err(row.ratified);
        }
        (row.ratified, row.whose) = (fence, Some(who));
        Ok(())
    }

    /// A write under `fence`. Returns whether the database accepts it.
    pub(crate) fn write(&mut self, key: usize, fence: Fence) -> Lawful<bool> {
        let row = &mut self.seats[key];
        if fence != row.ratified && self.wrong != Some(Wrong::UnfencedWrites) {
            return Ok(false);
        }
        if fence < row.taken {
            return Err(breach(
                "G2",
                format!("a write under {fence} after one under {}", row.taken),
            ));
        }
        row.taken = fence;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g2_the_database_accepts_only_writes_under_the_last_fence() -> Lawful {
        let mut database = Database::new(1, None);
        assert_eq!(database.ratify(0, 1, Fence(7)), Ok(()));
        assert_eq!(database.ratify(0, 1, Fence(6)), Err(Fence(7)));
        assert_eq!(database.ratify(0, 2, Fence(7)), Err(Fence(7)));
        assert_eq!(database.ratify(0, 1, Fence(7)), Ok(()));
        assert!(database.write(0, Fence(7))? && !database.write(0, Fence(6))?);
        Ok(())
    }
}
