//! Authentication: [`tokens`] verifies access tokens, [`credential`] reads the credential of a
//! request, [`caller`] demands the rights that it grants, [`cookie`] stores it in a browser, [`guest`]
//! signs guests in and out, and [`transfer`] signs them in on another device.

pub mod caller;
pub(super) mod cookie;
pub mod credential;
pub(super) mod guest;
pub mod tokens;
pub(super) mod transfer;
