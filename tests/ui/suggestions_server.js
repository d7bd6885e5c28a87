// @ts-check
/** A server of one document with its suggestions, for tests of a reviewer's page: it answers as the real one does. */

import { Y } from "../../static/js/lib/vendor.ts"

export const ME = { id: "u2", name: "이서연" }

/** @param {Y.Text} text @param {number} at @param {0 | -1} side */
const positionAt = (text, at, side) => Y.createRelativePositionFromTypeIndex(text, at, side)

/** @param {Y.Text} text @param {Y.RelativePosition} position */
const offsetOf = (text, position) => Y.createAbsolutePositionFromRelativePosition(position, /** @type {Y.Doc} */ (text.doc))?.index ?? 0

/** @param {string} position in base64 */
const decoded = (position) => Y.decodeRelativePosition(Uint8Array.from(atob(position), (character) => character.charCodeAt(0)))

/** A server of one document, whose answers a test may change. */
export class Server {
  /** @type {Map<string, any>} */
  stored = new Map()
  /** The bodies of the calls. @type {any[]} */
  calls = []
  /** Answers in place of the server. @type {((body: any) => { status: number, json: object } | null)[]} */
  instead = []
  change = 0

  /** @param {Y.Text} text */
  constructor(text) {
    this.text = text
  }

  /** @param {any} body */
  put(body) {
    const retained = body.put.map((/** @type {any} */ { id, version, parts }) => {
      const stored = this.stored.get(id)
      if (stored && stored.status !== "open") return { id, state: "refused", reason: "decided" }
      if (stored && stored.version === (version ?? 0) + 1 && JSON.stringify(stored.sent) === JSON.stringify(parts)) return { id, state: "kept", version: stored.version }
      if ((stored?.version ?? null) !== version) return { id, state: "refused", reason: "version" }
      const placed = parts.map((/** @type {any} */ part) => {
        const [start, end] = "at" in part ? [decoded(part.at), decoded(part.at)] : [decoded(part.start), decoded(part.end)]
        return { start, end, quote: part.quote ?? "", text: part.text }
      })
      const isChanged = placed.some((/** @type {any} */ { start, end, quote }) => quote !== "" && this.#slice(start, end) !== quote)
      if (isChanged) return { id, state: "refused", reason: "quote-changed" }
      this.#set(id, { ...this.#fresh(id), ...stored, version: (version ?? 0) + 1, parts: placed, sent: parts })
      return { id, state: "kept", version: (version ?? 0) + 1 }
    })
    const withdrawn = body.withdraw.map((/** @type {any} */ { id, version }) => {
      const stored = this.stored.get(id)
      if (stored && stored.status !== "open") return { id, state: "refused", reason: "decided" }
      if (stored && stored.version !== version) return { id, state: "refused", reason: "version" }
      this.stored.delete(id)
      return { id, state: "withdrawn" }
    })
    return { items: [...retained, ...withdrawn] }
  }

  /** @param {Y.RelativePosition} start @param {Y.RelativePosition} end */
  #slice(start, end) {
    return this.text.toString().slice(offsetOf(this.text, start), offsetOf(this.text, end))
  }

  /** @param {string} id */
  #fresh(id) {
    const at = `2026-11-26T10:00:${String(this.stored.size).padStart(2, "0")}Z`
    return { id, author: ME, body: "", status: "open", outcome: null, replies: [], created_at: at, updated_at: at }
  }

  /** @param {string} id @param {any} review */
  #set(id, review) {
    this.stored.set(id, { ...review, change: ++this.change })
  }

  /** @param {string} id @param {number} version @param {{ start: number, end: number, text: string }[]} parts @param {object} [more] */
  store(id, version, parts, more = {}) {
    const placed = parts.map(({ start, end, text }) => ({
      start: positionAt(this.text, start, 0),
      end: positionAt(this.text, end, start === end ? 0 : -1),
      quote: this.text.toString().slice(start, end),
      text,
    }))
    this.#set(id, { ...this.#fresh(id), ...this.stored.get(id), version, parts: placed, ...more })
  }

  /** @param {string} id @param {object} more */
  amend(id, more) {
    const stored = this.stored.get(id)
    this.#set(id, { ...stored, version: stored.version + 1, ...more })
  }

  /** The writer accepts, if each part stands: the text first, as the editor has it. @param {string} id */
  accept(id) {
    const { parts, status } = this.stored.get(id)
    const stands = parts.every((/** @type {any} */ { start, end, quote }) => quote === "" || this.#slice(start, end) === quote)
    if (!stands || status !== "open") return
    this.amend(id, { status: "accepted" })
    this.text.doc?.transact(() => {
      for (const { start, end, quote, text } of parts) {
        const at = offsetOf(this.text, start)
        if (quote !== "") this.text.delete(at, offsetOf(this.text, end) - at)
        this.text.insert(at, text)
      }
    })
  }

  /** A review as the server serves it now. @param {string} id */
  served(id) {
    const { parts, sent: _, ...review } = this.stored.get(id)
    const text = this.text.toString()
    const served = parts.map((/** @type {any} */ part) => {
      this.#comeBack(part, text)
      const { start, end, quote, text: words } = part
      const [from, to] = [offsetOf(this.text, start), offsetOf(this.text, end)]
      const state = text.slice(from, to) === quote ? "exact" : from < to ? "edited" : "orphaned"
      if (state === "exact") part.context = { prefix: text.slice(Math.max(from - 32, 0), from), suffix: text.slice(to, to + 32) }
      return { text: words, anchor: { state, start: from, end: to, quote, ...part.context } }
    })
    return structuredClone({ ...review, parts: served, anchor: served[0]?.anchor, suggestion: served[0]?.text })
  }

  /** A lost quote is back in its whole context: the server stores its new letters. @param {any} part @param {string} text */
  #comeBack(part, text) {
    const { start, end, quote, context } = part
    if (quote === "" || !context || offsetOf(this.text, start) < offsetOf(this.text, end)) return
    const at = text.indexOf(context.prefix + quote + context.suffix)
    if (at < 0) return
    part.start = positionAt(this.text, at + context.prefix.length, 0)
    part.end = positionAt(this.text, at + context.prefix.length + quote.length, -1)
  }

  get reviews() {
    return [...this.stored.keys()].map((id) => this.served(id))
  }
}
