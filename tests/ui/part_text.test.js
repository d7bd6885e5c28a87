// @ts-check
/** The parts of suggestions in words, in both languages. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { i18n } from "../../static/js/lib/i18n.ts"
import { sayParts } from "../../static/js/reviews/part_text.ts"
import { fitsForm, kindOf, movedText } from "../../static/js/reviews/parts.ts"
import { subjectOf } from "../../static/js/reviews/subject.ts"

await i18n.start()

/** @param {string} quote @param {string} text @returns {import("../../static/js/lib/api.ts").Part} */
const part = (quote, text) => ({ anchor: { state: "exact", start: 0, end: quote.length, quote, prefix: "", suffix: "" }, text })

test("a part inserts, deletes or replaces, and two with the same text move it", () => {
  assert.deepEqual([part("", "a"), part("a", ""), part("a", "b")].map(kindOf), ["insert", "delete", "replace"])
  assert.equal(movedText([part("the words", ""), part("", "the words")]), "the words")
  assert.equal(movedText([part("", "the words"), part("the words", "")]), "the words")
  assert.equal(movedText([part("the words\n", ""), part("", " the words")]), "the words", "the spaces at its ends differ")
  for (const parts of [[part(" ", ""), part("", "\n")], [part("a", ""), part("", "b")], [part("a", "b")], [part("a", "b"), part("b", "a")]]) assert.equal(movedText(parts), null)
})

test("the form of a review shows one passage with other words", () => {
  assert.ok(fitsForm({ parts: [] }))
  assert.ok(fitsForm({ parts: [part("a", "b")] }))
  for (const parts of [[part("", "b")], [part("a", "b"), part("c", "")]]) assert.equal(fitsForm({ parts }), false)
})

test("parts are spoken, and white space is spelt out", async () => {
  const parts = [part("알게 되었습니다", "배웠습니다"), part("특히 ", ""), part("", " "), part("", "\n")]
  await i18n.setLanguage("ko")
  assert.equal(sayParts(parts), "“알게 되었습니다” 대신 “배웠습니다”; “특히” 삭제; “공백” 넣기; “줄바꿈” 넣기")
  assert.equal(sayParts([part("둘째", ""), part("", "둘째")]), "“둘째” 옮기기")
  await i18n.setLanguage("en")
  assert.equal(sayParts(parts), "“알게 되었습니다” becomes “배웠습니다”; “특히” deleted; “space” added; “line break” added")
  assert.match(sayParts([...parts, ...parts]), /; 4 more places$/)
})

test("a suggestion at a gap is named after what it adds", () => {
  const author = { id: "u", name: "Lee" }
  const gap = /** @type {any} */ ({ author, anchor: part("", "very ").anchor, parts: [part("", "very ")] })
  assert.equal(subjectOf(gap), "Lee, “very” added")
  const quote = /** @type {any} */ ({ author, anchor: part("old", "new").anchor, parts: [part("old", "new")] })
  assert.equal(subjectOf(quote), "Lee, “old”")
})
