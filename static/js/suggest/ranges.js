// @ts-check
/** Ranges of a text: which meet, which overlap, and which an edit leaves behind. */

/**
 * @typedef {import("../reviews/word_diff.js").Range} Range
 * @typedef {import("../lib/vendor.js").ChangeSet} ChangeSet
 * @typedef {(at: number, side: -1 | 1) => number} Mapping of offsets before an edit to those after it
 */

/** Whether two ranges share a letter or touch. @param {Range} one @param {Range} other */
export const meets = (one, other) => one.from <= other.to && other.from <= one.to

/** Whether two ranges share a letter, or one is a gap inside the other. @param {Range} one @param {Range} other */
export const shares = (one, other) =>
  Math.max(one.from, other.from) < Math.min(one.to, other.to) || isInside(one, other) || isInside(other, one)

/** Whether two changes of these ranges would hinder each other. @param {Range} one @param {Range} other */
export const overlaps = (one, other) => shares(one, other) || (one.to === other.from && other.to === one.from)

/** @param {Range} gap @param {Range} range */
const isInside = (gap, range) => gap.from === gap.to && range.from < gap.from && gap.to < range.to

/** The first of some ranges that does not end before an offset. @param {readonly Range[]} inOrder @param {number} at */
function firstFrom(inOrder, at) {
  let [low, high] = [0, inOrder.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((inOrder[middle]?.to ?? 0) < at) low = middle + 1
    else high = middle
  }
  return inOrder[low]
}

/** Whether a range meets one of those that are in order. @param {readonly Range[]} inOrder @returns {(range: Range) => boolean} */
export const meetsOneOf = (inOrder) => (range) => (firstFrom(inOrder, range.from)?.from ?? Infinity) <= range.to

/** Whether a range is within one of those that are in order. @param {readonly Range[]} inOrder @returns {(range: Range) => boolean} */
export const isWithinOneOf = (inOrder) => ({ from, to }) => {
  const found = firstFrom(inOrder, from)
  return found !== undefined && found.from <= from && to <= found.to
}

/** Ranges that meet become one. @param {readonly Range[]} ranges @returns {Range[]} in order */
export function united(ranges) {
  /** @type {Range[]} */
  const found = []
  for (const { from, to } of [...ranges].sort((one, other) => one.from - other.from)) {
    const last = found.at(-1)
    if (last && from <= last.to) last.to = Math.max(last.to, to)
    else found.push({ from, to })
  }
  return found
}

/** The ranges that an edit changes, before it. @param {ChangeSet} edit @returns {Range[]} in order */
export function oldRangesOf(edit) {
  /** @type {Range[]} */
  const found = []
  edit.iterChangedRanges((from, to) => found.push({ from, to }))
  return found
}

/** The ranges that an edit changed, after it. @param {ChangeSet} edit @returns {Range[]} in order */
export function newRangesOf(edit) {
  /** @type {Range[]} */
  const found = []
  edit.iterChangedRanges((_from, _to, from, to) => found.push({ from, to }))
  return found
}

/**
 * The same as `edit.mapPos`, which walks over the edit for each offset.
 *
 * @param {ChangeSet} edit @returns {Mapping}
 */
export function mappingOf(edit) {
  /** @type {{ from: number, to: number, newFrom: number, newTo: number }[]} */
  const changed = []
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

/** A range after an edit, with all that the edit put in at its ends. @param {Range} range @param {Mapping} map @returns {Range} */
export const shiftWhole = ({ from, to }, map) => ({ from: map(from, -1), to: map(to, 1) })
