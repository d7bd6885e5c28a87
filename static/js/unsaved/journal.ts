/**
 * This page's own unsaved edits, on their way into the browser's storage and out of it again.
 *
 * An edit waits a moment before it is written: most are called safe by then, and never are. What
 * is written stands in rows, each with the number of its last edit, and a row goes when the server
 * has called that one safe, never before.
 *
 * Keeps the invariants J1 to J3, which stand at the top of `unsaved.ts`.
 */

import { now } from "../lib/server_clock.ts"
import { Y } from "../lib/vendor.ts"
import { Drafts, holdPageLock, type Draft, type Lost } from "./drafts.ts"

/** A piece of the edits that the server does not have; `number` is that of its last edit. */
type Part = { number: number, at: number, count: number, update: Uint8Array }
/** Whether this browser keeps them: `full` has no room any more, `never` keeps nothing at all. */
export type Retained = "yes" | "full" | "never"

/** How long an edit waits to be called safe before it is written, in ms. */
const WRITE_DELAY = 250
/** More rows than this become one. */
const ROWS_MAX = 32
/** No edit at all. */
const NO_EDIT = Y.encodeStateAsUpdate(new Y.Doc())

/** Fires `change` when `retained` does. */
export class Journal extends EventTarget {
  declare page: { user: string, document: string, client: number, title: () => string }
  retained: Retained = "yes"
  /** Edits that are in no row. */
  #pending: Part[] = []
  /** No keys: it is being written. */
  #rows: (Part & { keys: IDBValidKey[] })[] = []
  #drafts: Drafts | null = null
  #opening
  #timer = 0
  #writes = 0
  /** All up to this number are safe. */
  #savedTo = 0
  /** Set: the seat is lost. */
  #lost: Lost | null = null
  #stopped = new AbortController()

  constructor(page: { user: string, document: string, client: number, title: () => string }) {
    super()
    this.page = page
    this.#opening = Drafts.open(page.user)
  }

  async start() {
    holdPageLock(this.page.document, this.page.client, this.#stopped.signal)
    this.#drafts = await this.#opening
    if (this.#drafts === null) this.#setRetained("never")
    else this.#writeSoon()
  }

  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
  }

  /** Adds a local edit. */
  add(number: number, update: Uint8Array) {
    this.#pending.push({ number, update, at: now(), count: 1 })
    this.#writeSoon()
  }

  /** Drops all edits up to `number`, which the server stored. */
  async saved(number: number) {
    if (number <= this.#savedTo) return
    this.#savedTo = number
    this.#pending = this.#pending.filter((edit) => number < edit.number)
    const savedRows = this.#rows.filter((row) => row.number <= number)
    this.#rows = this.#rows.filter((row) => number < row.number)
    if (this.#pending.length + this.#rows.length === 0 && this.retained === "full") this.#setRetained("yes")
    await this.#deleteRows(savedRows)
  }

  /** The drafts of closed pages of this document that this page has not recovered. */
  async draftsOfClosedPages(): Promise<Draft[]> {
    await this.#opening
    const drafts = (await this.#drafts?.ofClosedPages().catch(() => [])) ?? []
    const ours = new Set(this.#rows.flatMap(({ keys }) => keys))
    const { document, client } = this.page
    return drafts.filter((draft) => draft.document === document && draft.client !== client && !draft.keys.some((key) => ours.has(key)))
  }

  /** Adopts the rows of a closed page: they are one edit of this page until it is safe. */
  adopt({ keys, update, since, count }: Draft, number: number) {
    this.#rows.push({ keys, update, number, at: since, count })
  }

  drop({ keys }: Draft) {
    return this.#drafts?.drop(keys).catch(() => undefined)
  }

  /** Marks the rows as lost, or `null`: the session holds the seat again. */
  async setLost(lost: Lost | null) {
    if (lost === null && this.#lost === null) return
    this.#lost = lost
    const last = this.#rows.at(-1)
    if (lost !== null && last && this.#pending.length === 0 && 0 < this.#writes) {
      this.#pending.push({ number: last.number, at: last.at, count: 0, update: NO_EDIT })
    }
    await this.#write({ merge: true })
  }

  /** Deletes all edits at the writer's request. */
  async discard() {
    this.#pending = []
    await this.#deleteRows(this.#rows.splice(0))
  }

  /** Writes pending edits now: the page is closing. */
  flush() {
    this.#write({ merge: false })
  }

  #writeSoon() {
    if (this.#timer !== 0 || this.#pending.length === 0) return
    const write = () => this.#write({ merge: ROWS_MAX <= this.#rows.length })
    this.#timer = window.setTimeout(write, WRITE_DELAY)
  }

  /** @param how `merge`: with all stored rows into one */
  async #write({ merge }: { merge: boolean }) {
    const lost = this.#lost
    window.clearTimeout(this.#timer)
    this.#timer = 0
    const { document, client, title } = this.page
    const old = merge && this.#writes === 0 ? this.#rows.splice(0) : []
    const pending = this.#pending.splice(0)
    const parts = [...old, ...pending]
    const last = parts.at(-1)
    if (!this.#drafts || !last) return this.#requeue(pending)
    const update = parts.length === 1 ? last.update : Y.mergeUpdates(parts.map((part) => part.update))
    const count = parts.reduce((sum, part) => sum + part.count, 0)
    const row = { keys: [] as IDBValidKey[], update, count, at: parts[0]?.at ?? 0, number: last.number }
    this.#rows.push(row)
    this.#writes++
    try {
      const replaced = old.flatMap(({ keys }) => keys)
      row.keys = [await this.#drafts.add({ document, client, title: title(), update, count, at: row.at, lost }, replaced)]
      if (!this.#rows.includes(row)) await this.#deleteRows([row])
      this.#setRetained("yes")
    } catch (error) {
      this.#rows = [...old, ...this.#rows.filter((other) => other !== row)]
      this.#requeue(pending)
      this.#setRetained(error instanceof DOMException && error.name === "QuotaExceededError" ? "full" : "never")
    } finally {
      this.#writes--
    }
  }

  /** Makes unsaved edits pending again after a failed write. */
  #requeue(pending: Part[]) {
    this.#pending.unshift(...pending.filter(({ number }) => this.#savedTo < number))
  }

  #deleteRows(rows: { keys: IDBValidKey[] }[]) {
    return this.#drafts?.drop(rows.flatMap(({ keys }) => keys)).catch(() => undefined)
  }

  #setRetained(retained: Retained) {
    if (retained === this.retained) return
    this.retained = retained
    this.dispatchEvent(new Event("change"))
  }
}
