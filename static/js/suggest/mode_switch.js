// @ts-check
/**
 * The switch between suggesting and reading, on the reviewer's page. Owns one element.
 *
 * A touch screen begins with reading: a finger that scrolls must not open the keyboard. The switch opens and closes no
 * panel and moves no focus.
 */

import { announce } from "../lib/announce.js"
import { byId, drawWith, el } from "../lib/dom.js"
import { t } from "../lib/i18n.js"

/** @typedef {"suggesting" | "reading"} Mode */

/** @type {readonly Mode[]} */
const MODES = ["suggesting", "reading"]

export class ModeSwitch {
  /** @param {import("../store.js").Store} store */
  constructor(store) {
    this.store = store
    this.element = byId("mode", HTMLFieldSetElement)
    this.inputs = MODES.map((value) => el("input", { type: "radio", name: "mode", value }))
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    const choices = this.inputs.map((input, at) => el("label", {}, input, el("span", { "data-t": `mode.${MODES[at]}` })))
    const name = el("legend", { class: "hidden", "data-t": "mode.name" })
    this.element.replaceChildren(name, ...choices)
    this.element.addEventListener("change", ({ target }) => {
      if (target instanceof HTMLInputElement) this.#choose(/** @type {Mode} */ (target.value))
    }, { signal })
    const isTouch = window.matchMedia("(pointer: coarse)").matches
    this.store.change({ mode: isTouch ? "reading" : "suggesting" })
    this.#placed(signal)
    drawWith([this.store], () => this.#draw(), signal)
  }

  /** In a narrow window the switch stands in the foot: the bar has no room. @param {AbortSignal} signal */
  #placed(signal) {
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

  /** @param {Mode} mode */
  #choose(mode) {
    this.store.change({ mode })
    announce(t(`mode.${mode}.on`))
  }

  #draw() {
    const { phase, wasSeated, mode } = this.store.state
    this.element.hidden = !wasSeated || !["seated", "uncertain", "offline"].includes(phase)
    for (const input of this.inputs) input.checked = input.value === mode
    const [name] = this.element.children
    if (name) name.textContent = t("mode.name")
    for (const label of this.element.querySelectorAll("span")) label.textContent = t(/** @type {import("../lib/i18n.js").Sentence} */ (label.dataset.t))
  }
}
