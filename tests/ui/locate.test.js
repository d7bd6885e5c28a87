// @ts-check
/** The server's offsets, found in a text that has gone on. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { locate } from "../../static/js/reviews/locate.js"

/** @param {Partial<import("../../static/js/lib/api.js").Anchor>} given */
const anchor = (given) => ({
  state: /** @type {const} */ ("exact"), start: 4, end: 7, quote: "cat", prefix: "the ", suffix: "", ...given,
})

test("a passage that stands where the server says is taken as it is", () => {
  assert.deepEqual(locate("the cat sat", anchor({})), { from: 4, to: 7 })
})

test("a passage that our own keystrokes have moved is found nearby", () => {
  assert.deepEqual(locate("now the cat sat", anchor({})), { from: 8, to: 11 })
})

test("of two that are near, the one with the right words before it is taken", () => {
  assert.deepEqual(locate("a cat, the cat", anchor({ start: 6, end: 9 })), { from: 11, to: 14 })
})

test("an exact passage that is nowhere stands nowhere, rather than on other words", () => {
  assert.deepEqual(locate("the dog sat", anchor({})), { from: 4, to: 4 })
})

test("an edited passage is where the server says, within the text", () => {
  assert.deepEqual(locate("the c", anchor({ state: "edited" })), { from: 4, to: 5 })
})
