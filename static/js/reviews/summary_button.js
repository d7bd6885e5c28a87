// @ts-check
/** The button in the margin's head that begins a review on the whole text. Owns one element. */

import { byId } from "../lib/dom.js"

export class SummaryButton {
  #stopped = new AbortController()

  /** @param {import("../store.js").Store} store @param {() => void} begin */
  constructor(store, begin) {
    this.store = store
    this.begin = begin
    this.element = byId("summary-add")
  }

  start() {
    const { signal } = this.#stopped
    this.element.addEventListener("click", () => this.begin(), { signal })
    this.store.addEventListener("change", () => this.#draw(), { signal })
    this.#draw()
  }

  stop() {
    this.#stopped.abort()
  }

  #draw() {
    this.element.hidden = !this.store.seated
  }
}
