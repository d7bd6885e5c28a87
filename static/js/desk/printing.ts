/**
 * Printing: the choice with or without comments, and the view that the browser prints. The browser's own
 * command takes the last choice.
 */

import { el, translatedButton } from "../lib/dom.ts"
import { t, type Sentence } from "../lib/i18n.ts"
import { preference, setPreference } from "../lib/preferences.ts"
import type { Reviews } from "../reviews/reviews.ts"
import type { Store } from "../store.ts"
import type { Editor } from "./editor.ts"
import { printView } from "./print_view.ts"

/** The stored choice of a print without comments. */
const WITHOUT = "without"
const CHOICE = "print.comments"

export class Printing {
  declare editor: Editor
  declare reviews: Reviews
  declare store: Store
  declare dialog
  declare entry
  #view: HTMLElement | null = null

  constructor(editor: Editor, reviews: Reviews, store: Store) {
    this.editor = editor
    this.reviews = reviews
    this.store = store
    this.dialog = el("dialog", { class: "dialog print-dialog", "aria-labelledby": "print-title" })
    this.entry = el("button", { type: "button", "data-t": "menu.print" })
  }

  start(signal: AbortSignal) {
    document.body.append(this.dialog)
    this.entry.addEventListener("click", () => this.open(), { signal })
    window.addEventListener("beforeprint", () => this.#show(), { signal })
    window.addEventListener("afterprint", () => this.#remove(), { signal })
  }

  /** Without comments there is nothing to choose. */
  open() {
    if (!this.#hasText || this.#count === 0) return window.print()
    this.#draw()
    this.dialog.showModal()
  }

  /** Before the first sync the browser prints the page as it is. */
  get #hasText() {
    return document.body.dataset.read === "true"
  }

  get #count() {
    return this.reviews.open.length + this.reviews.orphans.length
  }

  #draw() {
    const choice = (value: string, words: Sentence) => {
      const input = el("input", { type: "radio", name: "print", value })
      input.checked = (value === WITHOUT) === (preference(CHOICE) === WITHOUT)
      return el("label", { class: "print-choice" }, input, el("span", { "data-t": words, text: t(words) }))
    }
    const go = translatedButton("print.go", { class: "button button-strong", type: "submit" })
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", { id: "print-title", "data-t": "print.title", text: t("print.title") }),
      choice("with", "print.with"),
      choice(WITHOUT, "print.without"),
      el("div", { class: "actions" }, translatedButton("common.cancel", {}, () => this.dialog.close()), go),
    )
    form.addEventListener("submit", () => {
      setPreference(CHOICE, new FormData(form).get("print") === WITHOUT ? WITHOUT : null)
      // The dialog closes first, and the browser returns the focus.
      window.setTimeout(() => window.print(), 0)
    })
    this.dialog.replaceChildren(form)
  }

  #show() {
    this.#remove()
    if (!this.#hasText) return
    this.#view = printView({
      link: this.store.state.link,
      text: this.editor.text,
      language: this.editor.language,
      reviews: preference(CHOICE) === WITHOUT ? null : this.reviews,
    })
    document.body.append(this.#view)
  }

  #remove() {
    this.#view?.remove()
    this.#view = null
  }
}
