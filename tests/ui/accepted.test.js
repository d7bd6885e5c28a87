// @ts-check
/** The text with all open suggestions accepted. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { acceptedText } from "../../static/js/sections/accepted.ts"

/** @typedef {import("../../static/js/sections/accepted.ts").Replacement} Replacement */

/** @param {string} text @param {...Replacement} parts suggestions with one part each */
const single = (text, ...parts) => acceptedText(text, parts.map((part) => [part]))

test("suggestions that do not overlap are accepted, and the oldest of two that do", () => {
  const { text: accepted } = single(
    "하나 둘 셋 넷",
    { from: 5, to: 6, text: "삼" },
    { from: 0, to: 2, text: "일" },
    { from: 1, to: 4, text: "?" },
    { from: 7, to: 8, text: "" },
  )
  assert.equal(accepted, "일 둘 삼 ")
})

test("a suggestion outside the text changes nothing", () => {
  for (const range of [{ from: 1, to: 9 }, { from: 9, to: 9 }]) assert.equal(single("하나", { ...range, text: "x" }).text, "하나")
})

test("an insertion is accepted in its gap, before the words behind it; a place has one gap", () => {
  const older = { from: 2, to: 2, text: " 둘" }
  assert.equal(single("하나 셋", older, { from: 2, to: 2, text: " 또" }).text, "하나 둘 셋")
  assert.equal(single("하나 셋", { from: 2, to: 4, text: " 넷" }, older).text, "하나 둘 넷", "beside replaced words")
  assert.equal(single("하나 셋", { from: 0, to: 4, text: "넷" }, older).text, "넷", "not inside of replaced words")
  assert.equal(single("", { from: 0, to: 0, text: "처음" }).text, "처음")
})

test("of a suggestion with several parts all are accepted, or none", () => {
  const move = [{ from: 0, to: 3, text: "" }, { from: 5, to: 5, text: " 하나" }]
  assert.equal(acceptedText("하나 둘셋", [move]).text, "둘셋 하나")
  assert.equal(acceptedText("하나 둘셋", [[{ from: 2, to: 4, text: "," }], move]).text, "하나,셋")
})

test("the result is that of trying each suggestion by itself", () => {
  let seed = 20_261_126
  const random = (/** @type {number} */ below) => (seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff) % below
  for (let round = 0; round < 300; round++) {
    const text = "abcdefghijklmnopqrst"
    const suggestions = Array.from({ length: 12 }, () =>
      Array.from({ length: 1 + random(2) }, (_, at) => {
        const from = at * 10 + random(9)
        return { from, to: from + random(3), text: "X".repeat(random(3)) }
      }))
    /** @type {Replacement[]} */
    const applied = []
    for (const parts of suggestions) {
      if (parts.every(({ from, to }) => applied.every((other) => !(other.from < to && from < other.to) && (other.from !== from || other.to !== to)))) applied.push(...parts)
    }
    const sorted = [...applied].sort((a, b) => a.from - b.from || a.to - b.to)
    let [wanted, end] = ["", 0]
    for (const { from, to, text: words } of sorted) {
      wanted += text.slice(end, from) + words
      end = to
    }
    assert.equal(acceptedText(text, suggestions).text, wanted + text.slice(end), `round ${round}`)
  }
})

test("an offset outside the suggestions keeps its letter, one inside moves to the begin", () => {
  const text = "가나다라마바사"
  const { text: accepted, moved } = single(text, { from: 2, to: 4, text: "12345" }, { from: 5, to: 6, text: "" }, { from: 6, to: 6, text: "+" })
  assert.equal(accepted, "가나12345마+사")
  for (const [at, letter] of [...text].entries()) {
    if (at < 2 || at === 4 || at === 6) assert.equal(accepted[moved(at)], letter, letter)
  }
  assert.equal(moved(3), 2)
  assert.equal(moved(text.length), accepted.length)
})
