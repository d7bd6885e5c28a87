// @ts-check
/** The menu in the margin's head, and its entries that decide all open suggestions at once. */

import { closeByItself } from "../desk/menu.js"
import { byId, el, isDrawn, once } from "../lib/dom.js"
import { i18n, number, t } from "../lib/i18n.js"
import { changeMenu } from "./margin_tabs.js"

/** @typedef {import("../lib/api.js").Verdict} Verdict */

/** From this many open suggestions on a decision about all saves work. */
const MANY = 2
/** After an edit the suggestions are counted again at most this often, in ms. */
const COUNT_DELAY = 250

export class DecideAll {
  #timer = 0

  /**
   * @param {import("./decisions.js").Decisions} decisions
   * @param {import("./reviews.js").Reviews} reviews
   * @param {import("../store.js").Store} store
   */
  constructor(decisions, reviews, store) {
    this.decisions = decisions
    this.reviews = reviews
    this.store = store
    this.element = byId("decide-all")
    this.menu = byId("margin-more", HTMLDetailsElement)
    /** @type {Record<Verdict, HTMLButtonElement>} */
    this.buttons = { accept: this.#button("accept"), reject: this.#button("reject") }
    this.element.replaceChildren(this.buttons.accept, this.buttons.reject)
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    this.reviews.addEventListener("change", () => this.#drawSoon(), { signal })
    this.store.addEventListener("change", () => this.#drawSoon(), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
    closeByItself(this.menu, signal)
    this.#draw()
  }

  /** @param {Verdict} verdict */
  #button(verdict) {
    const pressed = el("button", { type: "button" })
    pressed.addEventListener("click", () => once(pressed, () => this.decisions.decideAll(verdict)))
    pressed.dataset.decideAll = verdict
    return pressed
  }

  #drawSoon() {
    if (this.#timer !== 0) return
    this.#timer = window.setTimeout(() => {
      this.#timer = 0
      this.#draw()
    }, COUNT_DELAY)
  }

  #draw() {
    const counts = { accept: 0, reject: 0 }
    if (this.decisions.mayDecide) {
      counts.accept = this.decisions.suggestions("accept").length
      counts.reject = this.decisions.suggestions("reject").length
    }
    if (isDrawn(this, counts)) return
    changeMenu(() => {
      this.element.hidden = counts.reject < MANY
      for (const verdict of /** @type {const} */ (["accept", "reject"])) {
        const decide = this.buttons[verdict]
        decide.hidden = counts[verdict] === 0
        decide.replaceChildren(t(`decision.all.${verdict}`, { count: number(counts[verdict]) }))
      }
    })
  }
}
