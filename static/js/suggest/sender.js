// @ts-check
/**
 * Sends the reviewer's changes: soon after the last key, each second while typing goes on, and at once when the text
 * loses the focus or the page is left. One batch is on its way at a time.
 *
 * Without an answer the same batch is due again: the server answers a repeat with what it has. Without the seat the
 * changes wait in this browser (`unsent.js`).
 *
 * Fires `change` when the state does.
 */

import * as api from "../lib/api.js"
import { relativeAt } from "../desk/positions.js"
import { now } from "../lib/server_clock.js"
import { Y } from "../lib/vendor.js"
import { divided } from "./batches.js"
import { gravest } from "./refusals.js"
import { putSuggestions } from "./suggestions_api.js"

/**
 * @typedef {import("./ledger.js").Batch} Batch
 * @typedef {import("./ledger.js").Result} Result
 * @typedef {import("./suggestions_api.js").PlacedBatch} PlacedBatch
 * @typedef {import("./parts.js").Part} Part
 */

/** After the last key, in ms. */
const PAUSE = 400
/** While typing goes on, in ms. */
const PAUSE_MAX = 1_000
/** After a failure, in ms: it doubles. */
const RETRY_DELAY = 2_000
const RETRY_DELAY_MAX = 30_000

export class Sender extends EventTarget {
  /** @type {Date | null} */
  savedAt = null
  /** Everything that was typed before this has an answer, in ms. */
  answeredTo = 0
  /** Why something is not stored. @type {import("./refusals.js").Refusal | ""} */
  refusal = ""
  /** Why the server refused a suggestion when it was sent last. @type {Map<string, string>} */
  #refused = new Map()
  /** @type {Promise<void> | null} */
  #sending = null
  #timer = 0
  /** When the first unsent key was typed, in ms; 0: there is none. */
  #typedAt = 0
  #retryDelay = RETRY_DELAY
  /** The server refuses a batch before, in ms of `performance.now()`. */
  #refusedUntil = 0

  /**
   * @param {import("./mirror.js").Mirror} mirror
   * @param {import("./own_suggestions.js").OwnSuggestions} own
   * @param {{ link: string, maySend: () => boolean }} page
   */
  constructor(mirror, own, page) {
    super()
    this.mirror = mirror
    this.own = own
    this.page = page
    own.isSending = () => this.#sending !== null
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    this.mirror.addEventListener("own", () => this.#typed(), { signal })
    // The base changed: a batch that was refused for its text may stand now.
    this.mirror.addEventListener("moved", () => this.own.model?.isDirty && this.#typed(), { signal })
    this.own.addEventListener("change", () => this.#synced(), { signal })
    this.mirror.view.contentDOM.addEventListener("blur", () => void this.send(), { signal })
    document.addEventListener("visibilitychange", () => document.hidden && void this.send({ leaves: true }), { signal })
    window.addEventListener("pagehide", () => void this.send({ leaves: true }), { signal })
  }

  stop() {
    window.clearTimeout(this.#timer)
  }

  #typed() {
    if (this.#typedAt === 0) this.#typedAt = now()
    this.#sendLater(Math.max(Math.min(PAUSE, this.#typedAt + PAUSE_MAX - now()), 0))
  }

  /** @param {number} after in ms */
  #sendLater(after) {
    window.clearTimeout(this.#timer)
    const wait = Math.max(after, this.#refusedUntil - performance.now())
    this.#timer = window.setTimeout(() => void this.send(), wait)
  }

  /** The seat is here again: what waits is sent. */
  ready() {
    this.#retryDelay = RETRY_DELAY
    if (this.own.model?.isDirty) void this.send()
  }

  /** Sends what is unsent, now. @param {{ leaves?: boolean }} [options] `leaves`: the request outlives the page */
  async send({ leaves = false } = {}) {
    await this.#sending
    const { model } = this.own
    if (!model?.isDirty || !this.page.maySend() || this.#sending) return this.#sending ?? undefined
    window.clearTimeout(this.#timer)
    this.#typedAt = 0
    this.#sending = this.#sendAll(model, leaves)
    await this.#sending
    this.#sending = null
    this.mirror.refresh()
    this.own.sent()
    this.dispatchEvent(new Event("change"))
  }

  /** @param {import("./suggesting.js").Suggesting} model @param {boolean} leaves */
  async #sendAll(model, leaves) {
    try {
      for (let batch = model.collect(); !isEmpty(batch); batch = model.collect()) {
        const collectedAt = now()
        const results = await this.#post(this.#placedBatch(batch), leaves)
        for (const { id, state } of results) if (state === "withdrawn") this.own.withdrew(id)
        model.answered(results)
        this.#answered(results)
        if (results.every(({ state }) => state !== "refused")) this.answeredTo = collectedAt
      }
      this.#retryDelay = RETRY_DELAY
    } catch (error) {
      model.failed()
      this.#failed(error)
    }
  }

  /** @param {Result[]} results */
  #answered(results) {
    const refused = results.filter(({ state }) => state === "refused").map(({ reason = "" }) => reason)
    for (const { id, state, reason = "" } of results) {
      if (state === "refused") this.#refused.set(id, reason)
      else this.#refused.delete(id)
    }
    this.#forget()
    if (refused.length < results.length) this.savedAt = new Date(now())
    // The list has the newer version, or the decision, of what another page changed.
    if (refused.some((reason) => ["version", "decided", "not-yours"].includes(reason))) {
      this.own.reviews.read().catch(() => undefined)
    }
  }

  /** The model took over what the server has: words typed into a suggestion that was closed or has a newer version are due. */
  #synced() {
    this.#forget()
    const isWaiting = RETRY_DELAY < this.#retryDelay
    if (this.own.model?.isDirty && !isWaiting) this.#typed()
  }

  /** The refusals of closed suggestions end. */
  #forget() {
    for (const id of [...this.#refused.keys()]) if (this.own.model?.stateOf(id) === undefined) this.#refused.delete(id)
    this.refusal = gravest(this.#refused.values())
  }

  /** @param {unknown} error */
  #failed(error) {
    if (error instanceof api.Problem && error.status === 507) this.refusal = "storage"
    const wait = error instanceof api.Problem ? error.retryAfter : 0
    this.#refusedUntil = performance.now() + wait
    this.#sendLater(this.#retryDelay)
    this.#retryDelay = Math.min(this.#retryDelay * 2, RETRY_DELAY_MAX)
  }

  /** Offsets are those of this moment. @param {Batch} batch @returns {PlacedBatch} */
  #placedBatch({ put, withdraw }) {
    return { put: put.map(({ parts, ...item }) => ({ ...item, parts: parts.map((part) => this.placed(part)) })), withdraw }
  }

  /** @param {PlacedBatch} batch @param {boolean} leaves @returns {Promise<Result[]>} */
  async #post(batch, leaves) {
    try {
      return await putSuggestions(this.page.link, batch, { keepalive: leaves })
    } catch (error) {
      if (!(error instanceof api.Problem) || error.status !== 413) throw error
    }
    const halves = divided(batch)
    if (!halves) return [...batch.put, ...batch.withdraw].map(({ id }) => ({ id, state: "refused", reason: "too-long" }))
    return [...(await this.#post(halves[0], leaves)), ...(await this.#post(halves[1], leaves))]
  }

  /** A part with relative positions, which follow the edits that are on the wire. @param {Part} part */
  placed({ start, end, quote, text }) {
    if (quote === "") return { at: this.#position(start, 0), text }
    return { start: this.#position(start, 0), end: this.#position(end, -1), quote, text }
  }

  /** @param {number} at of the base @param {0 | -1} side */
  #position(at, side) {
    const { text } = this.mirror
    const shared = Math.min(this.mirror.base.toShared(at, side), text.length)
    const bytes = Y.encodeRelativePosition(relativeAt(text, shared, side))
    return btoa(String.fromCharCode(...bytes))
  }
}

/** @param {Batch} batch */
const isEmpty = ({ put, withdraw }) => put.length + withdraw.length === 0
