// @ts-check
/**
 * The places of a review in the text of the editor: its passage, or the quotes and gaps of a suggestion.
 *
 * The server says where a place is when it serves it; from then on it moves along with every edit. Text that is typed
 * at an edge of a quote stays outside, and text that is typed at a gap stands before it, as Yjs's relative positions
 * have it. Pure, tested with `node --test`.
 */

import { BESIDE, gapHolds, locate, locateGap, locateInserted, locateInsertedGap } from "./locate.js"
import { isSuggestion } from "./parts.js"

/**
 * @typedef {import("./locate.js").Range} Range
 * @typedef {import("@codemirror/state").ChangeDesc} Changes
 * @typedef {import("./locate.js").Tree} Tree
 * @typedef {object} PlaceFacts
 * @property {string} quote `""` at a gap
 * @property {string} prefix
 * @property {string} suffix
 * @property {string | null} text in the stead of the quote; `null` for a comment
 * @property {boolean} holds whether the text there is the quote, or has a word beside the gap as before
 * @typedef {Range & PlaceFacts} Place
 * @typedef {{ first: number, last: number, by: number, inserted: Range[] }} Extent of an edit: its range in the text before, how far
 *   what is behind moves, and what it inserted into the text after
 */

/** Whether a place is in the text. A gap is an empty range, a deleted quote too. @param {Place} place */
export const stands = ({ from, to, quote, holds }) => (quote === "" ? holds : from < to)

/** Whether a suggestion can be accepted as it is shown: each of its places is as it was. @param {readonly Place[]} places */
export const isWhole = (places) => places.every((place) => stands(place) && place.holds)

/**
 * Places as the server has them, but for those that moved along with edits that it may not have seen.
 *
 * @param {{ tree: Tree, whole: string }} text both forms of it
 * @param {Pick<import("../lib/api.js").Review, "anchor" | "parts">} review @param {readonly Place[]} ours
 * @returns {Place[]}
 */
export function placesOf({ tree, whole }, review, ours) {
  const only = review.anchor === null ? [] : [{ anchor: review.anchor, text: null }]
  const parts = isSuggestion(review) ? review.parts : only
  return parts.map(({ anchor, text: words }, at) => {
    const before = ours[at]
    const { quote, prefix, suffix } = anchor
    const isSame = before !== undefined && quote === before.quote && (prefix === before.prefix || suffix === before.suffix)
    const isNewer = isSame && stands(before) && anchor.state !== "moved"
    const range = isNewer ? before : quote === "" ? locateGap(whole, anchor) : locate(whole, anchor)
    const next = held({ from: range.from, to: range.to, quote, prefix, suffix, text: words, holds: true }, tree)
    // One that stood here and is found nowhere stays where it was: it may be pasted in a moment.
    return isSame && !stands(next) && !stands(before) ? { ...next, from: before.from, to: before.to } : next
  })
}

/** @param {Changes} changes @returns {Extent} */
export function extentOf(changes) {
  let [first, last] = [Number.POSITIVE_INFINITY, -1]
  /** @type {Range[]} */
  const inserted = []
  changes.iterChangedRanges((fromA, toA, from, to) => {
    first = Math.min(first, fromA)
    last = Math.max(last, toA)
    if (from < to) inserted.push({ from, to })
  })
  return { first, last, by: changes.newLength - changes.length, inserted }
}

/**
 * A place after an edit; the same object if the edit is behind it.
 *
 * @param {Place} place @param {Changes} changes @param {Extent} extent @param {Tree} text after the edit
 * @returns {Place}
 */
export function moved(place, changes, { first, last, by, inserted }, text) {
  const { from, to, quote, prefix, suffix, text: words, holds } = place
  const reach = quote === "" ? BESIDE : 0
  if (stands(place)) {
    if (to + reach < first) return place
    // A literal: thousands of places are behind a key, and a spread takes five times as long.
    if (last < from - reach) return { from: from + by, to: to + by, quote, prefix, suffix, text: words, holds }
  }
  const next = quote === "" ? { ...place, ...movedGap(place, changes) } : movedRange(place, changes)
  const kept = held(next, text)
  if (stands(kept) || inserted.length === 0) return kept
  // Cut and pasted, or its deletion undone.
  const found = place.quote === "" ? locateInsertedGap(text, inserted, kept) : locateInserted(text, inserted, kept)
  return found ? held({ ...kept, ...found }, text) : kept
}

/** @param {Range} place @param {Changes} changes @returns {Range} */
function movedGap({ from }, changes) {
  const at = changes.mapPos(from, 1)
  return { from: at, to: at }
}

/**
 * @template {Range} R
 * @param {R} range
 * @param {Changes} changes
 * @returns {R}
 */
export function movedRange(range, changes) {
  const from = changes.mapPos(range.from, 1)
  let to = changes.mapPos(range.to, -1)
  // An edit that replaces the tail: the passage ends before the new words, as the server has it.
  changes.iterChangedRanges((fromA, toA, fromB) => {
    if (range.from < fromA && fromA < toA && toA === range.to) to = fromB
  })
  return { ...range, from, to: Math.max(from, to) }
}

/** @param {Place} place @param {Tree} text @returns {Place} */
function held(place, text) {
  const { from, to, quote } = place
  const holds = quote === "" ? gapHolds(text, from, place) : to - from === quote.length && text.sliceString(from, to) === quote
  return holds === place.holds ? place : { ...place, holds }
}

/**
 * The places whose edit changes how they are drawn: one that came, went, or has another text now.
 *
 * @param {Place} before @param {Place} after @param {Changes} changes
 */
export function isTouched(before, after, changes) {
  if (before === after) return false
  if (before.holds !== after.holds || stands(before) !== stands(after)) return true
  return before.from < before.to && Boolean(changes.touchesRange(before.from, before.to))
}
