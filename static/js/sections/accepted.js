// @ts-check
/**
 * The text with all open suggestions accepted, as far as they stand and do not overlap: the oldest wins.
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

/**
 * @typedef {{ from: number, to: number, text: string }} Replacement in UTF-16 units of the text
 * @typedef {{ text: string, moved: (offset: number) => number }} Accepted `moved`: an offset of the old text in the new one
 */

/** @param {string} text @param {readonly Replacement[]} replacements the oldest first @returns {Accepted} */
export function acceptedText(text, replacements) {
  /** @type {Replacement[]} */
  const applied = []
  for (const replacement of replacements) {
    const overlaps = applied.some(({ from, to }) => from < replacement.to && replacement.from < to)
    if (replacement.from < replacement.to && replacement.to <= text.length && !overlaps) applied.push(replacement)
  }
  applied.sort((one, other) => one.from - other.from)
  let [accepted, end] = ["", 0]
  for (const { from, to, text: words } of applied) {
    accepted += text.slice(end, from) + words
    end = to
  }
  const moved = (/** @type {number} */ offset) => {
    let shift = 0
    for (const { from, to, text: words } of applied) {
      if (offset < to) return from <= offset ? from + shift : offset + shift
      shift += words.length - (to - from)
    }
    return offset + shift
  }
  return { text: accepted + text.slice(end), moved }
}
