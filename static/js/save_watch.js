// @ts-check
/**
 * Watches one document for edits of ours and says what is saved.
 *
 * Keeps what is not yet safe in the browser's storage too, so that a closed tab or a dead battery
 * loses nothing: it comes back, under the same clients, with the next visit to the writer's seat.
 */

import { keep, kept, keptKeys } from "./keep.js"
import { sentencesAt, Unsaved } from "./unsaved.js"
import { Y } from "./vendor.js"
import { words } from "./words.js"

/** The origin of edits that come from storage. */
const BROUGHT_BACK = Symbol("brought back")
/** The origin of an edit that only makes a deletion's safety visible. */
export const PROOF = Symbol("proof")
/** After how long "Saving…" becomes "Not saved since", in ms. */
const SLOW = 5_000
/** Larger than this is not put into storage: it is shared with everything else, about 5 MB. */
const KEPT_CHARS_MAX = 1_000_000

/** Fires `change` when any of its answers does. */
export class SaveWatch extends EventTarget {
  #unsaved = new Unsaved()
  /** @type {Date | null} */
  #savedAt = null
  #refusing = false
  /** Keys of storage that hold what was brought back and is not safe yet. */
  #borrowed = /** @type {string[]} */ ([])
  #timer = 0
  #keeping = 0

  /**
   * @param {Y.Doc} doc
   * @param {Y.Text} text
   * @param {string} documentId
   */
  constructor(doc, text, documentId) {
    super()
    this.doc = doc
    this.text = text
    this.prefix = `unsaved.${documentId}.`
  }

  start() {
    this.doc.on("afterTransaction", this.#observe)
    this.#timer = window.setInterval(() => this.#tick(), 500)
    window.addEventListener("pagehide", this.#keepNow)
    window.addEventListener("beforeunload", this.#warn)
  }

  stop() {
    this.doc.off("afterTransaction", this.#observe)
    window.clearInterval(this.#timer)
    window.clearTimeout(this.#keeping)
    window.removeEventListener("pagehide", this.#keepNow)
    window.removeEventListener("beforeunload", this.#warn)
  }

  /** @returns {import("./store.js").Saving} */
  get state() {
    const { since, count } = this.#unsaved
    return {
      count,
      since: since === null ? null : new Date(since),
      savedAt: this.#savedAt,
      slow: since !== null && SLOW <= Date.now() - since,
      refusing: this.#refusing && 0 < count,
    }
  }

  /**
   * `document.saved` came.
   *
   * @param {string} stateVector in base64
   * @param {{ afterOurs: boolean }} options whether both sides had met on this connection
   */
  saved(stateVector, options) {
    const bytes = Uint8Array.from(atob(stateVector), (character) => character.charCodeAt(0))
    this.#unsaved.saved(Y.decodeStateVector(bytes), options)
    this.#savedAt = new Date()
    this.#refusing = false
    this.#keepSoon()
    this.#announce()
  }

  /** The server said that it cannot store right now. */
  refused() {
    this.#refusing = true
    this.#announce()
  }

  /** What was written and is not safe, for its writer to copy. */
  lost() {
    const ranges = unsavedRanges(this.text, this.#unsaved.safe)
    const sentences = this.#unsaved.count === 0 ? [] : sentencesAt(this.text.toString(), ranges, words.language)
    return { sentences, deletions: sentences.length === 0 ? this.#unsaved.deletions : 0 }
  }

  /** The person has it in hand: it shall not come back by itself as well. */
  forget() {
    this.stop()
    for (const key of keptKeys(this.prefix)) keep(key, null)
  }

  /** Puts back what an earlier visit could not save. Returns how many edits that were. */
  bringBack() {
    let count = 0
    for (const key of keptKeys(this.prefix)) {
      if (key === this.#key || this.#borrowed.includes(key)) continue
      const draft = parseDraft(kept(key))
      const before = this.#unsaved.count
      if (draft) Y.applyUpdate(this.doc, draft.update, BROUGHT_BACK)
      if (draft && before < this.#unsaved.count) {
        this.#borrowed.push(key)
        count += draft.count
      } else {
        keep(key, null)
      }
    }
    return count
  }

  get #key() {
    return `${this.prefix}${this.doc.clientID}`
  }

  /** @type {(transaction: Y.Transaction) => void} */
  #observe = (transaction) => {
    const { local, origin, beforeState, afterState, deleteSet } = transaction
    if (!local && origin !== BROUGHT_BACK) return
    const advanced = [...afterState].filter(
      ([client, clock]) => (beforeState.get(client) ?? 0) < clock,
    )
    if (advanced.length === 0 && deleteSet.clients.size === 0) return
    this.#unsaved.edited(beforeState, new Map(advanced), Date.now())
    this.#keepSoon()
    this.#announce()
  }

  #tick() {
    if (this.#unsaved.needsProof(Date.now())) this.#prove()
    if (0 < this.#unsaved.count) this.#announce()
  }

  /** One character in and out again: nothing to see, but a clock moves. */
  #prove() {
    this.doc.transact(() => {
      this.text.insert(0, " ")
      this.text.delete(0, 1)
    }, PROOF)
  }

  #keepSoon() {
    window.clearTimeout(this.#keeping)
    this.#keeping = window.setTimeout(this.#keepNow, 400)
  }

  #keepNow = () => {
    const { count, safe } = this.#unsaved
    if (count === 0) {
      for (const key of [this.#key, ...this.#borrowed.splice(0)]) keep(key, null)
      return
    }
    const base = Y.decodeStateVector(Y.encodeStateVector(this.doc))
    for (const [client, clock] of safe) base.set(client, clock)
    const update = Y.encodeStateAsUpdate(this.doc, Y.encodeStateVector(base))
    const text = JSON.stringify({ count, update: btoa(binary(update)) })
    if (text.length <= KEPT_CHARS_MAX) keep(this.#key, text)
  }

  /** @param {BeforeUnloadEvent} event */
  #warn = (event) => {
    if (this.#unsaved.count === 0) return
    event.preventDefault()
  }

  #announce() {
    this.dispatchEvent(new Event("change"))
  }
}

/** @param {Uint8Array} bytes */
function binary(bytes) {
  let text = ""
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

/** @param {string | null} text */
function parseDraft(text) {
  try {
    const { count, update } = JSON.parse(text ?? "")
    return { count: Number(count), update: Uint8Array.from(atob(update), (c) => c.charCodeAt(0)) }
  } catch {
    return null
  }
}

/**
 * Where the text holds insertions beyond what is safe.
 *
 * @param {Y.Text} text
 * @param {import("./unsaved.js").Clocks} safe of the clients that are ours
 * @returns {{ from: number, to: number }[]}
 */
export function unsavedRanges(text, safe) {
  const ranges = []
  let at = 0
  for (let item = text._start; item !== null; item = item.right) {
    if (item.deleted || !item.countable) continue
    const clock = safe.get(item.id.client)
    const beyond = clock === undefined ? 0 : item.id.clock + item.length - clock
    if (0 < beyond) ranges.push({ from: at + Math.max(item.length - beyond, 0), to: at + item.length })
    at += item.length
  }
  return ranges
}
