/**
 * The actions on a selection, beside it: comment, and for a reviewer suggest. Owns one element.
 *
 * It is shown while the text has the focus. The selection stays when the focus moves to a card,
 * and the bar would cover the lines below it.
 */

import type { Editor } from "../desk/editor.ts"
import { byId, translatedButton } from "../lib/dom.ts"
import { moveBelow } from "./bar_position.ts"

/** Longest passage of a review, in UTF-16 units, as the server has it. */
export const PASSAGE_MAX = 20_000

export class SelectionBar {
  declare editor: Editor
  declare mayReview: () => boolean
  declare element
  #frame = 0

  constructor(editor: Editor, mayReview: () => boolean, begin: (options: { suggests: boolean }) => void) {
    this.editor = editor
    this.mayReview = mayReview
    this.element = byId("selection-bar")
    const comment = translatedButton("review.add", { icon: "comment" }, () => begin({ suggests: false }))
    const suggest = translatedButton("review.add.suggest", { icon: "pen" }, () => begin({ suggests: true }))
    // The writer changes the text itself.
    this.element.replaceChildren(comment, ...(editor.role === "reviewer" ? [suggest] : []))
  }

  start(signal: AbortSignal) {
    // Pressing a button must not take the selection away first.
    this.element.addEventListener("pointerdown", (event) => event.preventDefault(), { signal })
    const draw = () => this.drawSoon()
    for (const type of ["select", "geometry", "pending"]) this.editor.addEventListener(type, draw, { signal })
    for (const type of ["focusin", "focusout"]) document.addEventListener(type, draw, { signal })
    window.addEventListener("scroll", draw, { signal, passive: true })
  }

  drawSoon() {
    cancelAnimationFrame(this.#frame)
    this.#frame = requestAnimationFrame(() => this.#draw())
  }

  #draw() {
    const { from, to } = this.editor.selection
    const here = this.editor.view.hasFocus || this.element.contains(document.activeElement)
    const shown = here && from < to && this.mayReview() && this.editor.marked.pending === null
    this.element.hidden = !shown
    if (!shown) return
    const { bottom, left } = this.editor.coordinatesAt(to, -1)
    moveBelow(this.element, { top: this.editor.coordinatesAt(from).top, bottom, left })
  }
}
