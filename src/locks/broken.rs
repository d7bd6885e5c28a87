//! Faults put in on purpose, to see that the tests find them.
//!
//! Never for production: only a build with the feature `broken` has this file, and an optimised one
//! refuses to compile with it. `tests/broken/run` says which tests each fault turns red. The fault
//! is chosen when the program runs, by `GALLEY_BROKEN`; with none it works as ever, and so a single
//! build shows both.

#[cfg(not(debug_assertions))]
compile_error!("the feature `broken` puts faults in: it is for tests/broken/run alone");

use std::sync::OnceLock;

use redis::Pipeline;
use tokio::time::Instant;

use crate::locks::redis::scripts::{Script, Scripts};

/// A release takes whatever value the lock has for its own.
const RELEASE_WITHOUT_COMPARE: &str = "release-without-compare";
/// Scripts are loaded when a connection begins, and never again.
const NO_SCRIPT_LOAD: &str = "no-script-load";
/// The fence counts from one, without Redis's clock and without the floor.
const BARE_COUNTER_FENCE: &str = "bare-counter-fence";
/// An edit is stored without a comparison of its fence.
const EDITS_WITHOUT_GUARD: &str = "edits-without-guard";
/// A reviewer's edit is taken and stored.
const REVIEWER_EDITS_TAKEN: &str = "reviewer-edits-taken";
/// A lease is counted from when the answer came.
const DEADLINE_FROM_REPLY: &str = "deadline-from-reply";

/// Where `batch.lua` knows what is to be done with which value, and what stands there with the fault:
/// in a release, what is held is in the place of what is given.
const VALUE_AS_GIVEN: &str = "  if what == 'claim' then\n";
const WHATEVER_IS_HELD: &str =
    "  if what == 'release' then value = redis.call('GET', lock) or value end
  if what == 'claim' then\n";
/// Stands before what mints fences: of the clock, the next number and the next above the floor,
/// the greatest is always the next number.
const NEXT_NUMBER: &str = "local math = {floor = math.floor, max = function(one, other, third)
  if third or one < other then return other end
  return one
end}\n";

/// The scripts with the fault in them.
pub(super) fn scripts(mut scripts: Scripts) -> Scripts {
    if is(RELEASE_WITHOUT_COMPARE) {
        let source = &scripts.several.source;
        debug_assert!(source.contains(VALUE_AS_GIVEN));
        scripts.several = Script::new(source.replace(VALUE_AS_GIVEN, WHATEVER_IS_HELD));
    }
    if is(BARE_COUNTER_FENCE) {
        let source = format!("{NEXT_NUMBER}{}", scripts.several.source);
        scripts.several = Script::new(source);
    }
    scripts
}

/// Whether a script is never loaded where it is called.
pub(super) fn loads_no_script() -> bool {
    is(NO_SCRIPT_LOAD)
}

/// Loads all scripts in a greeting, if that is all the loading there is.
pub(super) fn load_once(scripts: &Scripts, greeting: &mut Pipeline) {
    let Scripts { spelling: _, several, renew, reassert, holders, behind, check } = scripts;
    for script in [several, renew, reassert, holders, behind, check] {
        if loads_no_script() {
            greeting.add_command(script.loading()).ignore();
        }
    }
}

/// Whether an edit is stored without its guard.
pub(crate) fn stores_without_guard() -> bool {
    is(EDITS_WITHOUT_GUARD) || takes_reviewer_edits()
}

/// Whether a reviewer may edit the text.
pub(crate) fn takes_reviewer_edits() -> bool {
    is(REVIEWER_EDITS_TAKEN)
}

/// From when a lease is counted; asked when the answer is there.
pub(super) fn sent_at(sent_at: Instant) -> Instant {
    if is(DEADLINE_FROM_REPLY) { Instant::now() } else { sent_at }
}

fn is(fault: &str) -> bool {
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("GALLEY_BROKEN").unwrap_or_default()) == fault
}
