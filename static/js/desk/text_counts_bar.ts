/** The foot of the desk: how long the text is, and how far from where it should be. */

import { byId, el, fillMeter } from "../lib/dom.ts"
import { i18n, number, t } from "../lib/i18n.ts"
import { setPreference, preference } from "../lib/preferences.ts"
import { charactersIn, Counter, units, type Counts, type Unit } from "./counts.ts"
import type { Editor } from "./editor.ts"

type Target = { number: number, unit: Unit }

/** Counting waits until the hand rests for so long, in ms. */
const TYPING_PAUSE = 150
/** How long it counts at a stretch, in ms. */
const TIME_SLICE = 6
/** A selection is counted when it rests for so long, in ms. */
const SELECTING_PAUSE = 120

/** The unit of a target beside its number. */
const SHORT = {
  all: "count.short.characters",
  solid: "count.short.characters",
  utf8: "count.short.bytes",
  euckr: "count.short.bytes",
  words: "count.unit.words",
} as const

export class TextCountsBar {
  declare editor: Editor
  declare key
  declare target
  declare meter
  declare amount
  declare unit
  declare panel
  declare selected
  #counter = new Counter()
  #timer = 0
  #selectionTimer = 0
  #counts: Counts = { all: 0, solid: 0, utf8: 0, euckr: 0, foreign: 0, words: 0 }

  constructor(editor: Editor, document: string) {
    this.editor = editor
    this.key = `target.${document}`
    this.target = parseTarget(preference(this.key))
    this.meter = byId("meter", HTMLElement)
    this.amount = byId("target-number", HTMLInputElement)
    this.unit = byId("target-unit", HTMLSelectElement)
    this.panel = byId("target", HTMLDetailsElement)
    this.selected = byId("selected")
  }

  start(signal: AbortSignal) {
    this.editor.addEventListener("edit", () => this.#countSoon(), { signal })
    this.editor.addEventListener("select", () => this.#countSelectionSoon(), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
    for (const field of [this.amount, this.unit]) {
      field.addEventListener("input", () => this.#setTarget(), { signal })
    }
    this.panel.addEventListener("keydown", (event) => this.#key(event), { signal })
    this.unit.value = this.target?.unit ?? "all"
    this.amount.value = this.target ? String(this.target.number) : ""
    this.#count()
  }

  #key(event: KeyboardEvent) {
    if (event.isComposing || (event.key !== "Escape" && event.key !== "Enter")) return
    if (event.target === this.panel.firstElementChild && event.key === "Enter") return
    event.preventDefault()
    event.stopPropagation()
    this.panel.open = false
    this.panel.querySelector("summary")?.focus()
  }

  #countSoon() {
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.#count(), TYPING_PAUSE)
  }

  #countSelectionSoon() {
    window.clearTimeout(this.#selectionTimer)
    this.#selectionTimer = window.setTimeout(() => this.#drawSelection(), SELECTING_PAUSE)
  }

  #drawSelection() {
    const { selection } = this.editor
    this.selected.hidden = selection.from === selection.to
    if (this.selected.hidden) return
    this.selected.textContent = t("count.selected", { count: number(charactersIn(this.editor.textIn(selection))) })
  }

  #count() {
    this.editor.detectLanguage()
    // Own suggestions count as those of others do: in the questions and beside the total.
    this.#continue(this.#counter.steps(this.editor.baseTree))
  }

  /** Counts for a moment, and goes on when others had a turn. */
  #continue(steps: Generator<void, Counts>) {
    const until = performance.now() + TIME_SLICE
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        this.#counts = step.value
        return this.#draw()
      }
      if (until <= performance.now()) break
    }
    this.#timer = window.setTimeout(() => this.#continue(steps), 0)
  }

  #setTarget() {
    const wanted = Math.floor(Number(this.amount.value))
    const unit = this.unit.value as Unit
    this.target = 0 < wanted ? { number: wanted, unit } : null
    setPreference(this.key, this.target && JSON.stringify(this.target))
    this.#draw()
  }

  #draw() {
    const counts = this.#counts
    const isKorean = i18n.language === "ko" || this.editor.language === "ko"
    const isEnglish = i18n.language === "en" || this.editor.language === "en"
    const item = (label: string, value: string, kind: string) =>
      el("div", { class: `count count-${kind}` }, el("dt", { text: label }), el("dd", { text: value }))
    const foreign = counts.foreign === 0 ? undefined : t("count.foreign", { count: number(counts.foreign) })
    const korean = item("EUC-KR", `${number(counts.euckr)} B${foreign ? "*" : ""}`, "euckr")
    if (foreign) {
      korean.title = foreign
      korean.lastElementChild?.append(el("span", { class: "hidden", text: ` (${foreign})` }))
    }
    byId("counts").replaceChildren(
      item(t("count.all"), number(counts.all), "all"),
      ...(this.editor.baseTree === this.editor.tree ? [] : [item(t("count.suggested"), number(this.#counter.count(this.editor.tree).all), "suggested")]),
      item(t("count.solid"), number(counts.solid), "solid"),
      ...(isEnglish ? [item(t("count.words"), number(counts.words), "words")] : []),
      item("UTF-8", `${number(counts.utf8)} B`, "utf8"),
      ...(isKorean ? [korean] : []),
    )
    const utf8 = `UTF-8 ${number(counts.utf8)} B`
    const bytes = isKorean ? `${utf8} · EUC-KR ${number(counts.euckr)} B` : utf8
    byId("bytes").textContent = foreign && isKorean ? `${bytes} (${foreign})` : bytes
    this.#drawSelection()
    for (const option of this.unit.options) {
      option.hidden = option.value === "euckr" && !isKorean && this.unit.value !== "euckr"
    }
    this.#drawTarget(counts)
  }

  #drawTarget(counts: Counts) {
    const { target } = this
    byId("target-now").hidden = !target
    if (!target) return
    const now = counts[target.unit]
    const over = target.number < now
    const unit = t(SHORT[target.unit])
    const [value = "", ...excess] = t(over ? "count.target.over" : "count.target.value", {
      count: number(now),
      target: number(target.number),
      over: number(now - target.number),
      unit,
    }).split(" · ")
    const words = el("span", { class: "target-words", text: unit })
    byId("target-label").replaceChildren(value.slice(0, -unit.length), words, ...excess.map((text) => el("em", { text: ` · ${text}` })))
    this.meter.dataset.over = String(over)
    // Over the target the line is as long as the text, and solid as far as the target.
    fillMeter(this.meter, over ? target.number / now : now / target.number)
  }
}

export function parseTarget(text: string | null): Target | null {
  try {
    const { number, unit } = JSON.parse(text ?? "")
    return Number.isInteger(number) && 0 < number && units.includes(unit) ? { number, unit } : null
  } catch {
    return null
  }
}
