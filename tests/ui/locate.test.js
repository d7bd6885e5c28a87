// @ts-check
/** The server's offsets, located in a text with later edits. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { locate, locateInserted } from "../../static/js/reviews/locate.ts"

/** @param {Partial<import("../../static/js/lib/api.ts").Anchor>} given */
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

/** @param {string} text */
const tree = (text) => ({ length: text.length, sliceString: (/** @type {number} */ from, /** @type {number} */ to) => text.slice(from, to) })

test("a pasted quote is located in what the edit inserted", () => {
  const passage = { from: 0, to: 0, quote: "cat", prefix: "the " }
  assert.deepEqual(locateInserted(tree("sat. the cat"), [{ from: 4, to: 12 }], passage), { from: 9, to: 12 })
  assert.equal(locateInserted(tree("the dog sat"), [{ from: 4, to: 7 }], passage), null)
})

test("a quote that an edit completes is located across the edge of the insertion", () => {
  const passage = { from: 4, to: 4, quote: "cat", prefix: "the " }
  assert.deepEqual(locateInserted(tree("the cat"), [{ from: 4, to: 5 }], passage), { from: 4, to: 7 })
})

test("of two inserted occurrences the one in its context is located", () => {
  const passage = { from: 0, to: 0, quote: "cat", prefix: "the " }
  assert.deepEqual(locateInserted(tree("a cat, the cat"), [{ from: 0, to: 14 }], passage), { from: 11, to: 14 })
})
