// @ts-check
/**
 * The moment in which a waiting person is seated. It is said, and the tab's title says it, too, for
 * as long as nobody has looked (`called`, which `desk/title.js` draws).
 */

import { show } from "../lib/announce.js"
import { t } from "../lib/i18n.js"

export class Bell {
  #stopped = new AbortController()
  /** @type {import("../store.js").Phase | null} */
  #before = null

  /** @param {import("../store.js").Store} store */
  constructor(store) {
    this.store = store
  }

  start() {
    const { signal } = this.#stopped
    this.store.addEventListener("change", () => this.#look(), { signal })
    document.addEventListener("visibilitychange", () => this.#seen(), { signal })
  }

  stop() {
    this.#stopped.abort()
  }

  #look() {
    const { phase } = this.store.state
    const before = this.#before
    this.#before = phase
    if (before !== "waiting" || phase !== "seated") return
    show(t("state.waiting.seated"))
    this.store.change({ called: document.hidden })
  }

  /** What was shown while the page was hidden has gone by now. */
  #seen() {
    if (document.hidden || !this.store.state.called) return
    if (this.store.seated) show(t("state.waiting.seated"))
    this.store.change({ called: false })
  }
}
