// @ts-check
/**
 * A reviewer who suggests beside a writer and a server, in random sessions.
 *
 * Messages wait in both directions, the page holds edits back while it composes, and a page ends and another begins.
 * `GALLEY_STEPS` sets the length of the sessions, `GALLEY_SEED` repeats one.
 */

import assert from "node:assert/strict"
import { test } from "node:test"
import { isDeepStrictEqual } from "node:util"

import { drawnChanges, partsNear } from "../../static/js/suggest/view/drawn_text.ts"
import { rangeOf } from "../../static/js/suggest/model/identity.ts"
import { applied, stands } from "../../static/js/suggest/model/parts.ts"
import { overlaps } from "../../static/js/suggest/model/ranges.ts"
import { Page, Random, Server } from "./suggesting_model.js"

/**
 * @typedef {import("../../static/js/suggest/model/parts.ts").Part} Part
 * @typedef {import("./suggesting_model.js").Review} Review
 */

const STEPS = Number(process.env.GALLEY_STEPS ?? 40_000)
const SEED = Number(process.env.GALLEY_SEED ?? Math.floor(Math.random() * 2 ** 32))
/** Steps of one session. */
const LENGTH = 400

/** @param {Page} page */
function drawn({ suggesting: { suggestions, overlay } }) {
  return drawnChanges(overlay.hunks, partsNear(suggestions, { from: 0, to: overlay.base.length }), overlay)
}

class Session {
  #ids = 0

  /** @param {number} seed */
  constructor(seed) {
    this.name = `seed ${seed}`
    this.random = new Random(seed)
    this.server = new Server(this.random.text())
    this.page = this.#newPage()
    this.server.out = []
  }

  #newPage() {
    return new Page(this.server, () => `suggestion-${String(++this.#ids).padStart(8, "0")}`)
  }

  step() {
    const { server, page, random } = this
    const kind = random.below(24)
    if (kind < 6) page.type(random.edit(page.view))
    else if (kind < 8) server.write(random.specs(server.now))
    else if (kind < 9) page.isComposing = !page.isComposing
    else if (kind < 11 && !page.isComposing) page.send()
    else if (kind < 13 && !page.isComposing) this.deliver()
    else if (kind < 14) this.exchange()
    else if (kind < 15 && 0 < server.applicable.length) server.accept([random.of(server.applicable)], random)
    else if (kind === 15 && random.below(8) === 0 && 0 < server.applicable.length) server.accept(server.applicable, random)
    else if (kind === 16 && random.below(3) === 0 && 0 < server.open.length) server.reject(random.of(server.open))
    else if (kind === 17 && random.below(3) === 0 && 0 < server.decisions.length) server.undo(random)
    else if (kind === 18 && random.below(6) === 0) this.remove()
    else if (kind === 19 && random.below(6) === 0) this.acceptAtRest()
    else if (kind === 20) server.editQuote(random)
    else if (kind === 21) server.retype()
    else if (kind === 22) this.writeRarely()
    else if (kind === 23 && random.below(12) === 0) this.reload()
  }

  writeRarely() {
    const { server, random } = this
    const kind = random.below(4)
    if (kind === 0) server.drag(random)
    else if (kind === 1) server.history.undo()
    else if (kind === 2) server.history.redo()
    else if (random.below(10) === 0) server.write([{ from: 0, to: server.text.length, insert: "" }])
  }

  remove() {
    const { page, random } = this
    const { suggestions } = page.suggesting
    if (0 < suggestions.length) page.dispatch(page.suggesting.remove(random.of(suggestions).id))
  }

  /** The page ends, and its last batch arrives or does not; another page begins with what the browser kept. */
  reload() {
    const { page, server, random } = this
    const { row } = page
    if (random.below(2) === 0) for (const batch of page.outbox) server.receive(batch)
    this.page = this.#newPage()
    server.out = []
    this.page.enter(row)
  }

  deliver() {
    const { page, server, random } = this
    page.inbox.push(...server.out.splice(0))
    for (const message of page.inbox.splice(0, 1 + random.below(4))) page.receive(message)
  }

  exchange() {
    const { page, server, random } = this
    for (const batch of page.outbox.splice(0)) {
      const results = server.receive(batch)
      // The answer is lost: the page sends the batch again.
      if (random.below(10) === 0) page.suggesting.failed()
      else page.answers.push(results)
    }
    for (const results of page.answers.splice(0)) page.suggesting.answered(results)
  }

  /** @param {string} at */
  check(at) {
    const { overlay } = this.page.suggesting
    assert.ok(overlay.changes.apply(overlay.base).eq(overlay.view), `${this.name}, ${at}: the overlay gives the view`)
    assert.ok(overlay.view.eq(this.page.view), `${this.name}, ${at}: the editor has the view`)
  }

  /** Until nothing is on its way. @param {string} at */
  rest(at) {
    const { page, server } = this
    page.isComposing = false
    for (let round = 0; ; round++) {
      assert.ok(round < 30, `${this.name}, ${at}: the page has no rest`)
      while (0 < server.out.length + page.inbox.length) this.deliver()
      page.read(server)
      page.send()
      if (page.outbox.length === 0 && server.out.length === 0) {
        // A suggestion that ended may have kept another one out of the view.
        page.read(server)
        if (page.suggesting.isWaiting) page.dispatch(page.suggesting.endWaiting())
        else if (!page.suggesting.isDirty) break
      }
      this.exchange()
    }
    this.check(at)
    assert.ok(page.suggesting.overlay.base.eq(server.now), `${this.name}, ${at}: the base is the text`)
    assert.ok(!page.suggesting.isDirty, `${this.name}, ${at}: nothing is due`)
    this.#checkShown(at)
    this.#checkReload(at)
  }

  /** The page shows what acceptance of the server's suggestions gives, but for the changes that it counts as unsaved. @param {string} at */
  #checkShown(at) {
    const { page, server } = this
    const { put, withdraw } = page.suggesting.unsaved()
    assert.deepEqual(withdraw, [], `${this.name}, ${at}: nothing waits to be withdrawn`)
    if (0 < put.length) return
    const stored = server.open.map(({ id, parts }) => ({ id, parts: server.resolve(parts) }))
    const shown = stored.filter(({ id }) => page.suggesting.stateOf(id) === "open")
    const sorted = (/** @type {readonly { id: string, parts: Part[] }[]} */ list) =>
      list.map(({ id, parts }) => ({ id, parts })).sort((one, other) => (one.id < other.id ? -1 : 1))
    assert.deepEqual(sorted(page.suggesting.suggestions), sorted(shown), `${this.name}, ${at}: the server has the suggestions`)
    const accepted = applied(server.now, shown.flatMap(({ parts }) => parts)).apply(server.now)
    assert.equal(page.view.toString(), accepted.toString(), `${this.name}, ${at}: the parts give the view`)
    const taken = shown.flatMap(({ parts }) => parts.map(rangeOf))
    for (const { id, parts } of stored) {
      if (page.suggesting.stateOf(id) === "open" || !parts.every((part) => stands(server.now, part))) continue
      assert.ok(parts.some((part) => taken.some((range) => overlaps(range, rangeOf(part)))), `${this.name}, ${at}: the page shows ${id}, which stands`)
    }
  }

  /** A page that begins now shows the same, with what the browser kept. @param {string} at */
  #checkReload(at) {
    const page = this.#newPage()
    assert.deepEqual(page.enter(this.page.row), [], `${this.name}, ${at}: what is kept enters the text`)
    assert.equal(page.view.toString(), this.page.view.toString(), `${this.name}, ${at}: a reload shows the same`)
    if (this.page.suggesting.unsaved().put.length === 0) assert.deepEqual(drawn(page), drawn(this.page), `${this.name}, ${at}: a reload draws the same`)
  }

  /** An acceptance moves no letter of a page to which nothing is on its way. */
  acceptAtRest() {
    const { page, server, random } = this
    this.rest("in between")
    const shown = new Map(page.suggesting.suggestions.map((one) => [one.id, one.parts]))
    const isShown = (/** @type {Review} */ { id, parts }) =>
      page.suggesting.stateOf(id) === "open" && isDeepStrictEqual(shown.get(id), server.resolve(parts))
    const found = server.applicable.filter(isShown)
    if (found.length === 0) return
    const { view } = page
    server.accept(random.below(2) === 0 ? found : [random.of(found)], random)
    while (0 < server.out.length + page.inbox.length) this.deliver()
    assert.equal(page.view.toString(), view.toString(), `${this.name}: the view stays`)
  }
}

test(`any session ends with one text and one list, and a reload shows the same (seed ${SEED})`, () => {
  for (let start = 0; start < STEPS; start += LENGTH) {
    const session = new Session((SEED + start) >>> 0)
    for (let at = 0; at < LENGTH; at++) {
      session.step()
      session.check(`step ${at}`)
    }
    session.rest("at rest")
  }
})
