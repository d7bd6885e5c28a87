/**
 * The suggestions of closed pages that do not enter the text by themselves: their page lost its seat, or the text there
 * has changed. Their author suggests them again, copies or discards them. Owns one element.
 */

import { button, el, icon } from "../../lib/dom.ts"
import { i18n, t, when } from "../../lib/i18n.ts"
import { unsavedActions, unsavedList } from "../../unsaved/unsaved_list.ts"
import type { UnsentRow } from "../sync/unsent.ts"

/** `mayEnter`: whether they may go into the text. */
export type Offer = { row: UnsentRow, texts: string[], mayEnter: boolean }

export class Offered {
  declare element: HTMLElement
  declare actions: { enter: (row: UnsentRow) => void, drop: (row: UnsentRow) => Promise<void> }
  #offers: Offer[] = []

  constructor(element: HTMLElement, actions: { enter: (row: UnsentRow) => void, drop: (row: UnsentRow) => Promise<void> }) {
    this.element = element
    this.actions = actions
  }

  start(signal: AbortSignal) {
    i18n.addEventListener("change", () => this.#draw(), { signal })
  }

  add(offers: Offer[]) {
    this.#offers = [...this.#offers, ...offers]
    this.#draw()
  }

  #draw() {
    this.element.hidden = this.#offers.length === 0
    this.element.replaceChildren(...this.#offers.map((offer) => this.#drawn(offer)))
  }

  #drawn(offer: Offer) {
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
