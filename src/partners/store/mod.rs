//! The rows and statements of handles, personal links and review requests.

pub mod people;
pub mod requests;
