// @ts-check
/**
 * The drafts of closed pages, until their writer decides: recover, copy, download
 * or discard. Owns one element.
 */

import { button, el, icon } from "../lib/dom.js"
import { i18n, number, t, when } from "../lib/i18n.js"
import { unsavedActions, unsavedList } from "./unsaved_list.js"
import { textIn } from "./update_text.js"

/**
 * @typedef {import("./drafts.js").Draft} Draft
 * @typedef {object} Actions
 * @property {(draft: Draft) => unknown} drop
 * @property {(draft: Draft) => boolean} mayRecover at this moment
 * @property {(draft: Draft) => void} recover
 */

export class RecoveredDrafts {
  /** @type {Draft[]} */
  #drafts = []

  /** @param {HTMLElement} element @param {Actions} actions */
  constructor(element, actions) {
    this.element = element
    this.actions = actions
  }

  /** @param {AbortSignal} [signal] */
  start(signal) {
    i18n.addEventListener("change", () => this.#draw(), { signal })
  }

  /** @param {Draft[]} drafts */
  show(drafts) {
    const isSame = drafts.length === 0 && this.#drafts.length === 0
    this.#drafts = drafts
    if (!isSame) this.#draw()
  }

  #draw() {
    this.element.hidden = this.#drafts.length === 0
    this.element.replaceChildren(...this.#drafts.map((draft) => this.#draft(draft)))
  }

  /** @param {Draft} draft */
  #draft(draft) {
    const sentences = draft.lost?.sentences ?? textIn(draft.update)
    const mayRecover = this.actions.mayRecover(draft)
    const values = { when: when(new Date(draft.since)), title: draft.title || t("start.untitled"), count: number(draft.lost?.deletions ?? draft.count) }
    const sentence = t(sentences.length === 0 ? "recovered.deletions" : "recovered.sentences", values)
    const recoverButton = button(t("recovered.recover"), { class: "button button-strong" }, () => {
      this.#remove(draft)
      this.actions.recover(draft)
    })
    const acts = unsavedActions(sentences, draft.title, () => {
      this.actions.drop(draft)
      this.#remove(draft)
    })
    const actions = el("div", { class: "actions" }, ...(mayRecover ? [recoverButton] : []), ...acts)
    const parts = el("div", {}, el("p", { text: sentence }), unsavedList(sentences), actions)
    return el("div", { class: "notice", "data-draft": String(draft.client) }, icon("alert"), parts)
  }

  /** @param {Draft} draft */
  #remove(draft) {
    this.show(this.#drafts.filter((other) => other !== draft))
  }
}
