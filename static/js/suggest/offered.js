// @ts-check
/**
 * The suggestions of closed pages that do not enter the text by themselves: their page lost its seat, or the text there
 * has changed. Their author suggests them again, copies or discards them. Owns one element.
 */

import { button, el, icon } from "../lib/dom.js"
import { i18n, t, when } from "../lib/i18n.js"
import { unsavedActions, unsavedList } from "../unsaved/unsaved_list.ts"

/**
 * @typedef {import("./unsent.js").Row} Row
 * @typedef {{ row: Row, texts: string[], mayEnter: boolean }} Offer `mayEnter`: whether they may go into the text
 */

export class Offered {
  /** @type {Offer[]} */
  #offers = []

  /** @param {HTMLElement} element @param {{ enter: (row: Row) => void, drop: (row: Row) => Promise<void> }} actions */
  constructor(element, actions) {
    this.element = element
    this.actions = actions
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    i18n.addEventListener("change", () => this.#draw(), { signal })
  }

  /** @param {Offer[]} offers */
  add(offers) {
    this.#offers = [...this.#offers, ...offers]
    this.#draw()
  }

  #draw() {
    this.element.hidden = this.#offers.length === 0
    this.element.replaceChildren(...this.#offers.map((offer) => this.#drawn(offer)))
  }

  /** @param {Offer} offer */
  #drawn(offer) {
    const { row, texts, mayEnter } = offer
    const away = () => {
      this.#offers = this.#offers.filter((other) => other !== offer)
      this.#draw()
    }
    const again = button(t("suggesting.again"), { class: "button button-strong" }, () => {
      away()
      this.actions.enter(row)
    })
    // A reload at once does not offer what was discarded.
    const rest = unsavedActions(texts, row.title, () => void this.actions.drop(row).then(away))
    const sentence = mayEnter ? t("suggesting.offered", { when: when(new Date(row.at)) }) : t("suggesting.gone")
    const actions = el("div", { class: "actions" }, ...(mayEnter ? [again] : []), ...rest)
    return el("div", { class: "notice" }, icon("alert"), el("div", {}, el("p", { text: sentence }), unsavedList(texts), actions))
  }
}
