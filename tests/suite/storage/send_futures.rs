//! Each future of storage is `Send`, so tasks may move between threads. The type of a boxed one says so;
//! compilation proves it of those on the path of an edit or a claim, which are not boxed.

use galley::domain::ids::SessionId;
use galley::domain::user::User;
use galley::storage::Storage;
use galley::storage::seats::FenceGuard;

use crate::storage::database::at;

fn movable(_future: impl Future + Send) {}

#[test]
fn the_futures_that_are_not_boxed_are_send() {
    let _compiles = |storage: &Storage, FenceGuard { seat, fence }: FenceGuard, kim: &User| {
        movable(storage.append(&[]));
        movable(storage.append_unlocked(&[]));
        movable(storage.ratify(seat, fence, SessionId::generate(), &kim.id, at(0)));
    };
}
