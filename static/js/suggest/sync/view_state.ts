/**
 * The overlay of the reviewer's editor: which view stands over which base.
 *
 * The editor holds the view. A transaction of the reviewer changes the overlay by itself; one of the page says with
 * `overlaid` what it makes of the overlay and of the base. So overlay and text are of the same moment in each state.
 */

import type { AnnotationType, ChangeSet } from "@codemirror/state"
import type { Base } from "../../desk/base_text.ts"
import { Annotation, StateField } from "../../lib/vendor.ts"
import { Overlay } from "../model/overlay.ts"

/** The overlay after a transaction of the page, and the change of the base. */
type Overlaid = { overlay: Overlay, changes: ChangeSet | null }

export const overlaid: AnnotationType<Overlaid> = Annotation.define()

export const overlayOf: import("@codemirror/state").StateField<Overlay> = StateField.define({
  create: ({ doc }) => Overlay.plain(doc),
  update(before, transaction) {
    const given = transaction.annotation(overlaid)
    if (given) return given.overlay
    return transaction.docChanged ? before.own(transaction.changes) : before
  },
})

/** The base of an editor with an overlay (`desk/base_text.ts`). */
export function baseUnder(
  more: { toShared: (at: number) => number, fromShared: (at: number) => number, isInView: (review: string) => boolean },
): Base {
  return {
    text: (state) => state.field(overlayOf).base,
    step: (transaction) => {
      const { overlay, changes } = transaction.annotation(overlaid) ?? {}
      return overlay && changes ? { changes, text: overlay.base } : null
    },
    toBase: (state, at, side) => state.field(overlayOf).toBase(at, side),
    toView: (state, at, side = 1) => inView(state.field(overlayOf), at, side),
    rangeToBase: (state, range) => state.field(overlayOf).rangeToBase(range),
    rangeToView: (state, range) => rangeInView(state.field(overlayOf), range),
    ...more,
  }
}

/** An offset of the base in the view, as `ChangeSet.mapPos` has it, by a binary search: the margin asks for each card. */
export function inView({ hunks }: Overlay, at: number, side: 1 | -1) {
  let [low, high] = [0, hunks.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((hunks[middle]?.old.from ?? 0) <= at) low = middle + 1
    else high = middle
  }
  const last = hunks[low - 1]
  if (!last) return at
  const isInsertion = last.old.from === last.old.to
  if (at < last.old.to || (at === last.old.from && isInsertion)) {
    return (at === last.old.from && !isInsertion) || side < 0 ? last.new.from : last.new.to
  }
  return at + last.new.to - last.old.to
}

/** A range of the base in the view, without insertions at its ends. */
function rangeInView(overlay: Overlay, range: { from: number, to: number }) {
  const from = inView(overlay, range.from, 1)
  return { from, to: range.from === range.to ? from : Math.max(from, inView(overlay, range.to, -1)) }
}
