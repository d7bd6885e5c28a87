/**
 * The spots of a review in the text of the editor: its passage, or the quotes and gaps of a suggestion.
 *
 * The server says by which letters a spot stands when it serves it; from then on it moves along with every edit. Text
 * that is typed at an edge of a quote stays outside, and text that is typed at a gap stands before it, as Yjs's relative
 * positions have it. Pure, tested with `node --test`.
 */

import type { ChangeDesc as Changes } from "@codemirror/state"
import type { Anchor, AnchorState, Review } from "../lib/api.ts"
import { BESIDE, besideGap, gapHolds, locate, locateGap, locateInserted, locateInsertedGap, type Range, type Tree } from "./locate.ts"
import { isSuggestion } from "./parts.ts"
import type { SharedPositions } from "./shared_positions.ts"

interface SpotFacts {
  quote: string // `""` at a gap
  prefix: string
  suffix: string
  text: string | null // in the stead of the quote; `null` for a comment
  holds: boolean // whether the text there is the quote, or has a word beside the gap as before
  isGuess: boolean // whether the spot was found by its words in letters that came later
  left: number // where the letter before a gap ends; -1: it is deleted
  isBeside: boolean // whether the letter behind a gap stands
}

export type Spot = Range & SpotFacts
/** Of an edit: its range in the text before, how far what is behind moves, and what it inserted into the text after. */
type Extent = { first: number, last: number, by: number, inserted: Range[] }

/** Whether a spot is in the text. A gap is an empty range, a deleted quote too. */
export const stands = ({ from, to, quote, holds }: Spot) => (quote === "" ? holds : from < to)

/** Whether a suggestion can be accepted as it is shown: each of its spots is as it was. */
export const isWhole = (spots: readonly Spot[]) => spots.every((spot) => stateOfSpot(spot) === "exact")

/** The state of a spot in the text here. */
export function stateOfSpot(spot: Spot): AnchorState {
  if (!stands(spot)) return "orphaned"
  return !spot.holds ? "edited" : spot.isGuess ? "moved" : "exact"
}

/** Whether the server may find a spot in this text by its words, which it searches when the letters are gone. */
export function mayReturn({ state, quote, prefix, suffix }: Anchor, whole: string) {
  if (state !== "orphaned" && state !== "moved") return false
  return quote === "" ? besideGap({ prefix, suffix }).some((words) => whole.includes(words)) : whole.includes(quote)
}

/**
 * The spots of a review in the text of this page. A part stands at the letters that the server names. If it names none, or
 * the page lacks them, the part stands at the server's offsets, unless it moved along with edits that the server may lack.
 *
 * @param text both forms of it
 */
export function spotsOf(
  { tree, whole, positions = null }: { tree: Tree, whole: string, positions?: SharedPositions | null },
  review: Pick<Review, "anchor" | "parts">,
  ours: readonly Spot[],
): Spot[] {
  const only = review.anchor === null ? [] : [{ anchor: review.anchor, text: null }]
  const parts = isSuggestion(review) ? review.parts : only
  return parts.map(({ anchor, text: words }, at) => {
    const before = ours[at]
    const { quote, prefix, suffix } = anchor
    const isSame = before !== undefined && quote === before.quote && (prefix === before.prefix || suffix === before.suffix)
    const isLost = anchor.state === "orphaned"
    const isNewer = isSame && stands(before) && !before.isGuess && anchor.state !== "moved" && !(isLost && positions)
    const range = positions?.of(anchor) ?? (isNewer ? before : quote === "" ? locateGap(whole, anchor) : locate(whole, anchor))
    const { from, to, left, isBeside } = { left: range.from, isBeside: true, ...range }
    const own = { left: isLost ? -1 : left, isBeside: isBeside && !isLost, isGuess: anchor.state === "moved" }
    const next = held({ from, to, quote, prefix, suffix, text: words, holds: true, ...own }, tree)
    // A paste that the server has not received.
    if (isSame && before.isGuess && !stands(next) && !isLost) return before
    // One that stood here and is found nowhere stays where it was: it may be pasted in a moment.
    return isSame && !stands(next) && !stands(before) ? { ...next, from: before.from, to: before.to } : next
  })
}

export function extentOf(changes: Changes): Extent {
  let [first, last] = [Number.POSITIVE_INFINITY, -1]
  const inserted: Range[] = []
  changes.iterChangedRanges((fromA, toA, from, to) => {
    first = Math.min(first, fromA)
    last = Math.max(last, toA)
    if (from < to) inserted.push({ from, to })
  })
  return { first, last, by: changes.newLength - changes.length, inserted }
}

/** Whether an edit is at a spot. */
export const isNear = ({ from, to }: Spot, { first, last }: Extent) => first <= to + BESIDE && from - BESIDE <= last

/**
 * A spot after an edit; the same object if the edit is behind it.
 *
 * @param text after the edit
 */
export function moved(spot: Spot, changes: Changes, { first, last, by, inserted }: Extent, text: Tree): Spot {
  const { from, to, quote, prefix, suffix, text: words, holds, isGuess, left, isBeside } = spot
  const width = quote === "" ? BESIDE : 0
  if (stands(spot)) {
    if (to + width < first) return spot
    // A literal: thousands of spots are behind a key, and a spread takes five times as long.
    if (last < from - width && (left < 0 || last < left)) {
      return { from: from + by, to: to + by, quote, prefix, suffix, text: words, holds, isGuess, left: left < 0 ? left : left + by, isBeside }
    }
  }
  const next = quote === "" ? { ...spot, ...movedGap(spot, changes) } : movedRange(spot, changes)
  const retained = held(next, text)
  if (stands(retained) || inserted.length === 0) return retained
  // Cut and pasted, or its deletion undone.
  const found = spot.quote === "" ? locateInsertedGap(text, inserted, retained) : locateInserted(text, inserted, retained)
  return found ? held({ ...retained, ...found, isGuess: true, left: found.from, isBeside: true }, text) : retained
}

function movedGap({ from, left, isBeside }: Spot, changes: Changes) {
  // New text stands behind the deleted letters that it replaces, and behind a gap whose letter is deleted.
  let at = changes.mapPos(from, isBeside ? 1 : -1)
  let [isLeft, isStill] = [0 <= left, isBeside]
  changes.iterChangedRanges((first, end, firstB) => {
    if (first < left && left <= end) isLeft = false
    if (first <= from && from < end) [at, isStill] = [firstB, false]
  })
  return { from: at, to: at, left: isLeft ? changes.mapPos(left, -1) : -1, isBeside: isStill }
}

export function movedRange<R extends Range>(range: R, changes: Changes): R {
  const from = changes.mapPos(range.from, 1)
  let to = changes.mapPos(range.to, -1)
  // An edit that replaces the tail: the passage ends before the new words, as the server has it.
  changes.iterChangedRanges((fromA, toA, fromB) => {
    if (range.from < fromA && fromA < toA && toA === range.to) to = fromB
  })
  return { ...range, from, to: Math.max(from, to) }
}

function held(spot: Spot, text: Tree): Spot {
  const { from, to, quote, left, isBeside } = spot
  const holds = quote === "" ? (0 <= left || isBeside) && gapHolds(text, from, spot) : to - from === quote.length && text.sliceString(from, to) === quote
  return holds === spot.holds ? spot : { ...spot, holds }
}

/** The spots whose edit changes how they are drawn: one that came, went, or has another text now. */
export function isTouched(before: Spot, after: Spot, changes: Changes) {
  if (before === after) return false
  if (before.holds !== after.holds || before.isGuess !== after.isGuess || stands(before) !== stands(after)) return true
  return Boolean(changes.touchesRange(before.from, before.to))
}
