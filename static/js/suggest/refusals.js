// @ts-check
/** The reasons for which the server stores no suggestion. Each has a sentence with a way out: `suggesting.<reason>`. Pure, tested with `node --test`. */

/** @typedef {typeof REFUSALS[number]} Refusal */

/** The gravest first. `storage` is that of the whole server; `Refusal` of `src/domain/suggestion.rs` has the others. */
export const REFUSALS = /** @type {const} */ ([
  "storage", "full", "too-long", "malformed", "not-yours", "overlaps", "position", "version", "decided", "quote-changed",
])

/** The page mends these by itself, mostly: the sentence waits until the suggestions are late. @type {readonly string[]} */
export const MENDED = /** @satisfies {readonly Refusal[]} */ (["overlaps", "position", "version", "decided", "quote-changed"])

/** The refusal to show, or `""`. The page has no name for one of a newer server. @param {Iterable<string>} reasons @returns {Refusal | ""} */
export function gravest(reasons) {
  const named = new Set(Array.from(reasons, (reason) => REFUSALS.find((one) => one === reason) ?? "malformed"))
  return REFUSALS.find((reason) => named.has(reason)) ?? ""
}
