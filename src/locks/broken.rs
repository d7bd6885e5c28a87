//! Faults that `tests/broken/run` injects, to prove that the tests detect them.
//!
//! Never for production: only a build with the feature `broken` contains this file, and an
//! optimised build with that feature does not compile. `tests/broken/run` lists the tests that each
//! fault turns red. `GALLEY_BROKEN` selects the fault at run time; without it the build behaves
//! normally, so one build shows both.

#[cfg(not(debug_assertions))]
compile_error!("the feature `broken` puts faults in: it is for tests/broken/run alone");

use std::sync::OnceLock;

use tokio::time::Instant;

/// A release accepts any value that holds the lock.
const RELEASE_WITHOUT_COMPARE: &str = "release-without-compare";
/// A connection loads the scripts when it opens, and never again.
const NO_SCRIPT_LOAD: &str = "no-script-load";
/// The fence counts from one, without Redis's clock and without the floor.
const BARE_COUNTER_FENCE: &str = "bare-counter-fence";
/// The database stores an edit without comparing its fence.
const EDITS_WITHOUT_GUARD: &str = "edits-without-guard";
/// The server accepts and stores a reviewer's edit.
const REVIEWER_EDITS_TAKEN: &str = "reviewer-edits-taken";
/// A lease starts when the reply arrives.
const DEADLINE_FROM_REPLY: &str = "deadline-from-reply";

/// The comparison in `release.lua`, and its replacement: a release then uses the stored value
/// instead of the given one.
const VALUE_AS_GIVEN: &str = "  if held and held ~= value then return 0 end\n";
const WHATEVER_IS_HELD: &str = "  value = held or value\n";
/// Precedes the code that mints fences: the maximum of clock, next fence and next fence above the
/// floor becomes the next fence in every case.
const NEXT_NUMBER: &str = "local math = {floor = math.floor, max = function(one, other, third)
  if third or one < other then return other end
  return one
end}\n";

/// The batch script with the selected fault.
pub(super) fn batch_script(mut source: String) -> String {
    if is(RELEASE_WITHOUT_COMPARE) {
        debug_assert!(source.contains(VALUE_AS_GIVEN));
        source = source.replace(VALUE_AS_GIVEN, WHATEVER_IS_HELD);
    }
    if is(BARE_COUNTER_FENCE) {
        source = format!("{NEXT_NUMBER}{source}");
    }
    source
}

/// Whether a call never loads its script; the greeting then loads all of them.
pub(super) fn loads_no_script() -> bool {
    is(NO_SCRIPT_LOAD)
}

/// Whether the database stores an edit without its fence guard.
pub(crate) fn stores_without_guard() -> bool {
    is(EDITS_WITHOUT_GUARD) || takes_reviewer_edits()
}

/// Whether a reviewer may edit the text.
pub(crate) fn takes_reviewer_edits() -> bool {
    is(REVIEWER_EDITS_TAKEN)
}

/// The start of a lease; called when the reply has arrived.
pub(super) fn sent_at(sent_at: Instant) -> Instant {
    if is(DEADLINE_FROM_REPLY) { Instant::now() } else { sent_at }
}

fn is(fault: &str) -> bool {
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("GALLEY_BROKEN").unwrap_or_default()) == fault
}
