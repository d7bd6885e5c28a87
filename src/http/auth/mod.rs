//! Authentication: [`tokens`] verifies access tokens, [`host_keys`] those of the host's provider,
//! [`identity`] is their user, [`credential`] reads the credential of a request, [`caller`] demands the
//! rights that it grants, [`cookie`] stores it in a browser, [`guest`] signs guests in and out, and
//! [`session`] exchanges a host's token for a cookie.

pub mod caller;
pub(crate) mod cookie;
pub mod credential;
pub(crate) mod guest;
pub mod host_keys;
pub(crate) mod identity;
pub(crate) mod session;
pub mod tokens;
