// @ts-check
/** Which edits the server has not called safe, by real Yjs clocks. */

import assert from "node:assert/strict"
import { test } from "node:test"

import * as Y from "yjs"

import { sentencesAt, Unsaved } from "../../static/js/unsaved.js"

const afterOurs = { afterOurs: true }

/** @param {...[number, number]} entries */
const clocks = (...entries) => new Map(entries)

/** Three letters by client 1, at seconds 1, 2 and 3. */
function typed() {
  const unsaved = new Unsaved()
  for (const at of [1, 2, 3]) unsaved.edited(clocks([1, at - 1]), clocks([1, at]), at * 1_000)
  return unsaved
}

test("an edit is safe when the vector covers it, and not before", () => {
  const unsaved = typed()
  unsaved.saved(clocks([1, 2]), afterOurs)
  assert.equal(unsaved.count, 1)
  assert.equal(unsaved.since, 3_000)
  unsaved.saved(clocks([1, 3]), afterOurs)
  assert.equal(unsaved.count, 0)
  assert.equal(unsaved.since, null)
})

test("what others wrote says nothing about ours", () => {
  const unsaved = typed()
  unsaved.saved(clocks([2, 99]), afterOurs)
  assert.equal(unsaved.count, 3)
})

test("a deletion is safe with a later insertion that is", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks(), clocks(), 1)
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 2)
  unsaved.saved(clocks([1, 1]), afterOurs)
  assert.equal(unsaved.count, 0)
})

test("a deletion after the insertion that was named waits for a word of its own", () => {
  const unsaved = typed()
  unsaved.edited(clocks(), clocks(), 4_000)
  unsaved.saved(clocks([1, 3]), afterOurs)
  assert.equal(unsaved.count, 1)
  unsaved.saved(clocks([1, 3]), afterOurs)
  assert.equal(unsaved.count, 0)
})

test("a word about how things stood before does not make a deletion safe", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks(), clocks(), 1)
  unsaved.saved(clocks([1, 3]), { afterOurs: false })
  assert.equal(unsaved.count, 1)
})

test("a deletion that nothing is said about is asked for, once it has waited", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks(), clocks(), 10_000)
  assert.equal(unsaved.needsProof(10_500), false)
  assert.equal(unsaved.needsProof(12_000), true)
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 12_000)
  assert.equal(unsaved.needsProof(20_000), false)
})

test("how far a client is safe begins where we found it", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks([7, 40]), clocks([7, 41]), 1)
  assert.deepEqual([...unsaved.safe], [[7, 40]])
})

test("the sentences that hold what was not saved are whole, each once", () => {
  const text = "첫 문장입니다. 둘째 문장이에요. 셋째입니다.\nThe last one."
  const at = (/** @type {string} */ part) => ({ from: text.indexOf(part), to: text.indexOf(part) + part.length })
  assert.deepEqual(sentencesAt(text, [at("문장이"), at("에요")], "ko"), ["둘째 문장이에요."])
  assert.deepEqual(sentencesAt(text, [at("첫"), at("last")], "ko"), ["첫 문장입니다.", "The last one."])
  assert.deepEqual(sentencesAt(text, [at(" 둘째")], "ko"), ["둘째 문장이에요."])
  assert.deepEqual(sentencesAt(text, [], "ko"), [])
})

test("unsaved insertions are found in the text, also inside what is safe", async () => {
  const { unsavedRanges } = await import("../../static/js/save_watch.js")
  const doc = new Y.Doc()
  const text = doc.getText("content")
  text.insert(0, "safe words")
  const safe = new Map([[doc.clientID, 10]])
  text.insert(4, "XY")
  text.insert(0, "Z")
  text.delete(7, 1)
  assert.equal(text.toString(), "ZsafeXYwords")
  const ranges = unsavedRanges(/** @type {any} */ (text), safe)
  assert.deepEqual(ranges.map(({ from, to }) => text.toString().slice(from, to)), ["Z", "XY"])
})
