// @ts-check
/** The page's view of a document's quota. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ample, fileName, percentOf, sizeIn } from "../../static/js/desk/document_size.ts"

test("only what is near or full is shown", () => {
  assert.equal(sizeIn({ state: "ample", bytes: 7, limit: 10 }), ample)
  assert.equal(sizeIn({ state: "something newer" }), ample)
  assert.deepEqual(sizeIn({ state: "near", bytes: 8, limit: 10 }), { state: "near", bytes: 8, limit: 10 })
  assert.deepEqual(sizeIn({ state: "full" }), { state: "full", bytes: 0, limit: 0 })
})

test("a share of the quota is in whole percent and at most 100", () => {
  assert.equal(percentOf({ state: "near", bytes: 806, limit: 1000 }), 80)
  assert.equal(percentOf({ state: "full", bytes: 1100, limit: 1000 }), 100)
  assert.equal(percentOf({ state: "full", bytes: 0, limit: 0 }), 100)
})

test("a title becomes a valid file name on every system", () => {
  assert.equal(fileName("자기소개서", "Untitled"), "자기소개서.txt")
  assert.equal(fileName("a/b\\c: *d*", "Untitled"), "a b c d.txt")
  assert.equal(fileName("../..\u0000\u202e", "Untitled"), "Untitled.txt")
  assert.equal(fileName("   ", "Untitled"), "Untitled.txt")
  assert.equal(fileName("Dear all.", "Untitled"), "Dear all.txt")
  assert.equal([...fileName("가".repeat(200), "Untitled")].length, 84)
})
