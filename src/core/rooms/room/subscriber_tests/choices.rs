//! The steps of a world, and the choice of the next one.

/// The next step: by a seed, or along a path that runs through all orders.
pub(super) enum Choices {
    Seed(u64),
    /// Each choice with the number of the possible ones.
    Path(Vec<(usize, usize)>, usize),
}

impl Choices {
    pub(super) fn choose(&mut self, of: usize) -> usize {
        match self {
            Self::Seed(seed) => {
                *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                usize::try_from((mixed ^ (mixed >> 31)) % of as u64).expect("small")
            }
            Self::Path(path, at) => {
                if *at == path.len() {
                    path.push((0, of));
                }
                *at += 1;
                assert_eq!(path[*at - 1].1, of, "a path repeats its choices");
                path[*at - 1].0
            }
        }
    }

    /// Whether another order is left.
    pub(super) fn advance(&mut self) -> bool {
        let Self::Path(path, at) = self else { return false };
        *at = 0;
        while let Some((chosen, of)) = path.pop() {
            if chosen + 1 < of {
                path.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorldStep {
    Open,
    /// Redis receives the subscription, and then its server the confirmation.
    Subscribe,
    Confirm,
    Read,
    Apply,
    Edit,
    /// The database has a group of edits, and then its server knows it.
    Commit,
    Stored,
    /// A request changes a review on this server.
    Change,
    Changed,
    Announce,
    /// Redis takes a message of the server, and the server one of Redis.
    Send,
    Receive,
    Leave,
    Die,
    Lose,
}

pub(super) const STEPS: [WorldStep; 16] = [
    WorldStep::Open,
    WorldStep::Subscribe,
    WorldStep::Confirm,
    WorldStep::Read,
    WorldStep::Apply,
    WorldStep::Edit,
    WorldStep::Commit,
    WorldStep::Stored,
    WorldStep::Change,
    WorldStep::Changed,
    WorldStep::Announce,
    WorldStep::Send,
    WorldStep::Receive,
    WorldStep::Leave,
    WorldStep::Die,
    WorldStep::Lose,
];
