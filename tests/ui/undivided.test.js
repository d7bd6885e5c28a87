// @ts-check
/** No edit divides a surrogate pair, and the difference of two texts does not either. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { differenceOf } from "../../static/js/desk/difference.ts"
import { undivided, undividedIn } from "../../static/js/desk/undivided.ts"
import { EditorState, Text } from "../../static/js/lib/vendor.ts"

/** @param {string} text @param {{ from: number, to?: number, insert?: string }[]} changes @param {number} [caret] */
function edited(text, changes, caret = 0) {
  const state = EditorState.create({ doc: Text.of(text.split("\n")), extensions: [EditorState.lineSeparator.of("\n"), undivided(() => false)] })
  const transaction = state.update({ changes, selection: { anchor: caret }, userEvent: "input.type" })
  /** @type {[number, number, string][]} */
  const found = []
  transaction.changes.iterChanges((from, to, _newFrom, _newTo, insert) => found.push([from, to, insert.toString()]))
  return { text: transaction.newDoc.toString(), changes: found, caret: transaction.newSelection.main.head, event: transaction.isUserEvent("input.type") }
}

test("an edit that ends inside a pair is one of the whole pair, and keeps its caret and its cause", () => {
  assert.deepEqual(edited("a😀b", [{ from: 2, to: 3, insert: "\uDE01" }], 3), { text: "a😁b", changes: [[1, 3, "😁"]], caret: 3, event: true })
  assert.deepEqual(edited("a😀b", [{ from: 1, to: 2, insert: "\uD83E" }]).text, "a\uD83E\uDE00b")
  assert.deepEqual(edited("😁😀😁", [{ from: 1, to: 3 }]).changes, [[0, 4, "😀"]])
  assert.deepEqual(edited("a😀b", [{ from: 2, to: 3, insert: "\uDE01xy\uD83D\uDE02" }], 4).caret, 4)
})

test("a half that would remain alone is deleted, an insertion into a pair stands behind it, and a pasted half goes", () => {
  assert.equal(edited("a😀b", [{ from: 2, to: 3 }]).text, "ab")
  assert.equal(edited("a😀b", [{ from: 0, to: 2 }]).text, "b")
  assert.equal(edited("a😀b", [{ from: 2, insert: "x" }]).text, "a😀xb")
  assert.equal(edited("ab", [{ from: 1, insert: "x\uD83Dy\uDE00" }]).text, "axyb")
})

test("an edit of whole letters stays as it is, also several at once and over lines", () => {
  const { changes } = edited("a😀b\nc😁d", [{ from: 1, to: 3, insert: "🙂" }, { from: 5, to: 8, insert: "\n" }])
  assert.deepEqual(changes, [[1, 3, "🙂"], [5, 8, "\n"]])
  assert.equal(edited("a\r\nb", [{ from: 0, insert: "x" }], 3).caret, 2, "a caret leaves a line break of two units")
})

test("emoji of several code points and breaks of two units are undivided, letters are not", () => {
  for (const emoji of ["👍🏽", "👩‍👩‍👧", "🇰🇷", "1️⃣", "❤️", "👨🏽‍🦱", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀", "\r\n"]) assert.deepEqual(undividedIn(`a${emoji}b`), [{ from: 1, to: 1 + emoji.length }], emoji)
  assert.deepEqual(undividedIn("🇰🇷🇩🇪").length, 2)
  assert.deepEqual(undividedIn("각 각 12 e\u0301 क्षि ©\n"), [])
})

test("the difference of two texts is in whole pairs", () => {
  for (const [before, after] of /** @type {[string, string][]} */ ([["a😀b", "a😁b"], ["😀", "😁"], ["\u{1F600}", "\u{1FA00}"], ["😀😀", "😀"], ["x😀", "😀"], ["😁😀", "😁"], ["", "😀"]])) {
    const change = differenceOf(before, after)
    assert.ok(change)
    const { from, to, insert } = change
    assert.equal(before.slice(0, from) + insert + before.slice(to), after)
    for (const text of [insert, before.slice(0, from), before.slice(from, to), before.slice(to)]) assert.doesNotMatch(text, /\p{Cs}/u, `${before} → ${after}`)
  }
})
