// @ts-check
/**
 * This page's own unsaved edits, on their way into the browser's storage and out of it again.
 *
 * An edit waits a moment before it is written: most are called safe by then, and never are. What
 * is written stands in rows, each with the number of its last edit, and a row goes when the server
 * has called that one safe, never before.
 *
 * Keeps the invariants J1 to J3, which stand at the top of `unsaved.js`.
 */

import { Y } from "../lib/vendor.js"
import { Drafts, live } from "./drafts.js"

/**
 * @typedef {import("./drafts.js").Draft} Draft
 * @typedef {import("./drafts.js").Lost} Lost
 * @typedef {{ number: number, at: number, count: number, update: Uint8Array }} Part of what is not
 *   safe; `number` is that of its last edit
 * @typedef {"yes" | "full" | "never"} Kept whether this browser keeps them: `full` has no room any
 *   more, `never` keeps nothing at all
 */

/** How long an edit waits to be called safe before it is written, in ms. */
const MOMENT = 250
/** More rows than this become one. */
const ROWS_MAX = 32
/** No edit at all. */
const NOTHING = Y.encodeStateAsUpdate(new Y.Doc())

/** Fires `change` when `kept` does. */
export class Journal extends EventTarget {
  /** @type {Kept} */
  kept = "yes"
  /** @type {Part[]} edits that are in no row */
  #pending = []
  /** @type {(Part & { keys: IDBValidKey[] })[]} no keys: it is being written */
  #rows = []
  /** @type {Drafts | null} */
  #drafts = null
  #opening
  #timer = 0
  #writes = 0
  /** All up to this number are safe. */
  #safe = 0
  /** Set: the seat is lost. @type {Lost | null} */
  #lost = null
  #stopped = new AbortController()

  /** @param {{ user: string, document: string, client: number, title: () => string }} page */
  constructor(page) {
    super()
    this.page = page
    this.#opening = Drafts.open(page.user)
  }

  async start() {
    live(this.page.document, this.page.client, this.#stopped.signal)
    this.#drafts = await this.#opening
    if (this.#drafts === null) this.#become("never")
    else this.#soon()
  }

  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
  }

  /** Adds a local edit. @param {number} number @param {Uint8Array} update */
  add(number, update) {
    this.#pending.push({ number, update, at: Date.now(), count: 1 })
    this.#soon()
  }

  /** Drops all edits up to `number`, which the server stored. @param {number} number */
  async safe(number) {
    if (number <= this.#safe) return
    this.#safe = number
    this.#pending = this.#pending.filter((edit) => number < edit.number)
    const over = this.#rows.filter((row) => row.number <= number)
    this.#rows = this.#rows.filter((row) => number < row.number)
    if (this.#pending.length + this.#rows.length === 0 && this.kept === "full") this.#become("yes")
    await this.#forget(over)
  }

  /** The drafts of closed pages of this document that this page has not recovered. @returns {Promise<Draft[]>} */
  async left() {
    await this.#opening
    const left = (await this.#drafts?.left().catch(() => [])) ?? []
    const ours = new Set(this.#rows.flatMap(({ keys }) => keys))
    const { document, client } = this.page
    return left.filter((draft) => draft.document === document && draft.client !== client && !draft.keys.some((key) => ours.has(key)))
  }

  /** Adopts the rows of a closed page: they are one edit of this page until it is safe. @param {Draft} draft @param {number} number */
  takeOver({ keys, update, since, count }, number) {
    this.#rows.push({ keys, update, number, at: since, count })
  }

  /** @param {Draft} draft */
  drop({ keys }) {
    return this.#drafts?.drop(keys).catch(() => undefined)
  }

  /** Marks the rows as lost, or `null`: the session holds the seat again. @param {Lost | null} lost */
  async hold(lost) {
    if (lost === null && this.#lost === null) return
    this.#lost = lost
    const last = this.#rows.at(-1)
    if (lost !== null && last && this.#pending.length === 0 && 0 < this.#writes) {
      this.#pending.push({ number: last.number, at: last.at, count: 0, update: NOTHING })
    }
    await this.#write({ merge: true })
  }

  /** Deletes all edits at the writer's request. */
  async discard() {
    this.#pending = []
    await this.#forget(this.#rows.splice(0))
  }

  /** Writes pending edits now: the page is closing. */
  flush() {
    this.#write({ merge: false })
  }

  #soon() {
    if (this.#timer !== 0 || this.#pending.length === 0) return
    const write = () => this.#write({ merge: ROWS_MAX <= this.#rows.length })
    this.#timer = window.setTimeout(write, MOMENT)
  }

  /** @param {{ merge: boolean }} how `merge`: with all stored rows into one */
  async #write({ merge }) {
    const lost = this.#lost
    window.clearTimeout(this.#timer)
    this.#timer = 0
    const { document, client, title } = this.page
    const old = merge && this.#writes === 0 ? this.#rows.splice(0) : []
    const pending = this.#pending.splice(0)
    const parts = [...old, ...pending]
    const last = parts.at(-1)
    if (!this.#drafts || !last) return this.#putBack(pending)
    const update = parts.length === 1 ? last.update : Y.mergeUpdates(parts.map((part) => part.update))
    const count = parts.reduce((sum, part) => sum + part.count, 0)
    const row = { keys: /** @type {IDBValidKey[]} */ ([]), update, count, at: parts[0]?.at ?? 0, number: last.number }
    this.#rows.push(row)
    this.#writes++
    try {
      const instead = old.flatMap(({ keys }) => keys)
      row.keys = [await this.#drafts.keep({ document, client, title: title(), update, count, at: row.at, lost }, instead)]
      if (!this.#rows.includes(row)) await this.#forget([row])
      this.#become("yes")
    } catch (error) {
      this.#rows = [...old, ...this.#rows.filter((other) => other !== row)]
      this.#putBack(pending)
      this.#become(error instanceof DOMException && error.name === "QuotaExceededError" ? "full" : "never")
    } finally {
      this.#writes--
    }
  }

  /** Makes unsaved edits pending again after a failed write. @param {Part[]} pending */
  #putBack(pending) {
    this.#pending.unshift(...pending.filter(({ number }) => this.#safe < number))
  }

  /** @param {{ keys: IDBValidKey[] }[]} rows */
  #forget(rows) {
    return this.#drafts?.drop(rows.flatMap(({ keys }) => keys)).catch(() => undefined)
  }

  /** @param {Kept} kept */
  #become(kept) {
    if (kept === this.kept) return
    this.kept = kept
    this.dispatchEvent(new Event("change"))
  }
}
