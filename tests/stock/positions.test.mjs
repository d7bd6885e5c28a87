// @ts-check
/**
 * Shown and accepted places: in a text of repeated clauses, which a writer edits, cuts, pastes and undoes, the suggestions that a
 * page shows as acceptable give the text that the server gives for all of them accepted.
 *
 * `GALLEY_SEED` replays a run.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { after, before, test } from "node:test"

import { ChangeSet, Text } from "@codemirror/state"
import * as Y from "yjs"

import { SharedPositions } from "../../static/js/reviews/shared_positions.ts"
import { extentOf, isWhole, moved, spotsOf, stateOfSpot } from "../../static/js/reviews/spots.ts"
import { acceptedText } from "../../static/js/sections/accepted.ts"
import { Galley } from "./galley.mjs"
import { Random, StockUser } from "./stock_users.mjs"

/** @typedef {import("../../static/js/lib/api.ts").Review} Review */

const SEED = Number(process.env.GALLEY_SEED ?? randomInt(2 ** 31))
const ROUNDS = process.env.GALLEY_SHORT ? 1 : 6
const STEPS = 25
const CLAUSES = ["갑은 을에게 대금을 지급한다.\n", "을은 갑에게 대금을 지급한다.\n", "I will always gladly answer. ", "the team, the team "]

/** @type {Galley} */
let galley
before(async () => (galley = await Galley.start({ GALLEY_LIMITS__REQUESTS_PER_SECOND: "1000", GALLEY_LIMITS__REQUEST_BURST: "10000" })))
after(() => galley.stop())

/** A page: its places follow each edit, and are settled at rest. */
class Page {
  /** @type {Map<string, readonly import("../../static/js/reviews/spots.ts").Spot[]>} */
  spots = new Map()

  /** @param {Y.Text} shared */
  constructor(shared) {
    this.shared = shared
    shared.observe((event) => this.#follow(event))
    this.tree = Text.of(shared.toString().split("\n"))
  }

  /** @param {Y.YTextEvent} event */
  #follow(event) {
    const changes = []
    let at = 0
    for (const { retain = 0, delete: gone = 0, insert } of event.delta) {
      if (typeof insert === "string") changes.push({ from: at, to: at, insert: Text.of(insert.split("\n")) })
      else if (gone > 0) changes.push({ from: at, to: at + gone })
      at += retain + gone
    }
    const set = ChangeSet.of(changes, this.tree.length)
    this.tree = set.apply(this.tree)
    for (const [id, spots] of this.spots) this.spots.set(id, spots.map((spot) => moved(spot, set, extentOf(set), this.tree)))
  }

  /** @param {Review[]} reviews as the server sends them */
  read(reviews) {
    const text = { tree: this.tree, whole: this.tree.toString(), positions: new SharedPositions(this.shared, (at) => at) }
    this.spots = new Map(reviews.map((review) => [review.id, spotsOf(text, review, this.spots.get(review.id) ?? [])]))
  }

  /** @param {Review[]} reviews the oldest first */
  accepted(reviews) {
    const suggestions = reviews.map(({ id }) => this.spots.get(id) ?? []).filter(isWhole)
    return acceptedText(this.tree.toString(), suggestions.map((spots) => spots.map(({ from, to, text }) => ({ from, to, text: text ?? "" })))).text
  }
}

/** @param {string} path @param {string} token */
const get = (path, token) => fetch(galley.url + path, { headers: { authorization: `Bearer ${token}` } })

/** One act of the writer; the clipboard has what was cut last. @param {Y.Text} text @param {Random} random @param {{ at: number, text: string }} clipboard */
function act(text, random, clipboard) {
  const at = random.below(text.length + 1)
  const kind = random.below(6)
  text.doc?.transact(() => {
    if (kind < 3) {
      const length = Math.min(1 + random.below(30), text.length - at)
      clipboard.at = at
      clipboard.text = text.toString().slice(at, at + length)
      text.delete(at, length)
      if (kind === 2) text.insert(random.below(text.length + 1), clipboard.text)
    } else if (kind === 3) text.insert(at, clipboard.text)
    else if (kind === 4) text.insert(Math.min(clipboard.at, text.length), clipboard.text)
    else text.insert(at, random.one(CLAUSES).slice(0, 1 + random.below(12)))
  })
}

test("the place that a page shows is the place of the acceptance", { timeout: 300_000 }, async () => {
  const seen = { exact: 0, edited: 0, moved: 0, orphaned: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const random = new Random(SEED + round)
    const desk = await galley.desk(Array.from({ length: 6 }, () => random.one(CLAUSES)).join(""))
    const { link } = desk
    const [writer, reviewer] = [["writer", desk.writer], ["reviewer", desk.reviewer]].map(([role = "", token = ""]) => new StockUser({ role, link, token, url: galley.url, version: 0, name: role }))
    if (!writer || !reviewer) return
    for (const user of [writer, reviewer]) user.connect(galley.url)
    while (!writer.isSynced || !reviewer.isSynced) await new Promise((done) => setTimeout(done, 5))
    const page = new Page(writer.text)
    const clipboard = { at: 0, text: "" }
    for (let step = 0; step < STEPS; step++) {
      act(writer.text, random, clipboard)
      const text = writer.read()
      while ((await (await get(`/api/documents/${desk.document}/text`, desk.writer)).text()) !== text) await new Promise((done) => setTimeout(done, 5))
      const start = random.below(text.length + 1)
      const end = Math.min(start + random.below(6), text.length)
      const part = start === end ? { at: start, text: "+" } : { start, end, quote: text.slice(start, end), text: "=" }
      await galley.call("POST", `/api/share-links/${link}/suggestions`, { put: [{ id: `places-${SEED}-${round}-${step}`, version: null, parts: [part] }], withdraw: [] }, desk.reviewer)
      /** @type {{ reviews: Review[] }} */
      const { reviews } = await (await get(`/api/share-links/${link}/reviews?status=open`, desk.writer)).json()
      reviews.sort((one, other) => one.created_at.localeCompare(other.created_at) || one.id.localeCompare(other.id))
      page.read(reviews)
      /** @type {Page} */
      const reloaded = new Page(writer.text)
      reloaded.read(reviews)
      const accepted = await (await get(`/api/documents/${desk.document}/text?view=accepted`, desk.writer)).text()
      const where = `GALLEY_SEED=${SEED}, round ${round}, step ${step}`
      for (const { id, parts } of reviews) {
        const states = parts.map(({ anchor }) => anchor.state)
        for (const { spots } of [page, reloaded]) assert.deepEqual(spots.get(id)?.map(stateOfSpot), states, `${where}: ${id}`)
        for (const state of states) seen[state] += 1
      }
      assert.equal(page.accepted(reviews), accepted, `${where}: the page that followed the edits`)
      assert.equal(reloaded.accepted(reviews), accepted, `${where}: a reloaded page`)
    }
    for (const user of [writer, reviewer]) user.end()
  }
  assert.ok(ROUNDS === 1 || Object.values(seen).every((count) => 0 < count), JSON.stringify(seen))
})
