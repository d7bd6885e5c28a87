/**
 * The questions of the text: a meter below each heading, and a list in the foot of the desk.
 *
 * The page finds the questions after each pause of typing, with the settings that the owner stored. It counts each
 * answer as it is, and with all open suggestions accepted.
 */

import type { Editor } from "../desk/editor.ts"
import * as api from "../lib/api.ts"
import { byId, el, fillMeter, isDrawn, meter } from "../lib/dom.ts"
import { i18n, number, t } from "../lib/i18n.ts"
import { marked } from "../reviews/highlights.ts"
import type { Reviews } from "../reviews/reviews.ts"
import { applicableSuggestions } from "../reviews/text_view.ts"
import { acceptedText } from "./accepted.ts"
import { fullnessOf, type Fullness } from "./fullness.ts"
import { drawnSections, setHeadings, setSettings, type Draw } from "./meters.ts"
import { findSections, type Section, type Setting } from "./sections.ts"

/** `accepted`: its count with all suggestions, if they change it. */
type Question = { section: Section, fullness: Fullness, accepted: number | null }

/** The search waits until the hand rests for so long, in ms. */
const TYPING_PAUSE = 200
/** The editor needs a moment to read the result of a composition, in ms. */
const COMPOSED_PAUSE = 60

/** Fires `limit` when the owner presses the meter of a question, with the caret in it. */
export class Questions extends EventTarget {
  declare editor: Editor
  declare reviews: Reviews
  declare document: string
  declare version: number
  declare list
  declare isOwner
  #timer = 0
  #reads = 0
  #questions: Question[] = []

  constructor(editor: Editor, reviews: Reviews, document: string) {
    super()
    this.editor = editor
    this.reviews = reviews
    this.document = document
    this.version = 0
    this.list = byId("questions")
    this.isOwner = editor.role === "writer"
  }

  start(signal: AbortSignal) {
    this.editor.addEventListener("edit", () => this.#findSoon(), { signal })
    this.editor.addEventListener("select", () => this.#drawCurrent(), { signal })
    this.reviews.addEventListener("change", () => this.#findSoon(), { signal })
    const { contentDOM } = this.editor.view
    contentDOM.addEventListener("compositionend", () => this.#findSoon(COMPOSED_PAUSE), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
    this.#find()
  }

  stop() {
    window.clearTimeout(this.#timer)
  }

  /** Reads the settings that the owner stored. */
  async read() {
    const read = ++this.#reads
    const { sections, version } = await api.sections(this.document)
    if (read !== this.#reads) return
    this.version = version
    // The text of the server may be longer: its edits are on their way.
    const end = this.editor.baseTree.length
    const inView = (at: number) => this.editor.inView({ from: Math.min(at, end), to: Math.min(at, end) }).from
    const settings = sections.flatMap(({ at, ...setting }) => (at === null ? [] : [{ ...setting, at: inView(at) }]))
    this.editor.view.dispatch({ effects: setSettings.of(settings) })
    this.#find()
  }

  get settings(): readonly Setting[] {
    return this.editor.view.state.field(drawnSections).settings
  }

  /** The question in which the caret is. */
  get current() {
    const { from } = this.editor.selection
    return this.#questions.findLast(({ section }) => section.from <= from)?.section ?? null
  }

  #findSoon(pause = TYPING_PAUSE) {
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.#find(), pause)
  }

  #find() {
    const { text, view } = this.editor
    const written = this.#written()
    const sections = this.#inView(written.sections)
    const before = view.state.field(drawnSections).headings
    const isSame = before.length === sections.length && sections.every(({ from, to }, at) => before[at]?.from === from && before[at]?.to === to)
    // The end of the composition begins the search again.
    if (!isSame && view.compositionStarted) return
    const accepted = this.#acceptedCounts(text, sections.length)
    this.#questions = sections.map((section, at) => {
      const fullness = fullnessOf(written.text, written.sections[at] ?? section)
      const count = accepted[at] ?? fullness.count
      return { section, fullness, accepted: count === fullness.count ? null : count }
    })
    if (!isSame) view.dispatch({ effects: setHeadings.of({ headings: sections, draw: this.#drawMeter, press: this.isOwner ? this.#press : null }) })
    this.#draw()
  }

  /** The text without the reader's own suggestions, and its sections: the basis of all counts. */
  #written() {
    const { baseTree, tree, text } = this.editor
    if (baseTree === tree) return { text, sections: findSections(text, this.settings) }
    const written = baseTree.toString()
    const settings = this.settings.map((setting) => ({ ...setting, at: this.editor.inBase({ from: setting.at, to: setting.at }).from }))
    return { text: written, sections: findSections(written, settings) }
  }

  /** @param sections of the base */
  #inView(sections: Section[]) {
    if (this.editor.baseTree === this.editor.tree) return sections
    return sections.map((section) => ({ ...this.editor.inView(section), body: this.editor.inView(section.body) }))
  }

  /** The counts with all open suggestions accepted, if they change no heading. */
  #acceptedCounts(text: string, sections: number) {
    const open = applicableSuggestions(this.editor.view.state, marked)
    const isBase = this.editor.baseTree === this.editor.tree
    if (sections === 0 || (open.length === 0 && isBase)) return []
    const accepted = acceptedText(text, open)
    const settings = this.settings.map((setting) => ({ ...setting, at: accepted.moved(setting.at) }))
    const found = findSections(accepted.text, settings)
    return found.length === sections ? found.map((section) => fullnessOf(accepted.text, section).count) : []
  }

  #draw() {
    for (const element of this.editor.view.contentDOM.querySelectorAll(".question-meter")) {
      if (element instanceof HTMLElement) this.#drawMeter(element, Number(element.dataset.at))
    }
    this.list.hidden = this.#questions.length === 0
    const values = this.#questions.map(({ fullness, accepted, section }) => [fullness, accepted, section.title])
    if (!isDrawn(this.list, values)) this.#drawList()
    this.#drawCurrent()
  }

  #drawList() {
    const focused = [...this.list.children].findIndex((item) => item.contains(document.activeElement))
    const items = this.#questions.map((question, at) => {
      const link = el("button", { type: "button", class: "question-link", title: question.section.title })
      const line = meter()
      fill(line, question.fullness)
      const figures = el("span", { class: "figures" }, ...figuresOf(question, true))
      link.append(el("span", { class: "question-number", text: t("question.number", { number: number(at + 1) }) }), line, figures)
      link.dataset.over = String(question.fullness.state === "over" || isOverAccepted(question))
      // The question of the caret is in view already.
      link.addEventListener("click", () => (link.ariaCurrent === "true" && this.isOwner ? this.#setLimit() : this.#show(at)))
      return el("li", {}, link)
    })
    this.list.replaceChildren(...items)
    const link = items[focused]?.firstElementChild
    if (link instanceof HTMLElement) link.focus()
  }

  #drawCurrent() {
    const current = this.#questions.findIndex(({ section }) => section === this.current)
    for (const [at, item] of [...this.list.children].entries()) {
      if (at === current) item.firstElementChild?.setAttribute("aria-current", "true")
      else item.firstElementChild?.removeAttribute("aria-current")
    }
  }

  /** Writes the figures of a question into its meter. */
  #drawMeter: Draw = (element, at) => {
    element.dataset.at = String(at)
    const question = this.#questions[at]
    const [line, count] = element.children
    if (!question || !(line instanceof HTMLElement) || !count) return
    const { fullness, section } = question
    if (isDrawn(element, at, fullness, question.accepted, section.unit)) return
    fill(line, fullness)
    line.removeAttribute("aria-hidden")
    line.setAttribute("role", "meter")
    line.setAttribute("aria-label", t("question.meter", { number: number(at + 1) }))
    line.setAttribute("aria-valuemin", "0")
    line.setAttribute("aria-valuemax", String(fullness.limit ?? fullness.count))
    line.setAttribute("aria-valuenow", String(Math.min(fullness.count, fullness.limit ?? fullness.count)))
    count.replaceChildren(...figuresOf(question))
    line.setAttribute("aria-valuetext", count.textContent ?? "")
  }

  /** The limit of a question is set at its meter. */
  #press = (at: number) => {
    this.#show(at)
    this.#setLimit()
  }

  #setLimit() {
    this.dispatchEvent(new Event("limit"))
  }

  /** Brings a question into view, with the caret at its answer. */
  #show(at: number) {
    // An edit may be younger than the last search.
    this.#find()
    const section = this.#questions[at]?.section
    if (!section) return
    this.editor.show({ from: section.body.from, to: section.body.from })
    this.editor.focus()
  }
}

function fill(line: HTMLElement, { count, limit, state }: Fullness) {
  line.dataset.over = String(state === "over")
  line.hidden = limit === null
  // Over the limit the line is as long as the text, and solid as far as the limit.
  if (limit !== null) fillMeter(line, state === "over" ? limit / count : count / limit)
}

/** @param isBrief without the unit */
function figuresOf({ section, fullness: { count, limit, state }, accepted }: Question, isBrief: boolean = false): Node[] {
  const unit = isBrief ? "" : t(section.unit === "words" ? "count.unit.words" : section.unit.endsWith("spaces") ? "count.short.characters" : "count.short.bytes")
  const all = limit === null ? t("question.count", { count: number(count), unit }) : t("count.target.value", { count: number(count), target: number(limit), unit })
  const [first = "", ...rest] = all.trim().split(number(count))
  const nodes = [document.createTextNode(first), el("b", { text: number(count) }), document.createTextNode(rest.join(number(count)))]
  const over = state === "over" && limit !== null ? [el("em", { text: t("question.over", { over: number(count - limit), unit }).replace("  ", " ") })] : []
  if (accepted === null || limit === null) return [...nodes, ...over, ...(accepted === null || isBrief ? [] : suggestedOf(accepted))]
  const isOver = limit < accepted && state !== "over"
  if (isBrief) return [...nodes, ...over, ...(isOver ? [el("em", { text: t("question.accepted.over", { over: number(accepted - limit) }) })] : [])]
  const suggested = suggestedOf(accepted, isOver)
  return [...nodes, ...over, ...suggested]
}

/** @param isOver above the limit */
const suggestedOf = (accepted: number, isOver: boolean = false) => [
  document.createTextNode(" "),
  el("span", { class: "question-accepted", "data-over": String(isOver), text: t("question.accepted", { count: number(accepted) }) }),
]

/** Whether the suggestions take an answer above its limit. */
const isOverAccepted = ({ accepted, fullness: { limit } }: Question) => accepted !== null && limit !== null && limit < accepted
