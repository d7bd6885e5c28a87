// @ts-check
/** The contents of an update: whether it applies, whether it deletes, and its inserted text. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { fits, deletesText, textIn } from "../../static/js/unsaved/update_text.ts"
import { Y } from "../../static/js/lib/vendor.ts"

/** A document with its text and everything that happens to it, update by update. @param {string} begun */
function written(begun) {
  const doc = new Y.Doc()
  const text = doc.getText("content")
  /** @type {Uint8Array[]} */
  const updates = []
  doc.on("update", (/** @type {Uint8Array} */ update) => updates.push(update))
  text.insert(0, begun)
  return { doc, text, updates }
}

test("an update with a deletion is recognised, whether it inserts or not", () => {
  const { text, updates } = written("begun")
  text.delete(0, 2)
  const [typed, deleted] = /** @type {[Uint8Array, Uint8Array]} */ (updates)
  assert.deepEqual([typed, deleted, Y.mergeUpdates(updates)].map(deletesText), [false, true, true])
})

test("an update applies when its dependencies are in the document or in it", () => {
  const { doc, text, updates } = written("begun")
  const before = new Y.Doc()
  Y.applyUpdate(before, Y.encodeStateAsUpdate(doc))
  text.insert(5, " more")
  text.insert(2, "X")
  text.delete(0, 1)
  const [, ...rest] = updates
  assert.equal(fits(before, Y.mergeUpdates(rest)), true)
  assert.equal(fits(doc, Y.mergeUpdates(rest)), true, "a known update applies, too")
  assert.equal(fits(new Y.Doc(), Y.mergeUpdates(rest)), false)
  assert.equal(fits(new Y.Doc(), Y.mergeUpdates(updates)), true)
  assert.equal(fits(before, /** @type {Uint8Array} */ (updates[2])), false, "a gap")
  assert.equal(fits(new Y.Doc(), /** @type {Uint8Array} */ (updates[3])), false, "a deletion of missing structs")
})

test("an update that applies reaches the document, and another does not", () => {
  const { doc, text, updates } = written("begun")
  text.insert(5, " more")
  text.insert(10, "!")
  const [first, second, third] = /** @type {[Uint8Array, Uint8Array, Uint8Array]} */ (updates)
  const other = new Y.Doc()
  const there = () => other.getText("content").toString()
  Y.applyUpdate(other, first)
  Y.applyUpdate(other, third)
  assert.equal(there(), "begun")
  assert.equal(fits(other, third), false)
  assert.equal(fits(other, second), true)
  Y.applyUpdate(other, second)
  assert.equal(there(), doc.getText("content").toString())
})

test("inserted text is read position by position, without deleted text", () => {
  const { doc, text, updates } = written("The begin. ")
  text.insert(text.length, "둘째 문장")
  text.insert(text.length, "입니다.")
  text.insert(4, "very ")
  text.insert(text.length, " Wrong")
  text.delete(text.length - 5, 5)
  text.insert(text.length, "right.")
  const typed = textIn(Y.mergeUpdates(updates.slice(1)))
  assert.deepEqual(typed, ["둘째 문장입니다.", "very", "right."])
  assert.equal(doc.getText("content").toString(), "The very begin. 둘째 문장입니다. right.")
  assert.deepEqual(textIn(Y.encodeStateAsUpdate(new Y.Doc())), [])
})
