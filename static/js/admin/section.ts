/** A part of the operations page that is read now and then, and keeps what it has while a read fails. */

import { errorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"

/** Least time between two reads, in ms. */
const READ_EVERY = 10_000

export class Section<T> {
  declare failed: "admin.audit.failed" | "admin.jobs.failed" | "admin.plots.failed" | "admin.webhooks.failed"
  declare query: (bearer: string, signal: AbortSignal) => Promise<T | null>
  /** `null`: not read, or not there. */
  found: T | null = null
  /** Why it is old; said anew in another language. */
  why: () => string = () => ""
  token = ""
  #readAt = -Infinity
  #reads = 0

  constructor(
    failed: Section<T>["failed"],
    query: (bearer: string, signal: AbortSignal) => Promise<T | null>,
  ) {
    this.failed = failed
    this.query = query
  }

  /** Reads it, if the last read is old. */
  async read(token: string, signal: AbortSignal) {
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
