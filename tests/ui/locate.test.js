// @ts-check
/** The server's offsets, located in a text with later edits. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { locate } from "../../static/js/reviews/locate.js"

/** @param {Partial<import("../../static/js/lib/api.js").Anchor>} given */
const anchor = (given) => ({
  state: /** @type {const} */ ("exact"), start: 4, end: 7, quote: "cat", prefix: "the ", suffix: "", ...given,
})

test("a passage at the server's offset is located there", () => {
  assert.deepEqual(locate("the cat sat", anchor({})), { from: 4, to: 7 })
})

test("a passage that local edits moved is located nearby", () => {
  assert.deepEqual(locate("now the cat sat", anchor({})), { from: 8, to: 11 })
})

test("of two near matches the one with the right prefix is chosen", () => {
  assert.deepEqual(locate("a cat, the cat", anchor({ start: 6, end: 9 })), { from: 11, to: 14 })
})

test("an exact passage without a match has no position", () => {
  assert.deepEqual(locate("the dog sat", anchor({})), { from: 4, to: 4 })
})

test("an edited passage is at the server's offset, within the text", () => {
  assert.deepEqual(locate("the c", anchor({ state: "edited" })), { from: 4, to: 5 })
})
