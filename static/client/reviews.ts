/** Reviews and suggestions of a link by REST. The server requires that the caller holds the seat for a change. */

import type * as Y from "yjs"
import { failed } from "./failures.ts"

export type User = { id: string, name: string }
export type Anchor = { state: "exact" | "edited" | "moved" | "orphaned", start: number, end: number, quote: string,
  relative?: { start: string, end: string } }
export type Reply = { id: string, author: User, body: string, created_at: string, edited_at: string | null }
export type Review = { id: string, author: User, kind: "comment" | "suggestion" | "summary", anchor: Anchor | null,
  body: string, suggestion: string | null, parts: { anchor: Anchor, text: string }[], replies: Reply[], version: number,
  status: "open" | "accepted" | "rejected" | "resolved", created_at: string, updated_at: string }
/** Offsets in UTF-16 units, or relative positions of Yjs in base64. */
type Position = number | string
export type Part = { at: Position, text: string } | { start: Position, end: Position, quote: string, text: string }
/** `id`: 16 to 64 of `A–Z a–z 0–9 _ -`, unguessable; `version`: as read, `null` for a new one. */
export type Suggestion = { id: string, version: number | null, parts: Part[], body?: string }
export type Outcome = { id: string | null, state: "kept" | "withdrawn" | "refused", version?: number, reason?: string }
export type Decision = { id: string | null, done: string[], skipped: { id: string, reason: string }[], undo_until: string | null }
/** A review in the version that the caller has read. */
export type Read = { id: string, version: number }

export class Reviews {
  #session: { link: string, text: Y.Text, token: () => Promise<string> }

  /** @param session `link` is the address of the share link in the API */
  constructor(session: { link: string, text: Y.Text, token: () => Promise<string> }) {
    this.#session = session
  }

  async list(): Promise<Review[]> {
    const reviews: Review[] = []
    for (let query: string | null = ""; query !== null;) {
      const page: any = await this.request("GET", `/reviews${query}`)
      reviews.push(...page.reviews)
      query = page.next_cursor && `?cursor=${encodeURIComponent(page.next_cursor)}`
    }
    return reviews
  }

  /** A comment, or a suggestion of other words; `range: null` is a remark on the whole text. */
  create(range: { start: number, end: number } | null, review: { body?: string, suggestion?: string }): Promise<Review> {
    const anchor = range && { ...range, quote: this.#session.text.toString().slice(range.start, range.end) }
    return this.request("POST", "/reviews", { anchor, ...review })
  }

  /** Stores and withdraws suggestions of the reviewer, each by itself. @returns in the order of the batch */
  async suggest(put: Suggestion[], withdraw: Read[] = []): Promise<Outcome[]> {
    return (await this.request("POST", "/suggestions", { put, withdraw })).items
  }

  /** The writer decides suggestions. */
  decide(decision: "accept" | "reject", reviews: Read[]): Promise<Decision> {
    const items = reviews.map(({ id, version }) => ({ id, version }))
    return this.request("POST", "/decisions", { decision, reviews: items })
  }

  /** Any route below the share link. Throws a `GalleyError`. @returns the JSON of the response, or `null` */
  async request(method: string, path: string, body?: object, version?: number): Promise<any> {
    const headers: Record<string, string> = { authorization: `Bearer ${await this.#session.token()}` }
    if (body) headers["content-type"] = "application/json"
    if (version !== undefined) headers["if-match"] = `"${version}"`
    const init = { method, headers, body: body ? JSON.stringify(body) : null }
    const response = await fetch(this.#session.link + path, { ...init, credentials: "omit" }).catch(() => null)
    if (!response?.ok) throw await failed(response)
    return response.json().catch(() => null)
  }
}
