//! The example of `src/locks/GUIDE.md`, unchanged. `tests/guide/run` builds and runs it.

include!(concat!(env!("OUT_DIR"), "/example.rs"));
