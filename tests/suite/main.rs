//! The suite: the server and its parts against real Redis, SQLite and PostgreSQL.
//!
//! `cargo test --test suite locks::` runs one part.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an unexpected state fails the test"
)]

/// Each test on each engine: a test is a function of that fixture.
macro_rules! on_each_engine {
    ($fixture:ty: $($name:ident)+) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(<$fixture>::sqlite().await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(<$fixture>::postgres().await).await;
            })+
        }
    };
}
pub(crate) use on_each_engine;

mod fuzz;
mod jobs;
mod locks;
mod notify;
mod server;
mod storage;
#[path = "../support/mod.rs"]
mod support;
