/**
 * Shows the text and the reviews as the server has them while this page holds no seat: read-only, with their
 * counts, so that a second tab or a waiting page is not an empty sheet.
 *
 * The editor shows a copy and the shared text stays as it is; with the seat the shared text takes over
 * (`editor.ts`). A page with unsaved edits shows its own text, which has them.
 */

import * as api from "../lib/api.ts"
import { now } from "../lib/server_clock.ts"
import type { Reviews } from "../reviews/reviews.ts"
import type { Store } from "../store.ts"
import type { Editor } from "./editor.ts"
import { mayShowServed } from "./policy.ts"

/** How often a visible page reads the text again, in ms. */
const READ_EVERY = 15_000
/** The same of a long text, which costs the server more. */
const READ_EVERY_LONG = 60_000
/** The length of a long text, in UTF-16 units. */
const LONG = 100_000

export class ServedText {
  declare store: Store
  declare editor: Editor
  declare reviews: Reviews
  declare document
  declare readLink
  #timer = 0
  #isReading = false
  /** When the text was last read, in ms since the page was loaded. */
  #readAt = -Infinity
  /** The server refused: the document or the right to read it is gone. */
  #isRefused = false

  constructor(store: Store, editor: Editor, reviews: Reviews, { document, readLink }: { document: string, readLink: () => void }) {
    this.store = store
    this.editor = editor
    this.reviews = reviews
    this.document = document
    this.readLink = readLink
  }

  start(signal: AbortSignal) {
    this.store.addEventListener("change", () => this.#update(), { signal })
    document.addEventListener("visibilitychange", () => this.#update(), { signal })
    this.#update()
  }

  get #isWanted() {
    return mayShowServed(this.store.state)
  }

  #update() {
    const { servedAt, phase, wasSeated } = this.store.state
    // The copy stays until the shared text is here: while the page claims the seat it would be empty.
    const stays = servedAt !== null && (phase === "opening" || (phase === "offline" && !wasSeated))
    document.body.dataset.served = String(servedAt !== null && (this.#isWanted || stays))
    if (!this.#isWanted) {
      window.clearTimeout(this.#timer)
      this.#timer = 0
      if (stays) return
      this.#readAt = -Infinity
      this.#isRefused = false
      if (servedAt !== null) this.store.change({ servedAt: null })
    } else if (!document.hidden && !this.#isReading && this.#timer === 0 && !this.#isRefused) this.#readLater()
  }

  #readLater() {
    const every = this.editor.length < LONG ? READ_EVERY : READ_EVERY_LONG
    const wait = Math.max(this.#readAt + every - performance.now(), 0)
    this.#timer = window.setTimeout(() => this.#read(), wait)
  }

  async #read() {
    this.#timer = 0
    // A hidden page reads again when it is visible.
    if (document.hidden) return
    this.#isReading = true
    this.#readAt = performance.now()
    try {
      const text = await api.text(this.document)
      if (this.#isWanted) {
        this.editor.showServed(text)
        document.body.dataset.read = "true"
        this.store.change({ servedAt: new Date(now()) })
        this.readLink()
        await this.reviews.read()
      }
    } catch (error) {
      this.#isRefused = error instanceof api.Problem && [401, 403, 404].includes(error.status)
      if (this.#isRefused) this.readLink()
    } finally {
      this.#isReading = false
    }
    this.#update()
  }
}
