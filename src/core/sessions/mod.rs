//! The state of the sessions of this server: what each session holds, and the registry that finds it.
//! No IO.

pub mod budgets;
#[cfg(test)]
mod model_tests;
pub mod options;
pub mod registry;
pub mod session;
#[cfg(test)]
mod session_tests;
mod shuttle_shim;
#[cfg(test)]
mod shuttle_tests;
