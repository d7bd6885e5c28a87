// @ts-check
/** The reviewer's page draws, sends and finds the own suggestions again. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ChangeSet, Text, Y } from "../../static/js/lib/vendor.ts"
import { divided } from "../../static/js/suggest/sync/batches.ts"
import { drawnChanges, foldedText, partAt, partsNear } from "../../static/js/suggest/view/drawn_text.ts"
import { Overlay } from "../../static/js/suggest/model/overlay.ts"
import { entering, placedParts, textsOf } from "../../static/js/suggest/sync/recovery.ts"
import { inView } from "../../static/js/suggest/sync/view_state.ts"
import { isOrphaned, suggestionOf, verdictOf } from "../../static/js/suggest/sync/served_parts.ts"

/** @param {string} text */
const textOf = (text) => Text.of(text.split("\n"))

test("old words show their line breaks, and break no line at their ends", () => {
  assert.equal(foldedText("옛 말"), "옛 말")
  assert.equal(foldedText("\n"), "¶")
  assert.equal(foldedText("하나\n둘\n"), "하나¶\n둘¶")
})

test("long old words are folded, and no pair is cut", () => {
  const folded = foldedText("가".repeat(401))
  assert.equal(folded, `${"가".repeat(160)} …`)
  assert.equal(foldedText("가".repeat(400)).length, 400)
  assert.equal(foldedText(`${"가".repeat(159)}${"🙂".repeat(200)}`), `${"가".repeat(159)} …`)
})

test("the part at a position is found among those near the window", () => {
  /** @param {string} id @param {number} start @param {number} end */
  const suggestion = (id, start, end) => ({ id, version: 1, since: "", pinned: false, parts: [{ start, end, quote: "", text: "" }] })
  const near = partsNear([suggestion("c", 30, 30), suggestion("a", 0, 4), suggestion("b", 10, 12)], { from: 3, to: 12 })
  assert.deepEqual(near.map(({ id }) => id), ["a", "b"])
  assert.deepEqual([0, 4, 5, 10, 12, 13].map((at) => partAt(near, at)?.id), ["a", "a", undefined, "b", "b", undefined])
})

test("one change of a part is drawn by its letters, several as the words from the first to the last", () => {
  const hunk = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ newFrom, /** @type {number} */ newTo) => ({ old: { from, to }, new: { from: newFrom, to: newTo } })
  const spots = [{ id: "a", start: 0, end: 6 }, { id: "b", start: 10, end: 15 }]
  const drawn = drawnChanges([hunk(0, 2, 0, 2), hunk(3, 4, 3, 4), hunk(12, 12, 12, 14), hunk(20, 21, 22, 22)], spots, { base: textOf(" ".repeat(30)), view: textOf(" ".repeat(30)) })
  assert.deepEqual(drawn, [
    { ...hunk(0, 4, 0, 4), id: "a" },
    { ...hunk(12, 12, 12, 14), id: "b" },
    { ...hunk(20, 21, 22, 22), id: null },
  ])
})

test("a replacement in an alphabet is drawn by whole words, a syllable of Hangul by itself until the server has it", () => {
  /** @param {string} base @param {string} view @param {[number, number]} old @param {[number, number]} fresh */
  const drawn = (base, view, old, fresh, isAtRest = false) => {
    const change = { old: { from: old[0], to: old[1] }, new: { from: fresh[0], to: fresh[1] } }
    const [only] = drawnChanges([change], [{ id: "a", start: 2, end: base.length - 2, isAtRest }], { base: textOf(base), view: textOf(view) })
    return [base.slice(only?.old.from, only?.old.to), view.slice(only?.new.from, only?.new.to)]
  }
  assert.deepEqual(drawn("I had learned .", "I have understood .", [4, 12], [4, 16]), ["had learned", "have understood"])
  assert.deepEqual(drawn("I cat .", "I cats .", [5, 5], [5, 6]), ["", "s"], "an insertion")
  assert.deepEqual(drawn("저 물류가 .", "저 물류를 .", [4, 5], [4, 5]), ["가", "를"])
  assert.deepEqual(drawn("저 물류가 .", "저 물류를 .", [4, 5], [4, 5], true), ["물류가", "물류를"], "once the server has it")
})

test("a change is widened by letters that stand in both texts: not by those of the next change", () => {
  const [base, view] = ["international 나", "nat"]
  const hunks = [{ old: { from: 0, to: 5 }, new: { from: 0, to: 0 } }, { old: { from: 8, to: 15 }, new: { from: 3, to: 3 } }]
  const drawn = drawnChanges(hunks, [{ id: "a", start: 0, end: 13, isAtRest: true }], { base: textOf(base), view: textOf(view) })
  assert.deepEqual(drawn.map(({ old, new: fresh }) => [base.slice(old.from, old.to), fresh.from, fresh.to]), [["internat", 0, 3], ["ional 나", 3, 3]])
})

test("a batch that is too long is halved down to one item, and what is withdrawn comes first", () => {
  /** @param {string} id */
  const put = (id) => ({ id, version: null, parts: [] })
  const batch = { put: ["a", "b", "c"].map(put), withdraw: [{ id: "d", version: 1 }, { id: "e", version: 2 }] }
  /** @param {typeof batch} batch @returns {string[][]} */
  const all = (batch) => {
    const halves = divided(batch)
    if (!halves) return [[...batch.put, ...batch.withdraw].map(({ id }) => id)]
    return halves.flatMap((half) => all(/** @type {typeof batch} */ (half)))
  }
  assert.deepEqual(all(batch), [["d"], ["e"], ["a"], ["b"], ["c"]])
})

/** @param {object} changes @returns {any} */
const review = (changes) => ({ status: "open", outcome: null, parts: [], ...changes })

test("a suggestion of the list is given to the model with its spots, and one without a spot is not", () => {
  const anchor = { state: "exact" }
  const spots = [
    { from: 7, to: 9, quote: "물류", text: "유통" },
    { from: 11, to: 11, quote: "", text: "아주 " },
  ]
  const given = suggestionOf(review({ id: "a", version: 3, created_at: "2026-11-27T09:00:00Z", body: "", replies: [{}], parts: [{ anchor }, { anchor }] }), /** @type {any} */ (spots))
  assert.deepEqual(given, { id: "a", version: 3, since: "2026-11-27T09:00:00Z", pinned: true, parts: [
    { start: 7, end: 9, quote: "물류", text: "유통" },
    { start: 11, end: 11, quote: "", text: "아주 " },
  ] })
  assert.ok(!isOrphaned(review({ parts: [{ anchor }] })))
  assert.ok(isOrphaned(review({ parts: [{ anchor }, { anchor: { state: "orphaned" } }] })))
})

test("a closed suggestion has a verdict", () => {
  assert.equal(verdictOf(review({ status: "accepted" })), "accepted")
  assert.equal(verdictOf(review({ status: "rejected" })), "rejected")
  assert.equal(verdictOf(review({ status: "resolved" })), "rejected")
  assert.equal(verdictOf(review({ status: "resolved", outcome: "withdrawn" })), "withdrawn")
  assert.equal(verdictOf(review({ status: "resolved", outcome: "fulfilled" })), "fulfilled")
})

/** @param {Y.Text} text @param {number} at @param {number} side */
const position = (text, at, side) => btoa(String.fromCharCode(...Y.encodeRelativePosition(Y.createRelativePositionFromTypeIndex(text, at, side))))

test("kept parts are found after the writer went on, and only where their quote stands", () => {
  const text = new Y.Doc().getText("content")
  text.insert(0, "저는 물류가 좋습니다.")
  const retained = {
    id: "a",
    version: 2,
    parts: [
      { start: position(text, 3, 0), end: position(text, 6, -1), quote: "물류가", text: "유통이" },
      { at: position(text, 12, 0), text: " 정말로." },
    ],
  }
  text.insert(0, "그래서 ")
  assert.deepEqual(placedParts(text, retained), [
    { start: 7, end: 10, quote: "물류가", text: "유통이" },
    { start: 16, end: 16, quote: "", text: " 정말로." },
  ])
  text.insert(8, "!")
  assert.equal(placedParts(text, retained), null)
  assert.equal(placedParts(text, { ...retained, parts: [{ at: "no position", text: "a" }] }), null)
  assert.deepEqual(textsOf([retained]), ["유통이", " 정말로."])
})

test("kept parts replace those that the server has of the same suggestion, and never own words", () => {
  const plain = Overlay.plain(textOf("one two three"))
  const listed = [{ start: 4, end: 7, quote: "two", text: "2" }]
  const served = plain.put(listed).overlay
  const newer = [{ start: 4, end: 7, quote: "two", text: "two and a half" }]
  const edit = entering(served, newer, listed)
  assert.equal(edit?.apply(served.view).toString(), "one two and a half three")
  assert.equal(entering(served, newer, []), null)
  assert.equal(entering(served, listed, [])?.empty, true, "the server had them before the page closed")
  const beside = [{ start: 3, end: 3, quote: "", text: " and" }, { start: 7, end: 7, quote: "", text: "nd" }]
  assert.equal(entering(served, beside, [], listed)?.apply(served.view).toString(), "one and 2nd three")
})

test("an offset of the base is found in the view by halves as by the change set", () => {
  let base = Overlay.plain(textOf("abcdefghijklmnopqrstuvwxyz"))
  for (const [from, to, insert] of /** @type {const} */ ([[20, 24, ""], [12, 12, "XY"], [4, 7, "ZZZZZ"], [0, 0, "start "]])) {
    base = base.own(ChangeSet.of({ from, to, insert }, base.view.length))
  }
  for (let at = 0; at <= base.base.length; at++) {
    for (const side of /** @type {const} */ ([1, -1])) assert.equal(inView(base, at, side), base.toView(at, side), `${at} ${side}`)
  }
})
