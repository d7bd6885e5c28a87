/** The dialog in which the writer sets the limit of a question, or marks a line as one. Owns one element. */

import type { Editor } from "../desk/editor.ts"
import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { relativeAt } from "../desk/positions.ts"
import { confirm } from "../lib/confirm.ts"
import { byId, el, once, say, translatedButton } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { number, t, type Sentence } from "../lib/i18n.ts"
import { Y } from "../lib/vendor.ts"
import type { Unit } from "./limits.ts"
import type { Questions } from "./questions.ts"
import type { Setting } from "./sections.ts"

/** The units with their names. */
const UNITS = {
  spaces: "count.unit.all",
  "no-spaces": "count.unit.solid",
  words: "count.unit.words",
  "euc-kr": "count.unit.euckr",
  utf8: "count.unit.utf8",
  neis: "question.unit.neis",
} as const

/** A higher limit is a slip of the hand more often than meant. */
const LIKELY_MAX = 100_000

export class SectionDialog {
  declare editor: Editor
  declare questions: Questions
  declare element
  declare entry
  declare heading
  declare limit
  declare unit
  declare not
  declare error
  declare save
  /** The heading, which the text may move meanwhile. */
  #at: Y.RelativePosition | null = null

  constructor(editor: Editor, questions: Questions) {
    this.editor = editor
    this.questions = questions
    this.element = byId("section-dialog", HTMLDialogElement)
    /** For the menu. */
    this.entry = el("button", { type: "button", "data-t": "question.menu" })
    this.heading = el("p", { class: "quiet section-heading" })
    this.limit = el("input", { type: "number", inputmode: "numeric", min: "1", max: "1000000", step: "1", "data-t-hint": "question.limit.none" })
    this.unit = el("select", {}, ...Object.entries(UNITS).map(([value, words]) => el("option", { value, "data-t": words })))
    this.not = el("input", { type: "checkbox" })
    this.error = el("p", { class: "form-error", role: "alert" })
    this.save = el("button", { type: "submit", class: "button button-strong", "data-t": "common.save" })
  }

  start(signal: AbortSignal) {
    const field = (words: Sentence, input: HTMLElement) => el("label", {}, el("span", { "data-t": words }), input)
    const form = el(
      "form",
      { class: "file-form" },
      el("h2", { id: "section-title", tabindex: "-1", "data-t": "question.menu" }),
      this.heading,
      field("question.limit", this.limit),
      field("count.target.unit", this.unit),
      el("label", { class: "file-check" }, this.not, el("span", { "data-t": "question.not" })),
      this.error,
      el("div", { class: "actions" }, translatedButton("common.cancel", {}, () => this.element.close()), this.save),
    )
    this.element.replaceChildren(form)
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      void once(this.save, () => this.#store())
    }, { signal })
    this.not.addEventListener("change", () => this.#draw(), { signal })
    this.entry.addEventListener("click", () => this.open(), { signal })
    this.questions.addEventListener("limit", () => this.open(), { signal })
  }

  /** Opens for the question of the caret; outside of one, for the line of the caret. */
  open() {
    const section = this.questions.current
    const line = this.editor.tree.lineAt(section?.from ?? this.editor.selection.from)
    if (line.text.trim() === "") return void showToast(t("question.empty"))
    this.#at = relativeAt(this.editor.shared, line.from)
    this.heading.textContent = line.text.trim()
    this.limit.value = section?.limit ? String(section.limit) : ""
    this.unit.value = section?.unit ?? "spaces"
    this.not.checked = false
    this.error.textContent = ""
    this.#draw()
    this.element.showModal()
    // Digits replace the limit that stands there.
    this.limit.select()
  }

  #draw() {
    this.limit.disabled = this.unit.disabled = this.not.checked
  }

  async #store() {
    const limit = Math.floor(Number(this.limit.value))
    const isUnlikely = !this.not.checked && LIKELY_MAX < limit
    if (isUnlikely && !(await confirm(t("question.limit.sure", { limit: number(limit) }), t("common.save"), { danger: false }))) return
    const own = this.not.checked
      ? { question: false }
      : { unit: this.unit.value as Unit, ...(0 < limit ? { limit } : {}) }
    const text = this.editor.tree
    const { doc } = this.editor.shared
    const at = (this.#at && doc && Y.createAbsolutePositionFromRelativePosition(this.#at, doc)?.index) ?? 0
    const line = text.lineAt(Math.min(at, text.length))
    const others = this.questions.settings.filter(({ at }) => text.lineAt(at).from !== line.from)
    const settings = [...others, { at: line.from, title: line.text, ...own }]
    try {
      await api.setSections(this.questions.document, settings.map((setting) => this.#stored(setting)), this.questions.version)
      this.element.close()
      showToast(t("question.saved"))
    } catch (error) {
      say(this.error, () => errorText(error))
    }
    // The answer of another tab is shown, and the next press is about it.
    await this.questions.read().catch(() => undefined)
  }

  /** A setting as the server takes it: its position follows the edits until the server reads it. */
  #stored({ at, title = "", floor, line_break: lineBreak, ...setting }: Setting) {
    const position = Y.encodeRelativePosition(relativeAt(this.editor.shared, at))
    const given = { ...(floor ? { floor } : {}), ...(lineBreak === undefined || lineBreak === null ? {} : { line_break: lineBreak }) }
    return { ...setting, ...given, title: [...title.trim()].slice(0, 300).join("") || t("start.untitled"), at: btoa(String.fromCharCode(...position)) }
  }
}
