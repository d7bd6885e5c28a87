/**
 * The spots that reviews speak of, in the text: the passage of a comment, and the parts of a suggestion.
 *
 * Where the spots stand and how they follow edits is in `spots.ts`. An old text is marked, and the new one is a widget
 * behind it, so the text of the editor stays what it is. Only spots near the window are drawn.
 *
 * Places are those of the base (`desk/base_text.ts`), and are drawn where they stand in the editor.
 */

import type { ChangeDesc, EditorState, StateEffectType, Text } from "@codemirror/state"
import { base } from "../desk/base_text.ts"
import { drawnApartFromComposing } from "../desk/composing.ts"
import type { Role } from "../lib/api.ts"
import { t } from "../lib/i18n.ts"
import { Decoration, EditorView, StateEffect, StateField } from "../lib/vendor.ts"
import type { Range } from "./locate.ts"
import { DeletedBreak, NewText } from "./new_text.ts"
import { extentOf, isNear, isTouched, isWhole, moved, movedRange, stands, type Spot } from "./spots.ts"
import { overlappedIds, shownView, textView } from "./text_view.ts"

export interface Passage {
  spots: readonly Spot[] // at least one
  suggests: boolean
  by: Role
  since: string // when the review was made: of two suggestions for the same words the older one goes first
}

export interface Marked {
  passages: ReadonlyMap<string, Passage> // by review
  active: string | null // the review that is looked at
  pending: Range | null // what the next review will be about
  look: object // another object after a change of more than positions: most keys touch no passage
  near: readonly string[] // the reviews with a spot at the last edit
}

export const setPassages: StateEffectType<ReadonlyMap<string, Passage>> = StateEffect.define()
export const setActive: StateEffectType<string | null> = StateEffect.define()
export const setPending: StateEffectType<Range | null> = StateEffect.define()

const unmarked: Marked = { passages: new Map(), active: null, pending: null, look: {}, near: [] }

export const marked = StateField.define({
  create: () => unmarked,
  update(before, transaction) {
    const step = transaction.startState.facet(base).step(transaction)
    let value = step ? followed(before, step.changes, step.text) : before
    for (const effect of transaction.effects) {
      if (effect.is(setPassages)) value = { ...value, passages: effect.value, look: {} }
      else if (effect.is(setActive)) value = { ...value, active: effect.value, look: {} }
      else if (effect.is(setPending)) value = { ...value, pending: effect.value, look: {} }
    }
    return value
  },
})

/**
 * @param changes of the base
 * @param text the base after them
 */
function followed({ passages: before, active, pending: beforePending, look }: Marked, changes: ChangeDesc, text: Text): Marked {
  const extent = extentOf(changes)
  let touches = false
  const near = new Set<string>()
  const passages: Map<string, Passage> = new Map()
  for (const [id, passage] of before) {
    let isSame = true
    const spots = passage.spots.map((spot) => {
      const next = moved(spot, changes, extent, text)
      isSame &&= next === spot
      if (isNear(spot, extent)) near.add(id)
      touches ||= isTouched(spot, next, changes)
      return next
    })
    passages.set(id, isSame ? passage : { ...passage, spots })
  }
  const pending = beforePending && movedRange(beforePending, changes)
  touches ||= beforePending !== null && Boolean(changes.touchesRange(beforePending.from, beforePending.to))
  return { passages, active, pending, look: touches ? {} : look, near: [...near] }
}

/** The reviews that are shown with a spot at that position, the narrowest first. */
export function reviewsAt(state: EditorState, at: number) {
  const inBase = state.facet(base).toBase(state, at)
  const isShown = state.field(shownView) === "shown"
  const found: [id: string, width: number][] = []
  for (const [id, { spots, suggests }] of state.field(marked).passages) {
    if (suggests && !isShown) continue
    const here = spots.find((spot) => spot.from <= inBase && inBase <= spot.to && stands(spot))
    if (here) found.push([id, here.to - here.from])
  }
  return found.sort(([, a], [, b]) => a - b).map(([id]) => id)
}

function draw(state: EditorState, viewport: Range) {
  const { passages, active, pending } = state.field(marked)
  const view = state.field(shownView)
  const { isInView, rangeToBase, rangeToView } = state.facet(base)
  const window = rangeToBase(state, viewport)
  const overlapped = overlappedIds(state, marked)
  const ranges: import("@codemirror/state").Range<import("@codemirror/view").Decoration>[] = []
  for (const [id, passage] of passages) {
    if (passage.suggests && view !== "shown") continue
    const near = passage.spots
      .filter(({ from, to }) => from <= window.to && window.from <= to)
      .map((spot) => ({ ...spot, ...rangeToView(state, spot), breaks: breaksIn(spot).map((at) => rangeToView(state, { from: at, to: at + 1 }).from) }))
      .filter(({ to }) => to <= state.doc.length)
    // The text of the editor has the words of the reader's own suggestions (`suggest/view/pieces.ts`).
    if (0 < near.length && !(passage.suggests && isInView(id))) ranges.push(...drawn(id, passage, near, { isActive: id === active, isOver: overlapped.has(id) }))
  }
  const here = pending && rangeToView(state, pending)
  if (here && here.from < here.to && here.to <= state.doc.length) {
    ranges.push(Decoration.mark({ class: "passage-pending" }).range(here.from, here.to))
  }
  return Decoration.set(ranges, true)
}

/**
 * @param near `breaks`: the ends of lines in it
 * @param how `isOver`: an older suggestion changes the same words
 */
function drawn(
  id: string,
  passage: Passage,
  near: readonly (Spot & { breaks: number[] })[],
  { isActive, isOver }: { isActive: boolean, isOver: boolean },
) {
  const { suggests, by } = passage
  const style = `${by === "writer" ? " by-writer" : ""}${isActive ? " passage-active" : ""}`
  // A screen reader says that the passage is marked, for what, and leads to the card.
  const attributes = { "data-review": id, "aria-details": `comment-${id}`, "aria-description": t(suggests ? "review.mark.suggestion" : "review.mark.comment") }
  const isNew = suggests && !isOver && isWhole(passage.spots)
  return near.flatMap((spot) => {
    const { from, to, text, breaks } = spot
    const ranges = []
    if (from < to) {
      const kind = isNew ? "passage-old" : suggests ? "passage-suggests" : ""
      const mark = Decoration.mark({ tagName: isNew ? "del" : "mark", class: `passage ${kind}${style}`, attributes })
      ranges.push(mark.range(from, to))
    }
    if (isNew) ranges.push(...breaks.map((at) => Decoration.widget({ widget: new DeletedBreak(id, `passage passage-old${style}`), side: 1 }).range(at)))
    // Behind the old words, and behind the caret: beside a composition another side would end it. Added words stand
    // behind those that replace the letters before them.
    if (isNew && text) {
      const widget = new NewText(id, text, `passage passage-new${from < to ? " passage-replaced" : ""}${style}`)
      ranges.push(Decoration.widget({ widget, side: from < to ? 1 : 2 }).range(to))
    }
    return ranges
  })
}

/** The ends of the lines that an unedited quote contains. */
const breaksIn = ({ from, quote }: Spot) => [...quote.matchAll(/\n/g)].map(({ index }) => from + index)

/** @param press a passage was clicked or tapped */
export function highlights(press: (id: string) => void) {
  const looksOther = (before: EditorState, after: EditorState) =>
    before.field(marked).look !== after.field(marked).look ||
    before.field(shownView) !== after.field(shownView) ||
    (before.doc !== after.doc && after.facet(base).text(after) !== after.doc)
  return [
    marked,
    textView(marked),
    drawnApartFromComposing(draw, looksOther, { byViewport: true }),
    EditorView.domEventHandlers({
      // Not `click`: the press draws the passage anew, and there is none when its target is gone.
      mouseup(event, view) {
        const id = reviewOf(event, view)
        if (id !== undefined && event.button === 0 && view.state.selection.main.empty) press(id)
      },
    }),
  ]
}

/** The review of a new text that is pressed, or the narrowest one there. */
function reviewOf(event: MouseEvent, view: EditorView) {
  const { target, clientX, clientY } = event
  const added = target instanceof Element ? target.closest("[contenteditable=false].passage") : null
  if (added instanceof HTMLElement) {
    const id = added.dataset.review ?? ""
    // A finger on it leaves the caret where it was.
    if (!reviewsAt(view.state, view.state.selection.main.head).includes(id)) view.dispatch({ selection: { anchor: view.posAtDOM(added) } })
    return id
  }
  const at = view.posAtCoords({ x: clientX, y: clientY })
  return at === null ? undefined : reviewsAt(view.state, at)[0]
}
