/**
 * Notifications of a signed-in user: the entry of the menu, and the quiet offer where they would help. Both
 * are there only if the server sends pushes.
 */

import { showToast } from "../lib/announce.ts"
import type { User } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { i18n, t } from "../lib/i18n.ts"
import { preference, setPreference } from "../lib/preferences.ts"
import { NotificationsDialog, outcomeSentence, pushErrorText } from "./dialog.ts"
import { Push } from "./push.ts"

/** How often a browser shows the offer in all; then the entry of the menu remains. */
const OFFERS_MAX = 3
const OFFERED = "push.offered"

export class Notifications {
  declare element
  #push: Push | null = null
  #user = ""
  #isOffered = false

  constructor() {
    /** For the menu. */
    this.element = el("button", { type: "button", "data-t": "menu.notifications", hidden: true })
    this.element.addEventListener("click", () => this.#push && new NotificationsDialog(this.#push).open())
    i18n.addEventListener("change", () => this.#push?.translate().catch(() => undefined))
  }

  async setUser(me: User | null) {
    const user = me?.id ?? ""
    if (user === this.#user) return
    this.#user = user
    this.element.hidden = true
    this.#push = user === "" ? null : new Push(user)
    await this.#push?.endThoseOfOthers().catch(() => undefined)
    const isOffered = (await this.#push?.isOffered()) ?? false
    if (user === this.#user) this.element.hidden = !isOffered
  }

  /** Offers notifications, once on a page, and a few times on a browser. */
  async offer(sentence: "push.offer.request" | "push.offer.wait") {
    const push = this.#push
    const before = Number(preference(OFFERED)) || 0
    if (push === null || this.#isOffered || OFFERS_MAX <= before) return
    this.#isOffered = true
    const state = await push.read().catch(() => null)
    if (state !== "ready") return
    setPreference(OFFERED, String(before + 1))
    showToast(t(sentence), { text: t("push.offer"), act: () => this.#accept(push) })
  }

  async #accept(push: Push) {
    setPreference(OFFERED, String(OFFERS_MAX))
    const done = (outcome: Parameters<typeof outcomeSentence>[0]) => showToast(outcomeSentence(outcome))
    await push.subscribe().then(done, (error) => showToast(pushErrorText(error)))
  }

  /** A user who leaves takes the notifications of this browser along. */
  async leave() {
    if (this.#push?.id != null) await this.#push.unsubscribe().catch(() => undefined)
  }
}
