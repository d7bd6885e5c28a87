/**
 * The unsaved edits in this browser: in IndexedDB, by user and document.
 *
 * Not the whole document, as `y-indexeddb` would keep it: only what would be lost with the tab. Each
 * row is a Yjs update, so to put it back twice changes nothing. Rows are written through to the disk
 * (`strict`) before the page reports them as stored.
 *
 * A live page holds a lock of the browser with the name of its client; no other page recovers its
 * rows until that lock is free.
 */

import { Y } from "../lib/vendor.ts"

/** The knowledge of a page about a draft when it lost its seat. */
export type Lost = { sentences: string[], deletions: number, why: string }
type DraftRow = { user: string, document: string, title: string, client: number, update: Uint8Array,
  count: number, at: number, lost: Lost | null }

/** All rows of one page. */
export interface Draft {
  keys: IDBValidKey[]
  document: string
  title: string // of the document
  client: number // of Yjs
  update: Uint8Array
  count: number // of edits
  since: number // when the oldest was made, in ms
  lost: Lost | null // set: it is put back only when its writer says so
}

const STORE = "unsaved"
/** Suggestions that the server did not acknowledge (`suggest/sync/unsent.ts`). */
export const SUGGESTIONS = "suggestions"
const BY_USER = "user"

export class Drafts {
  declare database: IDBDatabase
  declare user: string

  constructor(database: IDBDatabase, user: string) {
    this.database = database
    this.user = user
  }

  /** @returns `null`: this browser stores nothing */
  static async open(user: string): Promise<Drafts | null> {
    try {
      const request = indexedDB.open("galley", 2)
      request.onupgradeneeded = () => {
        const { result: database } = request
        for (const name of [STORE, SUGGESTIONS]) {
          if (database.objectStoreNames.contains(name)) continue
          database.createObjectStore(name, { autoIncrement: name === STORE }).createIndex(BY_USER, "user")
        }
      }
      const database = await resultOf(request)
      // A page of a newer version wants to change the store: it shall not wait for this one.
      database.onversionchange = () => database.close()
      return new Drafts(database, user)
    } catch {
      return null
    }
  }

  /**
   * Stores a row in place of others.
   *
   * @returns when it is on the disk
   */
  async add(row: Omit<DraftRow, "user">, replaced: IDBValidKey[] = []): Promise<IDBValidKey> {
    const { store, done } = this.#write()
    const added = store.add({ ...row, user: this.user })
    for (const key of replaced) store.delete(key)
    // Commits now, not in a callback: a closing page receives no more callbacks.
    store.transaction.commit()
    await done
    return added.result
  }

  async drop(keys: IDBValidKey[]) {
    if (keys.length === 0) return
    const { store, done } = this.#write()
    for (const key of keys) store.delete(key)
    store.transaction.commit()
    await done
  }

  /** The drafts of closed pages, the oldest first. @returns of this user only */
  async ofClosedPages(): Promise<Draft[]> {
    const index = this.database.transaction(STORE).objectStore(STORE).index(BY_USER)
    const mine = this.user
    const [keys, rows] = await Promise.all([resultOf(index.getAllKeys(mine)), resultOf(index.getAll(mine))])
    const live = await livePages()
    const pages: Map<string, { keys: IDBValidKey[], rows: DraftRow[] }> = new Map()
    for (const [at, row] of (rows as DraftRow[]).entries()) {
      const name = nameOf(row.document, row.client)
      if (live.has(name)) continue
      const page = pages.get(name) ?? { keys: [], rows: [] }
      page.keys.push(keys[at] as IDBValidKey)
      page.rows.push(row)
      pages.set(name, page)
    }
    return [...pages.values()].map(draftOf).sort((a, b) => a.since - b.since)
  }

  /** The number of stored edits and suggestions of this user, those of live pages included. */
  async count() {
    const index = this.database.transaction(STORE).objectStore(STORE).index(BY_USER)
    const suggestions = this.database.transaction(SUGGESTIONS).objectStore(SUGGESTIONS).index(BY_USER)
    const [rows, retained] = await Promise.all([resultOf(index.getAll(this.user)), resultOf(suggestions.count(this.user))])
    return countOf(rows as DraftRow[]) + retained
  }

  /** Deletes all rows of this user. */
  async clear() {
    const index = this.database.transaction(STORE).objectStore(STORE).index(BY_USER)
    await this.drop(await resultOf(index.getAllKeys(this.user)))
    const store = this.database.transaction(SUGGESTIONS, "readwrite").objectStore(SUGGESTIONS)
    for (const key of await resultOf(store.index(BY_USER).getAllKeys(this.user))) store.delete(key)
  }

  #write() {
    const transaction = this.database.transaction(STORE, "readwrite", { durability: "strict" })
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(undefined)
      transaction.onabort = () => reject(transaction.error)
    })
    return { store: transaction.objectStore(STORE), done }
  }
}

/**
 * The number of stored edits of all users: without a sign-in the page knows no user.
 *
 * @returns 0 where it cannot be told
 */
export async function countStoredEdits(): Promise<number> {
  try {
    const store = await Drafts.open("")
    if (!store) return 0
    const rows = await resultOf(store.database.transaction(STORE).objectStore(STORE).getAll())
    const suggestions = await resultOf(store.database.transaction(SUGGESTIONS).objectStore(SUGGESTIONS).count())
    store.database.close()
    return countOf(rows as DraftRow[]) + suggestions
  } catch {
    return 0
  }
}

function countOf(rows: readonly DraftRow[]) {
  return rows.reduce((sum, { count }) => sum + count, 0)
}

/**
 * Says that this page lives, until it does not, however it ends.
 *
 * @param signal ends it before
 */
export function holdPageLock(document: string, client: number, signal: AbortSignal) {
  const until = new Promise((resolve) => signal.addEventListener("abort", resolve))
  // Only where the address is secure: elsewhere pages may put back what another still has, which
  // Yjs takes once all the same.
  navigator.locks?.request(nameOf(document, client), () => until).catch(() => undefined)
}

export async function livePages(): Promise<Set<string>> {
  const { held = [] } = (await navigator.locks?.query()) ?? {}
  return new Set(held.map(({ name }) => name ?? ""))
}

export function nameOf(document: string, client: number) {
  return `galley.unsaved.${document}.${client}`
}

function draftOf({ keys, rows }: { keys: IDBValidKey[], rows: DraftRow[] }): Draft {
  const last = rows.at(-1) as DraftRow
  return {
    keys,
    document: last.document,
    title: last.title,
    client: last.client,
    update: rows.length === 1 ? last.update : Y.mergeUpdates(rows.map(({ update }) => update)),
    count: countOf(rows),
    since: Math.min(...rows.map(({ at }) => at)),
    lost: rows.findLast(({ lost }) => lost !== null)?.lost ?? null,
  }
}

export function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
