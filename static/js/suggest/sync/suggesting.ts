/**
 * The reviewer's side of suggesting: the overlay, the own suggestions, and what the server has not stored yet.
 *
 * An operation that changes the view returns the edit of the view. The editor dispatches it outside of its history;
 * the edits of the reviewer go the other way, through `own`. A page that holds an edit of the writer back, as during
 * a composition, holds all later ones back too.
 *
 * - **S1** `overlay.view` is the text of the editor, after each operation.
 * - **S2** Only `collect` cuts paragraphs anew: those with an own edit, and those whose view is not what the suggestions give.
 *   An edit of the writer in a quote renews its suggestion, and none beside it.
 * - **S3** Words that the reviewer typed leave the view with a suggestion that the server has, or by the reviewer.
 * - **S4** The writer's edit of the very letters that a stored suggestion changes takes it out of the view: the server cannot
 *   accept it. It enters again once its quote stands.
 * - **S5** Without a batch on its way and with nothing to collect, the view is what the stored suggestions in it give, but
 *   for `unsaved`.
 */

import { ChangeSet, type Text } from "../../lib/vendor.ts"
import { olderFirst } from "../../reviews/parts.ts"
import type { Range } from "../../reviews/word_diff.ts"
import { acceptedOnes } from "../../sections/accepted.ts"
import { splitFulfilled } from "../model/acceptance.ts"
import { entryOf, isArrived, isChanged, isGone, isServedWhole, isStoredWhole, isTyped, losesAnchor, readAgain, retyped, sitesOf, touchesOneOf, type Entry, type Suggestion } from "../model/entries.ts"
import { rangeOf } from "../model/identity.ts"
import { Overlay, type Step } from "../model/overlay.ts"
import { stands, type Part } from "../model/parts.ts"
import { planOf } from "../model/plan.ts"
import { mappingOf, meets, meetsOneOf, newRangesOf, oldRangesOf, overlaps, shares, shiftWhole, united, type Mapping } from "../model/ranges.ts"
import { Ledger, putOf, type Batch, type BatchResult } from "./ledger.ts"

export class Suggesting {
  declare newId: () => string
  declare overlay
  #ledger = new Ledger()
  /** Paragraphs of the base to cut anew. */
  #dirty: Range[] = []
  /** Paragraphs to cut anew with the next change, because the server refused what they gave. */
  #blocked: Range[] = []
  /** Ids of own suggestions whose words left the view because the writer deleted their positions. */
  orphans: Set<string> = new Set()

  /** @param suggestions the own open ones, the oldest first, in offsets of the base */
  constructor(base: Text, suggestions: readonly Suggestion[], newId: () => string) {
    this.newId = newId
    const entries = suggestions.map(entryOf)
    const hidden = hiddenOf(base, entries)
    this.#ledger.hidden = [...hidden]
    this.#ledger.entries = entries.filter((entry) => !hidden.has(entry))
    this.overlay = Overlay.plain(base).put(this.#ledger.entries.flatMap(({ parts }) => parts)).overlay
  }

  /** The own suggestions in the view, the oldest first. */
  get suggestions(): readonly Readonly<Suggestion>[] {
    return this.#ledger.entries
  }

  /** Those that are not in the view: they overlap others, or the writer changed their quotes. */
  get hidden(): readonly Readonly<Suggestion>[] {
    return this.#ledger.hidden
  }

  /** Whether `collect` has something to do. */
  get isDirty() {
    return 0 < this.#dirty.length || this.#ledger.isDue || 0 < this.#strays(this.#ledger.accepted).length
  }

  /** The reviewer's edit, which the editor has applied. @param edit of the view */
  own(edit: ChangeSet) {
    const inverted = this.overlay.changes.invertedDesc
    const ranges = oldRangesOf(edit).map(({ from, to }) => ({ from: inverted.mapPos(from, -1), to: inverted.mapPos(to, 1) }))
    for (const entry of this.#ledger.entries.filter(touchesOneOf(united(ranges)))) entry.isTouched = true
    this.overlay = this.overlay.own(edit)
    this.#touch(ranges)
  }

  /** The writer's edit, or the server's. @param edit of the base @returns of the view */
  written(edit: ChangeSet): ChangeSet {
    const { done, put, rest } = this.#split(edit)
    if (0 < done.length) {
      this.#ledger.fulfil(new Set(done))
      this.overlay = this.overlay.accepted(put, done)
      this.#shift(mappingOf(put))
    }
    return rest.empty ? this.#unchanged() : this.#follow(rest)
  }

  /** The edit of the view that `written` would return, but for suggestions that it ends. @param edit of the base */
  viewEdit(edit: ChangeSet) {
    const { done, put, rest } = this.#split(edit)
    return this.overlay.accepted(put, done).written(rest).edit
  }

  /**
   * The server closes a suggestion. The text of an accepted one may arrive before or after.
   *
   * @returns of the view
   */
  decided(id: string, outcome: "accepted" | "rejected" | "withdrawn" | "fulfilled"): ChangeSet {
    const isShown = this.#ledger.find(id) !== undefined
    const entry = this.#ledger.close(id)
    if (!entry || !isShown) return this.#unchanged()
    const isIn = outcome === "accepted" || outcome === "fulfilled"
    if (!isIn) return this.#apply(this.overlay.takeOut(entry.stored ?? entry.parts))
    this.#ledger.accepted.push(entry)
    return this.#endArrived()
  }

  /** The suggestion has no position in the text any more. @returns of the view */
  orphaned(id: string): ChangeSet {
    const isShown = this.#ledger.find(id) !== undefined
    const entry = this.#ledger.take(id)
    if (entry) this.orphans.add(id)
    if (!entry || !isShown) return this.#unchanged()
    return this.#apply(this.overlay.takeOut(entry.stored ?? entry.parts))
  }

  /** The reviewer takes a suggestion back, with words that were typed into it since. @returns of the view */
  remove(id: string): ChangeSet {
    const isShown = this.#ledger.find(id) !== undefined
    const entry = this.#ledger.take(id)
    if (entry) this.#ledger.withdraw(entry)
    if (!entry || !isShown) return this.#unchanged()
    const edit = this.#apply(this.overlay.takeOut(entry.parts))
    const rest = edit.empty ? this.#apply(this.overlay.revert(united(entry.parts.map(rangeOf)))) : this.#unchanged()
    // The writer may have deleted all letters between this suggestion and another one.
    this.#touch(entry.parts.map(rangeOf))
    return edit.compose(rest)
  }

  /**
   * The server has a suggestion of the reviewer: a new one, by the form or from another page; one that is open
   * again; or a newer version. It is among the hidden ones afterwards if it cannot enter the view.
   *
   * @param suggestion in offsets of the base
   * @returns of the view
   */
  opened(suggestion: Suggestion): ChangeSet {
    const { id, parts } = suggestion
    const entry = this.#ledger.find(id)
    const isStored = entry !== undefined && isStoredWhole(entry)
    const found = this.#ledger.acknowledge(suggestion)
    if (found === "done" || (found === "other words" && !isStored)) return this.#unchanged()
    const own = this.#apply(this.overlay.takeOut(entry?.parts ?? []))
    this.#ledger.take(id)
    this.orphans.delete(id)
    const edit = own.compose(this.#makeRoom(suggestion, parts))
    const mayPut = this.#mayPut(parts)
    const list = mayPut ? this.#ledger.entries : this.#ledger.hidden
    list.push(entryOf(suggestion))
    if (mayPut) return edit.compose(this.#apply(this.overlay.put(parts)))
    // Words that the server refused because of this one may replace it.
    this.#touch([])
    return edit
  }

  /** The server has other letters of a suggestion that stands here, and is to anchor it anew. @returns whether it is due */
  renew(id: string): boolean {
    const entry = this.#ledger.find(id)
    if (!entry || !isStoredWhole(entry)) return false
    return (entry.isOutdated ||= entry.parts.every((part) => stands(this.overlay.base, part)))
  }

  stateOf(id: string): "open" | "hidden" | "closing" | undefined {
    if (this.#ledger.find(id)) return "open"
    if (this.#ledger.closing.has(id)) return "closing"
    return this.hidden.some((one) => one.id === id) ? "hidden" : undefined
  }

  /** The suggestion at an offset of the view. */
  at(view: number): Readonly<Suggestion> | null {
    const range = { from: view, to: view }
    return this.#ledger.entries.find(({ parts }) => parts.some((part) => meets(this.overlay.outerRange(rangeOf(part)), range))) ?? null
  }

  /** The next batch; empty while the last batch has no answer. */
  collect(): Batch {
    if (this.#ledger.isSending) return { put: [], withdraw: [] }
    // The writer may have deleted all letters between two suggestions.
    const outdated = this.#ledger.entries.filter(({ isOutdated }) => isOutdated)
    const crowded = outdated.filter((entry) => !this.#isAlone(entry)).flatMap(({ parts }) => parts.map(rangeOf))
    this.#dirty = united([...this.#dirty, ...this.#paragraphs(crowded)])
    this.#cut()
    this.overlay = this.overlay.compared(this.#ledger.renew(this.overlay))
    // Own changes beside one that was renewed.
    if (0 < this.#strays(this.#ledger.accepted).length) this.#cut()
    return this.#ledger.send()
  }

  #cut() {
    const plan = this.#plan(this.#strays(this.#ledger.accepted))
    this.#dirty = []
    this.overlay = this.overlay.recut(plan.scopes, plan.parts)
    this.#ledger.amend(plan)
  }

  /** The server's answer to the last batch. */
  answered(results: readonly BatchResult[]) {
    const refused = this.#ledger.answered(results, this.newId)
    this.#blocked.push(...refused.flatMap(({ parts }) => parts.map(rangeOf)))
  }

  /** The last batch got no answer, and is due again. */
  failed() {
    this.#ledger.failed()
  }

  /** All that the server does not have yet, with the words that are not cut. */
  unsaved() {
    const strays = this.#strays(this.#ledger.accepted)
    const { put, withdraw } = this.#plan(strays)
    // The text of an accepted one may never arrive as it was.
    const isStray = meetsOneOf(united(strays))
    const waiting = this.#strays([]).filter((range) => !isStray(range)).map((range) => this.overlay.partOf(range))
    const byId = new Map(this.#ledger.entries.flatMap((entry) => (entry.state === "stored" ? [] : [[entry.id, putOf(entry)]])))
    for (const cut of put) byId.set(cut.id, { ...cut, version: this.#ledger.find(cut.id)?.version ?? null })
    for (const { id } of withdraw) byId.delete(id)
    const more = waiting.map((part) => ({ id: this.newId(), version: null, parts: [part] }))
    return { put: [...byId.values(), ...more], withdraw: [...this.#ledger.closing.keys(), ...withdraw.map(({ id }) => id)] }
  }

  /**
   * Where the view is not what the suggestions give: the server closed one, or the writer's letters stand between.
   *
   * @param accepted those whose text is on its way
   * @returns of the base
   */
  #strays(accepted: readonly Entry[]): Range[] {
    const { entries } = this.#ledger
    const outdated = entries.filter(({ isOutdated }) => isOutdated)
    const isWaiting = meetsOneOf(united([...this.#dirty, ...[...outdated, ...accepted].flatMap(sitesOf)]))
    return this.overlay.unlike(entries.flatMap(({ parts }) => parts)).filter((range) => !isWaiting(range))
  }

  #plan(strays: readonly Range[]) {
    const { entries, hidden } = this.#ledger
    const replaceable = hidden.filter(({ id }) => !this.orphans.has(id))
    return planOf(this.overlay, entries, replaceable, [...this.#dirty, ...strays], this.newId)
  }

  /** @param edit of the base */
  #split(edit: ChangeSet) {
    return splitFulfilled(edit, this.overlay.base, this.#ledger.candidates(touchesOneOf(oldRangesOf(edit))))
  }

  /** Follows an edit that puts no part in. @param edit of the base */
  #follow(edit: ChangeSet) {
    const ranges = oldRangesOf(edit)
    const isNear = touchesOneOf(ranges)
    const near = this.#ledger.entries.filter(isNear)
    const stored = near.filter(isStoredWhole)
    const gone = stored.filter((entry) => isGone(entry, edit))
    for (const { id } of gone) this.orphans.add(id)
    const first = this.#hide(new Set([...gone, ...stored.filter((entry) => this.#hasOwnLetters(entry, ranges))]))
    const { entries, accepted, hidden } = this.#ledger
    const stay = entries.filter(isNear)
    for (const entry of stay) entry.isOutdated ||= isChanged(entry, ranges) || losesAnchor(entry, ranges)
    for (const entry of [...stay, ...[...accepted, ...hidden].filter(isNear)]) entry.sites = sitesOf(entry)
    const second = this.#apply(this.overlay.written(edit))
    this.#shift(mappingOf(edit))
    return first.compose(second).compose(this.#endTyped(newRangesOf(edit))).compose(this.#endArrived()).compose(this.#bringBack(newRangesOf(edit)))
  }

  /** The writer changed the very letters of suggestions that the server has: it cannot accept them. @returns of the view */
  #hide(entries: ReadonlySet<Entry>): ChangeSet {
    const isRead = (entry: Entry) => entry.isOutdated && this.#isAlone(entry)
    const parts = [...entries].flatMap((entry) => (isRead(entry) ? readAgain(entry, this.overlay) : entry.parts))
    this.#ledger.remove(entries)
    this.#ledger.hidden.push(...entries)
    return this.#apply(this.overlay.takeOut(parts))
  }

  /**
   * The younger ones that the server has leave the view for one whose parts stand again: it accepts the older one.
   *
   * @returns of the view
   */
  #makeRoom(older: Suggestion, parts: readonly Part[]): ChangeSet {
    if (older.since === "" || !parts.every((part) => stands(this.overlay.base, part))) return this.#unchanged()
    const isOver = (entry: Entry) => entry.parts.some((own) => parts.some((part) => overlaps(rangeOf(part), rangeOf(own))))
    const younger = this.#ledger.entries.filter((entry) => isServedWhole(entry) && entry.since !== "" && olderFirst(older, entry) < 0 && isOver(entry))
    return 0 < younger.length ? this.#hide(new Set(younger)) : this.#unchanged()
  }

  /** Suggestions whose quotes stand again enter the view. @param ranges of the base that changed @returns of the view */
  #bringBack(ranges: readonly Range[]): ChangeSet {
    let all = this.#unchanged()
    for (const entry of this.#ledger.hidden.filter(touchesOneOf(ranges))) {
      const parts = retyped(entry, this.overlay.base)
      // The words around a gap that the writer deleted say where it was.
      const isLost = this.orphans.has(entry.id) && entry.parts.some(({ quote }) => quote === "")
      if (!parts || isLost) continue
      all = all.compose(this.#makeRoom(entry, parts))
      if (!this.#mayPut(parts)) continue
      all = all.compose(this.#apply(this.overlay.put(parts)))
      this.#ledger.show(entry, parts)
      this.orphans.delete(entry.id)
    }
    return all
  }

  /** Ends the suggestions whose words the writer has typed. @param ranges of the base that changed @returns of the view */
  #endTyped(ranges: readonly Range[]): ChangeSet {
    const isNear = touchesOneOf(ranges)
    const isEnded = (entry: Entry) => isNear(entry) && isTyped(entry, this.overlay.base)
    const shown = this.#ledger.entries.filter((entry) => isStoredWhole(entry) && isEnded(entry) && this.#isAlone(entry))
    for (const entry of [...shown, ...this.#ledger.hidden.filter(isEnded)]) {
      this.#ledger.take(entry.id)
      this.#ledger.withdraw(entry)
    }
    return this.#apply(this.overlay.revert(united(shown.flatMap(sitesOf))))
  }

  /** Whether the text of an accepted suggestion has not arrived. */
  get isWaiting() {
    return 0 < this.#ledger.accepted.length
  }

  /** The texts of the accepted suggestions are not to be expected any more: the writer changed them at once. @returns of the view */
  endWaiting(): ChangeSet {
    const { accepted } = this.#ledger
    this.#ledger.accepted = []
    return this.#apply(this.overlay.takeOutBeside(accepted.flatMap(({ stored, parts }) => stored ?? parts)))
  }

  /** Ends the accepted suggestions whose words the writer's text has in another edit than theirs alone. */
  #endArrived() {
    const arrived = this.#ledger.accepted.filter((entry) => isArrived(entry, this.overlay.base))
    this.#ledger.accepted = this.#ledger.accepted.filter((entry) => !arrived.includes(entry))
    return this.#apply(this.overlay.takeOut(arrived.flatMap(({ stored, parts }) => stored ?? parts)))
  }

  /** Takes over an edit that the overlay contains. @param map of the base */
  #shift(map: Mapping) {
    this.#ledger.shift(map)
    this.#dirty = united(this.#dirty.map((range) => shiftWhole(range, map)))
    this.#blocked = this.#blocked.map((range) => shiftWhole(range, map))
    this.#touch([])
  }

  /** Marks the paragraphs around some ranges, and those that wait for a change. @param ranges of the base */
  #touch(ranges: readonly Range[]) {
    this.#dirty = united([...this.#dirty, ...this.#paragraphs([...ranges, ...this.#blocked.splice(0)])])
  }

  /** @param ranges of the base */
  #paragraphs(ranges: readonly Range[]) {
    const { base } = this.overlay
    return ranges.map(({ from, to }) => ({ from: base.lineAt(from).from, to: base.lineAt(to).to }))
  }

  #apply({ overlay, edit }: Step) {
    this.overlay = overlay
    return edit
  }

  #mayPut(parts: readonly Part[]) {
    return this.overlay.mayPut(parts, this.#ledger.entries.flatMap((entry) => entry.parts))
  }

  #unchanged() {
    return ChangeSet.empty(this.overlay.view.length)
  }

  /** Whether no other suggestion meets the letters of one, or those that the writer put in beside them. */
  #isAlone(entry: Entry) {
    return this.#ledger.entries.filter(touchesOneOf(united(sitesOf(entry)))).length === 1
  }

  /** Whether some ranges share letters with the changes of a suggestion. @param ranges of the base */
  #hasOwnLetters(entry: Entry, ranges: readonly Range[]) {
    const own = this.overlay.hunks.filter(({ old }) => entry.parts.some((part) => meets(rangeOf(part), old)))
    return own.some(({ old }) => ranges.some((range) => shares(range, old)))
  }
}

/**
 * The suggestions that do not enter the view: those that do not stand, and the younger ones of two that overlap.
 *
 * @param entries the oldest first
 */
function hiddenOf(base: Text, entries: readonly Entry[]) {
  const whole = entries.filter(({ parts }) => parts.every((part) => stands(base, part)))
  const isAccepted = acceptedOnes(base.length, whole.map(({ parts }) => parts.map((part) => ({ ...rangeOf(part), text: part.text }))))
  const shown = new Set(whole.filter((_, at) => isAccepted[at]))
  return new Set(entries.filter((entry) => !shown.has(entry)))
}
