/**
 * IME compositions that nothing interrupts.
 *
 * While an input method composes (Hangul, kana, pinyin) the browser owns that piece of the page:
 * replacing or wrapping the node it composes in breaks the composition, and half a syllable is
 * lost. The browser has counted the letters before the caret, those of widgets too, and puts the caret
 * there after its insertion. So a change up to the end of that line waits until the composition ends.
 * Existing decorations move along with the text.
 */

import type { EditorState as State } from "@codemirror/state"
import type { Decoration, DecorationSet as Drawn, ViewUpdate } from "@codemirror/view"
import { EditorView, ViewPlugin } from "../lib/vendor.ts"

/** The editor needs a moment to read the result of a composition, in ms. */
const AFTERWARDS = 60

/**
 * An extension that draws, and defers the text up to the line with a composition.
 *
 * @param draw may leave out what is outside the viewport
 * @param changed whether `draw` would answer otherwise
 * @param options `byViewport`: whether it leaves that out
 */
export function drawnApartFromComposing(
  draw: (state: State, viewport: { from: number, to: number }) => Drawn,
  changed: (before: State, after: State) => boolean,
  { byViewport = false }: { byViewport?: boolean } = {},
) {
  class Drawing {
    declare view: EditorView
    declare decorations
    /** Something waits for the end of the composition. */
    stale = false
    timer = 0

    constructor(view: EditorView) {
      this.view = view
      this.decorations = draw(view.state, view.viewport)
    }

    update(update: ViewUpdate) {
      if (update.docChanged) this.decorations = this.decorations.map(update.changes)
      const isMoved = byViewport && update.viewportChanged
      if (!this.stale && !isMoved && !changed(update.startState, update.state)) return
      const next = draw(update.state, update.view.viewport)
      const { head } = update.state.selection.main
      const begins = update.transactions.some((transaction) => transaction.isUserEvent("delete.compose"))
      const end = begins ? head - 1 : update.state.doc.lineAt(head).to
      const mayDraw = (!begins && !update.view.compositionStarted) || sameUpTo(end, this.decorations, next)
      if (mayDraw) this.decorations = next
      this.stale = !mayDraw
    }

    composed() {
      window.clearTimeout(this.timer)
      this.timer = window.setTimeout(() => {
        if (this.stale && !this.view.compositionStarted) this.view.dispatch({})
      }, AFTERWARDS)
    }

    destroy() {
      window.clearTimeout(this.timer)
    }
  }
  return ViewPlugin.fromClass(Drawing, {
    decorations: (drawing) => drawing.decorations,
    eventObservers: {
      compositionend() {
        this.composed()
      },
    },
  })
}

/** Whether both draw the same up to there. */
function sameUpTo(end: number, a: Drawn, b: Drawn) {
  const [one, other] = [a, b].map((drawn) => {
    const found: { from: number, to: number, value: Decoration }[] = []
    drawn.between(0, end, (from, to, value) => void found.push({ from, to, value }))
    return found
  })
  if (!one || !other || one.length !== other.length) return false
  return one.every(({ from, to, value }, at) => {
    const match = other[at]
    return match?.from === from && match.to === to && value.eq(match.value)
  })
}
