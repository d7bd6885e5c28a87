// @ts-check
/** The places of anchors by the letters that the server names: a page that followed all edits has those of a reload. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ChangeSet, Text } from "@codemirror/state"
import * as Y from "yjs"

import { SharedPositions } from "../../static/js/reviews/shared_positions.ts"
import { extentOf, moved, spotsOf, stateOfSpot } from "../../static/js/reviews/spots.ts"

const seed = Number(process.env.GALLEY_SEED) || 36

/** @param {Y.Text} text @param {number} at @param {number} side */
function encoded(text, at, side) {
  const edge = side < 0 ? at === 0 : at === text.length
  const position = edge ? new Y.RelativePosition(null, "content", null, side) : Y.createRelativePositionFromTypeIndex(text, at, side)
  return Buffer.from(Y.encodeRelativePosition(position)).toString("base64")
}

/** An anchor as the server sends it. @param {Y.Text} shared @param {number} start @param {number} end @returns {import("../../static/js/lib/api.ts").Anchor} */
function anchorIn(shared, start, end) {
  const text = shared.toString()
  const sides = start === end ? [-1, 0] : [0, -1]
  return {
    state: "exact", start, end, quote: text.slice(start, end), prefix: text.slice(Math.max(start - 32, 0), start), suffix: text.slice(end, end + 32),
    relative: { start: encoded(shared, start, sides[0] ?? 0), end: encoded(shared, end, sides[1] ?? 0) },
  }
}

/** @param {Y.Text} shared @param {readonly import("../../static/js/lib/api.ts").Anchor[]} anchors */
function placed(shared, anchors, ours = /** @type {import("../../static/js/reviews/spots.ts").Spot[]} */ ([])) {
  const whole = shared.toString()
  const text = { tree: Text.of(whole.split("\n")), whole, positions: new SharedPositions(shared, (at) => at) }
  return spotsOf(text, { anchor: anchors[0] ?? null, parts: anchors.map((anchor) => ({ anchor, text: "x" })) }, ours)
}

/** @param {readonly import("../../static/js/reviews/spots.ts").Spot[]} spots */
const shown = (spots) => spots.map((spot) => (stateOfSpot(spot) === "orphaned" ? ["orphaned"] : [stateOfSpot(spot), spot.from, spot.to]))

test("an edit of the server's text that this page lacks leaves a passage without a place", () => {
  const [server, page] = [new Y.Doc(), new Y.Doc()]
  server.getText("content").insert(0, "one two")
  Y.applyUpdate(page, Y.encodeStateAsUpdate(server))
  server.getText("content").insert(4, "and ")
  const anchor = anchorIn(server.getText("content"), 4, 7)
  assert.equal(new SharedPositions(page.getText("content"), (at) => at).of(anchor), null)
  Y.applyUpdate(page, Y.encodeStateAsUpdate(server))
  assert.deepEqual(shown(placed(page.getText("content"), [anchor])), [["exact", 4, 7]])
})

test("a gap stands before the word that it was made before, though an earlier one has its prefix", () => {
  const shared = new Y.Doc().getText("content")
  shared.insert(0, "I will always gladly answer")
  const anchor = anchorIn(shared, 14, 14)
  shared.insert(13, " and must")
  assert.deepEqual(shown(placed(shared, [anchor])), [["exact", 23, 23]])
})

test("a page that followed the edits and one that was reloaded show the same", () => {
  let state = seed
  const random = (/** @type {number} */ below) => (state = (state * 1_103_515_245 + 12_345) & 0x7fffffff) % below
  const words = ["laws ", "in ", "the ", "case\n", "법 ", "을 ", "  ", "a"]
  const some = () => Array.from({ length: 1 + random(4) }, () => words[random(words.length)]).join("")
  let compared = 0
  for (let round = 0; round < 1_500; round++) {
    const shared = new Y.Doc().getText("content")
    shared.insert(0, Array.from({ length: 4 }, some).join(""))
    const at = random(shared.length)
    const anchors = [anchorIn(shared, at, Math.min(at + 1 + random(8), shared.length)), anchorIn(shared, random(shared.length + 1), 0)]
    anchors[1] = anchorIn(shared, anchors[1]?.start ?? 0, anchors[1]?.start ?? 0)
    let spots = placed(shared, anchors)
    for (let step = 0; step < 5; step++) {
      const before = Text.of(shared.toString().split("\n"))
      const from = random(shared.length + 1)
      const edit = { from, to: Math.min(from + random(7), shared.length), insert: random(3) === 0 ? "" : some() }
      // As y-codemirror.next does: the deletion first.
      shared.delete(from, edit.to - from)
      shared.insert(from, edit.insert)
      const changes = ChangeSet.of({ ...edit, insert: Text.of(edit.insert.split("\n")) }, before.length)
      const after = changes.apply(before)
      spots = spots.map((spot) => moved(spot, changes, extentOf(changes), after))
      // A guess stands until the server has answered.
      if (spots.some(({ isGuess }) => isGuess)) break
      const reloaded = placed(shared, anchors)
      spots = placed(shared, anchors, spots)
      assert.deepEqual(shown(spots), shown(reloaded), `GALLEY_SEED=${seed}, round ${round}, step ${step}: ${JSON.stringify(edit)} ${JSON.stringify(before.toString())}`)
      compared += spots.filter((spot) => stateOfSpot(spot) === "exact").length
    }
  }
  assert.ok(2_000 < compared, `${compared} places`)
})
