// @ts-check
/**
 * A reviewer who suggests beside a writer and a server, in random sessions.
 *
 * The server of the test holds the text and the suggestions, and validates as the real one does. Messages wait in both
 * directions, and the page holds edits back while it composes. `GALLEY_STEPS` sets the length of the sessions,
 * `GALLEY_SEED` repeats one.
 */

import assert from "node:assert/strict"
import { test } from "node:test"
import { isDeepStrictEqual } from "node:util"

import { ChangeSet, Text, Y } from "../../static/js/lib/vendor.js"
import { applied, byOffset, stands } from "../../static/js/suggest/parts.js"
import { overlaps } from "../../static/js/suggest/ranges.js"
import { Suggesting } from "../../static/js/suggest/suggesting.js"
import { specsWithin } from "../../static/js/suggest/tidy.js"

/**
 * @typedef {import("../../static/js/suggest/parts.js").Part} Part
 * @typedef {import("../../static/js/suggest/ledger.js").Result} Result
 * @typedef {{ start: Y.RelativePosition, end: Y.RelativePosition, quote: string, text: string }} Anchored
 * @typedef {{ put: { id: string, version: number | null, parts: Anchored[] }[], withdraw: { id: string, version: number }[] }} Sent
 * @typedef {{ id: string, version: number, parts: Anchored[], status: "open" | "accepted" | "rejected" | "withdrawn" }} Review
 * @typedef {{ update: Uint8Array } | { decided: string, outcome: "accepted" | "rejected" | "withdrawn" }
 *   | { opened: string, version: number, parts: Anchored[] }} Message
 */

const STEPS = Number(process.env.GALLEY_STEPS ?? 40_000)
const SEED = Number(process.env.GALLEY_SEED ?? Math.floor(Math.random() * 2 ** 32))
/** Steps of one session. */
const LENGTH = 400

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

const textOf = (/** @type {string} */ text) => Text.of(text.split("\n"))

/** Half of a surrogate pair is no letter. @param {Text} text @param {number} at */
const whole = (text, at) => (/^[\udc00-\udfff]/.test(text.sliceString(at, at + 1)) ? at + 1 : at)

class Random {
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

/** @param {Y.Doc} doc @param {Anchored} part @returns {Part} */
function resolved(doc, { start, end, quote, text }) {
  const index = (/** @type {Y.RelativePosition} */ position) => Y.createAbsolutePositionFromRelativePosition(position, doc)?.index ?? 0
  return { start: index(start), end: index(end), quote, text }
}

/** @param {Part} part */
const rangeOf = ({ start, end }) => ({ from: start, to: end })

/** The writer's text with the suggestions that the server has. */
class Server {
  doc = new Y.Doc()
  text = this.doc.getText("content")
  /** @type {Map<string, Review>} */
  reviews = new Map()
  /** @type {{ id: string, parts: Anchored[] }[]} */
  decisions = []
  /** @type {Message[]} */
  out = []

  /** @param {string} text */
  constructor(text) {
    this.doc.on("update", (update) => this.out.push({ update }))
    this.text.insert(0, text)
  }

  /** @param {{ from: number, to: number, insert: string }[]} specs in order */
  write(specs) {
    this.doc.transact(() => {
      for (const { from, to, insert } of specs.toReversed()) {
        if (from < to) this.text.delete(from, to - from)
        if (insert !== "") this.text.insert(from, insert)
      }
    })
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
    this.write(specs)
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
    this.write(parts.map(({ start, end, text }) => ({ from: start, to: end, insert: text })))
    Object.assign(review, { parts: back.map((part) => anchored(this.text, part)), status: "open", version: review.version + 1 })
    this.out.push({ opened: review.id, version: review.version, parts: review.parts })
  }

  /** @param {Review} review */
  reject(review) {
    review.status = "rejected"
    this.out.push({ decided: review.id, outcome: "rejected" })
  }

  /** @param {Sent} batch @returns {Result[]} */
  receive(batch) {
    const ids = new Set([...batch.put, ...batch.withdraw].map(({ id }) => id))
    const others = this.applicable.filter(({ id }) => !ids.has(id)).flatMap(({ parts }) => this.resolve(parts))
    const { now } = this
    const results = batch.put.map(({ id, version, parts: sent }) => {
      const refused = (/** @type {string} */ reason) => /** @type {Result} */ ({ id, state: "refused", reason })
      const parts = this.resolve(sent)
      const review = this.reviews.get(id)
      if (review && review.status !== "open") return refused("decided")
      const isRepeat = review && isDeepStrictEqual(parts, this.resolve(review.parts))
      if (!isRepeat && (review?.version ?? null) !== version) return refused("version")
      if (!parts.every((part) => stands(now, part))) return refused("quote-changed")
      if (parts.some((part) => others.some((other) => overlaps(rangeOf(part), rangeOf(other))))) return refused("overlaps")
      const next = isRepeat ? review.version : (version ?? 0) + 1
      this.reviews.set(id, { id, version: next, parts: sent, status: "open" })
      this.out.push({ opened: id, version: next, parts: sent })
      others.push(...parts)
      return /** @type {Result} */ ({ id, state: "kept", version: next })
    })
    for (const { id, version } of batch.withdraw) {
      const review = this.reviews.get(id)
      if (review?.version !== version) results.push({ id, state: "refused", reason: "version" })
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
class Page {
  doc = new Y.Doc()
  text = this.doc.getText("content")
  /** @type {Message[]} */
  inbox = []
  /** @type {Sent[]} */
  outbox = []
  /** @type {Result[][]} */
  answers = []
  isComposing = false
  ids = 0

  constructor() {
    this.suggesting = new Suggesting(Text.empty, [], () => `suggestion-${String(++this.ids).padStart(8, "0")}`)
    this.view = Text.empty
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
      const { opened: id, version } = message
      const parts = message.parts.map((part) => resolved(this.doc, part))
      this.dispatch(this.suggesting.opened({ id, version, parts, pinned: false }))
    }
  }

  /** @param {ChangeSet} edit */
  type(edit) {
    this.dispatch(edit)
    this.suggesting.own(edit)
  }

  /** A key that leaves the text as it was. @param {number} at */
  touch(at) {
    this.type(ChangeSet.of([{ from: at, insert: "x" }], this.view.length))
    this.type(ChangeSet.of([{ from: at, to: at + 1 }], this.view.length))
  }

  send() {
    const { put, withdraw } = this.suggesting.collect()
    const sent = put.map(({ id, version, parts }) => ({ id, version, parts: parts.map((part) => anchored(this.text, part)) }))
    if (0 < put.length + withdraw.length) this.outbox.push({ put: sent, withdraw })
  }
}

/** @param {Server} server @param {Page} page @param {Random} random */
function step(server, page, random) {
  const kind = random.below(20)
  if (kind < 6) page.type(random.edit(page.view))
  else if (kind < 8) server.write(random.specs(server.now))
  else if (kind < 9) page.isComposing = !page.isComposing
  else if (kind < 11 && !page.isComposing) page.send()
  else if (kind < 13 && !page.isComposing) deliver(server, page, random)
  else if (kind < 14) exchange(server, page, random)
  else if (kind < 15 && 0 < server.applicable.length) server.accept([random.of(server.applicable)], random)
  else if (kind === 15 && random.below(8) === 0 && 0 < server.applicable.length) server.accept(server.applicable, random)
  else if (kind === 16 && random.below(3) === 0 && 0 < server.open.length) server.reject(random.of(server.open))
  else if (kind === 17 && random.below(3) === 0 && 0 < server.decisions.length) server.undo(random)
  else if (kind === 18 && random.below(6) === 0) remove(page, random)
  else if (kind === 19 && random.below(6) === 0) acceptAtRest(server, page, random)
}

/** An acceptance moves no letter of a page to which nothing is on its way. @param {Server} server @param {Page} page @param {Random} random */
function acceptAtRest(server, page, random) {
  rest(server, page, random, "in between")
  const shown = new Map(page.suggesting.suggestions.map((one) => [one.id, one.parts]))
  const isShown = (/** @type {Review} */ { id, parts }) =>
    page.suggesting.stateOf(id) === "open" && isDeepStrictEqual(shown.get(id), server.resolve(parts))
  const found = server.applicable.filter(isShown)
  if (found.length === 0) return
  const { view } = page
  server.accept(random.below(2) === 0 ? found : [random.of(found)], random)
  while (0 < server.out.length + page.inbox.length) deliver(server, page, random)
  assert.equal(page.view.toString(), view.toString(), "the view stays")
}

/** @param {Page} page @param {Random} random */
function remove(page, random) {
  const { suggestions } = page.suggesting
  if (0 < suggestions.length) page.dispatch(page.suggesting.remove(random.of(suggestions).id))
}

/** @param {Server} server @param {Page} page @param {Random} random */
function deliver(server, page, random) {
  page.inbox.push(...server.out.splice(0))
  for (const message of page.inbox.splice(0, 1 + random.below(4))) page.receive(message)
}

/** @param {Server} server @param {Page} page @param {Random} random */
function exchange(server, page, random) {
  for (const batch of page.outbox.splice(0)) {
    const results = server.receive(batch)
    // The answer is lost: the page sends the batch again.
    if (random.below(10) === 0) page.suggesting.failed()
    else page.answers.push(results)
  }
  for (const results of page.answers.splice(0)) page.suggesting.answered(results)
}

/** @param {Page} page @param {string} name */
function check(page, name) {
  const { overlay } = page.suggesting
  assert.ok(overlay.changes.apply(overlay.base).eq(overlay.view), `${name}: the overlay gives the view`)
  assert.ok(overlay.view.eq(page.view), `${name}: the editor has the view`)
}

/** Until nothing is on its way. @param {Server} server @param {Page} page @param {Random} random @param {string} name */
function rest(server, page, random, name) {
  page.isComposing = false
  for (let round = 0; ; round++) {
    assert.ok(round < 30, `${name}: the page has no rest`)
    while (0 < server.out.length + page.inbox.length) deliver(server, page, random)
    // The list of the server says which of them stand.
    const { orphans } = page.suggesting
    for (const { id, version, parts } of server.applicable) if (orphans.has(id)) page.receive({ opened: id, version, parts })
    page.send()
    if (page.outbox.length === 0 && server.out.length === 0) return
    exchange(server, page, random)
  }
}

test(`any session ends with one text and one list (seed ${SEED})`, () => {
  for (let start = 0; start < STEPS; start += LENGTH) {
    const seed = (SEED + start) >>> 0
    const random = new Random(seed)
    const server = new Server(random.words(60))
    const page = new Page()
    deliver(server, page, random)
    for (let at = 0; at < LENGTH; at++) {
      step(server, page, random)
      check(page, `seed ${seed}, step ${at}`)
    }
    const name = `seed ${seed}, at rest`
    rest(server, page, random, name)
    check(page, name)
    assert.ok(page.suggesting.overlay.base.eq(server.now), `${name}: the base is the text`)
    // A key in each paragraph renews what the writer edited.
    for (let line = 1; line <= page.view.lines; line++) page.touch(page.view.line(line).from)
    const starts = page.suggesting.suggestions.flatMap(({ parts }) => parts.map(({ start }) => start))
    for (const start of starts) page.touch(page.suggesting.overlay.toView(start))
    rest(server, page, random, name)
    check(page, name)
    const { suggestions, overlay, orphans, hidden } = page.suggesting
    const parts = suggestions.flatMap((suggestion) => suggestion.parts)
    assert.equal(applied(overlay.base, parts).apply(overlay.base).toString(), page.view.toString(), `${name}: the parts give the view`)
    const open = server.open.filter(({ id }) => !orphans.has(id) && !hidden.some((one) => one.id === id))
    const sorted = (/** @type {readonly { id: string, parts: Part[] }[]} */ list) =>
      list.map(({ id, parts }) => ({ id, parts })).sort((one, other) => (one.id < other.id ? -1 : 1))
    const stored = open.map(({ id, parts: found }) => ({ id, parts: server.resolve(found) }))
    assert.deepEqual(sorted(suggestions), sorted(stored), `${name}: the server has the suggestions`)
  }
})
