/**
 * The parts of a suggestion: places of the text, each with a quote and the text in its stead. A part without a quote is
 * a gap, where its text is added; one without a text deletes its quote. Pure, tested with `node --test`.
 */

import type { Part, Review } from "../lib/api.ts"

type PartKind = "insert" | "delete" | "replace"
type WithParts = Pick<Review, "parts">

/**
 * The order in which the server accepts, of two suggestions for the same words the older one. A time without trailing
 * zeros is a prefix of a later one, but for its `Z`.
 *
 * @param other `since`: `created_at`
 */
export function olderFirst(one: { id: string, since: string }, other: { id: string, since: string }) {
  const [first, second] = [one.since.slice(0, -1), other.since.slice(0, -1)]
  if (first !== second) return first < second ? -1 : 1
  return one.id < other.id ? -1 : 1
}

/** @param review a comment has no parts */
export const isSuggestion = ({ parts }: WithParts) => 0 < parts.length

export function kindOf({ anchor, text }: Part): PartKind {
  if (anchor.quote === "") return "insert"
  return text === "" ? "delete" : "replace"
}

/**
 * The text that two parts move, one of which deletes what the other adds, but for the spaces at its ends; `null` for other parts.
 */
export function movedText(parts: readonly Part[]) {
  const [one, other] = parts
  if (!one || !other || parts.length !== 2) return null
  const [added, deleted] = one.text === "" ? [other, one] : [one, other]
  const text = added.text.trim()
  const isMove = text !== "" && kindOf(added) === "insert" && kindOf(deleted) === "delete" && text === deleted.anchor.quote.trim()
  return isMove ? text : null
}

/** Whether the form of a review can show it: one passage with other words, which its author did not type in the text. */
export const fitsForm = ({ parts, origin }: WithParts & { origin?: Review["origin"] }) =>
  parts.length === 0 || (origin !== "typed" && parts.length === 1 && parts[0]?.anchor.quote !== "")
