// @ts-check
/**
 * A text in lines, cut where a numbered passage begins or ends, for the print. Passages may overlap.
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

/**
 * @typedef {{ from: number, to: number, number: number }} Mark a passage in UTF-16 units, or an empty gap
 * @typedef {{ text: string, marked: boolean, ends: number[] }} Piece `ends`: the passages that end with it
 */

/** @param {string} text @param {readonly Mark[]} marks @returns {Piece[][]} the pieces of each line */
export function markedLines(text, marks) {
  const edges = marks
    .flatMap(({ from, to, number }) => (from < to ? [{ at: from, step: 1, number }, { at: to, step: -1, number }] : [{ at: from, step: 0, number }]))
    .sort((one, other) => one.at - other.at || one.step - other.step || one.number - other.number)
  let next = 0
  let depth = 0
  let start = 0
  return text.split("\n").map((line) => {
    /** @type {Piece[]} */
    const pieces = []
    let from = start
    const end = start + line.length
    const cut = (/** @type {number} */ to) => {
      if (from < to) pieces.push({ text: text.slice(from, to), marked: 0 < depth, ends: [] })
      from = to
    }
    for (let edge = edges[next]; edge && edge.at <= end; edge = edges[++next]) {
      cut(edge.at)
      depth += edge.step
      if (edge.step === 1) continue
      if (pieces.length === 0) pieces.push({ text: "", marked: false, ends: [] })
      pieces.at(-1)?.ends.push(edge.number)
    }
    cut(end)
    start = end + 1
    return pieces
  })
}
