// @ts-check
/** Graphemes, also in texts too long to be segmented in one call. */
import assert from "node:assert/strict"
import { test } from "node:test"
import { graphemesOf } from "../../static/js/lib/graphemes.ts"

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })
/** @param {string} text */
const inOneGo = (text) => Array.from(segmenter.segment(text), ({ segment }) => segment)

test("graphemes stay whole wherever a piece ends", () => {
  const mixed = "각a👩‍👩‍👧🇰🇷🇩🇪\r\ne\u0301क्षि\u1112\u1161\u11ab "
  for (let shift = 0; shift < mixed.length; shift++) {
    const text = "x".repeat(shift) + mixed.repeat(150)
    assert.deepEqual([...graphemesOf(text)], inOneGo(text), `shifted by ${shift}`)
  }
})

test("a grapheme longer than a piece is one", () => {
  const text = `a${"e" + "\u0301".repeat(5_000)}b`
  assert.deepEqual([...graphemesOf(text)].map(({ length }) => length), [1, 5_001, 1])
})

test("an empty text has no graphemes, and half a surrogate pair is one", () => {
  assert.deepEqual([...graphemesOf("")], [])
  assert.deepEqual([...graphemesOf("\ud83d")], ["\ud83d"])
})
