// @ts-check
/** The dialog of who is who: a title, what it holds, a spoken line of what was done, and its end. Owns one element. */

import { button, byId, el } from "../lib/dom.js"
import { t } from "../lib/i18n.js"

export class IdentityDialog {
  constructor() {
    this.element = byId("identity-dialog", HTMLDialogElement)
    // Outside a modal dialog nothing is spoken: it says by itself what was done.
    this.done = el("p", { class: "identity-done", role: "status" })
    this.error = el("p", { class: "form-error", role: "alert" })
    this.content = el("div", { class: "identity-content" })
  }

  get isOpen() {
    return this.element.open && this.element.contains(this.content)
  }

  /** The title and the button follow the language. @param {import("../lib/i18n.js").Sentence} title @param {...Node} content */
  open(title, ...content) {
    const heading = el("h2", { id: "identity-title", tabindex: "-1", "data-t": title, text: t(title) })
    const close = button(t("common.close"), {}, () => this.element.close())
    close.firstElementChild?.setAttribute("data-t", "common.close")
    this.content.replaceChildren(...content)
    this.done.textContent = ""
    this.error.textContent = ""
    this.element.replaceChildren(heading, this.content, this.done, this.error, el("div", { class: "actions" }, close))
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

  /** Shows and says what was done. @param {string} sentence */
  say(sentence) {
    this.error.textContent = ""
    this.done.textContent = sentence
  }

  /** @param {string} sentence */
  fail(sentence) {
    this.done.textContent = ""
    this.error.textContent = sentence
  }
}
