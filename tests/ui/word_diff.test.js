// @ts-check
/** The changes that the page shows for a suggestion and for a version. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { pieces, wordDiff } from "../../static/js/reviews/word_diff.ts"

/** `[-struck-]{+added+}`, as one would write it by hand. @param {import("../../static/js/reviews/word_diff.ts").Piece[]} found */
const marked = (found) =>
  found
    .map(({ kind, text }) =>
      kind === "same" ? text : kind === "removed" ? `[-${text}-]` : `{+${text}+}`,
    )
    .join("")

/** The segments of a row of the table, as the server sends them. @param {string} row */
const segmentsOf = (row) =>
  [...row.matchAll(/\[-(?<removed>[^]*?)-\]|\{\+(?<added>[^]*?)\+\}|(?<same>[^]+?)(?=\[-|\{\+|$)/g)].map(({ groups }) =>
    groups?.removed !== undefined
      ? /** @type {const} */ ({ op: "delete", text: groups.removed })
      : groups?.added !== undefined
        ? /** @type {const} */ ({ op: "insert", text: groups.added })
        : /** @type {const} */ ({ op: "equal", text: groups?.same ?? "" }),
  )

test("suggestions and versions read as in the table that the server shares", () => {
  const table = readFileSync(new URL("../data/word_diff.json", import.meta.url), "utf8")
  for (const [before, after, whole, narrowed = whole] of JSON.parse(table)) {
    assert.equal(marked(wordDiff(before, after)), narrowed)
    assert.equal(marked(pieces(segmentsOf(whole))), narrowed)
  }
})

test("the same text has no marks", () => {
  assert.deepEqual(wordDiff("as it was", "as it was"), [{ kind: "same", text: "as it was" }])
  assert.deepEqual(wordDiff("", ""), [])
})

test("same and removed pieces spell the old text, same and added the new", () => {
  let seed = 7
  const random = (/** @type {number} */ below) => (seed = (seed * 48271) % 2147483647) % below
  const vocabulary = ["가", "나다", "나다는", " ", " ", "the", "cat", ".", "\n", "🙂", "나다가"]
  const some = () => Array.from({ length: random(12) }, () => vocabulary[random(11)]).join("")
  for (let round = 0; round < 2_000; round++) {
    const [before, after] = [some(), some()]
    const found = wordDiff(before, after)
    const without = (/** @type {string} */ kind) =>
      found.filter((piece) => piece.kind !== kind).map((piece) => piece.text).join("")
    assert.equal(without("added"), before, `round ${round}`)
    assert.equal(without("removed"), after, `round ${round}`)
  }
})

test("a very long passage is replaced whole, because its comparison table would fill the memory", () => {
  const long = (/** @type {string} */ word) => `${word} `.repeat(60_000)
  assert.deepEqual(wordDiff(long("가"), long("나")).map((piece) => piece.kind), ["removed", "added", "same"])
})

test("a difference of a megabyte is not split into graphemes", () => {
  const whole = /** @type {const} */ ([
    { op: "delete", text: "가".repeat(500_000) },
    { op: "insert", text: "가나".repeat(500_000) },
  ])
  assert.deepEqual(pieces([...whole]).map((piece) => piece.kind), ["removed", "added"])
})
