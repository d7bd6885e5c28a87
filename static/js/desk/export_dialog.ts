/**
 * The dialog that makes a file of the document: format, comments, progress. Owns one element. For a PDF that
 * the server cannot make it leads to the print of the page.
 */

import { showToast } from "../lib/announce.ts"
import { Problem } from "../lib/api.ts"
import { byId, download, drawWith, el, say, translatedButton } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { exportFile, FORMATS, formatsOfServer } from "../lib/files.ts"
import { t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import { ENDED_LINKS } from "./policy.ts"

export class ExportDialog {
  declare store: Store
  declare link: string
  declare print: () => void
  declare element
  declare entry
  declare format
  declare about
  declare reviews
  declare check
  declare unsaved
  declare progress
  declare percent
  declare track
  declare status
  declare error
  declare go
  /** The build that this dialog waits for. */
  #work: AbortController | null = null
  /** Until the server says otherwise. */
  #makesPdf = true

  constructor(store: Store, link: string, print: () => void) {
    this.store = store
    this.link = link
    this.print = print
    this.element = byId("export-dialog", HTMLDialogElement)
    /** For the menu. */
    this.entry = el("button", { type: "button", "data-t": "menu.export" })
    this.format = el("select", { id: "export-format", "aria-describedby": "export-about" })
    this.format.append(...FORMATS.map((value) => el("option", { value, "data-t": `export.format.${value}` })))
    this.about = el("p", { id: "export-about", class: "quiet" })
    this.reviews = el("input", { id: "export-reviews", type: "checkbox", checked: true })
    this.check = el("label", { class: "file-check" }, this.reviews, el("span", { "data-t": "export.reviews" }))
    this.unsaved = el("p", { class: "quiet" })
    this.progress = el("progress", { max: "100", "data-t-label": "export.progress" })
    this.percent = el("span", { class: "quiet", "aria-hidden": "true" })
    this.track = el("div", { class: "file-track" }, this.progress, this.percent)
    // Outside a modal dialog nothing is spoken.
    this.status = el("p", { class: "quiet", role: "status" })
    this.error = el("p", { class: "form-error", role: "alert" })
    this.go = el("button", { type: "submit", class: "button button-strong" })
  }

  start(signal: AbortSignal) {
    const close = translatedButton("common.close", {}, () => this.element.close())
    const form = el(
      "form",
      { class: "file-form" },
      el("h2", { id: "export-title", tabindex: "-1", "data-t": "export.title" }),
      el("label", { for: "export-format", "data-t": "export.format" }),
      this.format,
      this.about,
      this.check,
      this.unsaved,
      this.track,
      this.status,
      this.error,
      el("div", { class: "actions" }, close, this.go),
    )
    this.element.replaceChildren(form)
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      void this.#run()
    }, { signal })
    this.entry.addEventListener("click", () => this.open(), { signal })
    this.format.addEventListener("change", () => this.#draw(), { signal })
    this.element.addEventListener("close", () => this.#cancel(), { signal })
    drawWith([this.store], () => this.#draw(), signal)
  }

  open() {
    this.#say()
    this.track.hidden = true
    this.element.showModal()
    this.format.focus()
    void this.#query()
  }

  /** Asks what the server makes. Without an answer the download itself shows it. */
  async #query() {
    const formats = await formatsOfServer().catch(() => null)
    if (formats === null) return
    this.#makesPdf = formats.includes("pdf")
    this.#draw()
  }

  get #format() {
    return FORMATS.find((format) => format === this.format.value) ?? "docx"
  }

  /** The browser makes the file that the server cannot make. */
  get #prints() {
    return this.#format === "pdf" && !this.#makesPdf
  }

  #draw() {
    // A deleted document has no file; its text can still be copied.
    this.entry.hidden = ENDED_LINKS.includes(this.store.state.reason)
    this.about.textContent = t(this.#prints ? "export.about.print" : `export.about.${this.#format}`)
    this.go.textContent = t(this.#prints ? "export.print" : "export.go")
    // The print asks for them itself.
    this.check.hidden = this.#prints
    this.unsaved.textContent = this.store.state.saving.count === 0 ? "" : t("export.unsaved")
  }

  /** The work under way, or its failure. */
  #say(sentence?: () => string, why?: () => string) {
    say(this.status, sentence)
    say(this.error, why)
    this.#draw()
  }

  async #run() {
    if (this.#work !== null) return
    if (this.#prints) {
      this.element.close()
      return this.print()
    }
    const work = new AbortController()
    this.#begin(work)
    try {
      const kind = { format: this.#format, hasReviews: this.reviews.checked }
      const building = (percent: number) => this.#building(percent)
      const { name, content } = await exportFile(this.link, kind, { signal: work.signal, building })
      const title = this.store.state.link?.title.trim() || t("start.untitled")
      const named = name ?? `${title}.${kind.format}`
      download(named, content)
      this.element.close()
      showToast(t("out.saved", { name: named }))
    } catch (error) {
      if (work.signal.aborted) return
      if (error instanceof Problem && error.kind === "format-not-available") this.#makesPdf = false
      this.#say(undefined, () => t("export.failed", { why: errorText(error) }))
    } finally {
      if (this.#work === work) this.#end()
    }
  }

  #begin(work: AbortController) {
    this.#work = work
    this.#say(() => t("export.building"))
    this.progress.removeAttribute("value")
    this.percent.textContent = ""
    this.track.hidden = false
    this.go.ariaBusy = "true"
  }

  #building(percent: number) {
    this.progress.value = percent
    this.percent.textContent = t("export.percent", { percent })
  }

  /** A closed dialog waits no more. The server finishes its build, for the next caller. */
  #cancel() {
    this.#work?.abort()
    this.#end()
  }

  #end() {
    this.#work = null
    say(this.status)
    this.track.hidden = true
    this.go.ariaBusy = null
  }
}
