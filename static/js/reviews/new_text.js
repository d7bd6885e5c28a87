// @ts-check
/** The new text of a suggestion, drawn behind the old one. The text of the editor does not contain it. */

import { el } from "../lib/dom.js"
import { WidgetType } from "../lib/vendor.js"

export class NewText extends WidgetType {
  /** @param {string} review @param {string} text @param {string} style */
  constructor(review, text, style) {
    super()
    this.review = review
    this.text = text
    this.style = style
  }

  /** @override @param {NewText} other */
  eq({ review, text, style }) {
    return review === this.review && text === this.text && style === this.style
  }

  /** The same words under another look keep their element. @override @param {HTMLElement} element */
  updateDOM(element) {
    if (element.dataset.review !== this.review) return false
    element.className = this.style
    if (element.textContent !== this.text) element.textContent = this.text
    return true
  }

  /** The card says it to a screen reader, and so does the page when the caret comes here. @override */
  toDOM() {
    return el("ins", { class: this.style, "data-review": this.review, "aria-hidden": "true", text: this.text })
  }

  /** @override */
  get lineBreaks() {
    return this.text.split("\n").length - 1
  }

  /** A press on it is a press on the text. @override */
  ignoreEvent() {
    return false
  }
}
