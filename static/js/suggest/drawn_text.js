// @ts-check
/** The drawing of a change on the reviewer's page: pure, tested with `node --test`. */

/**
 * @typedef {import("./entries.js").Suggestion} Suggestion
 * @typedef {import("../reviews/word_diff.js").Range} Range
 * @typedef {import("../reviews/word_diff.js").HunkPosition} HunkPosition
 * @typedef {{ id: string, start: number, end: number }} Spot of a part in the base
 * @typedef {Record<"base" | "view", Pick<import("../lib/vendor.js").Text, "sliceString">>} Texts
 * @typedef {HunkPosition & { id: string | null }} Change drawn as one: `old` in the base and `new` in the view
 */

/** Letters of an alphabet. A syllable of Hangul, a Han sign and a Kana are read one by one. */
const LETTERS = /(?:(?!\p{Script=Hangul}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana})[\p{L}\p{N}\p{M}'’])+/u
const WORD_START = new RegExp(`^${LETTERS.source}`, "u")
const WORD_END = new RegExp(`${LETTERS.source}$`, "u")
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
  /** @type {Spot[]} */
  const spots = []
  for (const { id, parts } of suggestions) {
    for (const { start, end } of parts) if (start <= to && from <= end) spots.push({ id, start, end })
  }
  return spots.sort((one, other) => one.start - other.start || one.end - other.end)
}

/** The part at a position of the base, its edges included. @param {readonly Spot[]} spots in order @param {number} at */
export function partAt(spots, at) {
  let [low, high] = [0, spots.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((spots[middle]?.start ?? 0) <= at) low = middle + 1
    else high = middle
  }
  const last = spots[low - 1]
  return last && at <= last.end ? last : undefined
}

/**
 * The changes as they are drawn: letters, where one spot of a part changed, and words from the first to the last change
 * where several did. Letters of both texts in turn are hard to read, and so is a half of a word in an alphabet.
 *
 * @param {readonly HunkPosition[]} hunks in order @param {readonly Spot[]} spots in order @param {Texts} texts
 * @returns {Change[]}
 */
export function drawnChanges(hunks, spots, texts) {
  /** @type {Change[]} */
  const drawn = []
  /** The part of the last one. @type {Spot | undefined} */
  let before
  for (const hunk of hunks) {
    const spot = partAt(spots, hunk.old.from)
    const last = drawn.at(-1)
    const isShort = spot && spot.end - spot.start <= FOLDED_FROM
    if (last && isShort && spot === before && hunk.old.to <= spot.end) {
      last.old = { from: last.old.from, to: hunk.old.to }
      last.new = { from: last.new.from, to: hunk.new.to }
    } else {
      drawn.push({ old: { ...hunk.old }, new: { ...hunk.new }, id: spot?.id ?? null })
    }
    before = spot
  }
  for (const change of drawn) widen(change, partAt(spots, change.old.from), texts)
  return drawn
}

/** Widens a replacement to whole words of its part. @param {Change} change @param {Spot | undefined} spot @param {Texts} texts */
function widen({ old, new: fresh }, spot, { base, view }) {
  const isReplaced = old.from < old.to && fresh.from < fresh.to
  if (!isReplaced || !spot || spot.end < old.to || FOLDED_FROM < spot.end - spot.start) return
  const words = [base.sliceString(old.from, old.to), view.sliceString(fresh.from, fresh.to)]
  const left = words.some((text) => WORD_START.test(text)) ? lengthOf(WORD_END, base.sliceString(spot.start, old.from)) : 0
  const right = words.some((text) => WORD_END.test(text)) ? lengthOf(WORD_START, base.sliceString(old.to, spot.end)) : 0
  old.from -= left
  fresh.from -= left
  old.to += right
  fresh.to += right
}

/** @param {RegExp} pattern @param {string} text */
const lengthOf = (pattern, text) => pattern.exec(text)?.[0].length ?? 0
