// @ts-check
/** Positions of the cards in the margin. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { arrange, crowded, scrollInto } from "../../static/js/reviews/layout.ts"

/** @param {...number} wants */
const boxes = (...wants) => wants.map((want, at) => ({ id: "abcdef"[at] ?? "", want, height: 50 }))
const options = { active: null, gap: 10, top: 0 }

/** @param {Map<string, number>} tops */
const list = (tops) => [...tops.values()]

test("cards that have room stand beside their lines", () => {
  assert.deepEqual(list(arrange(boxes(0, 100, 300), options)), [0, 100, 300])
})

test("cards of one line are pushed down, apart from each other", () => {
  assert.deepEqual(list(arrange(boxes(100, 100, 110), options)), [100, 160, 220])
})

test("the active card is level with its text and the others move aside", () => {
  assert.deepEqual(list(arrange(boxes(100, 100, 110), { ...options, active: "c" })), [-10, 50, 110])
  assert.deepEqual(list(arrange(boxes(200, 200, 210), { ...options, active: "c" })), [90, 150, 210])
  assert.deepEqual(list(arrange(boxes(200, 200, 210), { ...options, active: "a" })), [200, 260, 320])
})

test("with 20 cards on one paragraph the active one is level with its text", () => {
  const crowd = Array.from({ length: 20 }, (_, at) => ({ id: String(at), want: 100 + at, height: 50 }))
  for (const { id, want } of crowd) {
    const tops = arrange(crowd, { ...options, active: id })
    assert.equal(tops.get(id), want)
    const placed = list(tops)
    placed.slice(1).forEach((top, at) => assert.ok(60 <= top - (placed[at] ?? 0), `card ${at + 1} overlaps`))
  }
})

test("only the active card moves others above the top", () => {
  assert.deepEqual(list(arrange(boxes(0, 10), { ...options, top: 20 })), [20, 80])
  assert.deepEqual(list(arrange(boxes(0, 10), { ...options, active: "b", top: 20 })), [-40, 20])
})

test("cards that crowd fold, the active one and distant ones do not", () => {
  const folded = (/** @type {string | null} */ active, /** @type {number[]} */ ...wants) =>
    [...crowded(boxes(...wants), { ...options, active, limit: 100 })].join("")
  assert.equal(folded(null, 0, 10, 20), "")
  assert.equal(folded(null, 0, 10, 20, 30, 900), "abcd")
  assert.equal(folded("b", 0, 10, 20, 30, 40), "acde", "and one that leaves the top")
  assert.equal(folded("e", 0, 10, 20, 900, 960), "")
})

test("the page scrolls as little as shows a card and its passage", () => {
  const window = { top: 100, bottom: 600 }
  assert.equal(scrollInto({ top: 200, bottom: 500 }, window), 0)
  assert.equal(scrollInto({ top: 500, bottom: 700 }, window), 100)
  assert.equal(scrollInto({ top: 40, bottom: 90 }, window), -60)
  assert.equal(scrollInto({ top: 150, bottom: 900 }, window), 50)
  assert.equal(scrollInto({ top: 50, bottom: 900 }, window), 0)
})

test("a missing active card changes nothing", () => {
  assert.deepEqual(list(arrange(boxes(5), { ...options, active: "z" })), [5])
  assert.deepEqual(list(arrange([], { ...options, active: "z" })), [])
})
