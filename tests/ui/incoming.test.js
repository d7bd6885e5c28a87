// @ts-check
/** The rule for text from outside: the table that the server shares, the edits of the user, and decomposed texts of stock clients. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { countText } from "../../static/js/desk/counts.ts"
import { matchesOf, queryOf } from "../../static/js/desk/find_query.ts"
import { incomingEdits } from "../../static/js/desk/incoming_edits.ts"
import { incoming } from "../../static/js/lib/incoming.ts"
import { EditorState } from "../../static/js/lib/vendor.ts"
import { fullnessOf } from "../../static/js/sections/fullness.ts"
import { findSections } from "../../static/js/sections/sections.ts"

/** @type {[string, string][]} */
const table = JSON.parse(readFileSync(new URL("../data/incoming.json", import.meta.url), "utf8"))

/** An editor's state with the filter; edits of `remote` are not the user's. @param {string} doc */
const stateOf = (doc) =>
  EditorState.create({ doc, extensions: [EditorState.lineSeparator.of("\n"), incomingEdits((change) => change.isUserEvent("remote"))] })

test("a text from outside follows the rule of the table, once and for ever", () => {
  for (const [from, to] of table) {
    assert.equal(incoming(from), to, JSON.stringify(from))
    assert.equal(incoming(to), to, JSON.stringify(from))
  }
  assert.equal(incoming("a\ud83db\ude00c😀"), "abc😀", "half of a pair goes")
})

test("an edit of the user follows the rule, with the caret behind it", () => {
  for (const [from, to] of table) {
    const { state } = stateOf("a\nb").update({ changes: { from: 1, insert: from }, selection: { anchor: 1 + from.length }, userEvent: "input.type" })
    assert.equal(state.doc.toString(), `a${to}\nb`, JSON.stringify(from))
    assert.equal(state.selection.main.head, 1 + to.length, JSON.stringify(from))
  }
  const two = stateOf("abc").update({ changes: [{ from: 0, insert: "\v" }, { from: 1, to: 2, insert: "\u1100\u1161" }], userEvent: "input.replace" })
  assert.equal(two.newDoc.toString(), "\na가c")
})

test("a composition, an undo and another's edit stay as they are, and the half of a pair may join the text", () => {
  const decomposed = "\u1100\u1161"
  for (const userEvent of ["input.type.compose.start", "input.type.compose", "undo", "redo", "remote"]) {
    assert.equal(stateOf("").update({ changes: { from: 0, insert: decomposed }, userEvent }).newDoc.toString(), decomposed, userEvent)
  }
  const { newDoc } = stateOf("😀").update({ changes: { from: 1, to: 2, insert: "\ude01" }, userEvent: "input.type" })
  assert.equal(newDoc.toString(), "😁")
})

const FORM = "자기소개서\n\n1. 지원동기를 기술하시오. (700자 이내)\n저는 물류를 배웠습니다.\n\n2. 성격의 장단점을 기술하시오. (500byte 이내)\n각오가 있습니다."

test("a decomposed text of a stock client has the counts and the questions of the composed one, at its own offsets", () => {
  const stored = FORM.normalize("NFD")
  assert.notEqual(stored, FORM)
  assert.deepEqual(countText(stored), countText(FORM))
  const [found, wanted] = [findSections(stored), findSections(FORM)]
  assert.equal(wanted.length, 2)
  const values = (/** @type {string} */ text, /** @type {typeof found} */ sections) =>
    sections.map((section) => ({
      ...section,
      heading: text.slice(section.from, section.to).normalize("NFC"),
      body: text.slice(section.body.from, section.body.to).normalize("NFC"),
      from: 0,
      to: 0,
      fullness: fullnessOf(text, section),
    }))
  assert.deepEqual(values(stored, found), values(FORM, wanted))
})

test("a search finds composed and decomposed letters alike, and no part of one", () => {
  const found = (/** @type {string} */ text, /** @type {string} */ search) => {
    const state = EditorState.create({ doc: text })
    return matchesOf(queryOf({ search, replace: "", caseSensitive: false }), state).map(({ from, to }) => text.slice(from, to).normalize("NFC"))
  }
  const text = "각 가 가각 cafe café 까"
  for (const stored of [text, text.normalize("NFD")]) {
    for (const form of ["NFC", "NFD"]) {
      assert.deepEqual(found(stored, "가".normalize(form)), ["가", "가"])
      assert.deepEqual(found(stored, "각".normalize(form)), ["각", "각"])
      assert.deepEqual(found(stored, "cafe".normalize(form)), ["cafe"])
      assert.deepEqual(found(stored, "café".normalize(form)), ["café"])
    }
  }
})
