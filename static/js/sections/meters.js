// @ts-check
/**
 * The headings of the questions in the text, each with its meter below, and the settings of the sections.
 *
 * Settings and decorations move along with every edit. Only another set of headings draws them anew; a count is
 * written into the element of its meter. So no key redraws a line, and no composition is disturbed.
 */

import { el, meter } from "../lib/dom.js"
import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../lib/vendor.js"

/**
 * @typedef {import("./sections.js").Setting} Setting
 * @typedef {import("./sections.js").Range} Range
 * @typedef {(meter: HTMLElement, at: number) => void} Draw writes the figures of a section into its meter
 * @typedef {(at: number) => void} Press opens the dialog of a section
 * @typedef {{ settings: readonly Setting[], headings: readonly Range[], drawn: import("@codemirror/view").DecorationSet }} Drawn
 */

/** @type {import("@codemirror/state").StateEffectType<readonly Setting[]>} */
export const setSettings = StateEffect.define()
/** @type {import("@codemirror/state").StateEffectType<{ headings: readonly Range[], draw: Draw, press: Press | null }>} */
export const setHeadings = StateEffect.define()

class Meter extends WidgetType {
  /** @param {number} at the index of the section @param {Draw} draw @param {Press | null} press */
  constructor(at, draw, press) {
    super()
    this.at = at
    this.draw = draw
    this.press = press
  }

  /** @override @param {Meter} other */
  eq({ at, draw }) {
    return at === this.at && draw === this.draw
  }

  /** @override */
  toDOM() {
    // The keyboard has the menu and the foot.
    const count = el(this.press ? "button" : "span", { class: "question-count", "aria-hidden": "true", ...(this.press ? { type: "button", tabindex: "-1" } : {}) })
    count.addEventListener("click", () => this.press?.(Number(element.dataset.at)))
    const element = el("div", { class: "question-meter" }, meter(), count)
    this.draw(element, this.at)
    return element
  }

  /** @override */
  get estimatedHeight() {
    return 28
  }
}

const isHeading = Decoration.line({ class: "question" })

/** @param {readonly Range[]} headings @param {Draw} draw @param {Press | null} press @param {import("@codemirror/state").Text} text */
function decorations(headings, draw, press, text) {
  const ranges = headings.flatMap(({ from, to }, at) => {
    const [first, last] = [text.lineAt(from), text.lineAt(to)]
    const lines = Array.from({ length: last.number - first.number + 1 }, (_, line) => text.line(first.number + line))
    const block = Decoration.widget({ widget: new Meter(at, draw, press), block: true, side: 1 })
    return [...lines.map((line) => isHeading.range(line.from)), block.range(last.to)]
  })
  return Decoration.set(ranges, true)
}

export const drawnSections = StateField.define({
  /** @returns {Drawn} */
  create: () => ({ settings: [], headings: [], drawn: Decoration.none }),
  update(before, { docChanged, changes, effects, newDoc }) {
    let value = before
    if (docChanged) {
      const moved = (/** @type {number} */ at, /** @type {1 | -1} */ side) => changes.mapPos(at, side)
      const settings = value.settings.map((setting) => ({ ...setting, at: moved(setting.at, 1) }))
      const headings = value.headings.map(({ from, to }) => ({ from: moved(from, 1), to: moved(to, -1) }))
      value = { settings, headings, drawn: value.drawn.map(changes) }
    }
    for (const effect of effects) {
      if (effect.is(setSettings)) value = { ...value, settings: effect.value }
      if (effect.is(setHeadings)) {
        const { headings, draw, press } = effect.value
        value = { ...value, headings, drawn: decorations(headings, draw, press, newDoc) }
      }
    }
    return value
  },
  provide: (field) => EditorView.decorations.from(field, ({ drawn }) => drawn),
})
