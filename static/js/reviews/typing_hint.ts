/**
 * The answer to a reviewer who types into the text while reading: the sentence that says why nothing changes, a button
 * that switches to suggesting, and one that suggests other words for the sentence at the caret. Owns one element.
 */

import type { Editor } from "../desk/editor.ts"
import { announce } from "../lib/announce.ts"
import { button, byId, el } from "../lib/dom.ts"
import { i18n, t } from "../lib/i18n.ts"
import type { Range } from "./locate.ts"

/** How long the hint stays after the last key, in ms. */
const SHOWN = 8_000

export class TypingHint {
  declare editor: Editor
  declare mayReview: () => boolean
  declare suggest: () => void
  declare switchMode: () => void
  declare element
  declare desk
  #timer = 0

  /**
   * @param suggest opens the form of a suggestion on the selection
   * @param switchMode from now on keys suggest
   */
  constructor(editor: Editor, mayReview: () => boolean, suggest: () => void, switchMode: () => void) {
    this.editor = editor
    this.mayReview = mayReview
    this.suggest = suggest
    this.switchMode = switchMode
    this.element = byId("typing-hint")
    this.desk = byId("desk")
  }

  start(signal: AbortSignal) {
    // Pressing the button must not take the focus from the text first.
    this.element.addEventListener("pointerdown", (event) => event.preventDefault(), { signal })
    this.editor.addEventListener("denied", () => this.#show(), { signal })
    this.editor.addEventListener("select", () => this.#hide(), { signal })
    i18n.addEventListener("change", () => this.#hide(), { signal })
    // Its place is that of the caret before.
    window.addEventListener("resize", () => this.#hide(), { signal })
    window.addEventListener("keydown", (event) => event.key === "Escape" && this.#hide(), { signal })
  }

  #show() {
    if (!this.mayReview()) return
    const { from, to } = this.editor.selection
    const range = from === to ? sentenceAt(this.editor.text, from, i18n.language) : { from, to }
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.#hide(), SHOWN)
    if (!this.element.hidden) return
    const parts: HTMLElement[] = [el("p", { text: t("mode.reading.hint") }), button(t("mode.switch"), { class: "button button-strong" }, () => this.#switch())]
    if (range.from < range.to) {
      parts.push(button(t("review.add.suggest.sentence"), { class: "button", icon: "pen" }, () => this.#suggest(range)))
    }
    this.element.replaceChildren(...parts)
    this.element.hidden = false
    announce(t("mode.reading.hint"))
    const desk = this.desk.getBoundingClientRect()
    const caret = this.editor.coordinatesAt(to, -1)
    const leftMax = byId("paper").getBoundingClientRect().right - desk.left - this.element.offsetWidth - 12
    this.element.style.top = `${Math.round(caret.bottom - desk.top + 6)}px`
    this.element.style.left = `${Math.round(Math.max(12, Math.min(caret.left - desk.left - 40, leftMax)))}px`
  }

  #switch() {
    this.#hide()
    this.switchMode()
    this.editor.focus()
  }

  #suggest(range: Range) {
    this.#hide()
    this.editor.select(range)
    this.suggest()
  }

  #hide() {
    window.clearTimeout(this.#timer)
    this.element.hidden = true
  }
}

/**
 * The sentence around a position, without the white space at its ends.
 *
 * @param at in UTF-16 units
 */
export function sentenceAt(text: string, at: number, language: string): Range {
  const start = text.lastIndexOf("\n", at - 1) + 1
  const end = text.indexOf("\n", at)
  const line = text.slice(start, end === -1 ? text.length : end)
  const segments = [...new Intl.Segmenter(language, { granularity: "sentence" }).segment(line)]
  const found = segments.findLast(({ index }) => start + index <= at)
  if (!found) return { from: at, to: at }
  const { index, segment } = found
  const from = start + index + (segment.length - segment.trimStart().length)
  return { from, to: from + segment.trim().length }
}
