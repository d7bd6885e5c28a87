// @ts-check
/** A written text that is not sent survives a reload. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { nearest, WrittenDrafts } from "../../static/js/reviews/written_drafts.ts"

/** A storage in memory, whose keys are its properties, as in a browser. */
function memory() {
  /** @type {Record<string, string>} */
  const stored = Object.create({
    getItem: (/** @type {string} */ key) => stored[key] ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => void (stored[key] = value),
    removeItem: (/** @type {string} */ key) => void delete stored[key],
  })
  return { stored, open: () => /** @type {any} */ (stored) }
}

test("a draft is read again under its link, until it is removed", () => {
  const { stored, open } = memory()
  const written = { quote: "둘째", from: 4, body: "왜?", suggestion: "", suggests: false }
  new WrittenDrafts("one", open).newReview = written
  new WrittenDrafts("one", open).write("reply:rev", "그럴게요")
  assert.deepEqual(new WrittenDrafts("one", open).newReview, written)
  assert.equal(new WrittenDrafts("one", open).read("reply:rev"), "그럴게요")
  assert.equal(new WrittenDrafts("two", open).newReview, null)
  new WrittenDrafts("one", open).newReview = null
  new WrittenDrafts("one", open).write("reply:rev", "")
  assert.deepEqual(Object.keys(stored), [])
})

test("all that was written under a link is read for its author, and discarded at once", () => {
  const { stored, open } = memory()
  const other = new WrittenDrafts("two", open)
  other.write("reply:rev", "다른 문서")
  const drafts = new WrittenDrafts("one", open)
  assert.deepEqual(drafts.all, [])
  drafts.write("reply:rev", "그럴게요")
  drafts.newReview = { quote: "둘째", from: 4, body: "왜?", suggestion: "셋째", suggests: true }
  assert.deepEqual(new WrittenDrafts("one", open).all.sort(), ["그럴게요", "셋째", "왜?"])
  drafts.newReview = { quote: "둘째", from: 4, body: " ", suggestion: "둘째", suggests: false }
  assert.deepEqual(new WrittenDrafts("one", open).all, ["그럴게요"])
  drafts.clear()
  assert.deepEqual(drafts.all, [])
  assert.equal(Object.keys(stored).length, 1)
})

test("without storage, or without room in it, the page keeps what was written", () => {
  const fails = () => {
    throw new Error("QuotaExceededError")
  }
  for (const open of [fails, () => ({ getItem: fails, setItem: fails, removeItem: fails })]) {
    const drafts = new WrittenDrafts("one", open)
    drafts.write("reply:rev", "text")
    assert.equal(drafts.read("reply:rev"), "text")
    assert.equal(drafts.newReview, null)
  }
})

test("the quote of a draft is located where it stands now", () => {
  assert.deepEqual(nearest("ab ab ab", { quote: "ab", from: 4 }), { from: 3, to: 5 })
  assert.deepEqual(nearest("ab ab ab", { quote: "ab", from: 5 }), { from: 6, to: 8 })
  assert.deepEqual(nearest("xx ab", { quote: "ab", from: 0 }), { from: 3, to: 5 })
  assert.equal(nearest("xx", { quote: "ab", from: 0 }), null)
})
