/**
 * A text in lines, cut where a numbered passage begins or ends, for the print. Passages may overlap.
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

/** A passage in UTF-16 units, or an empty gap. */
type Mark = { from: number, to: number, number: number }
/** `ends`: the passages that end with it. */
export type Piece = { text: string, marked: boolean, ends: number[] }

/** @returns the pieces of each line */
export function markedLines(text: string, marks: readonly Mark[]): Piece[][] {
  const edges = marks
    .flatMap(({ from, to, number }) => (from < to ? [{ at: from, step: 1, number }, { at: to, step: -1, number }] : [{ at: from, step: 0, number }]))
    .sort((one, other) => one.at - other.at || one.step - other.step || one.number - other.number)
  let next = 0
  let depth = 0
  let start = 0
  return text.split("\n").map((line) => {
    const pieces: Piece[] = []
    let from = start
    const end = start + line.length
    const cut = (to: number) => {
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
