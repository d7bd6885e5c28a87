/**
 * The history of the text: a time line of its versions, with what each changed beside it.
 *
 * Reads nothing before it is opened. While it is open it looks now and then whether there is more;
 * what is chosen stays chosen. Owns one dialog.
 */

import type { Editor } from "../desk/editor.ts"
import * as api from "../lib/api.ts"
import { button, byId, el, onSubmit } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { i18n, translateAll, t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import { Timeline } from "./timeline.ts"
import { VersionView } from "./version_view.ts"

/** How often an open history is read again, in ms. */
const READ_EVERY = 5_000

export class History {
  declare store: Store
  declare editor: Editor
  declare document: string
  declare dialog
  declare status
  declare body
  declare timeline: Timeline
  declare view: VersionView
  #timer = 0
  #reads = 0
  #state: "none" | "loading" | "failed" | "read" = "none"
  /** Newest first. */
  #versions: api.Version[] = []
  /** Where the next page begins. */
  #next: string | null = null
  #textChanged = false
  #failure = ""

  constructor(store: Store, editor: Editor, document: string) {
    this.store = store
    this.editor = editor
    this.document = document
    this.dialog = byId("history", HTMLDialogElement)
    this.status = byId("history-status")
    this.body = byId("history-body")
    this.timeline = new Timeline({
      choose: (version) => this.#show(version),
      into: () => this.view.focus(),
      more: () => this.#more(),
    })
    this.view = new VersionView(document, {
      mayRestore: () => (store.state.role === "writer" ? (store.seated ? "yes" : "seat") : "reader"),
      restored: (version, from) => this.#restored(version, from),
      notify: (sentence) => this.#notify(sentence),
    })
    this.#form = this.#nameForm()
  }

  start(signal: AbortSignal) {
    byId("history-close").addEventListener("click", () => this.dialog.close(), { signal })
    this.dialog.addEventListener("close", () => this.#closed(), { signal })
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close(), { signal })
    this.store.addEventListener("change", () => this.view.drawActions(), { signal })
    this.editor.addEventListener("edit", () => (this.#textChanged = true), { signal })
    i18n.addEventListener("change", () => this.dialog.open && this.#draw(), { signal })
  }

  open() {
    if (this.dialog.open) return
    this.#notify("")
    this.dialog.showModal()
    this.#begin()
  }

  #form

  async #begin() {
    this.#versions = []
    this.timeline.clear()
    this.#state = "loading"
    this.#draw()
    if (await this.#read()) this.timeline.focus()
  }

  /** Reads the newest versions. What was chosen stays so, if it is still there. @returns whether they could be read */
  async #read(): Promise<boolean> {
    window.clearTimeout(this.#timer)
    const read = ++this.#reads
    let isRead = true
    try {
      const page = await api.versions(this.document)
      // A later read sets the timer.
      if (read !== this.#reads) return false
      const older = this.#versions.filter(({ number }) => number < (page.versions.at(-1)?.number ?? 0))
      if (older.length === 0) this.#next = page.next_cursor
      this.#versions = [...page.versions, ...older]
      const isFirst = this.#state !== "read"
      this.#state = "read"
      if (isFirst) this.#draw()
      else this.#drawLine()
      if (this.#textChanged) this.view.textChanged()
      this.#textChanged = false
    } catch (error) {
      if (read !== this.#reads) return false
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
    const cursor = this.#next
    if (cursor === null) return
    try {
      const page = await api.versions(this.document, { cursor })
      if (cursor !== this.#next) return
      this.#next = page.next_cursor
      this.#versions = [...this.#versions, ...page.versions]
      this.#drawLine()
    } catch (error) {
      this.#notify(t("history.failed", { why: errorText(error) }))
    }
  }

  #draw() {
    const form = this.#isWriter ? this.#form : ""
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
      this.body.replaceChildren(el("div", { class: "history-note" }, el("p", { class: "quiet", text: t(name) }), form))
    } else {
      this.body.replaceChildren(el("div", { class: "history-left" }, form, this.timeline.element), this.view.element)
      this.view.retranslate()
      this.#drawLine()
    }
    // The language may have changed while these parts were not on the page.
    translateAll(this.body)
  }

  #drawLine() {
    if (0 < this.#versions.length && this.body.dataset.state === "empty") return this.#draw()
    this.timeline.draw(this.#versions, { more: this.#next !== null })
  }

  #show(version: api.Version) {
    const at = this.#versions.findIndex(({ id }) => id === version.id)
    const before = this.#versions[at + 1]
    if (before === undefined && this.#next !== null) {
      // The changes of a version need the one before it, which is on the next page.
      this.#more().then(() => this.timeline.chosen === version.id && this.view.show(version, this.#versions[at + 1] ?? null))
      return
    }
    this.view.show(version, before ?? null)
  }

  async #restored(version: api.Version, from: api.Version) {
    this.#notify(t("history.restore.done"))
    await this.#choose(version.id, from.id)
  }

  /** Chooses a new version, unless the user chose another one since `before`. */
  async #choose(id: string, before: string | null) {
    await this.#read()
    if (this.timeline.chosen === before) this.timeline.choose(id)
  }

  get #isWriter() {
    return this.store.state.role === "writer"
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
    const submit = async () => {
      const label = field.value.trim()
      if (label === "") return field.focus()
      const { chosen } = this.timeline
      const created = await api.nameVersion(this.document, label)
      if (field.value.trim() === label) field.value = ""
      this.#notify(t("history.named", { label: created.label ?? label }))
      // The next name need not wait for the read.
      void this.#choose(created.id, chosen)
    }
    onSubmit(form, go, submit, (error) => {
      const isFull = error instanceof api.Problem && error.kind === "too-many"
      this.#notify(isFull ? t("history.full") : t("review.failed", { why: errorText(error) }))
    })
    return form
  }

  #closed() {
    window.clearTimeout(this.#timer)
    this.view.clear()
  }

  #notify(sentence: string) {
    this.status.textContent = sentence
  }
}
