// @ts-check
/**
 * The text with all open suggestions accepted, as far as they stand and do not overlap: the oldest wins. A suggestion with
 * several parts is accepted whole or not at all. The server accepts alike (`src/core/reviews/plan.rs`).
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

/**
 * @typedef {{ from: number, to: number, text: string }} Replacement in UTF-16 units of the text; an empty range adds its text
 * @typedef {{ text: string, moved: (offset: number) => number }} Accepted `moved`: an offset of the old text in the new one
 */

/**
 * The replacements of all suggestions that can be accepted together, in the order of the text.
 *
 * @param {number} length of the text @param {readonly (readonly Replacement[])[]} suggestions the oldest first
 * @returns {Replacement[]}
 */
export function acceptable(length, suggestions) {
  /** No two overlap, so starts and ends are both in order. @type {Replacement[]} */
  const accepted = []
  const spotOf = (/** @type {Replacement} */ { from, to }) =>
    firstWhere(accepted, (other) => from < other.from || (from === other.from && to <= other.to))
  const fits = (/** @type {Replacement} */ replacement) => {
    const { from, to } = replacement
    const next = accepted[firstWhere(accepted, (other) => from < other.to)]
    const same = accepted[spotOf(replacement)]
    // A spot has one gap.
    const isTaken = (next && next.from < to) || (same?.from === from && same.to === to)
    return from <= to && to <= length && !isTaken
  }
  for (const replacements of suggestions) {
    if (!replacements.every(fits)) continue
    // At one spot an added text stands before a replaced one.
    for (const replacement of replacements) accepted.splice(spotOf(replacement), 0, replacement)
  }
  return accepted
}

/** Which of the suggestions those are. @param {number} length @param {readonly (readonly Replacement[])[]} suggestions the oldest first */
export function acceptedOnes(length, suggestions) {
  const accepted = new Set(acceptable(length, suggestions))
  return suggestions.map(([first]) => first !== undefined && accepted.has(first))
}

/** The index of the first for which `is` holds, where it holds for all behind it. @param {readonly Replacement[]} sorted @param {(other: Replacement) => boolean} is */
function firstWhere(sorted, is) {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (is(/** @type {Replacement} */ (sorted[middle]))) high = middle
    else low = middle + 1
  }
  return low
}

/** @param {string} text @param {readonly (readonly Replacement[])[]} suggestions the oldest first @returns {Accepted} */
export function acceptedText(text, suggestions) {
  const applied = acceptable(text.length, suggestions)
  let [accepted, end] = ["", 0]
  for (const { from, to, text: words } of applied) {
    accepted += text.slice(end, from) + words
    end = to
  }
  const moved = (/** @type {number} */ offset) => {
    let shift = 0
    for (const { from, to, text: words } of applied) {
      if (offset < to || offset < from) return from <= offset ? from + shift : offset + shift
      shift += words.length - (to - from)
    }
    return offset + shift
  }
  return { text: accepted + text.slice(end), moved }
}
