// @ts-check
/**
 * From changes to suggestions: the table of examples, random texts, moves, limits, and which suggestion is which.
 *
 * A row of the table is a text with its parts: `[-quote-]{+text+}`. It is read in both directions, since what puts
 * a word in one way takes it out the other way. `GALLEY_SEED` repeats the random texts of a run.
 */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { ChangeSet, Text } from "../../static/js/lib/vendor.ts"
import { graphemesOf } from "../../static/js/lib/graphemes.ts"
import { wordsOf } from "../../static/js/reviews/word_diff.ts"
import { identify } from "../../static/js/suggest/model/identity.ts"
import { divided } from "../../static/js/suggest/model/limits.ts"
import { Overlay } from "../../static/js/suggest/model/overlay.ts"
import { applied, partsOf } from "../../static/js/suggest/model/parts.ts"
import { within } from "../../static/js/suggest/model/tidy.ts"

/** @typedef {import("../../static/js/suggest/model/parts.ts").Part} Part */

/** @type {string[]} */
const table = JSON.parse(readFileSync(new URL("../data/suggestions.json", import.meta.url), "utf8"))
const SEED = Number(process.env.GALLEY_SEED ?? Math.floor(Math.random() * 2 ** 32))
const ROUNDS = process.env.GALLEY_SHORT ? 400 : 4_000

const MARK = /\[-(?<quote>[^]*?)-\](?:\{\+(?<text>[^]*?)\+\})?|\{\+(?<added>[^]*?)\+\}/g
const textOf = (/** @type {string} */ text) => Text.of(text.split("\n"))

/** @param {string} row @returns {Part[]} */
function partsIn(row) {
  let marks = 0
  return [...row.matchAll(MARK)].map(({ 0: mark, index, groups }) => {
    const [quote, text] = [groups?.quote ?? "", groups?.text ?? groups?.added ?? ""]
    const start = index - marks
    marks += mark.length - quote.length
    return { start, end: start + quote.length, quote, text }
  })
}

const baseOf = (/** @type {string} */ row) => row.replace(MARK, "$<quote>")
const viewOf = (/** @type {string} */ row) => row.replace(MARK, "$<text>$<added>")

/** The parts that lead from the view to the base. @param {Part[]} parts */
function reversed(parts) {
  let by = 0
  return parts.map(({ start, quote, text }) => {
    const at = start + by
    by += text.length - quote.length
    return { start: at, end: at + text.length, quote: text, text: quote }
  })
}

/** The overlay of a reviewer who pastes one text over the other. @param {string} base @param {string} view */
const pasted = (base, view) =>
  Overlay.plain(textOf(base)).own(ChangeSet.of({ from: 0, to: base.length, insert: textOf(view) }, base.length))

/** The overlay of a reviewer who makes some changes. @param {string} base @param {Part[]} parts */
const typed = (base, parts) => Overlay.plain(textOf(base)).put(parts).overlay

/** @param {Overlay} overlay */
const flat = (overlay) => partsOf(overlay).flat()

test("each row of the table is cut as it stands there, in both directions, pasted and typed", () => {
  for (const row of table) {
    const [base, view, parts] = [baseOf(row), viewOf(row), partsIn(row)]
    assert.deepEqual(flat(pasted(base, view)), parts, row)
    assert.deepEqual(flat(pasted(view, base)), reversed(parts), `${row}, backwards`)
    assert.deepEqual(flat(typed(base, parts)), parts, `${row}, typed`)
    assert.deepEqual(partsOf(typed(base, parts)).length, parts.length, `${row}: each part is a suggestion`)
  }
  assert.ok(80 <= table.length)
})

/** Half of a surrogate pair is no letter, and an accent on a space is no word. @param {Text} text @param {number} at */
const whole = (text, at) => (/^[\udc00-\udfff\u0301]/.test(text.sliceString(at, at + 1)) ? at + 1 : at)

/** @param {number} seed */
function numbers(seed) {
  let state = seed >>> 0
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const WORDS = ["학교", "는", "가", "저는", " ", " ", " ", "\n", "the", "cat", "a", "s", ".", "! ", ", ", "👨‍👩‍👧", "🇰🇷", "e\u0301", "漢", "'", "3", "\u1100\u1161"]

/** Overlays of random edits, which end before one, between two or inside of a word. @param {number} round */
function randomOverlay(round) {
  const random = numbers(SEED + round)
  random(2)
  const words = (/** @type {number} */ most) => Array.from({ length: random(most) }, () => WORDS[random(WORDS.length)]).join("")
  let overlay = Overlay.plain(textOf(words(40)))
  for (let edits = random(6); 0 < edits; edits--) {
    const from = whole(overlay.view, random(overlay.view.length + 1))
    const to = whole(overlay.view, Math.min(overlay.view.length, from + random(8)))
    overlay = overlay.own(ChangeSet.of({ from, to, insert: textOf(words(4)) }, overlay.view.length))
  }
  return overlay
}

test(`the parts together give the view, and none of them without a difference (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const overlay = randomOverlay(round)
    const parts = flat(overlay)
    const { base, view } = overlay
    const name = `round ${round}: ${JSON.stringify([base.toString(), view.toString()])}`
    assert.equal(applied(base, parts).apply(base).toString(), view.toString(), name)
    for (const { start, end, quote, text } of parts) {
      assert.equal(base.sliceString(start, end), quote, name)
      assert.notEqual(quote, text, name)
    }
    if (base.eq(view)) assert.deepEqual(parts, [], name)
    const reverted = overlay.own(overlay.changes.invert(base))
    assert.deepEqual(flat(reverted), [], `${name}: undone`)
    assert.ok(reverted.changes.empty, `${name}: undone`)
  }
})

test(`two parts never meet, and none ends inside a word (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const overlay = randomOverlay(round)
    const name = `round ${round}: ${JSON.stringify([overlay.base.toString(), overlay.view.toString()])}`
    const breaks = [overlay.base, overlay.view].map((text) => {
      let at = 0
      return new Set([0, ...wordsOf(text.toString()).map((word) => (at += word.length))])
    })
    let [last, by] = [-1, 0]
    for (const { start, end, text } of flat(overlay).sort((one, other) => one.start - other.start)) {
      assert.ok(last < start, `${name}: parts are apart`)
      assert.ok(breaks[0]?.has(start) && breaks[0].has(end), `${name}: ${start}–${end} of the base`)
      assert.ok(breaks[1]?.has(start + by) && breaks[1].has(start + by + text.length), `${name}: ${start}–${end} in the view`)
      by += text.length - (end - start)
      last = end
    }
  }
})

test(`a paragraph cut by itself gives the parts that the whole text gives there (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const overlay = randomOverlay(round)
    const at = numbers(round)(overlay.base.length + 1)
    const found = partsOf(overlay, [{ from: at, to: at }]).flat()
    const all = flat(overlay).map((part) => JSON.stringify(part))
    for (const part of found) assert.ok(all.includes(JSON.stringify(part)), `round ${round}`)
    const line = overlay.base.lineAt(at)
    const inLine = flat(overlay).filter(({ start, end }) => line.from <= start && end <= line.to)
    assert.ok(inLine.length <= found.length, `round ${round}`)
  }
})

test(`the fine changes of a text turn it into the other, and never end inside a grapheme (seed ${SEED})`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    const { base, view } = randomOverlay(round)
    const [before, after] = [base.toString(), view.toString()]
    const ends = [before, after].map((text) => {
      let at = 0
      return new Set([0, ...Array.from(graphemesOf(text), (grapheme) => (at += grapheme.length))])
    })
    let [found, at] = ["", 0]
    for (const { old, new: fresh } of within(before, after)) {
      found += before.slice(at, old.from) + after.slice(fresh.from, fresh.to)
      at = old.to
      for (const end of [old.from, old.to]) assert.ok(ends[0]?.has(end), `round ${round}: ${JSON.stringify([before, after])}`)
      for (const end of [fresh.from, fresh.to]) assert.ok(ends[1]?.has(end), `round ${round}: ${JSON.stringify([before, after])}`)
    }
    assert.equal(found + before.slice(at), after, `round ${round}`)
  }
})

test("a passage that moves is one suggestion of two parts, and others beside it are not", () => {
  const passage = "저는 팀을 이끌어 매출을 두 배로 늘렸습니다."
  const moved = (/** @type {string} */ row) => partsOf(typed(baseOf(row), partsIn(row))).map((parts) => parts.length)
  assert.deepEqual(moved(`[-${passage}\n-]둘째.\n셋째.{+\n${passage}+}`), [2])
  assert.deepEqual(moved(`{+${passage}\n+}첫째. [-one-]{+two+} 셋째.[-\n${passage}-]`), [2, 1])
  assert.deepEqual(moved("[-짧은 문장.\n-]둘째.\n셋째.{+\n짧은 문장.+}"), [1, 1], "shorter passages occur by chance")
  assert.deepEqual(moved(`[-${passage}\n-]둘째.\n{+${passage}\n+}셋째.{+\n${passage}+}`), [1, 1, 1], "put in twice")
  assert.deepEqual(moved(`[-${passage}\n-]둘째.\n[-${passage}\n-]셋째.{+\n${passage}+}`), [1, 1, 1], "taken out twice")
  assert.deepEqual(moved(`[-${passage}\n-]둘째.\n셋째.{+\n${passage} 그리고+}`), [1, 1], "other words")
})

test("a part over the limits is several that touch, and a suggestion over them is several", () => {
  const paragraph = `${"가나다 ".repeat(1_000)}\n`
  const texts = ["", "a", paragraph.repeat(9), "x".repeat(70_000), `${"👨‍👩‍👧".repeat(5_000)}`]
  for (const quote of texts) {
    for (const text of texts) {
      if (quote === text) continue
      const [parts, second] = divided([{ start: 7, end: 7 + quote.length, quote, text }])
      assert.equal(second, undefined)
      assert.equal(parts?.map((part) => part.quote).join(""), quote)
      assert.equal(parts?.map((part) => part.text).join(""), text)
      let at = 7
      for (const part of parts ?? []) {
        assert.ok(part.start === at && part.end === at + part.quote.length)
        assert.ok(part.quote.length <= 20_000 && Buffer.byteLength(part.text) <= 65_536)
        assert.ok(part.quote.length + part.text.length !== 0)
        at = part.end
      }
    }
  }
  const cut = divided([{ start: 0, end: paragraph.length * 9, quote: paragraph.repeat(9), text: "" }])[0]
  assert.ok(cut?.every((part) => part.quote.endsWith("\n")), "cut behind paragraphs")
  const short = Array.from({ length: 130 }, (_, at) => ({ start: 9 * at, end: 9 * at + 1, quote: "a", text: "b" }))
  assert.deepEqual(divided(short).map((parts) => parts.length), [64, 64, 2])
  const mebibyte = divided([{ start: 0, end: 370_000, quote: "나".repeat(370_000), text: "가".repeat(370_000) }])
  assert.ok(mebibyte.every((parts) => Buffer.byteLength(parts.map(({ quote, text }) => quote + text).join("")) <= 240_000))
  const gap = { start: 3, end: 3, quote: "" }
  const insertions = divided([{ start: 0, end: 3, quote: "a b", text: "나".repeat(50_000) }, { ...gap, text: "가".repeat(60_000) }])
  assert.equal(insertions.filter((parts) => parts.some(({ start, quote }) => start === 3 && quote === "")).length, 1, "a position has the gaps of one")
})

/** @param {number} start @param {string} quote @param {string} text @returns {Part} */
const part = (start, quote, text) => ({ start, end: start + quote.length, quote, text })
const id = () => "new"
/** @param {string} name @param {Part[]} parts */
const stored = (name, ...parts) => ({ id: name, pinned: false, parts })
/** @param {ReturnType<typeof identify>} found */
const ids = ({ put, withdraw, untouched }) => [put, withdraw, untouched].map((list) => list.map((one) => one.id).join())

test("a group keeps the id of the oldest suggestion that it overlaps, and the merged ones are withdrawn", () => {
  const previous = [stored("old", part(4, "b", "B")), stored("young", part(2, "a", "A"))]
  assert.deepEqual(ids(identify(previous, [[part(2, "a b", "A B")]], id)), ["old", "young", ""])
  assert.deepEqual(ids(identify(previous, [[part(2, "a", "x")], [part(4, "b", "y")]], id)), ["young,old", "", ""])
})

test("of a split the first group keeps the id", () => {
  const previous = [stored("one", part(0, "a b c", "A B C"))]
  assert.deepEqual(ids(identify(previous, [[part(0, "a", "A")], [part(4, "c", "C")]], id)), ["one,new", "", ""])
})

test("a suggestion that was undone is withdrawn, and one with the same words is untouched", () => {
  const previous = [stored("same", part(0, "a", "b")), stored("undone", part(5, "", "x"))]
  assert.deepEqual(ids(identify(previous, [[part(0, "a", "b")]], id)), ["", "undone", "same"])
  assert.deepEqual(ids(identify(previous, [[part(0, "a", "bc")], [part(9, "", "y")]], id)), ["same,new", "undone", ""])
})

test("a suggestion with a thread keeps its id before an older one", () => {
  const previous = [stored("old", part(0, "a", "A")), { ...stored("talk", part(2, "b", "B")), pinned: true }]
  assert.deepEqual(ids(identify(previous, [[part(0, "a b", "A B")]], id)), ["talk", "old", ""])
})

test("an insertion that grows into the word beside it keeps its id", () => {
  assert.deepEqual(ids(identify([stored("one", part(3, "", " x"))], [[part(0, "cat", "cats x")]], id)), ["one", "", ""])
  assert.deepEqual(ids(identify([stored("one", part(0, "a", "b"))], [[part(1, "c", "d")]], id)), ["new", "one", ""])
})

test("the pieces of a suggestion over the limits share a group", () => {
  const quote = "가나다 ".repeat(40_000)
  let next = 0
  const { put } = identify([stored("one", part(0, "a", ""))], [[part(0, quote, "")]], () => `new ${++next}`)
  assert.deepEqual(put.map(({ id: name, group }) => [name, group]), [["one", "one"], ["new 1", "one"]])
})
