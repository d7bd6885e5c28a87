//! The proof that a transaction holds the lock of a document.

/// A webhook takes this proof, because two transactions without the lock could both write the first row of
/// a lane. The locks of [`tx`](crate::storage::tx) make it.
#[derive(Clone, Copy, Debug)]
pub struct Locked(());

impl Locked {
    pub(super) fn in_this_transaction() -> Self {
        Self(())
    }
}
