// @ts-check
/**
 * The parts of a suggestion: places of the text, each with a quote and the text in its stead. A part without a quote is
 * a gap, where its text is added; one without a text deletes its quote. Pure, tested with `node --test`.
 */

/**
 * @typedef {import("../lib/api.js").Part} Part
 * @typedef {"insert" | "delete" | "replace"} PartKind
 * @typedef {Pick<import("../lib/api.js").Review, "parts">} WithParts
 */

/**
 * The order in which the server accepts, of two suggestions for the same words the older one. A time without trailing
 * zeros is a prefix of a later one, but for its `Z`.
 *
 * @param {{ id: string, since: string }} one @param {{ id: string, since: string }} other `since`: `created_at`
 */
export function olderFirst(one, other) {
  const [first, second] = [one.since.slice(0, -1), other.since.slice(0, -1)]
  if (first !== second) return first < second ? -1 : 1
  return one.id < other.id ? -1 : 1
}

/** @param {WithParts} review a comment has no parts */
export const isSuggestion = ({ parts }) => 0 < parts.length

/** @param {Part} part @returns {PartKind} */
export function kindOf({ anchor, text }) {
  if (anchor.quote === "") return "insert"
  return text === "" ? "delete" : "replace"
}

/**
 * The text that two parts move, one of which deletes what the other adds, but for the spaces at its ends; `null` for other parts.
 *
 * @param {readonly Part[]} parts
 */
export function movedText(parts) {
  const [one, other] = parts
  if (!one || !other || parts.length !== 2) return null
  const [added, deleted] = one.text === "" ? [other, one] : [one, other]
  const text = added.text.trim()
  const isMove = text !== "" && kindOf(added) === "insert" && kindOf(deleted) === "delete" && text === deleted.anchor.quote.trim()
  return isMove ? text : null
}

/**
 * Whether the form of a review can show it: one passage with other words, which its author did not type in the text.
 *
 * @param {WithParts & { origin?: import("../lib/api.js").Review["origin"] }} review
 */
export const fitsForm = ({ parts, origin }) => parts.length === 0 || (origin !== "typed" && parts.length === 1 && parts[0]?.anchor.quote !== "")
