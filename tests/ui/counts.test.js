// @ts-check
/** Lengths of a text, as forms and their servers count them. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Text } from "@codemirror/state"

import { charactersIn, Counter, countText } from "../../static/js/desk/counts.ts"

/** @param {string} text */
const tree = (text) => Text.of(text.split("\n"))

/** @param {string} text */
const count = (text) => new Counter().count(tree(text))

test("the count of a string equals that of a tree", () => {
  for (const text of ["", "가\n나\n", "👩‍👩‍👧 각", "plain\n\n"]) {
    assert.deepEqual(countText(text), count(text), text)
    assert.equal(charactersIn(text), count(text).all, text)
  }
})

test("an empty text has nothing", () => {
  assert.deepEqual(count(""), { all: 0, solid: 0, utf8: 0, euckr: 0, foreign: 0, words: 0 })
})

test("Hangul is two bytes in EUC-KR and three in UTF-8", () => {
  assert.deepEqual(count("안녕 hi"), { all: 5, solid: 4, utf8: 9, euckr: 7, foreign: 0, words: 2 })
})

test("every modern syllable is in code page 949, also those EUC-KR itself lacks", () => {
  const all = Array.from({ length: 11_172 }, (_, at) => String.fromCharCode(0xac00 + at)).join("")
  assert.deepEqual(count(all), { all: 11_172, solid: 11_172, utf8: 33_516, euckr: 22_344, foreign: 0, words: 1 })
  assert.equal(count("똠방각하").foreign, 0)
})

test("a character is a grapheme", () => {
  assert.equal(count("👩‍👩‍👧").all, 1)
  assert.equal(count("é").all, 1)
  assert.equal(count("각").all, 1)
})

test("a line break is a character and a byte, and no solid one", () => {
  assert.deepEqual(count("가\n나\n"), { all: 4, solid: 2, utf8: 8, euckr: 6, foreign: 0, words: 2 })
})

test("a code point outside code page 949 is reported and counts as two bytes", () => {
  assert.deepEqual(count("가🙂"), { all: 2, solid: 2, utf8: 7, euckr: 4, foreign: 1, words: 1 })
  assert.equal(count("漢字·ㄱ「」①あ").foreign, 0)
  assert.equal(count("ü").foreign, 1)
})

test("all white space is left out of the solid count", () => {
  assert.equal(count("a\tb\u3000c d").solid, 4)
})

test("words: those between spaces and dashes that have a letter or a digit, as a word processor counts", () => {
  const words = (/** @type {string} */ text) => count(text).words
  assert.equal(words("A well-known essay, isn't it? - 1,000 words (e.g.)"), 8)
  assert.equal(words("one — two–three…\n\nfour & five"), 5)
  assert.equal(words("저는 대학에서 ‘산업공학’을 전공했습니다."), 4)
  assert.equal(words("مرحبا بالعالم"), 2)
  assert.ok(1 < words("私は学生です"), "the platform divides what has no spaces")
})

test("an incremental count equals a fresh one", () => {
  const counter = new Counter()
  const before = tree("첫 줄\n둘째 줄")
  counter.count(before)
  assert.deepEqual(counter.count(before.replace(before.length, before.length, tree("!"))), count("첫 줄\n둘째 줄!"))
})

test("the fast path of plain lines counts like the general one", () => {
  const plain = "한글 and\tASCII, 똠방각하. ~!"
  // A letter of another kind takes the line off the fast path; its own count is known.
  const [any, extra] = [count(`${plain}é`), count("é")]
  for (const [unit, value] of Object.entries(count(plain))) {
    const name = /** @type {keyof typeof any} */ (unit)
    assert.equal(value, any[name] - extra[name], unit)
  }
})

test("a keystroke in a long text recounts one leaf and not the text", () => {
  const counter = new Counter()
  const long = Text.of(Array.from({ length: 20_000 }, (_, at) => `${at}번째 줄입니다.`))
  counter.count(long)
  const lines = Text.prototype.iterLines
  let leaves = 0
  Text.prototype.iterLines = function (/** @type {number} */ from, /** @type {number} */ to) {
    leaves++
    return lines.call(this, from, to)
  }
  try {
    const middle = long.line(10_000).to
    const typed = long.replace(middle, middle, Text.of(["x"]))
    const { all } = counter.count(typed)
    assert.equal(all, typed.length)
  } finally {
    Text.prototype.iterLines = lines
  }
  assert.ok(leaves <= 4, `${leaves} leaves`)
})
