// @ts-check
/** The pieces of a printed text, and the paragraph that the menu copies. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Text } from "@codemirror/state"

import { markedLines } from "../../static/js/desk/marked_lines.ts"
import { paragraphAt } from "../../static/js/desk/text_out.ts"

/** @param {import("../../static/js/desk/marked_lines.ts").Piece[][]} lines */
const written = (lines) =>
  lines.map((pieces) => pieces.map(({ text, marked, ends }) => (marked ? `<${text}>` : text) + ends.map((end) => `[${end}]`).join("")).join(""))

test("a printed line is cut at its passages, and a number stands at the end of each", () => {
  const marks = [{ from: 4, to: 7, number: 1 }, { from: 10, to: 12, number: 2 }]
  assert.deepEqual(written(markedLines("one two\n\nsix", marks)), ["one <two>[1]", "", "s<ix>[2]"])
  assert.deepEqual(written(markedLines("plain", [])), ["plain"])
})

test("overlapping passages and those of several lines keep the whole text", () => {
  const text = "one two three\nfour five\nsix"
  const marks = [{ from: 0, to: 7, number: 1 }, { from: 4, to: 18, number: 2 }, { from: 4, to: 18, number: 3 }]
  const lines = markedLines(text, marks)
  assert.equal(lines.map((pieces) => pieces.map((piece) => piece.text).join("")).join("\n"), text)
  assert.deepEqual(written(lines), ["<one ><two>[1]< three>", "<four>[2][3] five", "six"])
})

test("a gap has a number and no mark", () => {
  assert.deepEqual(written(markedLines("one two", [{ from: 3, to: 3, number: 1 }])), ["one[1] two"])
  assert.deepEqual(written(markedLines("one two\n", [{ from: 0, to: 3, number: 1 }, { from: 2, to: 2, number: 2 }, { from: 8, to: 8, number: 3 }])), ["<on>[2]<e>[1] two", "[3]"])
})

test("a paragraph is the lines between empty ones", () => {
  const text = Text.of(["title", "", "first line", "second line", " ", "last"])
  const at = (/** @type {number} */ position) => {
    const { from, to } = paragraphAt(text, position)
    return text.sliceString(from, to)
  }
  assert.equal(at(0), "title")
  assert.equal(at(6), "")
  assert.equal(at(20), "first line\nsecond line")
  assert.equal(at(text.length), "last")
})
