/**
 * The alert when a waiter is seated: an announcement, and the tab's title until the tab was
 * visible (`called`, which `desk/title.ts` draws).
 */

import { showToast } from "../lib/announce.ts"
import { t } from "../lib/i18n.ts"
import type { Phase, Store } from "../store.ts"

export class SeatAlert {
  declare store: Store
  #before: Phase | null = null

  constructor(store: Store) {
    this.store = store
  }

  start(signal: AbortSignal) {
    this.store.addEventListener("change", () => this.#update(), { signal })
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal })
  }

  #update() {
    const { phase } = this.store.state
    const before = this.#before
    this.#before = phase
    if (before !== "waiting" || phase !== "seated") return
    showToast(t("state.waiting.seated"))
    this.store.change({ grantUnseen: document.hidden })
  }

  /** The notice of a hidden page has expired by now. */
  #visibilityChanged() {
    if (document.hidden || !this.store.state.grantUnseen) return
    if (this.store.seated) showToast(t("state.waiting.seated"))
    this.store.change({ grantUnseen: false })
  }
}
