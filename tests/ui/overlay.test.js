// @ts-check
/**
 * The overlay under edits of both sides, acceptances and rejections, in random texts. `GALLEY_SEED` repeats a run.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ChangeSet, Text, Y } from "../../static/js/lib/vendor.ts"
import { fulfilledIn, splitFulfilled } from "../../static/js/suggest/model/acceptance.ts"
import { Overlay } from "../../static/js/suggest/model/overlay.ts"
import { applied, partsOf, shiftPart } from "../../static/js/suggest/model/parts.ts"
import { mappingOf } from "../../static/js/suggest/model/ranges.ts"

/** @typedef {import("../../static/js/suggest/model/parts.ts").Part} Part */

const SEED = Number(process.env.GALLEY_SEED ?? Math.floor(Math.random() * 2 ** 32))
const ROUNDS = process.env.GALLEY_SHORT ? 300 : 3_000
const WORDS = ["학교", "는", "저는 ", " ", " ", "\n", "the", "cat", "a", "s", ".", "👨‍👩‍👧", "e\u0301", "漢"]

const textOf = (/** @type {string} */ text) => Text.of(text.split("\n"))

/** Half of a surrogate pair is no letter. @param {Text} text @param {number} at */
const whole = (text, at) => (/^[\udc00-\udfff]/.test(text.sliceString(at, at + 1)) ? at + 1 : at)

/** @param {number} seed */
function numbers(seed) {
  let state = seed >>> 0
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** @param {number} round */
function randomly(round) {
  const random = numbers(SEED + round)
  random(2)
  const words = (/** @type {number} */ most) => Array.from({ length: random(most + 1) }, () => WORDS[random(WORDS.length)]).join("")
  const edit = (/** @type {Text} */ text) => {
    const from = whole(text, random(text.length + 1))
    const to = whole(text, Math.min(text.length, from + random(2) * random(9)))
    return ChangeSet.of({ from, to, insert: textOf(words(3)) }, text.length)
  }
  return { random, words, edit, text: textOf(words(40)) }
}

/** An overlay with some edits of the reviewer. @param {ReturnType<typeof randomly>} randomly */
function suggested({ random, edit, text }) {
  let overlay = Overlay.plain(text)
  for (let edits = 1 + random(5); 0 < edits; edits--) overlay = overlay.own(edit(overlay.view))
  return overlay
}

/** @param {Part[]} parts @param {ChangeSet} edit @returns {Part[]} */
function moved(parts, edit) {
  const found = parts.map((part) => ({ ...part }))
  for (const part of found) shiftPart(part, mappingOf(edit))
  return found
}

/** The same after the page collected its suggestions. @param {ReturnType<typeof randomly>} randomly */
function collected(randomly) {
  const overlay = suggested(randomly)
  const parts = partsOf(overlay).flat()
  return overlay.recut([{ from: 0, to: overlay.base.length }], parts)
}

/** @param {Overlay} overlay @param {string} name */
function check({ base, view, changes }, name) {
  assert.ok(changes.apply(base).eq(view), `${name}: the changes lead to the view`)
}

test(`the changes lead from the base to the view, however both sides edit (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS / 30; round++) {
    const { random, edit, text } = randomly(round)
    let overlay = Overlay.plain(text)
    let view = text
    for (let step = 0; step < 100; step++) {
      const isOwn = random(2) === 0
      const change = edit(isOwn ? overlay.view : overlay.base)
      const base = isOwn ? overlay.base : change.apply(overlay.base)
      const { overlay: next, edit: viewEdit } = isOwn ? { overlay: overlay.own(change), edit: change } : overlay.written(change)
      view = viewEdit.apply(view)
      overlay = next
      check(overlay, `round ${round}, step ${step}`)
      assert.ok(overlay.base.eq(base) && overlay.view.eq(view), `round ${round}, step ${step}`)
    }
  }
})

test("the writer's letters at a suggested gap stand before the suggested ones", () => {
  const overlay = Overlay.plain(textOf("ac")).own(ChangeSet.of({ from: 1, insert: "b" }, 2))
  assert.equal(overlay.written(ChangeSet.of({ from: 1, insert: "x" }, 2)).overlay.view.toString(), "axbc")
})

test("a word that is deleted and typed again leaves nothing", () => {
  let overlay = Overlay.plain(textOf("저는 학교에 간다"))
  overlay = overlay.own(ChangeSet.of({ from: 3, to: 6 }, 9))
  for (const [at, letter] of [..."학교에"].entries()) {
    overlay = overlay.own(ChangeSet.of({ from: 3 + at, insert: letter }, overlay.view.length))
  }
  assert.ok(overlay.changes.empty)
})

test("the pieces of a replacement are its new letters, then the old ones", () => {
  const overlay = Overlay.plain(textOf("the big dog")).own(ChangeSet.of({ from: 4, to: 7, insert: "huge" }, 11))
  assert.deepEqual(overlay.pieces(), [
    { kind: "inserted", from: 4, to: 8, base: 4 },
    { kind: "deleted", at: 8, base: { from: 4, to: 7 }, text: "big" },
  ])
  assert.deepEqual(overlay.pieces({ from: 0, to: 3 }), [])
})

test("ranges and offsets lead from the view to the base and back", () => {
  const overlay = Overlay.plain(textOf("the big dog")).own(ChangeSet.of({ from: 4, to: 7, insert: "huge" }, 11))
  assert.deepEqual(overlay.rangeToBase({ from: 0, to: 8 }), { from: 0, to: 7 })
  assert.deepEqual(overlay.rangeToBase({ from: 2, to: 6 }), { from: 2, to: 4 })
  const inside = overlay.rangeToBase({ from: 5, to: 6 })
  assert.equal(inside.from, inside.to, "an insertion has no letter of the base")
  assert.deepEqual(overlay.rangeToView({ from: 8, to: 11 }), { from: 9, to: 12 })
  for (let at = 0; at <= 4; at++) assert.equal(overlay.toBase(overlay.toView(at, -1), -1), at)
})

test(`suggestions that load give the view that was (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const overlay = suggested(randomly(round))
    const parts = partsOf(overlay).flat()
    const loaded = Overlay.plain(overlay.base)
    assert.ok(loaded.mayPut(parts), `round ${round}`)
    const { overlay: again, edit } = loaded.put(parts)
    check(again, `round ${round}`)
    assert.ok(again.view.eq(overlay.view) && edit.apply(overlay.base).eq(overlay.view), `round ${round}`)
    assert.deepEqual(partsOf(again).flat(), parts, `round ${round}`)
    assert.equal(parts.length === 0 || again.mayPut(parts), parts.length === 0, `round ${round}: twice`)
  }
})

/** The edit by which a server puts parts in: whole or only what differs. @param {Text} base @param {Part[]} parts @param {boolean} isFine */
function acceptance(base, parts, isFine) {
  if (isFine) return applied(base, parts)
  const specs = parts.map(({ start, end, text }) => ({ from: start, to: end, insert: textOf(text) }))
  return ChangeSet.of(specs, base.length)
}

test(`accepted parts, alone or several, leave the view as it is (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const randomness = randomly(round)
    const overlay = collected(randomness)
    const all = partsOf(overlay).flat().sort((one, other) => one.start - other.start)
    const parts = all.filter(() => randomness.random(2) === 0)
    const edit = acceptance(overlay.base, parts, randomness.random(2) === 0)
    const name = `round ${round}: ${JSON.stringify([overlay.base.toString(), overlay.view.toString()])}`
    const { done, put, rest } = splitFulfilled(edit, overlay.base, [all])
    assert.deepEqual(done, parts, name)
    assert.ok(rest.empty, name)
    const accepted = overlay.accepted(put, done)
    check(accepted, name)
    assert.ok(accepted.view.eq(overlay.view) && accepted.base.eq(edit.apply(overlay.base)), name)
    const left = all.filter((part) => !parts.includes(part))
    assert.deepEqual(partsOf(accepted).flat().sort((one, other) => one.start - other.start), moved(left, edit), `${name}: the others stay`)
  }
})

test(`accepted parts in one edit with others move the view as the others alone do (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const randomness = randomly(round)
    const overlay = collected(randomness)
    const all = partsOf(overlay).flat().sort((one, other) => one.start - other.start)
    const parts = all.filter(() => randomness.random(2) === 0)
    const other = randomness.edit(overlay.base)
    const isNear = parts.some(({ start, end }) => other.touchesRange(start, end))
    const put = acceptance(overlay.base, parts, randomness.random(2) === 0)
    const edit = put.compose(other.map(put))
    const split = splitFulfilled(edit, overlay.base, [all])
    const name = `round ${round}`
    assert.ok(split.rest.apply(split.put.apply(overlay.base)).eq(edit.apply(overlay.base)), `${name}: both halves give the text`)
    const step = overlay.accepted(split.put, split.done).written(split.rest)
    check(step.overlay, name)
    if (isNear) continue
    assert.ok(parts.every((part) => split.done.includes(part)), name)
    if (split.done.length === parts.length) assert.ok(step.overlay.view.eq(overlay.written(other).overlay.view), name)
  }
})

test("the writer types on beside a part before the page receives its acceptance", () => {
  const base = textOf("the big dog")
  const part = { start: 4, end: 7, quote: "big", text: "huge" }
  const overlay = Overlay.plain(base).put([part]).overlay
  for (const [insert, view] of [["huge and", "the huge and dog"], ["very huge", "the very huge dog"]]) {
    const { done, put, rest } = splitFulfilled(ChangeSet.of({ from: 4, to: 7, insert }, 11), base, [[part]])
    assert.deepEqual(done, [part])
    const { overlay: next } = overlay.accepted(put, done).written(rest)
    assert.ok(next.changes.empty)
    assert.equal(next.view.toString(), view)
  }
  assert.deepEqual(fulfilledIn(ChangeSet.of({ from: 4, to: 7, insert: "hug" }, 11), base, [part]), [])
})

test("parts that touch, as those of a suggestion over the limits, go in and out together", () => {
  const base = textOf("one two")
  const parts = ["하나 ", "둘 "].map((text) => ({ start: 4, end: 4, quote: "", text }))
  const { overlay } = Overlay.plain(base).put(parts)
  assert.equal(overlay.view.toString(), "one 하나 둘 two")
  const edit = ChangeSet.of({ from: 4, insert: "하나 둘 " }, 7)
  const { done, put, rest } = splitFulfilled(edit, base, [parts])
  assert.deepEqual(done, parts)
  assert.ok(rest.empty && overlay.accepted(put, done).changes.empty)
  assert.equal(overlay.takeOut(parts).overlay.view.toString(), "one two")
})

test(`parts that are taken out leave the others, and the quotes return (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const randomness = randomly(round)
    const overlay = collected(randomness)
    const all = partsOf(overlay).flat()
    const [left, parts] = [/** @type {Part[]} */ ([]), /** @type {Part[]} */ ([])]
    for (const part of all) (randomness.random(2) === 0 ? left : parts).push(part)
    const { overlay: without, edit } = overlay.takeOut(parts)
    const name = `round ${round}: ${JSON.stringify([overlay.base.toString(), overlay.view.toString()])}`
    check(without, name)
    assert.ok(edit.apply(overlay.view).eq(without.view), name)
    assert.equal(without.view.toString(), applied(overlay.base, left).apply(overlay.base).toString(), name)
    const { overlay: plain } = overlay.revert([{ from: 0, to: overlay.base.length }])
    assert.ok(plain.view.eq(overlay.base) && plain.changes.empty, name)
  }
})

test("a part that is taken out leaves the words that were typed since", () => {
  const part = { start: 4, end: 7, quote: "big", text: "huge" }
  const overlay = Overlay.plain(textOf("the big dog")).put([part]).overlay
  const withWord = overlay.own(ChangeSet.of({ from: 8, insert: " old" }, 12))
  assert.equal(withWord.takeOut([part]).overlay.view.toString(), "the big old dog")
  const inside = overlay.own(ChangeSet.of({ from: 6, insert: "g" }, 12))
  assert.equal(inside.takeOut([part]).overlay.view.toString(), "the hugge dog", "a word inside it belongs to both")
})

/** Whether an edit deletes the letter at an offset. @param {ChangeSet} edit @param {number} at */
function isDeleted(edit, at) {
  let found = false
  edit.iterChangedRanges((from, to) => (found ||= from <= at && at < to))
  return found
}

test(`a mapping of many offsets is that of CodeMirror (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const { changes, base } = suggested(randomly(round))
    const map = mappingOf(changes)
    for (let at = 0; at <= base.length; at++) {
      for (const side of /** @type {const} */ ([-1, 1])) assert.equal(map(at, side), changes.mapPos(at, side), `round ${round}`)
    }
  }
})

test(`the parts of a page stand where the relative positions of Yjs stand (seed ${SEED})`, () => {
  let compared = 0
  for (let round = 0; round < 300; round++) {
    const { random, words, text } = randomly(round)
    const [doc, other] = [new Y.Doc(), new Y.Doc()]
    const [shared, remote] = [doc, other].map((one) => one.getText("content"))
    assert.ok(shared && remote)
    shared.insert(0, text.toString())
    Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
    let base = text
    /** @type {{ part: Part, positions: Y.RelativePosition[] }[]} */
    let found = []
    const positionAt = (/** @type {number} */ at, /** @type {number} */ side) => Y.createRelativePositionFromTypeIndex(shared, at, side)
    for (let count = 0; count < 6; count++) {
      const start = random(base.length + 1)
      const end = Math.min(base.length, start + random(3) * random(9))
      const part = { start, end, quote: base.sliceString(start, end), text: "x" }
      found.push({ part, positions: [positionAt(start, 0), positionAt(end, start === end ? 0 : -1)] })
    }
    shared.observe((event) => {
      let at = 0
      const specs = event.delta.flatMap(({ retain = 0, delete: removed = 0, insert = "" }) => {
        const from = (at += retain)
        at += removed
        return retain ? [] : [{ from, to: from + removed, insert: textOf(String(insert)) }]
      })
      const edit = ChangeSet.of(specs, base.length)
      base = edit.apply(base)
      // A part that lost a letter beside its ends is the server's to find.
      const before = found.filter(({ part: { start, end } }) => !isDeleted(edit, start) && (start === end || !isDeleted(edit, end - 1)))
      const parts = moved(before.map(({ part }) => part), edit)
      found = before.map(({ positions }, index) => ({ part: /** @type {Part} */ (parts[index]), positions }))
    })
    const change = (/** @type {Y.Text} */ one) => {
      const at = random(one.length + 1)
      one.delete(at, Math.min(one.length - at, random(3)))
      one.insert(at, words(2))
    }
    for (let step = 0; step < 20; step++) {
      if (random(2) === 0) doc.transact(() => change(shared))
      else other.transact(() => change(remote))
      Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
      Y.applyUpdate(doc, Y.encodeStateAsUpdate(other))
      for (const { part, positions } of found) {
        const indices = positions.map((position) => Y.createAbsolutePositionFromRelativePosition(position, doc)?.index)
        assert.deepEqual([part.start, part.end], indices, `round ${round}, step ${step}`)
        compared++
      }
    }
  }
  assert.ok(10_000 < compared, `${compared} were compared`)
})
