// @ts-check
/** The changes that the page shows for a suggestion. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { wordDiff } from "../../static/js/reviews/word_diff.js"

/** `[-struck-]{+added+}`, as one would write it by hand. @param {string} a @param {string} b */
const shown = (a, b) =>
  wordDiff(a, b)
    .map(({ kind, text }) =>
      kind === "same" ? text : kind === "removed" ? `[-${text}-]` : `{+${text}+}`,
    )
    .join("")

test("sentences match the table that the server shares", () => {
  const table = readFileSync(new URL("../data/word_diff.json", import.meta.url), "utf8")
  for (const [before, after, expected] of JSON.parse(table)) assert.equal(shown(before, after), expected)
})

test("the same text has no marks", () => {
  assert.deepEqual(wordDiff("as it was", "as it was"), [{ kind: "same", text: "as it was" }])
  assert.deepEqual(wordDiff("", ""), [])
})

test("one English word is replaced whole", () => {
  assert.equal(shown("I am very interested.", "I am keenly interested."),
    "I am [-very-]{+keenly+} interested.")
})

test("neighbouring changes are merged into one", () => {
  assert.equal(shown("I have been working hard", "I did work hard"),
    "I [-have been working-]{+did work+} hard")
})

test("a Korean particle is marked inside its word", () => {
  assert.equal(shown("저는 회사는 좋습니다", "저는 회사가 좋습니다"), "저는 회사[-는-]{+가+} 좋습니다")
  assert.equal(shown("성장하고싶습니다", "성장하고 싶습니다"), "[-성장하고싶습니다-]{+성장하고 싶습니다+}")
})

test("a suggestion that empties the passage is all struck", () => {
  assert.equal(shown("정말 매우 좋은", ""), "[-정말 매우 좋은-]")
  assert.equal(shown("", "새로운 말"), "{+새로운 말+}")
})

test("punctuation is a word of its own", () => {
  assert.equal(shown("안녕하세요", "안녕하세요."), "안녕하세요{+.+}")
  assert.equal(shown("Yes, no", "Yes; no"), "Yes[-,-]{+;+} no")
})

test("graphemes stay whole", () => {
  assert.equal(shown("👩‍👩‍👧 가족", "👩‍👩‍👦 가족"), "[-👩‍👩‍👧-]{+👩‍👩‍👦+} 가족")
})

test("same and removed pieces spell the old text, same and added the new", () => {
  let seed = 7
  const random = (/** @type {number} */ below) => (seed = (seed * 48271) % 2147483647) % below
  const vocabulary = ["가", "나다", "나다는", " ", " ", "the", "cat", ".", "\n", "🙂", "나다가"]
  const some = () => Array.from({ length: random(12) }, () => vocabulary[random(11)]).join("")
  for (let round = 0; round < 2_000; round++) {
    const [before, after] = [some(), some()]
    const pieces = wordDiff(before, after)
    const without = (/** @type {string} */ kind) =>
      pieces.filter((piece) => piece.kind !== kind).map((piece) => piece.text).join("")
    assert.equal(without("added"), before, `round ${round}`)
    assert.equal(without("removed"), after, `round ${round}`)
  }
})

test("a very long passage is replaced whole, because its comparison table would fill the memory", () => {
  const long = (/** @type {string} */ word) => `${word} `.repeat(60_000)
  assert.deepEqual(wordDiff(long("가"), long("나")).map((piece) => piece.kind), ["removed", "added", "same"])
})
