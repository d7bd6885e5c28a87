// @ts-check
/** A part of the operations page that is read now and then, and keeps what it has while a read fails. */

import { errorText } from "../lib/error_text.js"
import { t } from "../lib/i18n.js"

/** Least time between two reads, in ms. */
const READ_EVERY = 10_000

/** @template T */
export class Section {
  /** `null`: not read, or not there. @type {T | null} */
  found = null
  /** Why it is old; said anew in another language. @type {() => string} */
  why = () => ""
  token = ""
  #readAt = -Infinity
  #reads = 0

  /**
   * @param {"admin.jobs.failed" | "admin.plots.failed" | "admin.webhooks.failed"} failed
   * @param {(bearer: string, signal: AbortSignal) => Promise<T | null>} query
   */
  constructor(failed, query) {
    this.failed = failed
    this.query = query
  }

  /** Reads it, if the last read is old. @param {string} token @param {AbortSignal} signal */
  async read(token, signal) {
    if (performance.now() - this.#readAt < READ_EVERY) return
    this.token = token
    await this.readNow(signal)
  }

  async readNow(signal = AbortSignal.timeout(READ_EVERY)) {
    this.#readAt = performance.now()
    const read = ++this.#reads
    const query = this.query(this.token, signal)
    const [found, error] = await query.then((answer) => [answer, null], (reason) => [this.found, reason])
    if (read !== this.#reads) return
    this.found = found
    this.why = () => (error === null ? "" : t(this.failed, { why: errorText(error) }))
    this.draw()
  }

  /** The token is another one. */
  forget() {
    this.found = null
    this.token = ""
    this.#reads += 1
    this.#readAt = -Infinity
    this.draw()
  }

  draw() {}
}
