// @ts-check
/** The selection of an editor whose text is replaced. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Annotation, EditorState } from "../../static/js/lib/vendor.ts"
import { selectionInOrder } from "../../static/js/desk/selection_order.ts"

test("a selection inside a replaced range is a caret behind it, and another one stays", () => {
  const mark = Annotation.define()
  for (const [anchor, head, wanted] of /** @type {const} */ ([[4, 7, [6, 6]], [7, 4, [6, 6]], [0, 14, [0, 9]], [12, 14, [7, 9]], [5, 5, [3, 3]]])) {
    const state = EditorState.create({ doc: "저는 and must 배웠", selection: { anchor, head }, extensions: [selectionInOrder] })
    const change = state.update({ changes: { from: 3, to: 11, insert: "유통을" }, annotations: mark.of(1) })
    const { from, to } = change.state.selection.main
    assert.deepEqual([from, to], wanted, `${anchor} to ${head}`)
    assert.deepEqual([change.state.doc.toString(), change.annotation(mark)], ["저는 유통을 배웠", 1])
  }
})
