// @ts-check
/**
 * The server, the writer and the page of a reviewer in the random sessions of `suggesting.test.js`.
 *
 * The server has the text and the suggestions, and validates as the real one does. Messages wait in both directions.
 */

import assert from "node:assert/strict"
import { isDeepStrictEqual } from "node:util"

import { ChangeSet, Text, Y } from "../../static/js/lib/vendor.ts"
import { applied, byOffset, stands } from "../../static/js/suggest/model/parts.ts"
import { overlaps } from "../../static/js/suggest/model/ranges.ts"
import { entering } from "../../static/js/suggest/sync/recovery.ts"
import { Suggesting } from "../../static/js/suggest/sync/suggesting.ts"
import { specsWithin } from "../../static/js/suggest/model/tidy.ts"

/**
 * @typedef {import("../../static/js/suggest/model/parts.ts").Part} Part
 * @typedef {import("../../static/js/suggest/sync/ledger.ts").BatchResult} BatchResult
 * @typedef {{ start: Y.RelativePosition, end: Y.RelativePosition, quote: string, text: string }} Anchored
 * @typedef {{ id: string, version: number | null, parts: Anchored[] }} Put
 * @typedef {{ put: Put[], withdraw: { id: string, version: number }[] }} Sent
 * @typedef {{ put: Put[], withdraw: string[] }} Row what the browser keeps of a page
 * @typedef {{ id: string, version: number, since: string, parts: Anchored[], status: "open" | "accepted" | "rejected" | "withdrawn" }} Review
 * @typedef {{ update: Uint8Array } | { decided: string, outcome: "accepted" | "rejected" | "withdrawn" }
 *   | { opened: string, version: number, since: string, parts: Anchored[] }} Message
 */

const WORDS = ["학교", "는", "가", "저는", "회사에서", " ", " ", " ", "\n", "the", "cat", "sat", "a", "s", ".", ", ", "👨‍👩‍👧", "e\u0301", "漢字", "1,000자", "teh", "very "]

/** @param {number} seed */
function numbers(seed) {
  let state = seed >>> 0
  return (/** @type {number} */ below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

export const textOf = (/** @type {string} */ text) => Text.of(text.split("\n"))

/** Half of a surrogate pair is no letter. @param {Text} text @param {number} at */
const whole = (text, at) => (/^[\udc00-\udfff]/.test(text.sliceString(at, at + 1)) ? at + 1 : at)

export class Random {
  /** @param {number} seed */
  constructor(seed) {
    this.below = numbers(seed)
  }

  /** @param {number} most */
  words(most) {
    return Array.from({ length: this.below(most + 1) }, () => this.of(WORDS)).join("")
  }

  /** @template T @param {readonly T[]} list @returns {T} */
  of(list) {
    return /** @type {T} */ (list[this.below(list.length)])
  }

  /** A text with twins of sentences, or of words alone. */
  text() {
    if (this.below(2) === 0) return this.words(60)
    return Array.from({ length: 2 + this.below(5) }, () => this.of([...TWINS, ...TWINS, "\n", this.words(4)])).join("")
  }

  /** @param {Text} text */
  edit(text) {
    return ChangeSet.of(this.specs(text).map((spec) => ({ ...spec, insert: textOf(spec.insert) })), text.length)
  }

  /** A user types, deletes, replaces, pastes or drags in a text. @param {Text} text */
  specs(text) {
    const at = whole(text, this.below(text.length + 1))
    const to = whole(text, Math.min(text.length, at + this.of([0, 0, 0, 1, 1, 2, 4, 12, 40])))
    const insert = this.of(["", this.of(WORDS), this.of(WORDS), this.words(3), this.words(this.below(10) === 0 ? 30 : 2)])
    if (this.below(40) === 0 && at + 25 < text.length) {
      // A passage moves to the end.
      const end = whole(text, at + 25)
      return [{ from: at, to: end, insert: "" }, { from: text.length, to: text.length, insert: text.sliceString(at, end) }]
    }
    return [{ from: at, to, insert }]
  }
}

/** @param {Y.Text} text @param {Part} part @returns {Anchored} */
function anchored(text, { start, end, quote, text: words }) {
  const at = (/** @type {number} */ index, /** @type {number} */ side) => Y.createRelativePositionFromTypeIndex(text, index, side)
  return { start: at(start, 0), end: at(end, start === end ? 0 : -1), quote, text: words }
}

/** The server does not know which letters an undo of the writer's page brought back. @param {Y.Doc} doc @param {Anchored} part @returns {Part} */
function resolved(doc, { start, end, quote, text }) {
  const index = (/** @type {Y.RelativePosition} */ position) => Y.createAbsolutePositionFromRelativePosition(position, doc, false)?.index ?? 0
  return { start: index(start), end: index(end), quote, text }
}

/** Sentences that a text has more than once. */
const TWINS = ["저는 팀을 이끌어 매출을 늘렸습니다. ", "저는 물류를 배웠습니다. ", "The team cut the costs by twelve percent. "]

/** @param {Part} part */
const rangeOf = ({ start, end }) => ({ from: start, to: end })

/** The writer's text with the suggestions that the server has. */
export class Server {
  doc = new Y.Doc()
  text = this.doc.getText("content")
  /** @type {Map<string, Review>} */
  reviews = new Map()
  /** @type {{ id: string, parts: Anchored[] }[]} */
  decisions = []
  /** @type {Message[]} */
  out = []
  /** The letters that the writer took out of a quote last. @type {{ at: Y.RelativePosition, words: string } | null} */
  #taken = null

  /** @param {string} text */
  constructor(text) {
    this.doc.on("update", (update) => this.out.push({ update }))
    this.text.insert(0, text)
    this.history = new Y.UndoManager(this.text, { trackedOrigins: new Set(["writer"]), captureTimeout: 0 })
  }

  /** @param {{ from: number, to: number, insert: string }[]} specs in order @param {"writer" | "server"} by */
  write(specs, by = "writer") {
    this.doc.transact(() => {
      for (const { from, to, insert } of specs.toReversed()) {
        if (from < to) this.text.delete(from, to - from)
        if (insert !== "") this.text.insert(from, insert)
      }
    }, by)
  }

  /** The writer puts a letter into a quote, or takes one out. @param {Random} random */
  editQuote(random) {
    const quotes = this.open.flatMap(({ parts }) => this.resolve(parts)).filter(({ start, end }) => start < end)
    if (quotes.length === 0) return
    const { start, end } = random.of(quotes)
    const { now } = this
    const from = whole(now, start + random.below(end - start))
    const to = random.below(2) === 0 ? from : whole(now, Math.min(from + 1, now.length))
    const insert = from === to || random.below(3) === 0 ? random.of(["품", "x", " "]) : ""
    this.#taken = { at: Y.createRelativePositionFromTypeIndex(this.text, from, random.of([0, -1])), words: now.sliceString(from, to) }
    this.write([{ from, to, insert }])
  }

  /** The writer types again what was taken out of a quote last. */
  retype() {
    const at = this.#taken && Y.createAbsolutePositionFromRelativePosition(this.#taken.at, this.doc)?.index
    if (this.#taken && at !== undefined && at !== null) this.write([{ from: at, to: at, insert: this.#taken.words }])
    this.#taken = null
  }

  /** The writer drags a passage. @param {Random} random */
  drag(random) {
    const { now } = this
    const from = whole(now, random.below(now.length + 1))
    const to = whole(now, Math.min(now.length, from + random.of([3, 8, 30])))
    const at = whole(now, random.below(now.length + 1))
    if (from < at && at < to) return
    const [cut, put] = [{ from, to, insert: "" }, { from: at, to: at, insert: now.sliceString(from, to) }]
    this.write(at <= from ? [put, cut] : [cut, put])
  }

  get now() {
    return textOf(this.text.toString())
  }

  /** @param {Anchored[]} parts */
  resolve(parts) {
    return parts.map((part) => resolved(this.doc, part))
  }

  get open() {
    return [...this.reviews.values()].filter(({ status }) => status === "open")
  }

  get applicable() {
    const { now } = this
    return this.open.filter(({ parts }) => this.resolve(parts).every((part) => stands(now, part)))
  }

  /** Accepts suggestions that stand in one edit. @param {readonly Review[]} reviews @param {Random} random */
  accept(reviews, random) {
    const parts = reviews.flatMap((review) => this.resolve(review.parts)).sort(byOffset)
    const isFine = random.below(2) === 0
    const specs = parts.flatMap(({ start, end, quote, text }) =>
      isFine
        ? specsWithin(start, quote, text).map((spec) => ({ ...spec, insert: spec.insert.toString() }))
        : [{ from: start, to: end, insert: text }],
    )
    const edit = ChangeSet.of(specs.map((spec) => ({ ...spec, insert: textOf(spec.insert) })), this.text.length)
    const isEventFirst = random.below(4) === 0
    const events = reviews.map(({ id }) => /** @type {Message} */ ({ decided: id, outcome: "accepted" }))
    if (isEventFirst) this.out.push(...events)
    const after = reviews.map((review) =>
      this.resolve(review.parts).map(({ start, quote, text }) => {
        const from = edit.mapPos(start, -1)
        return { start: from, end: from + text.length, quote: text, text: quote }
      }),
    )
    this.write(specs, "server")
    if (!isEventFirst) this.out.push(...events)
    for (const [index, review] of reviews.entries()) {
      review.status = "accepted"
      this.decisions.push({ id: review.id, parts: (after[index] ?? []).map((part) => anchored(this.text, part)) })
    }
  }

  /** Takes an acceptance back, if the text still has the words. @param {Random} random */
  undo(random) {
    const [decision] = this.decisions.splice(random.below(this.decisions.length), 1)
    const review = decision && this.reviews.get(decision.id)
    const parts = this.resolve(decision?.parts ?? []).sort(byOffset)
    if (!review || !parts.every((part) => stands(this.now, part))) return
    const edit = applied(this.now, parts)
    const back = parts.map(({ start, quote, text }) => {
      const from = edit.mapPos(start, -1)
      return { start: from, end: from + text.length, quote: text, text: quote }
    })
    this.write(parts.map(({ start, end, text }) => ({ from: start, to: end, insert: text })), "server")
    Object.assign(review, { parts: back.map((part) => anchored(this.text, part)), status: "open", version: review.version + 1 })
    this.out.push({ opened: review.id, version: review.version, since: review.since, parts: review.parts })
  }

  /** @param {Review} review */
  reject(review) {
    review.status = "rejected"
    this.out.push({ decided: review.id, outcome: "rejected" })
  }

  /** @param {Sent} batch @returns {BatchResult[]} */
  receive(batch) {
    const ids = new Set([...batch.put, ...batch.withdraw].map(({ id }) => id))
    // One that cannot be accepted has a range, too.
    const others = this.open.filter(({ id }) => !ids.has(id)).flatMap(({ parts }) => this.resolve(parts)).filter(({ start, end, quote }) => quote === "" || start < end)
    const { now } = this
    const results = batch.put.map(({ id, version, parts: sent }) => {
      const refused = (/** @type {string} */ reason) => /** @type {BatchResult} */ ({ id, state: "refused", reason })
      const parts = this.resolve(sent)
      const review = this.reviews.get(id)
      assert.notEqual(review?.status, "withdrawn", "an id that was withdrawn is spent")
      if (review && review.status !== "open") return refused("decided")
      // Its letters are those of now, whatever became of those that the page named.
      const placed = parts.map((part) => anchored(this.text, part))
      const isRepeat = review && isDeepStrictEqual(placed, review.parts)
      if (!isRepeat && (review?.version ?? null) !== version) return refused("version")
      if (!parts.every((part) => stands(now, part))) return refused("quote-changed")
      if (parts.some((part) => others.some((other) => overlaps(rangeOf(part), rangeOf(other))))) return refused("overlaps")
      const next = isRepeat ? review.version : (version ?? 0) + 1
      const since = review?.since ?? `${String(this.reviews.size).padStart(9, "0")}Z`
      this.reviews.set(id, { id, version: next, since, parts: placed, status: "open" })
      this.out.push({ opened: id, version: next, since, parts: placed })
      others.push(...parts)
      return /** @type {BatchResult} */ ({ id, state: "kept", version: next })
    })
    for (const { id, version } of batch.withdraw) {
      const review = this.reviews.get(id)
      if (!review || review.status === "withdrawn") results.push({ id, state: "withdrawn" })
      else if (review.version !== version) results.push({ id, state: "refused", reason: "version" })
      else if (review.status !== "open") results.push({ id, state: "refused", reason: "decided" })
      else {
        review.status = "withdrawn"
        this.out.push({ decided: id, outcome: "withdrawn" })
        results.push({ id, state: "withdrawn" })
      }
    }
    return results
  }
}

/** The page of the reviewer: a copy of the text, an editor, and what came from the server and waits. */
export class Page {
  doc = new Y.Doc()
  text = this.doc.getText("content")
  /** @type {Message[]} */
  inbox = []
  /** @type {Sent[]} */
  outbox = []
  /** @type {BatchResult[][]} */
  answers = []
  isComposing = false

  /** @param {Server} server @param {() => string} newId */
  constructor(server, newId) {
    Y.applyUpdate(this.doc, Y.encodeStateAsUpdate(server.doc))
    this.newId = newId
    const open = server.open.map(({ id, version, since, parts }) => ({ id, version, since, parts: server.resolve(parts), pinned: false }))
    this.suggesting = new Suggesting(server.now, open.filter(({ parts }) => !parts.some(isCollapsed)), newId)
    this.view = this.suggesting.overlay.view
    this.text.observe(({ delta }) => this.#write(delta))
  }

  /** A deletion and an insertion stay two changes: a gap beside them stands as in Yjs. @param {Y.YTextEvent["delta"]} delta */
  #write(delta) {
    let at = 0
    const specs = delta.flatMap(({ retain = 0, delete: removed = 0, insert = "" }) => {
      const from = (at += retain)
      at += removed
      return retain ? [] : [{ from, to: at, insert: textOf(String(insert)) }]
    })
    const edit = ChangeSet.of(specs, this.suggesting.overlay.base.length)
    assert.equal(this.suggesting.viewEdit(edit).length, this.view.length)
    this.dispatch(this.suggesting.written(edit))
  }

  /** @param {ChangeSet} edit */
  dispatch(edit) {
    this.view = edit.apply(this.view)
  }

  /** @param {Message} message */
  receive(message) {
    if ("update" in message) Y.applyUpdate(this.doc, message.update)
    else if ("decided" in message) this.dispatch(this.suggesting.decided(message.decided, message.outcome))
    else {
      const { opened: id, version, since } = message
      const parts = message.parts.map((part) => resolved(this.doc, part))
      this.dispatch(this.suggesting.opened({ id, version, since, parts, pinned: false }))
    }
  }

  /** Reads the list, as `own_suggestions.ts` does. @param {Server} server */
  read(server) {
    const { suggesting } = this
    for (const { id, version, since, parts } of server.open) {
      const found = server.resolve(parts)
      if (found.some(isCollapsed)) this.dispatch(suggesting.orphaned(id))
      else if (suggesting.stateOf(id) !== "open" && found.every((part) => stands(server.now, part))) this.receive({ opened: id, version, since, parts })
    }
  }

  /** @param {ChangeSet} edit */
  type(edit) {
    this.dispatch(edit)
    this.suggesting.own(edit)
  }

  send() {
    const { put, withdraw } = this.suggesting.collect()
    if (0 < put.length + withdraw.length) this.outbox.push({ put: this.#placed(put), withdraw })
  }

  /** @param {readonly { id: string, version: number | null, parts: Part[] }[]} put */
  #placed(put) {
    return put.map(({ id, version, parts }) => ({ id, version, parts: parts.map((part) => anchored(this.text, part)) }))
  }

  /** The row of this page in the browser. @returns {Row} */
  get row() {
    const { put, withdraw } = this.suggesting.unsaved()
    return { put: this.#placed(put), withdraw }
  }

  /** A later page enters the row of this one, and answers what it only offers. @param {Row} row */
  enter({ put, withdraw }) {
    const offered = put.filter(({ id, parts }) => {
      const { overlay, suggestions } = this.suggesting
      const placed = parts.map((part) => resolved(this.doc, part))
      const listed = suggestions.find((one) => one.id === id)?.parts ?? []
      const others = suggestions.filter((one) => one.id !== id).flatMap((one) => one.parts)
      const edit = placed.every((part) => stands(overlay.base, part)) ? entering(overlay, placed, listed, others) : null
      if (edit && !edit.empty) this.type(edit)
      return edit === null
    })
    for (const id of withdraw) if (this.suggesting.stateOf(id) !== undefined) this.dispatch(this.suggesting.remove(id))
    return offered
  }
}

/** @param {Part} part */
const isCollapsed = ({ start, end, quote }) => quote !== "" && start === end
