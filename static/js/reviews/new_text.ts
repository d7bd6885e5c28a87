/** The new text of a suggestion, drawn behind the old one, and the sign of a line break. The text of the editor contains neither. */

import { el } from "../lib/dom.ts"
import { WidgetType, type EditorView } from "../lib/vendor.ts"

/** The sign of a line break. */
const SIGN = "¶"

/** A line break that a suggestion deletes: a mark round it would have no letter. */
export class DeletedBreak extends WidgetType {
  declare review: string
  declare style: string

  constructor(review: string, style: string) {
    super()
    this.review = review
    this.style = style
  }

  override eq({ review, style }: DeletedBreak) {
    return review === this.review && style === this.style
  }

  override toDOM() {
    return el("del", { class: this.style, "data-review": this.review, "aria-hidden": "true", text: SIGN })
  }

  override ignoreEvent() {
    return false
  }
}

export class NewText extends WidgetType {
  declare review: string
  declare text: string
  declare style: string

  constructor(review: string, text: string, style: string) {
    super()
    this.review = review
    this.text = text
    this.style = style
  }

  override eq({ review, text, style }: NewText) {
    return review === this.review && text === this.text && style === this.style
  }

  /** The same words under another look keep their element. */
  override updateDOM(element: HTMLElement) {
    if (element.dataset.review !== this.review) return false
    element.className = this.style
    if (element.dataset.text !== this.text) this.#write(element)
    return true
  }

  /** A line break has a sign: it may be all that is new. */
  #write(element: HTMLElement) {
    element.dataset.text = this.text
    element.replaceChildren()
    for (const [at, line] of this.text.split("\n").entries()) {
      if (0 < at) element.append(SIGN, "\n")
      element.append(line)
    }
  }

  /** The card says it to a screen reader, and so does the page when the caret comes here. */
  override toDOM() {
    const element = el("ins", { class: this.style, "data-review": this.review, "aria-hidden": "true" })
    this.#write(element)
    return element
  }

  override get lineBreaks() {
    return this.text.split("\n").length - 1
  }

  /** A press on it is a press on the text. */
  override ignoreEvent() {
    return false
  }
}

/** Where a part of a suggestion ends in the window, with its new words. @param bottom of its old words */
export function bottomOf({ contentDOM }: EditorView, review: string, bottom: number) {
  const added = [...contentDOM.querySelectorAll(`.passage-new[data-review="${CSS.escape(review)}"]`)].map((element) => element.getBoundingClientRect())
  return Math.max(bottom, ...added.filter(({ top }) => top < bottom).map((box) => box.bottom))
}
