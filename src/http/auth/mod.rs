//! Authentication: [`tokens`] verifies access tokens, [`caller`] finds the credential of a request,
//! [`cookie`] stores it in a browser, and [`guest`] signs guests in and out.

pub mod caller;
pub(super) mod cookie;
pub(super) mod guest;
pub mod tokens;
