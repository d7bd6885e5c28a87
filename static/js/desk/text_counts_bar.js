// @ts-check
/** The foot of the desk: how long the text is, and how far from where it should be. */

import { byId, el } from "../lib/dom.js"
import { i18n, number, t } from "../lib/i18n.js"
import { setPreference, preference } from "../lib/preferences.js"
import { Counter, units } from "./counts.js"

/**
 * @typedef {import("./counts.js").Unit} Unit
 * @typedef {import("./counts.js").Counts} Counts
 * @typedef {{ number: number, unit: Unit }} Target
 */

/** Counting waits until the hand rests for so long, in ms. */
const TYPING_PAUSE = 150
/** How long it counts at a stretch, in ms. */
const TIME_SLICE = 6

export class TextCountsBar {
  #counter = new Counter()
  #timer = 0
  #stopped = new AbortController()
  /** @type {Counts} */
  #counts = { all: 0, solid: 0, utf8: 0, euckr: 0, foreign: 0 }

  /** @param {import("./editor.js").Editor} editor @param {string} document */
  constructor(editor, document) {
    this.editor = editor
    this.key = `target.${document}`
    this.target = parseTarget(preference(this.key))
    this.meter = byId("meter", HTMLElement)
    this.amount = byId("target-number", HTMLInputElement)
    this.unit = byId("target-unit", HTMLSelectElement)
    this.panel = byId("target", HTMLDetailsElement)
  }

  start() {
    const { signal } = this.#stopped
    this.editor.addEventListener("edit", () => this.#countSoon(), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
    for (const field of [this.amount, this.unit]) {
      field.addEventListener("input", () => this.#setTarget(), { signal })
    }
    this.panel.addEventListener("keydown", (event) => this.#key(event), { signal })
    this.unit.value = this.target?.unit ?? "solid"
    this.amount.value = this.target ? String(this.target.number) : ""
    this.#count()
  }

  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
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

  #count() {
    this.#continue(this.#counter.steps(this.editor.tree))
  }

  /** Counts for a moment, and goes on when others had a turn. @param {Generator<void, Counts>} steps */
  #continue(steps) {
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
    const unit = /** @type {Unit} */ (this.unit.value)
    this.target = 0 < wanted ? { number: wanted, unit } : null
    setPreference(this.key, this.target && JSON.stringify(this.target))
    this.#draw()
  }

  #draw() {
    const counts = this.#counts
    const item = (/** @type {string} */ label, /** @type {string} */ value, /** @type {string} */ kind) =>
      el("div", { class: `count count-${kind}` }, el("dt", { text: label }), el("dd", { text: value }))
    const foreign = counts.foreign === 0 ? undefined : t("count.foreign", { count: number(counts.foreign) })
    const korean = item("EUC-KR", `${number(counts.euckr)} B${foreign ? "*" : ""}`, "euckr")
    if (foreign) {
      korean.title = foreign
      korean.lastElementChild?.append(el("span", { class: "hidden", text: ` (${foreign})` }))
    }
    byId("counts").replaceChildren(
      item(t("count.all"), number(counts.all), "all"),
      item(t("count.solid"), number(counts.solid), "solid"),
      item("UTF-8", `${number(counts.utf8)} B`, "utf8"),
      korean,
    )
    const bytes = `UTF-8 ${number(counts.utf8)} B · EUC-KR ${number(counts.euckr)} B`
    byId("bytes").textContent = foreign ? `${bytes} (${foreign})` : bytes
    for (const option of this.unit.options) {
      option.textContent = t(`count.unit.${/** @type {Unit} */ (option.value)}`)
    }
    this.#drawTarget(counts)
  }

  /** @param {Counts} counts */
  #drawTarget(counts) {
    const { target } = this
    this.meter.hidden = !target
    const label = byId("target-label")
    const short = byId("target-short")
    if (!target) {
      label.textContent = t("count.target.set")
      short.textContent = t("count.target.number")
      return
    }
    const now = counts[target.unit]
    short.textContent = `${number(now)} / ${number(target.number)}`
    const over = target.number < now
    label.textContent = t(over ? "count.target.over" : "count.target.value", {
      count: number(now),
      target: number(target.number),
      over: number(now - target.number),
      unit: t(target.unit === "all" || target.unit === "solid" ? "count.short.characters" : "count.short.bytes"),
    })
    this.meter.dataset.over = String(over)
    this.meter.style.setProperty("--filled", `${Math.min((now / target.number) * 100, 100)}%`)
  }
}

/** @param {string | null} text @returns {Target | null} */
export function parseTarget(text) {
  try {
    const { number, unit } = JSON.parse(text ?? "")
    return Number.isInteger(number) && 0 < number && units.includes(unit) ? { number, unit } : null
  } catch {
    return null
  }
}
