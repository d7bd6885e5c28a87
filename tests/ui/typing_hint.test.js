// @ts-check
/** The sentence that a reviewer's key belongs to. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { sentenceAt } from "../../static/js/reviews/typing_hint.ts"

const TEXT = "첫 문장입니다. 둘째 문장인가요?  셋째.\nNext line. The end"

/** @param {number} at */
const sentence = (at) => {
  const { from, to } = sentenceAt(TEXT, at, "ko")
  return TEXT.slice(from, to)
}

test("the sentence around the caret, in its own line", () => {
  assert.equal(sentence(0), "첫 문장입니다.")
  assert.equal(sentence(TEXT.indexOf("문장인")), "둘째 문장인가요?")
  assert.equal(sentence(TEXT.indexOf("셋째") + 1), "셋째.")
  assert.equal(sentence(TEXT.indexOf("Next")), "Next line.")
  assert.equal(sentence(TEXT.length), "The end")
  assert.deepEqual(sentenceAt("", 0, "en"), { from: 0, to: 0 })
})
