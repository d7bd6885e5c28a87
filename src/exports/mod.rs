//! Exports and imports: documents as files.
//!
//! # Exports
//!
//! A request for a file that the database has not takes the lock of the file (class `export`, one
//! attempt) and hands its guard over to a task, which builds the file, stores it and releases the lock
//! ([`build`]). Every other caller receives the progress and asks again. So a hundred requests on any
//! number of servers cause one build (G11). If the builder dies, its lease ends and the next request
//! takes the lock. The fence of the lock guards the database: a builder that froze beyond its lease
//! stores nothing.
//!
//! The crate `galley-files` renders the file ([`rendering`]) and reads an imported one ([`import`]).

pub mod build;
pub mod error;
pub(crate) mod http;
mod import;
pub mod rendering;
mod served;
pub mod settings;
pub mod store;
