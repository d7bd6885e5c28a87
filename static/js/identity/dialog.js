// @ts-check
/** The dialog of who is who: a title, what it holds, a spoken line of what was done, and its end. Owns one element. */

import { byId, el, translatedButton } from "../lib/dom.js"
import { i18n, t } from "../lib/i18n.js"

export class IdentityDialog {
  /** The outcome of a press, and its failure; said anew in another language. @type {() => string} */
  #sentence = () => ""
  /** @type {() => string} */
  #why = () => ""

  /** @param {() => void} [translate] draws the content anew in another language */
  constructor(translate = () => undefined) {
    this.translate = translate
    this.element = byId("identity-dialog", HTMLDialogElement)
    // Outside a modal dialog nothing is spoken: it says by itself what was done.
    this.done = el("p", { class: "identity-done", role: "status" })
    this.error = el("p", { class: "form-error", role: "alert" })
    this.content = el("div", { class: "identity-content" })
    this.actions = el("div", { class: "actions" }, translatedButton("common.close", {}, () => this.element.close()))
  }

  get isOpen() {
    return this.element.open && this.element.contains(this.content)
  }

  /** The title and the button follow the language. @param {import("../lib/i18n.js").Sentence} title @param {...Node} content */
  open(title, ...content) {
    const heading = el("h2", { id: "identity-title", tabindex: "-1", "data-t": title, text: t(title) })
    this.content.replaceChildren(...content)
    this.#write(() => "", () => "")
    this.element.replaceChildren(heading, this.content, this.done, this.error, this.actions)
    const closed = new AbortController()
    this.whenClosed(() => closed.abort())
    i18n.addEventListener("change", () => this.#translated(), { signal: closed.signal })
    this.element.showModal()
    heading.focus()
  }

  close() {
    this.element.close()
  }

  /** Calls it when the dialog closes. @param {() => void} end */
  whenClosed(end) {
    this.element.addEventListener("close", end, { once: true })
  }

  /** Shows and says what was done. @param {() => string} sentence */
  say(sentence) {
    this.#write(sentence, () => "")
  }

  /** @param {() => string} why */
  fail(why) {
    this.#write(() => "", why)
  }

  /** @param {() => string} sentence @param {() => string} why */
  #write(sentence, why) {
    this.#sentence = sentence
    this.#why = why
    // The same sentence again is spoken again.
    this.done.textContent = sentence()
    this.error.textContent = why()
  }

  #translated() {
    this.#write(this.#sentence, this.#why)
    this.translate()
  }
}
