/** Ranges of a text: which meet, which overlap, and which an edit leaves behind. */

import type { ChangeSet } from "../../lib/vendor.ts"
import type { Range } from "../../reviews/word_diff.ts"

/** Of offsets before an edit to those after it. */
export type Mapping = (at: number, side: -1 | 1) => number

/** Whether two ranges share a letter or touch. */
export const meets = (one: Range, other: Range) => one.from <= other.to && other.from <= one.to

/** Whether two ranges share a letter, or one is a gap inside the other. */
export const shares = (one: Range, other: Range) =>
  Math.max(one.from, other.from) < Math.min(one.to, other.to) || isInside(one, other) || isInside(other, one)

/** Whether two changes of these ranges would hinder each other. */
export const overlaps = (one: Range, other: Range) => shares(one, other) || (one.to === other.from && other.to === one.from)

const isInside = (gap: Range, range: Range) => gap.from === gap.to && range.from < gap.from && gap.to < range.to

/** The first of some ranges that does not end before an offset. */
function firstFrom(inOrder: readonly Range[], at: number) {
  let [low, high] = [0, inOrder.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((inOrder[middle]?.to ?? 0) < at) low = middle + 1
    else high = middle
  }
  return inOrder[low]
}

/** Whether a range meets one of those that are in order. */
export const meetsOneOf = (inOrder: readonly Range[]): (range: Range) => boolean =>
  (range) => (firstFrom(inOrder, range.from)?.from ?? Infinity) <= range.to

/** Whether a range is within one of those that are in order. */
export const isWithinOneOf = (inOrder: readonly Range[]): (range: Range) => boolean => ({ from, to }) => {
  const found = firstFrom(inOrder, from)
  return found !== undefined && found.from <= from && to <= found.to
}

/** Ranges that meet become one. @returns in order */
export function united(ranges: readonly Range[]): Range[] {
  const found: Range[] = []
  for (const { from, to } of [...ranges].sort((one, other) => one.from - other.from)) {
    const last = found.at(-1)
    if (last && from <= last.to) last.to = Math.max(last.to, to)
    else found.push({ from, to })
  }
  return found
}

/** The ranges that an edit changes, before it. @returns in order */
export function oldRangesOf(edit: ChangeSet): Range[] {
  const found: Range[] = []
  edit.iterChangedRanges((from, to) => found.push({ from, to }))
  return found
}

/** The ranges that an edit changed, after it. @returns in order */
export function newRangesOf(edit: ChangeSet): Range[] {
  const found: Range[] = []
  edit.iterChangedRanges((_from, _to, from, to) => found.push({ from, to }))
  return found
}

/** The same as `edit.mapPos`, which walks over the edit for each offset. */
export function mappingOf(edit: ChangeSet): Mapping {
  const changed: { from: number, to: number, newFrom: number, newTo: number }[] = []
  edit.iterChangedRanges((from, to, newFrom, newTo) => changed.push({ from, to, newFrom, newTo }), true)
  return (at, side) => {
    let [low, high] = [0, changed.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((changed[middle]?.to ?? 0) < at) low = middle + 1
      else high = middle
    }
    let before = changed[low - 1]
    for (let next = changed[low]; next && next.from <= at; next = changed[++low]) {
      if (at < next.to || (next.from === next.to && side < 0)) return at === next.from || side < 0 ? next.newFrom : next.newTo
      before = next
    }
    return before ? at - before.to + before.newTo : at
  }
}

/** A range after an edit, with all that the edit put in at its ends. */
export const shiftWhole = ({ from, to }: Range, map: Mapping): Range => ({ from: map(from, -1), to: map(to, 1) })
