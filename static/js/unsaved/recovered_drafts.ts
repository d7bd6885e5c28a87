/**
 * The drafts of closed pages, until their writer decides: recover, copy, download
 * or discard. Owns one element.
 */

import { button, el, icon } from "../lib/dom.ts"
import { i18n, number, t, when } from "../lib/i18n.ts"
import type { Draft } from "./drafts.ts"
import { unsavedActions, unsavedList } from "./unsaved_list.ts"
import { textIn } from "./update_text.ts"

interface Actions {
  drop: (draft: Draft) => unknown
  mayRecover: (draft: Draft) => boolean // at this moment
  recover: (draft: Draft) => void
}

export class RecoveredDrafts {
  declare element: HTMLElement
  declare actions: Actions
  #drafts: Draft[] = []

  constructor(element: HTMLElement, actions: Actions) {
    this.element = element
    this.actions = actions
  }

  start(signal?: AbortSignal) {
    i18n.addEventListener("change", () => this.#draw(), { signal })
  }

  show(drafts: Draft[]) {
    const isSame = drafts.length === 0 && this.#drafts.length === 0
    this.#drafts = drafts
    if (!isSame) this.#draw()
  }

  #draw() {
    this.element.hidden = this.#drafts.length === 0
    this.element.replaceChildren(...this.#drafts.map((draft) => this.#draft(draft)))
  }

  #draft(draft: Draft) {
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

  #remove(draft: Draft) {
    this.show(this.#drafts.filter((other) => other !== draft))
  }
}
