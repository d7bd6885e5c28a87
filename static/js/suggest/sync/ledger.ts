/**
 * The own suggestions of the reviewer's page, and how much of them the server has.
 *
 * - **L1** At most one batch is on its way. A lost answer repeats the batch; the server answers a repeat with `kept`.
 * - **L2** A suggestion that the server may have is withdrawn, and not forgotten: the answer or an event brings its version.
 * - **L3** A refusal causes no second request until the text, the version or the suggestion changes.
 */

import type { Range } from "../../reviews/word_diff.ts"
import { amend, copied, entryOf, hasWordsOf, readAgain, shiftEntry, touchesOneOf, type Entry, type Suggestion } from "../model/entries.ts"
import { rangeOf } from "../model/identity.ts"
import type { Overlay } from "../model/overlay.ts"
import type { Part } from "../model/parts.ts"
import type { CutPlan } from "../model/plan.ts"
import { united, type Mapping } from "../model/ranges.ts"

type Put = { id: string, version: number | null, parts: Part[], group?: string }
export type Batch = { put: Put[], withdraw: { id: string, version: number }[] }
export type BatchResult = { id: string, state: "kept" | "withdrawn" | "refused", version?: number, reason?: string }

/** The server's limit of a batch. */
const ITEMS_MAX = 200
/** Refusals after which the server has no open suggestion with this id. */
const FINAL = ["decided", "not-yours", "malformed"]

export class Ledger {
  /** Those in the view, the oldest first. */
  entries: Entry[] = []
  /** Those that the server has and that do not fit into the view beside the others. */
  hidden: Entry[] = []
  /** Those to withdraw: undone, merged, or in the text without a decision. */
  closing: Map<string, Entry> = new Map()
  /** Accepted ones whose text has not arrived. */
  accepted: Entry[] = []
  /** Ids that this page withdrew: an event about an earlier version may arrive later. */
  #withdrawn: Set<string> = new Set()
  #isSending = false

  get isSending() {
    return this.#isSending
  }

  get isDue() {
    const isDue = ({ state, isOutdated }: Entry) => state === "due" || isOutdated
    return this.entries.some(isDue) || 0 < this.#toWithdraw().length
  }

  find(id: string) {
    return this.entries.find((entry) => entry.id === id)
  }

  /** Removes suggestions from the view's list. */
  remove(removed: ReadonlySet<Entry>) {
    this.entries = this.entries.filter((entry) => !removed.has(entry))
  }

  /** Removes a suggestion, in the view or not. */
  take(id: string): Entry | undefined {
    const isOther = (entry: Entry) => entry.id !== id
    const found = [...this.entries, ...this.hidden].find((entry) => !isOther(entry))
    this.entries = this.entries.filter(isOther)
    this.hidden = this.hidden.filter(isOther)
    return found
  }

  /** A hidden suggestion enters the view. The server anchors its words anew: letters of its quote may be other ones. */
  show(entry: Entry, parts: Part[]) {
    this.take(entry.id)
    this.entries.push(Object.assign(entry, { parts, isOutdated: false, sites: null, state: "due" }))
  }

  /** The server closes a suggestion. */
  close(id: string) {
    this.closing.delete(id)
    return this.take(id)
  }

  /** A suggestion is to be withdrawn. */
  withdraw(entry: Entry) {
    this.closing.set(entry.id, entry)
    if (entry.state === "refused") entry.state = "due"
  }

  /** All that an edit may put in: first the parts that the server has, then those that it may have. */
  candidates(isNear: (entry: Entry) => boolean) {
    const all = [...this.entries, ...this.closing.values(), ...this.accepted].filter(isNear)
    const newer = all.filter(({ stored, parts }) => stored !== parts).flatMap(({ parts }) => parts)
    return [all.flatMap(({ stored }) => stored ?? []), newer]
  }

  /** @param map of the base */
  shift(map: Mapping) {
    for (const entry of [...this.entries, ...this.hidden, ...this.closing.values(), ...this.accepted]) shiftEntry(entry, map)
  }

  /** The text has these parts, in an edit that the view does not show. */
  fulfil(done: ReadonlySet<Part>) {
    const isDone = (parts: readonly Part[] | null) => parts !== null && 0 < parts.length && parts.every((part) => done.has(part))
    this.accepted = this.accepted.filter(({ stored }) => !isDone(stored))
    for (const entry of this.entries) {
      if (isDone(entry.stored) || isDone(entry.parts)) this.withdraw(entry)
      else if (entry.parts.some((part) => done.has(part))) {
        entry.parts = entry.parts.filter((part) => !done.has(part))
        if (entry.state !== "sent") entry.state = "due"
      }
    }
    this.remove(new Set(this.closing.values()))
  }

  /** Takes over what was cut. */
  amend({ scopes, put, withdraw, untouched }: CutPlan) {
    // Their words belong to the suggestions that were cut.
    const isCut = touchesOneOf(scopes)
    this.accepted = this.accepted.filter((entry) => !isCut(entry))
    const byId = new Map([...this.entries, ...this.hidden].map((entry) => [entry.id, entry]))
    const taken = new Set(this.hidden.filter(({ id }) => withdraw.some((entry) => entry.id === id)))
    for (const { id, parts, group } of put) {
      const entry = byId.get(id) ?? { ...entryOf({ id, version: null, since: "", parts, pinned: false }), stored: null }
      if (this.hidden.includes(entry)) taken.add(entry)
      if (!byId.has(id) || taken.has(entry)) this.entries.push(entry)
      amend(entry, parts, group)
    }
    // The reviewer has typed the words of a hidden one.
    const shown = untouched.filter((entry) => this.hidden.includes(entry))
    this.entries.push(...shown)
    this.hidden = this.hidden.filter((entry) => !taken.has(entry) && !shown.includes(entry))
    for (const entry of this.entries) entry.isTouched = false
    for (const entry of untouched) {
      if (entry.state === "refused") entry.state = "due"
    }
    for (const entry of withdraw) this.withdraw(entry)
    this.remove(new Set(withdraw))
  }

  /**
   * Renews the outdated suggestions in paragraphs that were not cut. Suggestions beside them stay as they are.
   *
   * @returns of the base
   */
  renew(overlay: Overlay): Range[] {
    const outdated = this.entries.filter(({ isOutdated }) => isOutdated)
    const ended: Set<Entry> = new Set()
    for (const entry of outdated) {
      const parts = readAgain(entry, overlay).filter(({ quote, text }) => quote !== text)
      amend(entry, parts, entry.group)
      // The server anchors the same words anew.
      entry.state = "due"
      if (parts.length === 0) ended.add(entry)
    }
    for (const entry of ended) this.withdraw(entry)
    this.remove(ended)
    return united(outdated.flatMap(({ parts }) => parts.map(rangeOf)))
  }

  send(): Batch {
    for (const { id, version, sent } of this.closing.values()) if (version === null && sent === null) this.closing.delete(id)
    const withdraw = this.#toWithdraw().slice(0, ITEMS_MAX)
    const entries = this.entries.filter(({ state }) => state === "due").slice(0, ITEMS_MAX - withdraw.length)
    for (const entry of entries) Object.assign(entry, { state: "sent", sent: entry.parts })
    for (const entry of [...entries, ...withdraw]) entry.tried = entry.version
    this.#isSending = 0 < entries.length + withdraw.length
    return { put: entries.map(putOf), withdraw: withdraw.map(({ id, version }) => ({ id, version: version ?? 0 })) }
  }

  /** A refused withdrawal waits for the newer version. One whose batch had no answer may be nowhere, which the server says. */
  #toWithdraw() {
    return [...this.closing.values()].filter(({ state, version, sent }) => (version !== null || sent !== null) && state !== "refused")
  }

  failed() {
    this.#isSending = false
    for (const entry of this.entries) if (entry.state === "sent") entry.state = "due"
  }

  /** @returns those that were refused */
  answered(results: readonly BatchResult[], newId: () => string): Entry[] {
    this.#isSending = false
    const refused: Entry[] = []
    for (const { id, state, version = null, reason = "" } of results) {
      const closing = this.closing.get(id)
      if (closing) this.#closed(closing, state, version, reason)
      const entry = this.find(id)
      if (!entry) continue
      const isLatest = hasWordsOf(entry.parts, entry.sent)
      if (state === "kept") Object.assign(entry, { version, stored: entry.parts, state: isLatest ? "stored" : "due" })
      else if (isOutdated(entry, reason)) entry.state = "due"
      else if (isSpent(entry, reason, version)) Object.assign(entry, { id: newId(), state: "due" })
      else refused.push(Object.assign(entry, { state: "refused" }))
      entry.sent = null
    }
    return refused
  }

  #closed(entry: Entry, state: BatchResult["state"], version: number | null, reason: string) {
    entry.sent = null
    if (state === "withdrawn") this.#withdrawn.add(entry.id)
    if (state === "kept") entry.version = version
    else if (reason !== "version" && (state === "withdrawn" || FINAL.includes(reason) || entry.version === null)) this.closing.delete(entry.id)
    else if (reason === "version" && !isOutdated(entry, reason)) entry.state = "refused"
  }

  /** Takes over what the server has of a suggestion that this page has, too. */
  acknowledge({ id, version, since, parts, pinned }: Suggestion): "new" | "other words" | "done" {
    const closing = this.closing.get(id)
    if (closing) Object.assign(closing, { version, state: "due" })
    if (closing || this.#withdrawn.has(id)) return "done"
    const entry = this.find(id)
    if (!entry) return "new"
    if ((version ?? 0) < (entry.version ?? 0)) return "done"
    const isOwn = hasWordsOf(entry.parts, parts)
    // The answer that refused the older version may come before this event (L3).
    if (entry.state === "refused" && version !== entry.version) entry.state = "due"
    Object.assign(entry, { version, since, pinned, stored: isOwn ? entry.parts : copied(parts) })
    if (isOwn && entry.state !== "sent") entry.state = "stored"
    return isOwn || entry.state !== "stored" ? "done" : "other words"
  }
}

/** Whether the server had a suggestion with this id, and has no more: no other one gets the id. */
const isSpent = (entry: Entry, reason: string, version: number | null) => reason === "decided" && version === null && entry.version === null

/** Whether the page received the newer version already. */
const isOutdated = (entry: Entry, reason: string) => reason === "version" && entry.tried !== entry.version

export function putOf({ id, version, parts, group }: Put): Put {
  const put = { id, version, parts: copied(parts) }
  return group === undefined ? put : { ...put, group }
}
