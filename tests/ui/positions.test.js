// @ts-check
/** Positions found from the last one, compared with those of Yjs. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { relativeAt } from "../../static/js/desk/positions.ts"
import { Y } from "../../static/js/lib/vendor.ts"

/** @param {number} seed */
function numbers(seed) {
  let state = seed
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

test("every position equals that of Yjs, through edits of both replicas", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = numbers(seed)
    const [doc, other] = [new Y.Doc(), new Y.Doc()]
    const [text, others] = [doc, other].map((one) => one.getText("content"))
    assert.ok(text && others)
    const edit = (/** @type {Y.Text} */ one) => {
      const at = random(one.length + 1)
      if (random(3) === 0 && 0 < one.length) one.delete(Math.min(at, one.length - 1), 1)
      else one.insert(at, "abcdefg".slice(random(6)))
    }
    for (let step = 0; step < 200; step++) {
      edit(text)
      if (random(20) === 0) {
        edit(others)
        Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
        Y.applyUpdate(doc, Y.encodeStateAsUpdate(other))
      }
      for (const index of [0, text.length, random(text.length + 1)]) {
        for (const side of [0, -1]) {
          const wanted = Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, index, side))
          assert.deepEqual(Y.relativePositionToJSON(relativeAt(text, index, side)), wanted, `seed ${seed}, step ${step}`)
        }
      }
    }
  }
})

test("next to the last edit a position is found in a few steps, however many pieces there are", () => {
  const doc = new Y.Doc()
  const text = doc.getText("content")
  // Backwards, so that no two items are merged.
  doc.transact(() => {
    for (let piece = 0; piece < 20_000; piece++) text.insert(0, "ab")
  })
  text.insert(30_000, "x")
  let steps = 0
  /** @type {Y.Item[]} */
  const items = []
  for (let item = text._start; item; item = item.right) items.push(item)
  for (const item of items) {
    const { right, left } = item
    Object.defineProperty(item, "right", { get: () => (steps++, right), configurable: true })
    Object.defineProperty(item, "left", { get: () => (steps++, left), configurable: true })
  }
  relativeAt(text, 30_001)
  assert.ok(steps < 50, `${steps} steps`)
  Y.createRelativePositionFromTypeIndex(text, 30_001)
  assert.ok(10_000 < steps, "the walk is counted")
})
