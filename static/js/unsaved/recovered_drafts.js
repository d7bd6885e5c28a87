// @ts-check
/**
 * The drafts of closed pages, until their writer decides: recover, copy, download
 * or discard. Owns one element.
 */

import { button, el, icon } from "../lib/dom.js"
import { number, t, when, words } from "../lib/i18n.js"
import { unsavedActions, unsavedList } from "./unsaved_list.js"
import { textIn } from "./update_text.js"

/**
 * @typedef {import("./drafts.js").Draft} Draft
 * @typedef {object} Ways
 * @property {(draft: Draft) => unknown} drop
 * @property {(draft: Draft) => boolean} mayPutBack at this moment
 * @property {(draft: Draft) => void} putBack
 */

export class RecoveredDrafts {
  /** @type {Draft[]} */
  #drafts = []
  #stopped = new AbortController()

  /** @param {HTMLElement} element @param {Ways} ways */
  constructor(element, ways) {
    this.element = element
    this.ways = ways
  }

  start() {
    words.addEventListener("change", () => this.#draw(), { signal: this.#stopped.signal })
  }

  stop() {
    this.#stopped.abort()
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
    const mayPutBack = this.ways.mayPutBack(draft)
    const values = { when: when(new Date(draft.since)), title: draft.title || t("start.untitled"), count: number(draft.lost?.deletions ?? draft.count) }
    const said = t(sentences.length === 0 ? "kept.deletions" : "kept.sentences", values)
    const back = button(t("kept.back"), { class: "button button-strong" }, () => {
      this.#over(draft)
      this.ways.putBack(draft)
    })
    const acts = unsavedActions(sentences, draft.title, () => {
      this.ways.drop(draft)
      this.#over(draft)
    })
    const actions = el("div", { class: "actions" }, ...(mayPutBack ? [back] : []), ...acts)
    const parts = el("div", {}, el("p", { text: said }), unsavedList(sentences), actions)
    return el("div", { class: "notice", "data-draft": String(draft.client) }, icon("alert"), parts)
  }

  /** @param {Draft} draft */
  #over(draft) {
    this.show(this.#drafts.filter((other) => other !== draft))
  }
}
