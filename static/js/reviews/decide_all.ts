/** The menu in the margin's head, and its entries that decide all open suggestions at once. */

import { closeByItself } from "../desk/menu.ts"
import type { Verdict } from "../lib/api.ts"
import { byId, el, isDrawn, once } from "../lib/dom.ts"
import { i18n, number, t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import type { Decisions } from "./decisions.ts"
import { changeMenu } from "./margin_tabs.ts"
import type { Reviews } from "./reviews.ts"

/** From this many open suggestions on a decision about all saves work. */
const MANY = 2
/** After an edit the suggestions are counted again at most this often, in ms. */
const COUNT_DELAY = 250

export class DecideAll {
  declare decisions: Decisions
  declare reviews: Reviews
  declare store: Store
  declare element
  declare menu
  declare buttons: Record<Verdict, HTMLButtonElement>
  #timer = 0

  constructor(decisions: Decisions, reviews: Reviews, store: Store) {
    this.decisions = decisions
    this.reviews = reviews
    this.store = store
    this.element = byId("decide-all")
    this.menu = byId("margin-more", HTMLDetailsElement)
    this.buttons = { accept: this.#button("accept"), reject: this.#button("reject") }
    this.element.replaceChildren(this.buttons.accept, this.buttons.reject)
  }

  start(signal: AbortSignal) {
    this.reviews.addEventListener("change", () => this.#drawSoon(), { signal })
    this.store.addEventListener("change", () => this.#drawSoon(), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
    closeByItself(this.menu, signal)
    this.#draw()
  }

  #button(verdict: Verdict) {
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
      for (const verdict of ["accept", "reject"] as const) {
        const decide = this.buttons[verdict]
        decide.hidden = counts[verdict] === 0
        decide.replaceChildren(t(`decision.all.${verdict}`, { count: number(counts[verdict]) }))
      }
    })
  }
}
