//! The choice of the next step.

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
