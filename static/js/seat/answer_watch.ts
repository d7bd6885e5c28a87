/**
 * Watches whether the server answers, for a user who only reads: a frozen server leaves the socket open,
 * and without edits nothing of theirs is late.
 *
 * While the user is active and no message comes, the page queries the presence, whose reply is certain. A
 * missing reply is reported and closes nothing: a slow server needs no reconnects on top of its load.
 * `connection.ts` replaces a socket that stays silent for longer.
 *
 * Fires `change` when the server stops answering (`since`) and when it answers again.
 */

import type { Connection } from "./connection.ts"

/** The page queries after so long without a message, in ms. */
const SILENCE_MAX = 2_000
/** The server counts as silent after so long without a reply, in ms. */
const REPLY_TIMEOUT = 2_500
/** How often it checks, in ms. */
const CHECK_EVERY = 500
/** More than this between two checks is sleep, or a hidden tab, in ms. */
const ASLEEP = 3_000
/** A user without a key, a press or a movement for so long is not active, in ms. */
const ACTIVE = 60_000

export class AnswerWatch extends EventTarget {
  declare connection: Pick<Connection, "lastMessageAt" | "query">
  /** Since when the server does not answer, in ms. */
  since: number | null = null
  /** When the page queried, in ms; 0: no reply is due. */
  #queriedAt = 0
  #checkedAt = 0
  #activeAt = Date.now()

  constructor(connection: Pick<Connection, "lastMessageAt" | "query">) {
    super()
    this.connection = connection
  }

  start(signal: AbortSignal) {
    const check = window.setInterval(() => this.check(Date.now(), { hidden: document.hidden }), CHECK_EVERY)
    signal.addEventListener("abort", () => window.clearInterval(check))
    for (const type of ["keydown", "pointerdown", "pointermove", "wheel", "focus"]) {
      window.addEventListener(type, () => this.stir(Date.now()), { signal, passive: true, capture: true })
    }
  }

  /** The user was active. @param now in ms */
  stir(now: number) {
    this.#activeAt = now
  }

  /** @param now in ms */
  check(now: number, { hidden }: { hidden: boolean }) {
    const slept = ASLEEP < now - this.#checkedAt
    this.#checkedAt = now
    const last = this.connection.lastMessageAt
    if (last === null) return this.#report(null)
    // A reply that arrived during sleep is read after this check.
    if (slept || hidden || this.#queriedAt <= last) this.#queriedAt = 0
    if (this.since !== null && this.since <= last) this.#report(null)
    if (slept || hidden) return
    if (this.#queriedAt === 0) {
      const isDue = SILENCE_MAX <= now - last && now - this.#activeAt <= ACTIVE
      if (!isDue || this.since !== null) return
      this.#queriedAt = now
      this.connection.query()
    } else if (REPLY_TIMEOUT <= now - this.#queriedAt) this.#report(this.#queriedAt)
  }

  #report(since: number | null) {
    if (since === null) this.#queriedAt = 0
    if (since === this.since) return
    this.since = since
    this.dispatchEvent(new Event("change"))
  }
}
