/**
 * The gestures of the margin as a sheet: a handle that is swiped down, a tap on the text outside, Esc in the
 * text, and the room that the keyboard of the screen leaves.
 *
 * A sheet with the form of a new review closes by its own buttons only: a tap on the text must not hide
 * what is being written.
 */

import type { Editor } from "../desk/editor.ts"
import { byId, el } from "../lib/dom.ts"
import { reviewsAt } from "./highlights.ts"

/** A swipe of the head by so much closes the sheet, in px. */
const SWIPE_MIN = 48

export class Sheet {
  declare editor: Editor
  declare margin: { isOpen: () => boolean, isDrafting: () => boolean, close: () => void, resized: () => void }
  declare element
  declare head
  /** Where a swipe began, in px; `null`: there is none. */
  #from: number | null = null

  constructor(editor: Editor, margin: { isOpen: () => boolean, isDrafting: () => boolean, close: () => void, resized: () => void }) {
    this.editor = editor
    this.margin = margin
    this.element = byId("margin")
    this.head = byId("margin-head")
  }

  start(signal: AbortSignal) {
    this.head.prepend(el("span", { class: "sheet-handle", "aria-hidden": "true" }))
    this.head.addEventListener("pointerdown", (event) => this.#begin(event), { signal })
    window.addEventListener("pointermove", (event) => this.#move(event), { signal, passive: true })
    for (const type of ["pointerup", "pointercancel"]) {
      window.addEventListener(type, (event) => this.#end(event as PointerEvent), { signal })
    }
    byId("paper").addEventListener("click", (event) => this.#tap(event), { signal })
    window.addEventListener("keydown", (event) => this.#key(event), { signal })
    for (const type of ["resize", "scroll"]) {
      window.visualViewport?.addEventListener(type, () => this.#measureKeyboard(), { signal })
    }
    this.#measureKeyboard()
  }

  /** The keyboard covers the layout viewport in some browsers, and shrinks it in others. */
  #measureKeyboard() {
    const viewport = window.visualViewport
    const covered = viewport && viewport.scale === 1 ? window.innerHeight - viewport.height - viewport.offsetTop : 0
    document.body.style.setProperty("--keyboard", `${Math.max(Math.round(covered), 0)}px`)
    this.margin.resized()
  }

  #begin({ clientY, isPrimary }: PointerEvent) {
    this.#from = this.margin.isOpen() && isPrimary ? clientY : null
  }

  #move({ clientY }: PointerEvent) {
    if (this.#from === null) return
    this.element.style.translate = `0 ${Math.max(clientY - this.#from, 0)}px`
  }

  #end({ clientY, type }: PointerEvent) {
    if (this.#from === null) return
    const by = clientY - this.#from
    this.#from = null
    this.element.style.translate = ""
    if (type === "pointerup" && SWIPE_MIN <= by) this.margin.close()
  }

  #tap({ clientX, clientY }: MouseEvent) {
    if (!this.margin.isOpen() || this.margin.isDrafting()) return
    const at = this.editor.view.posAtCoords({ x: clientX, y: clientY })
    // A tap on a passage shows its card in the sheet.
    if (at === null || reviewsAt(this.editor.view.state, at).length === 0) this.margin.close()
  }

  #key(event: KeyboardEvent) {
    const isInText = event.target instanceof Element && event.target.closest(".cm-content")
    if (event.key !== "Escape" || event.isComposing || !isInText) return
    if (this.margin.isOpen() && !this.margin.isDrafting()) this.margin.close()
  }
}
