// @ts-check
/**
 * The overlay of the reviewer's editor: which view stands over which base.
 *
 * The editor holds the view. A transaction of the reviewer changes the overlay by itself; one of the page says with
 * `overlaid` what it makes of the overlay and of the base. So overlay and text are of the same moment in each state.
 */

import { Annotation, StateField } from "../lib/vendor.js"
import { Overlay } from "./overlay.js"

/**
 * @typedef {import("@codemirror/state").ChangeSet} ChangeSet
 * @typedef {{ overlay: Overlay, changes: ChangeSet | null }} Overlaid the overlay after a transaction of the page, and the change of the base
 */

/** @type {import("@codemirror/state").AnnotationType<Overlaid>} */
export const overlaid = Annotation.define()

/** @type {import("@codemirror/state").StateField<Overlay>} */
export const overlayOf = StateField.define({
  create: ({ doc }) => Overlay.plain(doc),
  update(before, transaction) {
    const given = transaction.annotation(overlaid)
    if (given) return given.overlay
    return transaction.docChanged ? before.own(transaction.changes) : before
  },
})

/**
 * The base of an editor with an overlay (`desk/base_text.js`).
 *
 * @param {{ toShared: (at: number) => number, fromShared: (at: number) => number, isInView: (review: string) => boolean }} more
 * @returns {import("../desk/base_text.js").Base}
 */
export function baseUnder(more) {
  return {
    text: (state) => state.field(overlayOf).base,
    step: (transaction) => {
      const { overlay, changes } = transaction.annotation(overlaid) ?? {}
      return overlay && changes ? { changes, text: overlay.base } : null
    },
    toBase: (state, at, side) => state.field(overlayOf).toBase(at, side),
    toView: (state, at, side) => state.field(overlayOf).toView(at, side),
    rangeToBase: (state, range) => state.field(overlayOf).rangeToBase(range),
    rangeToView: (state, range) => rangeInView(state.field(overlayOf), range),
    ...more,
  }
}

/** A passage in the view: with the words that replace its end, without an insertion at it. @param {Overlay} overlay @param {{ from: number, to: number }} range */
function rangeInView(overlay, { from, to }) {
  const start = overlay.toView(from, 1)
  const end = overlay.toView(to, 1)
  if (from === to) return { from: start, to: start }
  if (overlay.toView(to - 1, 1) === end) return { from: start, to: Math.max(start, end) }
  return overlay.rangeToView({ from, to })
}
