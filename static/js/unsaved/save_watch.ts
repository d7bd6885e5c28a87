/**
 * Watches one document for local edits and reports which are saved.
 *
 * The journal (`journal.ts`) stores unsaved edits in the browser, so a closed tab or a dead battery
 * loses none: the page recovers them, under the same clients, at the next visit to the writer's
 * seat.
 */

import { charactersIn } from "../desk/counts.ts"
import { i18n } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import { Y } from "../lib/vendor.ts"
import type { Refusing, Saving } from "../store.ts"
import type { Draft } from "./drafts.ts"
import { Journal } from "./journal.ts"
import { sentencesAt, Unsaved, type Clocks } from "./unsaved.ts"
import { fits, deletesText } from "./update_text.ts"

/** The origin of edits that come from storage. */
const RECOVERED = Symbol("brought back")
/** The origin of an edit that only makes a deletion's safety visible. */
export const PROOF = Symbol("proof")
/** Shortest time between two counts of the unsaved characters, in ms: a count reads the whole text. */
const COUNT_PAUSE = 300
/** After how long "Saving…" becomes "Not saved since", in ms. */
const SLOW = 5_000

/** Fires `change` when any of its answers does. */
export class SaveWatch extends EventTarget {
  declare doc: Y.Doc
  declare text: Y.Text
  declare journal: Journal
  #unsaved = new Unsaved()
  #savedAt: Date | null = null
  #refusing: Refusing = "no"
  /** How far the server called each client safe when it last did. */
  #savedClocks: Clocks = new Map()
  #counted = { characters: 0, at: -COUNT_PAUSE }
  #timer = 0
  #warns = false

  constructor(doc: Y.Doc, text: Y.Text, page: { user: string, document: string, title: () => string }) {
    super()
    this.doc = doc
    this.text = text
    this.journal = new Journal({ ...page, client: doc.clientID })
  }

  start() {
    this.doc.on("update", this.#observe)
    this.#timer = window.setInterval(() => this.#tick(), 500)
    window.addEventListener("pagehide", this.#flush)
    this.journal.addEventListener("change", this.#announce)
    this.journal.start()
  }

  stop() {
    this.doc.off("update", this.#observe)
    window.clearInterval(this.#timer)
    window.removeEventListener("pagehide", this.#flush)
    window.removeEventListener("beforeunload", this.#warn)
    this.journal.removeEventListener("change", this.#announce)
    this.journal.stop()
  }

  get state(): Saving {
    const { since, count } = this.#unsaved
    return {
      count,
      characters: this.#characters(),
      since: since === null ? null : new Date(since),
      savedAt: this.#savedAt,
      slow: since !== null && SLOW <= now() - since,
      refusing: 0 < count ? this.#refusing : "no",
      retained: this.journal.retained,
    }
  }

  /** How many unsaved characters the text has. After the pause, `#tick` brings the next count. */
  #characters() {
    const now = performance.now()
    if (this.#unsaved.count === 0) this.#counted = { characters: 0, at: -COUNT_PAUSE }
    else if (COUNT_PAUSE <= now - this.#counted.at) {
      const characters = charactersIn(unsavedText(this.text, this.#unsaved.savedClocks))
      this.#counted = { characters, at: now }
    }
    return this.#counted.characters
  }

  /** `document.saved` came. @param stateVector in base64 */
  saved(stateVector: string) {
    const bytes = Uint8Array.from(atob(stateVector), (character) => character.charCodeAt(0))
    this.#savedClocks = Y.decodeStateVector(bytes)
    this.#unsaved.saved(this.#savedClocks)
    this.#savedAt = new Date(now())
    this.#refusing = "no"
    this.journal.saved(this.#unsaved.savedTo)
    this.#announce()
  }

  /** `denied` arrived: the server rejected a local edit. */
  denied() {
    this.#unsaved.denied()
  }

  /** The server sent a sync step 1, and the reply was sent. */
  resent() {
    this.#unsaved.resent()
  }

  /** The server reported that it cannot store now, and the reason. */
  refused(why: "away" | "full" | "limit") {
    // A reached limit stays until the server stores an edit, also after other reports on the storage.
    if (this.#refusing !== "limit") this.#refusing = why
    this.#announce()
  }

  /** The unsaved text, for its writer to copy. */
  lost() {
    const ranges = unsavedRanges(this.text, this.#unsaved.savedClocks)
    const sentences = this.#unsaved.count === 0 ? [] : sentencesAt(this.text.toString(), ranges, i18n.language)
    return { sentences, deletions: sentences.length === 0 ? this.#unsaved.deletions : 0 }
  }

  /** The seat is lost. Unsaved edits wait for their writer's decision. */
  seatLost(why: string) {
    if (0 < this.#unsaved.count) this.journal.setLost({ ...this.lost(), why })
  }

  /** The seat is ours again: what was typed here goes on its way as before. */
  seatRegained() {
    this.journal.setLost(null)
  }

  /** The writer discards the edits. This page accepts no more edits after that. */
  async discard() {
    this.stop()
    await this.journal.discard()
  }

  /** The drafts of closed pages. */
  draftsOfClosedPages() {
    return this.journal.draftsOfClosedPages()
  }

  mayRecover({ update }: Draft) {
    return fits(this.doc, update)
  }

  /** It is in the text again, once, and goes from storage when the server has called it safe. */
  recover(draft: Draft) {
    const { from, to } = Y.parseUpdateMeta(draft.update)
    Y.applyUpdate(this.doc, draft.update, RECOVERED)
    let number = this.#unsaved.edited(from, to, now())
    // Its deletions may be new although its insertions are not: no clock covers a deletion.
    if (0 < to.size && deletesText(draft.update)) number = this.#unsaved.edited(new Map(), new Map(), now())
    this.journal.adopt(draft, number)
    // The server may have had it all the time.
    this.#unsaved.saved(this.#savedClocks)
    this.journal.saved(this.#unsaved.savedTo)
    this.#announce()
  }

  #observe: (update: Uint8Array, origin: any, doc: Y.Doc, transaction: Y.Transaction) => void = (update, origin, _doc, { local, beforeState, afterState }) => {
    if (!local || origin === RECOVERED) return
    const advanced = [...afterState].filter(
      ([client, clock]) => (beforeState.get(client) ?? 0) < clock,
    )
    this.journal.add(this.#unsaved.edited(beforeState, new Map(advanced), now()), update)
    this.#announce()
  }

  #tick() {
    if (this.#unsaved.needsProof(now())) this.#prove()
    // That it is late comes by the clock, and not by an event.
    if (0 < this.#unsaved.count) this.#announce()
  }

  /** Inserts and deletes one character: the text stays, and the clock of this client moves, which the server then names. */
  #prove() {
    this.doc.transact(() => {
      this.text.insert(0, " ")
      this.text.delete(0, 1)
    }, PROOF)
  }

  #flush = () => this.journal.flush()

  #warn = (event: BeforeUnloadEvent) => event.preventDefault()

  #announce = () => {
    // A page that always listens is never put aside whole, so that going back to it is a reload.
    const warns = 0 < this.#unsaved.count
    if (warns && !this.#warns) window.addEventListener("beforeunload", this.#warn)
    if (!warns && this.#warns) window.removeEventListener("beforeunload", this.#warn)
    this.#warns = warns
    this.dispatchEvent(new Event("change"))
  }
}

/**
 * Where the text holds insertions beyond what is safe.
 *
 * @param safe of the clients that are ours
 */
export function unsavedRanges(text: Y.Text, safe: Clocks): { from: number, to: number }[] {
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

/**
 * The insertions beyond what is safe, in the order of the text.
 *
 * @param safe of the clients that are ours
 */
export function unsavedText(text: Y.Text, safe: Clocks) {
  let unsaved = ""
  for (let item = text._start; item !== null; item = item.right) {
    const clock = safe.get(item.id.client)
    if (clock === undefined || item.deleted || !(item.content instanceof Y.ContentString)) continue
    const beyond = item.id.clock + item.length - clock
    if (0 < beyond) unsaved += item.content.str.slice(Math.max(item.length - beyond, 0))
  }
  return unsaved
}
