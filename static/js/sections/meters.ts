/**
 * The headings of the questions in the text, each with its meter below, and the settings of the sections.
 *
 * Settings and decorations move along with every edit. Only another set of headings draws them anew; a count is
 * written into the element of its meter. So no key redraws a line, and no composition is disturbed.
 */

import type { StateEffectType, Text } from "@codemirror/state"
import type { DecorationSet } from "@codemirror/view"
import { el, meter } from "../lib/dom.ts"
import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../lib/vendor.ts"
import type { Range, Setting } from "./sections.ts"

/** Writes the figures of a section into its meter. */
export type Draw = (meter: HTMLElement, at: number) => void
/** Opens the dialog of a section. */
type Press = (at: number) => void
type Drawn = { settings: readonly Setting[], headings: readonly Range[], drawn: DecorationSet }

export const setSettings: StateEffectType<readonly Setting[]> = StateEffect.define()
export const setHeadings: StateEffectType<{ headings: readonly Range[], draw: Draw, press: Press | null }> = StateEffect.define()

class Meter extends WidgetType {
  declare at: number
  declare draw: Draw
  declare press: Press | null

  /** @param at the index of the section */
  constructor(at: number, draw: Draw, press: Press | null) {
    super()
    this.at = at
    this.draw = draw
    this.press = press
  }

  override eq({ at, draw }: Meter) {
    return at === this.at && draw === this.draw
  }

  override toDOM() {
    // The keyboard has the menu and the foot.
    const count = el(this.press ? "button" : "span", { class: "question-count", "aria-hidden": "true", ...(this.press ? { type: "button", tabindex: "-1" } : {}) })
    count.addEventListener("click", () => this.press?.(Number(element.dataset.at)))
    const element = el("div", { class: "question-meter" }, meter(), count)
    this.draw(element, this.at)
    return element
  }

  override get estimatedHeight() {
    return 28
  }
}

const isHeading = Decoration.line({ class: "question" })

function decorations(headings: readonly Range[], draw: Draw, press: Press | null, text: Text) {
  const ranges = headings.flatMap(({ from, to }, at) => {
    const [first, last] = [text.lineAt(from), text.lineAt(to)]
    const lines = Array.from({ length: last.number - first.number + 1 }, (_, line) => text.line(first.number + line))
    const block = Decoration.widget({ widget: new Meter(at, draw, press), block: true, side: 1 })
    return [...lines.map((line) => isHeading.range(line.from)), block.range(last.to)]
  })
  return Decoration.set(ranges, true)
}

export const drawnSections = StateField.define({
  create: (): Drawn => ({ settings: [], headings: [], drawn: Decoration.none }),
  update(before, { docChanged, changes, effects, newDoc }) {
    let value = before
    if (docChanged) {
      const moved = (at: number, side: 1 | -1) => changes.mapPos(at, side)
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
