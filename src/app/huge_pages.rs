//! Transparent huge pages, off for this process.
//!
//! A huge page makes 2 MiB resident for one byte, also of a buffer that a peer only announces. The
//! allocator asks for none (`no_thp`); the system may give them unasked.

/// Turns huge pages off, for memory that the process maps from now on.
#[cfg(target_os = "linux")]
pub(super) fn turn_off() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "the system keeps huge pages on");
    }
}

/// Other systems give none unasked.
#[cfg(not(target_os = "linux"))]
pub(super) fn turn_off() {}
