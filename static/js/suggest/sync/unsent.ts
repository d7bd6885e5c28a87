/**
 * The suggestions that the server did not acknowledge, in this browser: a closed tab loses a quarter of a second of typing
 * at most. Each page has one row, which it replaces, and which it deletes once all is acknowledged.
 *
 * A part is kept with relative positions, so that it is found again after the writer went on. A page applies the rows
 * of closed pages; one that lost its seat is only offered, since its user may have typed the same anew.
 */

import { now } from "../../lib/server_clock.ts"
import { livePages, Drafts, nameOf, resultOf, SUGGESTIONS } from "../../unsaved/drafts.ts"
import type { PlacedPart } from "./suggestions_api.ts"

export type RetainedSuggestion = { id: string, version: number | null, parts: PlacedPart[] }
export type UnsentRow = { user: string, document: string, link: string, title: string, client: number, at: number, isLost: boolean,
  put: RetainedSuggestion[], withdraw: string[] }

export class Unsent {
  declare page: { user: string, document: string, link: string, client: number, title: () => string }
  #opening
  #isStored = false
  #isStopped = false

  constructor(page: { user: string, document: string, link: string, client: number, title: () => string }) {
    this.page = page
    this.#opening = Drafts.open(page.user)
  }

  stop() {
    this.#isStopped = true
  }

  /** Replaces the row of this page. */
  async write({ put, withdraw, isLost }: Pick<UnsentRow, "put" | "withdraw" | "isLost">) {
    const drafts = await this.#opening
    const isEmpty = put.length + withdraw.length === 0
    if (!drafts || this.#isStopped || (isEmpty && !this.#isStored)) return
    const { user, document, link, client, title } = this.page
    try {
      const store = storeOf(drafts)
      if (isEmpty) store.delete(nameOf(document, client))
      else store.put({ user, document, link, client, title: title(), at: now(), isLost, put, withdraw }, nameOf(document, client))
      store.transaction.commit()
      this.#isStored = !isEmpty
    } catch {
      // A browser without room: the page itself still has them.
    }
  }

  /** The rows of closed pages of this link, the oldest first. */
  async ofClosedPages(): Promise<UnsentRow[]> {
    const drafts = await this.#opening
    if (!drafts) return []
    const { user, link, document, client } = this.page
    const index = drafts.database.transaction(SUGGESTIONS).objectStore(SUGGESTIONS).index("user")
    const [rows, live] = await Promise.all([resultOf(index.getAll(user)), livePages()])
    const closed = (rows as UnsentRow[]).filter((row) => row.link === link && row.client !== client && !live.has(nameOf(document, row.client)))
    return closed.sort((one, other) => one.at - other.at)
  }

  /** Leaves some suggestions of a closed page in its row, and deletes a row without any. */
  async drop(row: UnsentRow, put: RetainedSuggestion[] = []) {
    const drafts = await this.#opening
    if (!drafts) return
    const name = nameOf(row.document, row.client)
    const store = storeOf(drafts)
    if (put.length === 0) store.delete(name)
    else store.put({ ...row, put, withdraw: [] }, name)
    await new Promise((resolve) => {
      store.transaction.oncomplete = store.transaction.onabort = resolve
      store.transaction.commit()
    })
  }
}

const storeOf = ({ database }: Drafts) => database.transaction(SUGGESTIONS, "readwrite").objectStore(SUGGESTIONS)
