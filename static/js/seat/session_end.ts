/**
 * The end of the page's sign-in. A minute before it the page looks for a newer cookie, and opens its socket with that:
 * a socket ends with the token that it was opened with.
 *
 * The look itself renews a guest's cookie, and a host application renews its own. Draws nothing, tested with `node --test`.
 */

import * as api from "../lib/api.ts"
import { now as serverNow } from "../lib/server_clock.ts"

/** How long before the end the page looks, in ms. */
const BEFORE = 60_000
/** The interval of the looks from then on, in ms. */
const AGAIN = 15_000
/** The longest pause between two looks, in ms: a timer has 24 days at most. */
const PAUSE_MAX = 86_400_000

export class SessionEnd {
  /** When the token of the socket ends, in ms; 0: unknown. */
  #endsAt = 0
  #timer = 0
  #stopped = false
  /** Opens the socket with the present cookie. */
  declare readonly reopen: () => void
  declare readonly read: () => Promise<api.Entry>
  declare readonly now: () => number

  constructor(reopen: () => void, read: () => Promise<api.Entry> = api.entry, now: () => number = serverNow) {
    this.reopen = reopen
    this.read = read
    this.now = now
  }

  stop() {
    this.#stopped = true
    window.clearTimeout(this.#timer)
  }

  /** Looks now, and again until the end. */
  async look() {
    const entry = await this.read().catch(() => null)
    if (this.#stopped) return
    const endsAt = Date.parse(entry?.expires_at ?? "") || this.#endsAt
    const isNear = this.#endsAt !== 0 && this.#endsAt - this.now() <= BEFORE
    if (isNear && this.#endsAt < endsAt) this.reopen()
    if (isNear || this.#endsAt === 0) this.#endsAt = endsAt
    const left = this.#endsAt - this.now()
    if (left <= 0 && this.#endsAt !== 0) return
    this.#timer = window.setTimeout(() => void this.look(), Math.min(Math.max(left - BEFORE, AGAIN), PAUSE_MAX))
  }
}
