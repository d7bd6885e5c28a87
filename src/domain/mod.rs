//! Words and rules. No IO and no clock: every function takes the time it reasons about.
//!
//! # Glossary
//!
//! - **document**: a text with a title, owned by one user.
//! - **share link**: the one live invitation to work on a document; at most one is active.
//! - **role**: `writer` or `reviewer`.
//! - **seat**: the right to act in a role on a share link; one session holds it at a time, in
//!   the whole cluster.
//! - **session**: one websocket that holds, or asks for, a seat. Its id is unguessable and never
//!   used twice.
//! - **lease**: how long a held seat is trusted without being renewed.
//! - **fence**: the number of a seat's grant; a later grant always has a higher one.
//! - **review**: a comment, with or without a suggestion, anchored to a range of the text.
//! - **version**: the text of a document as it stood at one point of its log, kept for ever or for
//!   a while.
//! - **room**: an open document in one process, with the sessions that look at it.

pub mod anchor;
pub mod fence;
pub mod ids;
pub mod lease;
pub mod limits;
pub mod printable;
pub mod review;
pub mod seat;
pub mod text;
pub mod user;
pub mod version_policy;
pub mod word_split;
