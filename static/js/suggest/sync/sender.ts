/**
 * Sends the reviewer's changes: soon after the last key, each second while typing goes on, and at once when the text
 * loses the focus or the page is left. One batch is on its way at a time.
 *
 * Without an answer the same batch is due again: the server answers a repeat with what it has. Without the seat the
 * changes wait in this browser (`unsent.ts`).
 *
 * Fires `change` when the state does.
 */

import { relativeAt } from "../../desk/positions.ts"
import * as api from "../../lib/api.ts"
import { now } from "../../lib/server_clock.ts"
import { Y } from "../../lib/vendor.ts"
import type { Part } from "../model/parts.ts"
import { divided } from "./batches.ts"
import type { Batch, BatchResult } from "./ledger.ts"
import type { Mirror } from "./mirror.ts"
import type { OwnSuggestions } from "./own_suggestions.ts"
import { gravest, type Refusal } from "./refusals.ts"
import type { Suggesting } from "./suggesting.ts"
import { putSuggestions, type PlacedBatch } from "./suggestions_api.ts"

/** After the last key, in ms. */
const PAUSE = 400
/** While typing goes on, in ms. */
const PAUSE_MAX = 1_000
/** After a failure, in ms: it doubles. */
const RETRY_DELAY = 2_000
const RETRY_DELAY_MAX = 30_000

export class Sender extends EventTarget {
  declare mirror: Mirror
  declare own: OwnSuggestions
  declare page: { link: string, maySend: () => boolean }
  savedAt: Date | null = null
  /** Everything that was typed before this has an answer, in ms. */
  answeredTo = 0
  /** Why something is not stored. */
  refusal: Refusal | "" = ""
  /** Why the server refused a suggestion when it was sent last. */
  #refused: Map<string, string> = new Map()
  #sending: Promise<void> | null = null
  #timer = 0
  /** When the first unsent key was typed, in ms; 0: there is none. */
  #typedAt = 0
  #retryDelay = RETRY_DELAY
  /** The server refuses a batch before, in ms of `performance.now()`. */
  #refusedUntil = 0

  constructor(mirror: Mirror, own: OwnSuggestions, page: { link: string, maySend: () => boolean }) {
    super()
    this.mirror = mirror
    this.own = own
    this.page = page
  }

  /** Whether an answer of the server is on its way, which events may overtake. */
  get isSending() {
    return this.#sending !== null
  }

  start(signal: AbortSignal) {
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

  /** @param after in ms */
  #sendLater(after: number) {
    window.clearTimeout(this.#timer)
    const wait = Math.max(after, this.#refusedUntil - performance.now())
    this.#timer = window.setTimeout(() => void this.send(), wait)
  }

  /** The seat is here again: what waits is sent. */
  ready() {
    this.#retryDelay = RETRY_DELAY
    if (this.own.model?.isDirty) void this.send()
  }

  /** Sends what is unsent, now. @param options `leaves`: the request outlives the page */
  async send({ leaves = false }: { leaves?: boolean } = {}) {
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

  async #sendAll(model: Suggesting, leaves: boolean) {
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

  #answered(results: BatchResult[]) {
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

  #failed(error: unknown) {
    if (error instanceof api.Problem && error.status === 507) this.refusal = "storage"
    const wait = error instanceof api.Problem ? error.retryAfter : 0
    this.#refusedUntil = performance.now() + wait
    this.#sendLater(this.#retryDelay)
    this.#retryDelay = Math.min(this.#retryDelay * 2, RETRY_DELAY_MAX)
  }

  /** Offsets are those of this moment. */
  #placedBatch({ put, withdraw }: Batch): PlacedBatch {
    return { put: put.map(({ parts, ...item }) => ({ ...item, parts: parts.map((part) => this.placed(part)) })), withdraw }
  }

  async #post(batch: PlacedBatch, leaves: boolean): Promise<BatchResult[]> {
    try {
      return await putSuggestions(this.page.link, batch, { keepalive: leaves })
    } catch (error) {
      if (!(error instanceof api.Problem) || error.status !== 413) throw error
    }
    const halves = divided(batch)
    if (!halves) return [...batch.put, ...batch.withdraw].map(({ id }) => ({ id, state: "refused", reason: "too-long" }))
    return [...(await this.#post(halves[0], leaves)), ...(await this.#post(halves[1], leaves))]
  }

  /** A part with relative positions, which follow the edits that are on the wire. */
  placed({ start, end, quote, text }: Part) {
    if (quote === "") return { at: this.#position(start, 0), text }
    return { start: this.#position(start, 0), end: this.#position(end, -1), quote, text }
  }

  /** @param at of the base */
  #position(at: number, side: 0 | -1) {
    const { text } = this.mirror
    const shared = Math.min(this.mirror.base.toShared(at, side), text.length)
    const bytes = Y.encodeRelativePosition(relativeAt(text, shared, side))
    return btoa(String.fromCharCode(...bytes))
  }
}

const isEmpty = ({ put, withdraw }: Batch) => put.length + withdraw.length === 0
