// @ts-check
/** The views of a text with suggestions: what each shows, whether it may be typed in, and what a copy has. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { EditorState, EditorView } from "../../static/js/lib/vendor.ts"
import { marked, reviewsAt, setPassages } from "../../static/js/reviews/highlights.ts"
import { spotsOf } from "../../static/js/reviews/spots.ts"
import { setView, applicableSuggestions, overlappedIds, textShown, textView } from "../../static/js/reviews/text_view.ts"

const TEXT = "저는 물류가 좋습니다.\n\n특히 현장이 좋습니다."

/** @param {number} start @param {number} end @param {string} text */
const part = (start, end, text) => ({
  text,
  anchor: { state: /** @type {const} */ ("exact"), start, end, quote: TEXT.slice(start, end), prefix: TEXT.slice(Math.max(0, start - 32), start), suffix: TEXT.slice(end, end + 32) },
})

/** An editor's state with suggestions, the oldest first. @param {...ReturnType<typeof part>[]} suggestions */
function stateWith(...suggestions) {
  const state = EditorState.create({ doc: TEXT, extensions: [EditorState.lineSeparator.of("\n"), marked, textView(marked)] })
  const passages = new Map(suggestions.map((parts, at) => {
    const spots = spotsOf({ tree: state.doc, whole: TEXT }, { anchor: parts[0]?.anchor ?? null, parts }, [])
    return [`r${at}`, { spots, suggests: true, by: /** @type {const} */ ("reviewer"), since: `2026-11-26T10:00:0${at}Z` }]
  }))
  return state.update({ effects: setPassages.of(passages) }).state
}

const replaced = [part(3, 6, "물류를")]
const added = [part(11, 11, " 정말로.")]
const joined = [part(12, 14, "")]
const taken = [part(14, 17, ""), part(TEXT.length, TEXT.length, " 특히")]

test("as if accepted shows every suggestion that stands, each whole", () => {
  const state = stateWith(replaced, added, taken)
  assert.equal(textShown(state, marked), TEXT)
  const accepted = state.update({ effects: setView.of("accepted") }).state
  assert.equal(textShown(accepted, marked), "저는 물류를 좋습니다 정말로..\n\n현장이 좋습니다. 특히")
  const edited = accepted.update({ changes: { from: 15, to: 16, insert: "별" } }).state
  assert.equal(applicableSuggestions(edited, marked).length, 2, "the move lost a quote")
  assert.equal(accepted.doc.toString(), TEXT, "the text stays")
})

test("of two suggestions for the same words only the older one is accepted, and drawn so", () => {
  const state = stateWith(replaced, [part(3, 9, "물류를 좋")], [part(11, 11, "요")], added)
  assert.deepEqual([...overlappedIds(state, marked)], ["r1", "r3"])
  // Two gaps become one when the letters between them go.
  const apart = stateWith(added, [part(12, 12, "정말로.")])
  assert.deepEqual([...overlappedIds(apart, marked)], [])
  assert.deepEqual([...overlappedIds(apart.update({ changes: { from: 11, to: 12 } }).state, marked)], ["r1"])
})

test("as if accepted is read-only, and the other views are what they were", () => {
  const state = stateWith(replaced)
  for (const [view, isReadOnly] of /** @type {const} */ ([["shown", false], ["original", false], ["accepted", true], ["shown", false]])) {
    assert.equal(state.update({ effects: setView.of(view) }).state.readOnly, isReadOnly, view)
  }
})

test("a copy of a view that is as if accepted is as it is shown", () => {
  const state = stateWith(replaced, added).update({ effects: setView.of("accepted"), selection: { anchor: 3, head: 11 } }).state
  const copied = (/** @type {EditorState} */ state) => state.facet(EditorView.clipboardOutputFilter).reduce((text, filter) => filter(text, state), state.sliceDoc(state.selection.main.from, state.selection.main.to))
  assert.equal(copied(state), "물류를 좋습니다 정말로.")
  assert.equal(copied(state.update({ effects: setView.of("shown") }).state), "물류가 좋습니다")
})

test("line breaks are joined and added in the view that is as if accepted", () => {
  const state = stateWith(joined, [part(0, 0, "제목\n")]).update({ effects: setView.of("accepted") }).state
  assert.equal(textShown(state, marked), "제목\n저는 물류가 좋습니다.\n특히 현장이 좋습니다.".replace("\n특히", "특히"))
  const drawn = state.facet(EditorView.decorations).map((set) => (typeof set === "function" ? 0 : set.size))
  assert.deepEqual(drawn, [2])
})

test("the caret finds the suggestions that are shown, beside a quote and at a gap", () => {
  const state = stateWith(replaced, added)
  assert.deepEqual([3, 6, 7, 11].map((at) => reviewsAt(state, at)), [["r0"], ["r0"], [], ["r1"]])
  for (const view of /** @type {const} */ (["accepted", "original"])) {
    assert.deepEqual(reviewsAt(state.update({ effects: setView.of(view) }).state, 3), [], view)
  }
})
