//! Authentication: [`tokens`] verifies access tokens, [`host_keys`] those of the host's provider,
//! [`identity`] is their user, [`credential`] reads the credential of a request, [`caller`] demands the
//! rights that it grants, [`cookie`] stores it in a browser, [`guest`] signs guests in, [`sign_outs`] ends sign-ins, and
//! [`session`] exchanges a host's token for a cookie. [`scopes`] says which routes a server token opens, [`admission`]
//! compares them, and [`revocations`] are the tokens that end early.

pub mod admission;
pub mod caller;
pub(crate) mod cookie;
pub mod credential;
pub(crate) mod guest;
pub mod host_keys;
pub(crate) mod identity;
pub(crate) mod named_user;
pub mod revocations;
pub mod scopes;
pub(crate) mod session;
pub(crate) mod sign_outs;
pub mod tokens;
