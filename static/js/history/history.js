// @ts-check
/**
 * The history of the text: a time line of its versions, with what each changed beside it.
 *
 * Reads nothing before it is opened. While it is open it looks now and then whether there is more;
 * what is chosen stays chosen. Owns one dialog.
 */

import * as api from "../lib/api.js"
import { button, byId, el, once } from "../lib/dom.js"
import { errorText } from "../lib/error_text.js"
import { translateAll, t, words } from "../lib/i18n.js"
import { Timeline } from "./timeline.js"
import { VersionView } from "./version_view.js"

/** How often an open history is read again, in ms. */
const READ_EVERY = 5_000

export class History {
  #stopped = new AbortController()
  #timer = 0
  /** @type {"none" | "loading" | "failed" | "read"} */
  #state = "none"
  /** @type {api.Version[]} newest first */
  #versions = []
  /** @type {string | null} where the next page begins */
  #next = null
  #textChanged = false
  #failure = ""

  /**
   * @param {import("../store.js").Store} store
   * @param {import("../desk/editor.js").Editor} editor
   * @param {string} document
   */
  constructor(store, editor, document) {
    this.store = store
    this.editor = editor
    this.document = document
    this.dialog = byId("history", HTMLDialogElement)
    this.said = byId("history-said")
    this.body = byId("history-body")
    this.line = new Timeline({
      choose: (version) => this.#show(version),
      into: () => this.view.focus(),
      more: () => this.#more(),
    })
    this.view = new VersionView(document, {
      mayRestore: () => (store.state.role === "writer" ? (store.seated ? "yes" : "seat") : "reader"),
      restored: (version) => this.#restored(version),
      say: (sentence) => this.#say(sentence),
    })
    this.#form = this.#nameForm()
  }

  start() {
    const { signal } = this.#stopped
    byId("history-close").addEventListener("click", () => this.dialog.close(), { signal })
    this.dialog.addEventListener("close", () => this.#closed(), { signal })
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close(), { signal })
    this.store.addEventListener("change", () => this.view.drawActs(), { signal })
    this.editor.addEventListener("edit", () => (this.#textChanged = true), { signal })
    words.addEventListener("change", () => this.#speak(), { signal })
  }

  stop() {
    this.#stopped.abort()
    this.dialog.close()
  }

  open() {
    if (this.dialog.open) return
    this.#say("")
    this.dialog.showModal()
    this.#begin()
  }

  #form

  async #begin() {
    this.#versions = []
    this.line.forget()
    this.#state = "loading"
    this.#draw()
    if (await this.#read()) this.line.focus()
  }

  /**
   * Reads the newest versions. What was chosen stays so, if it is still there.
   *
   * @returns {Promise<boolean>} whether they could be read
   */
  async #read() {
    window.clearTimeout(this.#timer)
    let isRead = true
    try {
      const page = await api.versions(this.document, { signal: this.#stopped.signal })
      const known = this.#versions.filter(({ number }) => number < (page.versions.at(-1)?.number ?? 0))
      if (known.length === 0) this.#next = page.next_cursor
      this.#versions = [...page.versions, ...known]
      const isNews = this.#state !== "read"
      this.#state = "read"
      if (isNews) this.#draw()
      else this.#drawLine()
      if (this.#textChanged) this.view.textChanged()
      this.#textChanged = false
    } catch (error) {
      if (this.#stopped.signal.aborted) return false
      isRead = false
      // The versions that were read stay; the next query may succeed.
      if (this.#state !== "read") {
        this.#state = "failed"
        this.#failure = t("history.failed", { why: errorText(error) })
        this.#draw()
      }
    }
    if (this.dialog.open) this.#timer = window.setTimeout(() => this.#read(), READ_EVERY)
    return isRead
  }

  async #more() {
    if (this.#next === null) return
    try {
      const page = await api.versions(this.document, { cursor: this.#next })
      this.#next = page.next_cursor
      this.#versions = [...this.#versions, ...page.versions]
      this.#drawLine()
    } catch (error) {
      this.#say(t("history.failed", { why: errorText(error) }))
    }
  }

  #draw() {
    const isEmpty = this.#state === "read" && this.#versions.length === 0
    this.body.ariaBusy = String(this.#state === "loading")
    this.body.dataset.state = isEmpty ? "empty" : this.#state
    if (this.#state === "loading") {
      this.body.replaceChildren(el("p", { class: "quiet history-note", text: t("history.loading") }))
    } else if (this.#state === "failed") {
      const again = button(t("common.retry"), {}, () => this.#begin())
      this.body.replaceChildren(
        el("div", { class: "history-note" }, el("p", { text: this.#failure }), el("div", { class: "actions" }, again)),
      )
    } else if (isEmpty) {
      const name = this.#isWriter ? "history.empty" : "history.empty.reader"
      this.body.replaceChildren(el("div", { class: "history-note" }, el("p", { class: "quiet", text: t(name) }), this.#formFor()))
    } else {
      const left = el("div", { class: "history-left" }, this.#formFor(), this.line.element)
      this.body.replaceChildren(left, this.view.element)
      this.#drawLine()
    }
  }

  #drawLine() {
    if (0 < this.#versions.length && this.body.dataset.state === "empty") return this.#draw()
    this.line.draw(this.#versions, { more: this.#next !== null })
  }

  /** @param {api.Version} version */
  #show(version) {
    const at = this.#versions.findIndex(({ id }) => id === version.id)
    const before = this.#versions[at + 1]
    if (before === undefined && this.#next !== null) {
      // The changes of a version need the one before it, which is on the next page.
      this.#more().then(() => this.view.show(version, this.#versions[at + 1] ?? null))
      return
    }
    this.view.show(version, before ?? null)
  }

  /** @param {api.Version} version */
  async #restored(version) {
    this.#say(t("history.restore.done"))
    await this.#read()
    this.line.choose(version.id)
  }

  get #isWriter() {
    return this.store.state.role === "writer"
  }

  /** The form to name a version, in the language of now; for the writer only. */
  #formFor() {
    translateAll(this.#form)
    return this.#isWriter ? this.#form : ""
  }

  #nameForm() {
    const field = el("input", { id: "history-label", maxlength: "100", autocomplete: "off", "data-t-hint": "history.name.hint" })
    const go = el("button", { type: "submit", class: "button", "data-t": "history.name.go" })
    const form = el(
      "form",
      { class: "history-name" },
      el("label", { for: "history-label", "data-t": "history.name" }),
      el("div", {}, field, go),
    )
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      const label = field.value.trim()
      if (label === "") return field.focus()
      once(go, async () => {
        try {
          const made = await api.nameVersion(this.document, label)
          field.value = ""
          this.#say(t("history.named", { label: made.label ?? label }))
          await this.#read()
          this.line.choose(made.id)
        } catch (error) {
          const isFull = error instanceof api.Problem && error.kind === "too-many"
          this.#say(isFull ? t("history.full") : t("review.failed", { why: errorText(error) }))
        }
      })
    })
    return form
  }

  #closed() {
    window.clearTimeout(this.#timer)
    this.view.clear()
  }

  #speak() {
    this.view.speak()
    if (this.dialog.open) this.#draw()
  }

  /** @param {string} sentence */
  #say(sentence) {
    this.said.textContent = sentence
  }
}
