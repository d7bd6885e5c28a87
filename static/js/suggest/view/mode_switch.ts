/**
 * The switch between suggesting and reading, on the reviewer's page. Owns one element.
 *
 * A touch screen begins with reading: a finger that scrolls must not open the keyboard. The switch opens and closes no
 * panel and moves no focus.
 */

import { announce } from "../../lib/announce.ts"
import { byId, drawWith, el } from "../../lib/dom.ts"
import { t, type Sentence } from "../../lib/i18n.ts"
import type { Store } from "../../store.ts"

type Mode = "suggesting" | "reading"

const MODES: readonly Mode[] = ["suggesting", "reading"]

export class ModeSwitch {
  declare store: Store
  declare element
  declare inputs

  constructor(store: Store) {
    this.store = store
    this.element = byId("mode", HTMLFieldSetElement)
    this.inputs = MODES.map((value) => el("input", { type: "radio", name: "mode", value }))
  }

  start(signal: AbortSignal) {
    const choices = this.inputs.map((input, at) => el("label", {}, input, el("span", { "data-t": `mode.${MODES[at]}` })))
    const name = el("legend", { class: "hidden", "data-t": "mode.name" })
    this.element.replaceChildren(name, ...choices)
    this.element.addEventListener("change", ({ target }) => {
      if (target instanceof HTMLInputElement) this.#choose(target.value as Mode)
    }, { signal })
    const isTouch = window.matchMedia("(pointer: coarse)").matches
    this.store.change({ mode: isTouch ? "reading" : "suggesting" })
    this.#placed(signal)
    drawWith([this.store], () => this.#draw(), signal)
  }

  /** In a narrow window the switch stands in the foot: the bar has no room. */
  #placed(signal: AbortSignal) {
    const narrow = window.matchMedia("(max-width: 899px)")
    const mark = document.createComment("")
    this.element.before(mark)
    const move = () => (narrow.matches ? byId("sheet-open").before(this.element) : mark.after(this.element))
    narrow.addEventListener("change", move, { signal })
    move()
  }

  /** The other one, by the key. */
  toggle() {
    if (!this.element.hidden) this.#choose(this.store.state.mode === "reading" ? "suggesting" : "reading")
  }

  #choose(mode: Mode) {
    this.store.change({ mode })
    announce(t(`mode.${mode}.on`))
  }

  #draw() {
    const { phase, wasSeated, mode } = this.store.state
    this.element.hidden = !wasSeated || !["seated", "uncertain", "offline"].includes(phase)
    for (const input of this.inputs) input.checked = input.value === mode
    const [name] = this.element.children
    if (name) name.textContent = t("mode.name")
    for (const label of this.element.querySelectorAll("span")) label.textContent = t(label.dataset.t as Sentence)
  }
}
