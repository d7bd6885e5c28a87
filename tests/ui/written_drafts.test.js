// @ts-check
/** A written text that is not sent survives a reload. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { nearest, WrittenDrafts } from "../../static/js/reviews/written_drafts.js"

test("s1-6: a draft is read again under its link, until it is removed", () => {
  /** @type {Map<string, string>} */
  const stored = new Map()
  const storage = {
    getItem: (/** @type {string} */ key) => stored.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => void stored.set(key, value),
    removeItem: (/** @type {string} */ key) => void stored.delete(key),
  }
  const written = { quote: "둘째", from: 4, body: "왜?", suggestion: "", suggests: false }
  new WrittenDrafts("one", storage).newReview = written
  new WrittenDrafts("one", storage).setReply("rev", "그럴게요")
  assert.deepEqual(new WrittenDrafts("one", storage).newReview, written)
  assert.equal(new WrittenDrafts("one", storage).reply("rev"), "그럴게요")
  assert.equal(new WrittenDrafts("two", storage).newReview, null)
  new WrittenDrafts("one", storage).newReview = null
  new WrittenDrafts("one", storage).setReply("rev", "")
  assert.equal(stored.size, 0)
})

test("a full or forbidden storage loses nothing but the draft", () => {
  const fails = () => {
    throw new Error("QuotaExceededError")
  }
  const drafts = new WrittenDrafts("one", { getItem: fails, setItem: fails, removeItem: fails })
  drafts.setReply("rev", "text")
  assert.equal(drafts.reply("rev"), "")
  assert.equal(drafts.newReview, null)
})

test("the quote of a draft is located where it stands now", () => {
  assert.deepEqual(nearest("ab ab ab", { quote: "ab", from: 4 }), { from: 3, to: 5 })
  assert.deepEqual(nearest("ab ab ab", { quote: "ab", from: 5 }), { from: 6, to: 8 })
  assert.deepEqual(nearest("xx ab", { quote: "ab", from: 0 }), { from: 3, to: 5 })
  assert.equal(nearest("xx", { quote: "ab", from: 0 }), null)
})
