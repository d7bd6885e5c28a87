// @ts-check
/** The spots of a review in the text of the editor, and how they follow edits. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ChangeSet, Text } from "@codemirror/state"
import * as Y from "yjs"

import { gapHolds, locateGap } from "../../static/js/reviews/locate.ts"
import { extentOf, isWhole, moved, spotsOf, stands, stateOfSpot } from "../../static/js/reviews/spots.ts"

/** @typedef {import("../../static/js/reviews/spots.ts").Spot} Spot */

/** @param {string} text @param {number} start @param {number} [end] @param {Partial<import("../../static/js/lib/api.ts").Anchor>} [given] */
const anchorIn = (text, start, end = start, given = {}) => ({
  state: /** @type {const} */ ("exact"), start, end, quote: text.slice(start, end),
  prefix: text.slice(Math.max(start - 32, 0), start), suffix: text.slice(end, end + 32), ...given,
})

/** @param {string} text @param {...{ anchor: ReturnType<typeof anchorIn>, text: string }} parts */
const served = (text, ...parts) => spotsOf({ tree: Text.of(text.split("\n")), whole: text }, { anchor: parts[0]?.anchor ?? null, parts }, [])

/** The spots after an edit. @param {string} text @param {readonly Spot[]} spots @param {{ from: number, to?: number, insert?: string }} edit */
function edited(text, spots, edit) {
  const before = Text.of(text.split("\n"))
  const changes = ChangeSet.of(edit, before.length)
  const after = changes.apply(before)
  return { spots: spots.map((spot) => moved(spot, changes, extentOf(changes), after)), text: after.toString() }
}

/** @param {Spot | undefined} spot */
const rangeOf = (spot) => spot && [spot.from, spot.to]

test("parts are located by their quotes and gaps", () => {
  const text = "저는 물류가 좋습니다. 그래서 지원합니다."
  const spots = served(text, { anchor: anchorIn(text, 3, 6), text: "물류를" }, { anchor: anchorIn(text, 12), text: " 정말" })
  assert.deepEqual(spots.map(rangeOf), [[3, 6], [12, 12]])
  assert.deepEqual(spots.map((spot) => spot.text), ["물류를", " 정말"])
  assert.ok(isWhole(spots))
})

test("a letter at an edge of a quote stays outside, and one at a gap stands before it", () => {
  const text = "one two three"
  const spots = served(text, { anchor: anchorIn(text, 4, 7), text: "2" }, { anchor: anchorIn(text, 8), text: "and " })
  const before = edited(text, spots, { from: 4, insert: "x" })
  assert.deepEqual(before.spots.map(rangeOf), [[5, 8], [9, 9]])
  const behind = edited(text, spots, { from: 7, insert: "x" })
  assert.deepEqual(behind.spots.map(rangeOf), [[4, 7], [9, 9]])
  const gap = edited(text, spots, { from: 8, insert: "x" })
  assert.deepEqual(gap.spots.map(rangeOf), [[4, 7], [9, 9]])
  for (const { spots } of [before, behind, gap]) assert.ok(isWhole(spots))
})

test("an edit inside a quote edits its spot, and the same letters again make it whole", () => {
  const text = "one two three"
  const spots = served(text, { anchor: anchorIn(text, 4, 7), text: "2" })
  const inside = edited(text, spots, { from: 5, insert: "x" })
  assert.equal(isWhole(inside.spots), false)
  assert.ok(inside.spots.every(stands))
  assert.ok(isWhole(edited(inside.text, inside.spots, { from: 5, to: 6 }).spots))
})

test("a deleted quote stands nowhere, and stands again where it is pasted", () => {
  const text = "one two three"
  const spots = served(text, { anchor: anchorIn(text, 4, 7), text: "2" })
  const cut = edited(text, spots, { from: 3, to: 8 })
  assert.equal(cut.spots.some(stands), false)
  const pasted = edited(cut.text, cut.spots, { from: 8, insert: " two" })
  assert.deepEqual(pasted.spots.map(rangeOf), [[9, 12]])
  assert.deepEqual(pasted.spots.map(stateOfSpot), ["moved"])
  const inside = edited(pasted.text, pasted.spots, { from: 10, insert: "x" })
  assert.deepEqual(inside.spots.map(stateOfSpot), ["edited"], "a guess that is edited is none of the server's")
})

test("a gap holds while a word beside it does, and is found again when its paragraph is back", () => {
  const text = "first line\nsecond line\nlast"
  const spots = served(text, { anchor: anchorIn(text, 17), text: " new" })
  assert.ok(isWhole(edited(text, spots, { from: 17, to: 22 }).spots), "the word before it")
  assert.ok(isWhole(edited(text, spots, { from: 11, to: 17 }).spots), "the word behind it")
  const cut = edited(text, spots, { from: 10, to: 22 })
  assert.equal(cut.spots.some(stands), false, "neither")
  const back = edited(cut.text, cut.spots, { from: 10, insert: "\nsecond line" })
  assert.deepEqual(back.spots.map(rangeOf), [[17, 17]])
})

test("a whole word or the edge of the text is a neighbour of a gap, white space alone is none", () => {
  const tree = (/** @type {string} */ text) => ({ length: text.length, sliceString: (/** @type {number} */ from, /** @type {number} */ to) => text.slice(from, to) })
  assert.equal(gapHolds(tree(" b"), 0, { prefix: "a ", suffix: " c" }), false)
  assert.equal(gapHolds(tree("a   b"), 2, { prefix: "a", suffix: "" }), true)
  assert.equal(gapHolds(tree("ba b"), 2, { prefix: "a", suffix: "" }), true, "the context of a long word begins inside it")
  assert.equal(gapHolds(tree("x aa b"), 4, { prefix: "x a", suffix: " c" }), false)
  assert.equal(gapHolds(tree("x a bb"), 4, { prefix: "y", suffix: "b c" }), false)
  assert.equal(gapHolds(tree(""), 0, { prefix: "", suffix: "" }), true)
  assert.equal(gapHolds(tree("two words"), 0, { prefix: "", suffix: "one" }), true)
  assert.equal(gapHolds(tree("two words"), 9, { prefix: "else", suffix: "" }), true)
})

test("a gap whose text local edits moved is located by its context, nearest to where it was", () => {
  const text = "alpha beta gamma alpha beta gamma"
  const anchor = anchorIn(text, 10)
  assert.deepEqual(locateGap(`xx ${text}`, anchor), { from: 13, to: 13 })
  assert.deepEqual(locateGap("nothing of it", { ...anchor, start: 5 }), { from: 5, to: 5 })
})

test("a newer version is located anew where its quotes differ, and moves along where they do not", () => {
  const text = "one two three"
  const ours = served(text, { anchor: anchorIn(text, 4, 7), text: "2" })
  const typed = edited(text, ours, { from: 0, insert: "so " })
  const sides = { tree: Text.of([typed.text]), whole: typed.text }
  const late = { anchor: anchorIn(text, 4, 7), text: "zwei" }
  const same = spotsOf(sides, { anchor: late.anchor, parts: [late] }, typed.spots)
  assert.deepEqual(same.map(({ from, to, text }) => ({ from, to, text })), [{ from: 7, to: 10, text: "zwei" }])
  const grown = { anchor: anchorIn(text, 0, 7), text: "zwei" }
  assert.deepEqual(spotsOf(sides, { anchor: grown.anchor, parts: [grown] }, typed.spots).map(rangeOf), [[3, 10]])
})

test("places follow edits as the relative positions of Yjs do", () => {
  let seed = 28
  const random = (/** @type {number} */ below) => (seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff) % below
  for (let round = 0; round < 400; round++) {
    const doc = new Y.Doc()
    const shared = doc.getText("content")
    let text = Array.from({ length: 40 }, () => "abcdefg "[random(8)]).join("")
    shared.insert(0, text)
    const from = random(30)
    const to = from + 1 + random(8)
    let spots = served(text, { anchor: anchorIn(text, from, to), text: "x" }, { anchor: anchorIn(text, random(40)), text: "y" })
    const gap = Y.createRelativePositionFromTypeIndex(shared, spots[1]?.from ?? 0, 0)
    const [start, end] = [Y.createRelativePositionFromTypeIndex(shared, from, 0), Y.createRelativePositionFromTypeIndex(shared, to, -1)]
    for (let step = 0; step < 6; step++) {
      const at = random(text.length + 1)
      const deleted = random(3) === 0 ? Math.min(random(6), text.length - at) : 0
      const insert = deleted === 0 ? "xyz".slice(0, 1 + random(3)) : ""
      if (deleted > 0) shared.delete(at, deleted)
      if (insert) shared.insert(at, insert)
      ;({ spots, text } = edited(text, spots, { from: at, to: at + deleted, insert }))
    }
    const index = (/** @type {Y.RelativePosition} */ position) => Y.createAbsolutePositionFromRelativePosition(position, doc)?.index
    const [quote, hole] = spots
    if (quote && stands(quote)) assert.deepEqual(rangeOf(quote), [index(start), index(end)], `round ${round}`)
    if (hole?.holds) assert.equal(hole.from, index(gap), `round ${round}`)
  }
})
