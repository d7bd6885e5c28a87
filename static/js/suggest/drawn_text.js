// @ts-check
/** What the reviewer's page draws of a change: pure, tested with `node --test`. */

/**
 * @typedef {import("./entries.js").Suggestion} Suggestion
 * @typedef {import("../reviews/word_diff.js").Range} Range
 * @typedef {import("../reviews/word_diff.js").HunkPosition} HunkPosition
 * @typedef {{ id: string, start: number, end: number }} Place of a part in the base
 * @typedef {HunkPosition & { id: string | null }} Change drawn as one: `old` in the base and `new` in the view
 */

/** Old words longer than this are folded, in UTF-16 units. */
const FOLDED_FROM = 400
/** How much of folded words is shown, in UTF-16 units. */
const SHOWN = 160

/**
 * Old words as they stand in the text. A line break is shown by its sign; one at an end breaks no line, since what
 * stands beside it is on the same line now.
 *
 * @param {string} text
 */
export function foldedText(text) {
  const isLong = FOLDED_FROM < text.length
  // A half of a pair would be shown as a sign of its own.
  const end = /[\uD800-\uDBFF]/.test(text[SHOWN - 1] ?? "") ? SHOWN - 1 : SHOWN
  const shown = isLong ? text.slice(0, end).trimEnd() : text
  const [, head = "", middle = "", tail = ""] = /^(\n*)(.*?)(\n*)$/s.exec(shown) ?? []
  const signs = (/** @type {string} */ breaks) => breaks.replaceAll("\n", "¶")
  return `${signs(head)}${middle.replaceAll("\n", "¶\n")}${signs(tail)}${isLong ? " …" : ""}`
}

/** The parts of suggestions that meet a range of the base, in order. @param {readonly Suggestion[]} suggestions @param {Range} range */
export function partsNear(suggestions, { from, to }) {
  /** @type {Place[]} */
  const places = []
  for (const { id, parts } of suggestions) {
    for (const { start, end } of parts) if (start <= to && from <= end) places.push({ id, start, end })
  }
  return places.sort((one, other) => one.start - other.start || one.end - other.end)
}

/** The part at a position of the base, its edges included. @param {readonly Place[]} places in order @param {number} at */
export function partAt(places, at) {
  let [low, high] = [0, places.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((places[middle]?.start ?? 0) <= at) low = middle + 1
    else high = middle
  }
  const last = places[low - 1]
  return last && at <= last.end ? last : undefined
}

/**
 * The changes as they are drawn: letters, where one place of a part changed, and words from the first to the last change
 * where several did. Letters of both texts in turn are hard to read.
 *
 * @param {readonly HunkPosition[]} hunks in order @param {readonly Place[]} places in order
 * @returns {Change[]}
 */
export function drawnChanges(hunks, places) {
  /** @type {Change[]} */
  const drawn = []
  /** The part of the last one. @type {Place | undefined} */
  let before
  for (const hunk of hunks) {
    const place = partAt(places, hunk.old.from)
    const last = drawn.at(-1)
    const isShort = place && place.end - place.start <= FOLDED_FROM
    if (last && isShort && place === before && hunk.old.to <= place.end) {
      last.old = { from: last.old.from, to: hunk.old.to }
      last.new = { from: last.new.from, to: hunk.new.to }
    } else {
      drawn.push({ ...hunk, id: place?.id ?? null })
    }
    before = place
  }
  return drawn
}
