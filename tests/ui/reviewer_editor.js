// @ts-check
/** An editor of a reviewer without a page, for tests: a state, its listeners and the order of their events. */

import { EditorState, EditorView } from "../../static/js/lib/vendor.ts"
import { marked } from "../../static/js/reviews/highlights.ts"
import { shownView } from "../../static/js/reviews/text_view.ts"

export class FakeView {
  compositionStarted = false
  contentDOM = new EventTarget()

  /** @param {string} doc @param {import("@codemirror/state").Extension} extensions */
  constructor(doc, extensions) {
    this.state = EditorState.create({ doc, extensions: [EditorState.lineSeparator.of("\n"), extensions, marked, shownView] })
  }

  /** @param {import("@codemirror/state").TransactionSpec} spec */
  dispatch(spec) {
    const transaction = this.state.update(spec)
    this.state = transaction.state
    for (const listen of this.state.facet(EditorView.updateListener)) listen(/** @type {any} */ ({ transactions: [transaction] }))
  }

  get text() {
    return this.state.doc.toString()
  }

  /** @param {number} from @param {number} to @param {string} insert */
  type(from, to, insert, userEvent = "input.type") {
    this.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent })
  }

  /** @param {number} from @param {number} to @param {string} insert */
  compose(from, to, insert) {
    const userEvent = `input.type.compose${this.compositionStarted ? "" : ".start"}`
    this.compositionStarted = true
    this.type(from, to, insert, userEvent)
  }
}
