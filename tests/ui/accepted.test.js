// @ts-check
/** The text with all open suggestions accepted. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { acceptedText } from "../../static/js/sections/accepted.js"

test("suggestions that do not overlap are accepted, and the oldest of two that do", () => {
  const text = "하나 둘 셋 넷"
  const { text: accepted } = acceptedText(text, [
    { from: 5, to: 6, text: "삼" },
    { from: 0, to: 2, text: "일" },
    { from: 1, to: 4, text: "?" },
    { from: 7, to: 8, text: "" },
  ])
  assert.equal(accepted, "일 둘 삼 ")
})

test("a suggestion that stands nowhere changes nothing", () => {
  const text = "하나"
  for (const range of [{ from: 1, to: 1 }, { from: 1, to: 9 }]) assert.equal(acceptedText(text, [{ ...range, text: "x" }]).text, text)
})

test("an offset outside the suggestions keeps its letter, one inside moves to the begin", () => {
  const text = "가나다라마바사"
  const { text: accepted, moved } = acceptedText(text, [{ from: 2, to: 4, text: "12345" }, { from: 5, to: 6, text: "" }])
  assert.equal(accepted, "가나12345마사")
  for (const [at, letter] of [...text].entries()) {
    if (at < 2 || at === 4 || at === 6) assert.equal(accepted[moved(at)], letter, letter)
  }
  assert.equal(moved(3), 2)
  assert.equal(moved(text.length), accepted.length)
})
