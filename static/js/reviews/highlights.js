// @ts-check
/**
 * The passages that reviews speak of, in the text.
 *
 * The server says where a passage stands when it serves it; from then on this field moves it along
 * with every edit, ours and the other's. An insertion at either edge stays outside, as the server's
 * own anchors have it. A passage that was cut and is pasted, or whose deletion is undone, is found again
 * by its quote in the same step.
 */

import { drawnApartFromComposing } from "../desk/composing.js"
import { t } from "../lib/i18n.js"
import { Decoration, EditorView, StateEffect, StateField } from "../lib/vendor.js"
import { locateInserted } from "./locate.js"

/**
 * @typedef {{ from: number, to: number }} Range
 * @typedef {Range & { suggests: boolean, by: import("../lib/api.js").Role, quote: string, prefix: string }} Passage
 * @typedef {object} Marked
 * @property {ReadonlyMap<string, Passage>} passages by review
 * @property {string | null} active the review that is looked at
 * @property {Range | null} pending what the next review will be about
 * @property {object} look another object after a change of more than positions: most keys touch no passage
 */

/** @type {import("@codemirror/state").StateEffectType<ReadonlyMap<string, Passage>>} */
export const setPassages = StateEffect.define()
/** @type {import("@codemirror/state").StateEffectType<string | null>} */
export const setActive = StateEffect.define()
/** @type {import("@codemirror/state").StateEffectType<Range | null>} */
export const setPending = StateEffect.define()

/**
 * @template {Range} R
 * @param {R} range
 * @param {import("@codemirror/state").ChangeDesc} changes
 * @returns {R}
 */
function moved(range, changes) {
  const from = changes.mapPos(range.from, 1)
  let to = changes.mapPos(range.to, -1)
  // An edit that replaces the tail: the passage ends before the new words, as the server has it.
  changes.iterChangedRanges((fromA, toA, fromB) => {
    if (range.from < fromA && fromA < toA && toA === range.to) to = fromB
  })
  return { ...range, from, to: Math.max(from, to) }
}

/** The ranges of the new text that an edit inserted. @param {import("@codemirror/state").ChangeDesc} changes */
function insertedBy(changes) {
  /** @type {Range[]} */
  const ranges = []
  changes.iterChangedRanges((_fromA, _toA, from, to) => from < to && ranges.push({ from, to }))
  return ranges
}

/** @param {Passage} passage @param {Range[]} inserted @param {import("@codemirror/state").Text} text */
function found(passage, inserted, text) {
  if (passage.from < passage.to || inserted.length === 0) return passage
  return { ...passage, ...locateInserted(text, inserted, passage) }
}

/** @type {Marked} */
const unmarked = { passages: new Map(), active: null, pending: null, look: {} }

export const marked = StateField.define({
  create: () => unmarked,
  update(before, transaction) {
    let value = before
    if (transaction.docChanged) {
      const inserted = insertedBy(transaction.changes)
      const passages = new Map(
        [...value.passages].map(([id, passage]) => [
          id,
          found(moved(passage, transaction.changes), inserted, transaction.newDoc),
        ]),
      )
      const pending = value.pending && moved(value.pending, transaction.changes)
      const isTouched = (/** @type {Range} */ { from, to }) => from === to || Boolean(transaction.changes.touchesRange(from, to))
      const look = [...value.passages.values(), ...(value.pending ? [value.pending] : [])].some(isTouched) ? {} : value.look
      value = { ...value, passages, pending, look }
    }
    for (const effect of transaction.effects) {
      if (effect.is(setPassages)) value = { ...value, passages: effect.value, look: {} }
      else if (effect.is(setActive)) value = { ...value, active: effect.value, look: {} }
      else if (effect.is(setPending)) value = { ...value, pending: effect.value, look: {} }
    }
    return value
  },
})

/** The reviews whose passage holds that position, the narrowest first. @param {Marked} value @param {number} at */
export function reviewsAt({ passages }, at) {
  return [...passages]
    .filter(([, { from, to }]) => from <= at && at <= to && from < to)
    .sort(([, a], [, b]) => a.to - a.from - (b.to - b.from))
    .map(([id]) => id)
}

/** @param {import("@codemirror/state").EditorState} state */
function draw(state) {
  const { passages, active, pending } = state.field(marked)
  const ranges = []
  // A screen reader says that the passage is marked, for what, and leads to the card.
  const [comment, suggestion] = [t("review.mark.comment"), t("review.mark.suggestion")]
  for (const [id, { from, to, suggests, by }] of passages) {
    if (to <= from || state.doc.length < to) continue
    const style = `${suggests ? " passage-suggests" : ""}${by === "writer" ? " by-writer" : ""}${id === active ? " passage-active" : ""}`
    const attributes = { "data-review": id, "aria-details": `comment-${id}`, "aria-description": suggests ? suggestion : comment }
    ranges.push(Decoration.mark({ tagName: "mark", class: `passage${style}`, attributes }).range(from, to))
  }
  if (pending && pending.from < pending.to && pending.to <= state.doc.length) {
    ranges.push(Decoration.mark({ class: "passage-pending" }).range(pending.from, pending.to))
  }
  return Decoration.set(ranges, true)
}

/** @param {(id: string) => void} press a passage was clicked or tapped */
export function highlights(press) {
  return [
    marked,
    drawnApartFromComposing(draw, (before, after) => before.field(marked).look !== after.field(marked).look),
    EditorView.domEventHandlers({
      // Not `click`: the press draws the passage anew, and there is none when its target is gone.
      mouseup(event, view) {
        const at = view.posAtCoords({ x: event.clientX, y: event.clientY })
        const id = at === null ? undefined : reviewsAt(view.state.field(marked), at)[0]
        if (id !== undefined && event.button === 0 && view.state.selection.main.empty) press(id)
      },
    }),
  ]
}
