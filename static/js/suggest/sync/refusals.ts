/** The reasons for which the server stores no suggestion. Each has a sentence with a way out: `suggesting.<reason>`. Pure, tested with `node --test`. */

export type Refusal = typeof REFUSALS[number]

/** The gravest first. `storage` is that of the whole server; `Refusal` of `src/domain/suggestion.rs` has the others. */
export const REFUSALS = [
  "storage", "full", "too-long", "malformed", "not-yours", "overlaps", "position", "version", "decided", "quote-changed",
] as const

/** The page mends these by itself, mostly: the sentence waits until the suggestions are late. */
export const MENDED: readonly string[] = ["overlaps", "position", "version", "decided", "quote-changed"] satisfies readonly Refusal[]

/** The refusal to show, or `""`. The page has no name for one of a newer server. */
export function gravest(reasons: Iterable<string>): Refusal | "" {
  const named = new Set(Array.from(reasons, (reason) => REFUSALS.find((one) => one === reason) ?? "malformed"))
  return REFUSALS.find((reason) => named.has(reason)) ?? ""
}
