/**
 * Where the cards of the margin stand: beside their lines, apart from each other.
 *
 * Pure arithmetic, tested with `node --test`.
 */

/** `want`: the top that it would like. */
export type Box = { id: string, want: number, height: number }

interface Options {
  active: string | null
  gap: number // between two cards, in px
  top: number // the smallest top of a card while no card is active
}

/**
 * Tops for all boxes, in the order given (the order of the text). The active one stands where it
 * wants to, and the others move aside: those before it upwards, if need be above `top` and out of
 * the column, those after it downwards. Boxes never overlap.
 *
 * Cards that stopped at `top` pushed the active one down again, off its passage and out of the
 * window, once ten reviews stood on one paragraph.
 */
export function arrange(boxes: readonly Box[], { active, gap, top }: Options): Map<string, number> {
  const tops: number[] = []
  const pivot = boxes.findIndex((box) => box.id === active)
  let free = top
  boxes.forEach((box, at) => {
    const placed = Math.max(box.want, at === pivot ? top : free)
    tops.push(placed)
    free = placed + box.height + gap
  })
  for (let at = pivot - 1; 0 <= at; at--) {
    const below = tops[at + 1] ?? 0
    tops[at] = Math.min(tops[at] ?? 0, below - gap - (boxes[at]?.height ?? 0))
  }
  return new Map(boxes.map((box, at) => [box.id, tops[at] ?? top]))
}

/**
 * The boxes that fold to one line: each run of touching cards in which one stands further than
 * `limit` from its line, or above `top`. The active one never folds.
 *
 * @param boxes at their full heights
 */
export function crowded(boxes: readonly Box[], { limit, ...options }: Options & { limit: number }): Set<string> {
  const tops = arrange(boxes, options)
  const folded: Set<string> = new Set()
  let run: Box[] = []
  let isFar = false
  let end = -Infinity
  const close = () => {
    if (isFar) for (const { id } of run) if (id !== options.active) folded.add(id)
    run = []
    isFar = false
  }
  for (const box of boxes) {
    const placed = tops.get(box.id) ?? 0
    if (end + options.gap < placed) close()
    run.push(box)
    isFar ||= placed < options.top || limit < Math.abs(placed - Math.max(box.want, options.top))
    end = placed + box.height
  }
  close()
  return folded
}

/**
 * How far the page scrolls so that a card and its passage are both inside the window, in px: 0 if
 * they are. If both do not fit, the upper of their edges is in the window.
 *
 * @param subject the span of both
 * @param window the part of it that no bar covers
 */
export function scrollInto(subject: { top: number, bottom: number }, window: { top: number, bottom: number }) {
  if (window.bottom < subject.bottom) {
    return Math.max(Math.min(subject.bottom - window.bottom, subject.top - window.top), 0)
  }
  return Math.min(subject.top - window.top, 0)
}
