// @ts-check
/** Positions of the cards in the margin. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { arrange } from "../../static/js/reviews/layout.js"

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
  assert.deepEqual(list(arrange(boxes(100, 100, 110), { ...options, active: "c" })), [0, 60, 120])
  assert.deepEqual(list(arrange(boxes(200, 200, 210), { ...options, active: "c" })), [90, 150, 210])
})

test("no card is above the top, even to make room for the active one", () => {
  assert.deepEqual(list(arrange(boxes(0, 10), { ...options, active: "b", top: 20 })), [20, 80])
})

test("a missing active card changes nothing", () => {
  assert.deepEqual(list(arrange(boxes(5), { ...options, active: "z" })), [5])
  assert.deepEqual(list(arrange([], { ...options, active: "z" })), [])
})
