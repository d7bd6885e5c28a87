// @ts-check
/**
 * The writer's binding of the editor to the shared text: an edit of the one is an edit of the other.
 *
 * The shared text has an undo history that leaves the edits of other sessions alone.
 */

import { EditorState, keymap, Y, yCollab, ySyncAnnotation, ySyncFacet, yUndoManagerKeymap } from "../lib/vendor.js"
import { differenceOf } from "./difference.js"
import { relativeAt } from "./positions.js"

/**
 * @typedef {import("../lib/vendor.js").EditorView} EditorView
 * @typedef {import("@codemirror/state").Transaction} Transaction
 *
 * @typedef {object} Binding how the editor follows the shared text
 * @property {import("@codemirror/state").Extension} extensions
 * @property {(view: EditorView) => void} attach
 * @property {(change: Transaction) => boolean} isRemote whether a change is not the user's
 * @property {(served: string) => void} showServed
 * @property {() => void} endServed
 * @property {((act: () => void) => () => void) | null} asOneStep makes an edit one step of the undo history; the answer undoes it
 * @property {() => void} stop
 */

/** @implements {Binding} */
export class SharedEditing {
  /** @type {EditorView | null} */
  #view = null
  /** Whether the page shows a copy of the server's text in place of the shared one. */
  #isServed = false
  #undo

  /** @param {Y.Text} text */
  constructor(text) {
    this.text = text
    this.#undo = new Y.UndoManager(text, { captureTimeout: 600 })
    text.doc?.on("beforeAllTransactions", this.#beforeShared)
    this.extensions = [
      EditorState.transactionFilter.of((change) => this.#withoutServed(change)),
      keymap.of(yUndoManagerKeymap),
      yCollab(text, null, { undoManager: this.#undo }),
    ]
  }

  /** @param {EditorView} view */
  attach(view) {
    this.#view = view
    // The undo history asks where the caret is before each edit, and Yjs would walk there.
    view.state.facet(ySyncFacet).toYPos = (index, side = 0) => relativeAt(this.text, index, side)
  }

  /** @param {Transaction} change */
  isRemote(change) {
    return change.annotation(ySyncAnnotation) !== undefined
  }

  /**
   * The shared text stays as it is, and takes over with its next change or with the seat: in one step of the
   * differing part, so that neither the scroll position nor the caret jumps.
   *
   * @param {string} served
   */
  showServed(served) {
    this.#replace(served)
    this.#isServed = true
  }

  endServed() {
    if (this.#isServed) this.#replace(this.text.toString())
  }

  stop() {
    this.text.doc?.off("beforeAllTransactions", this.#beforeShared)
    this.#undo.destroy()
  }

  /** Makes an edit one step of the undo history. @param {() => void} act @returns {() => void} undoes it, if it is still the last */
  asOneStep(act) {
    this.#undo.stopCapturing()
    act()
    this.#undo.stopCapturing()
    const step = this.#undo.undoStack.at(-1)
    return () => {
      if (step === this.#undo.undoStack.at(-1)) this.#undo.undo()
    }
  }

  /** @param {string} next */
  #replace(next) {
    this.#isServed = false
    const view = this.#view
    const changes = view && differenceOf(view.state.doc.toString(), next)
    if (changes) view.dispatch({ changes, annotations: fromShared(view.state) })
  }

  /**
   * A change of the shared text is relative to its content before, which must be on the page by then. Yjs reads
   * the change in a nested transaction, which is too late: hence "all".
   */
  #beforeShared = () => {
    // The first sync changes an empty text: `#withoutServed` shows its difference from the copy.
    if (0 < this.text.length) this.endServed()
  }

  /** @param {Transaction} change */
  #withoutServed(change) {
    if (!this.#isServed || !change.docChanged || !this.isRemote(change)) return change
    this.#isServed = false
    const changes = differenceOf(change.startState.doc.toString(), this.text.toString())
    return { ...(changes ? { changes } : {}), annotations: fromShared(change.startState) }
  }
}

/** The mark of a change that the shared text has already. @param {import("@codemirror/state").EditorState} state */
const fromShared = (state) => ySyncAnnotation.of(state.facet(ySyncFacet))
