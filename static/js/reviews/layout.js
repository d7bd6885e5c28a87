// @ts-check
/**
 * Where the cards of the margin stand: beside their lines, apart from each other.
 *
 * Pure arithmetic, tested with `node --test`.
 */

/** @typedef {{ id: string, want: number, height: number }} Box `want`: the top it would like */

/**
 * Tops for all boxes, in the order given (the order of the text). The active one stands where it
 * wants to, and the others move aside: those before it upwards, those after it downwards. Nothing
 * stands above `top`, and boxes never overlap.
 *
 * @param {readonly Box[]} boxes
 * @param {{ active: string | null, gap: number, top: number }} options
 * @returns {Map<string, number>}
 */
export function arrange(boxes, { active, gap, top }) {
  const tops = boxes.map((box) => Math.max(box.want, top))
  const pivot = boxes.findIndex((box) => box.id === active)
  for (let at = pivot - 1; 0 <= at; at--) {
    const below = tops[at + 1] ?? 0
    tops[at] = Math.min(tops[at] ?? 0, below - gap - (boxes[at]?.height ?? 0))
  }
  // Down the page once more: it pushes apart what is below, and back into view what was
  // pushed above the top.
  let free = top
  boxes.forEach((box, at) => {
    const placed = Math.max(tops[at] ?? 0, free)
    tops[at] = placed
    free = placed + box.height + gap
  })
  return new Map(boxes.map((box, at) => [box.id, tops[at] ?? top]))
}
