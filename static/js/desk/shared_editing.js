// @ts-check
/**
 * The writer's binding of the editor to the shared text: an edit of the one is an edit of the other.
 *
 * The shared text has an undo history that leaves the edits of other sessions alone.
 */

import { EditorState, EditorView, keymap, Y, yCollab, ySyncAnnotation, ySyncFacet, yUndoManagerKeymap } from "../lib/vendor.js"
import { AtRest } from "./at_rest.js"
import { differenceOf } from "./difference.js"
import { relativeAt } from "./positions.js"

/**
 * @typedef {import("@codemirror/state").Transaction} Transaction
 *
 * @typedef {object} Binding how the editor follows the shared text
 * @property {import("@codemirror/state").Extension} extensions
 * @property {(view: EditorView, mended: () => void) => void} attach `mended`: the editor differed from the shared text
 * @property {(change: Transaction) => boolean} isRemote whether a change is not the user's
 * @property {(served: string) => void} showServed
 * @property {() => void} endServed
 * @property {boolean} isServed whether the page shows a copy of the server's text in place of the shared one
 * @property {(act: () => void) => () => void} asOneStep makes an edit one step of the undo history; the answer undoes it
 * @property {{ undo: number, redo: number }} steps how many steps can be undone and redone
 * @property {() => void} endStep the next edit begins a step
 * @property {() => void} stop
 */

/** @implements {Binding} */
export class SharedEditing {
  /** @type {EditorView | null} */
  #view = null
  /** Whether the page shows a copy of the server's text in place of the shared one. */
  isServed = false
  /** Whether the shared text has had changes of others since it was last seen to be that of the editor. */
  #hasReceived = false
  /** @type {AtRest | null} */
  #rest = null
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
      EditorView.updateListener.of((update) => this.#updated(update)),
    ]
  }

  /** @param {EditorView} view @param {() => void} mended */
  attach(view, mended) {
    this.#view = view
    this.#rest = new AtRest(() => this.#mend(), mended)
    this.text.observe(this.#received)
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
    this.isServed = true
  }

  endServed() {
    if (this.isServed) this.#replace(this.text.toString())
  }

  stop() {
    this.text.doc?.off("beforeAllTransactions", this.#beforeShared)
    this.text.unobserve(this.#received)
    this.#undo.destroy()
    this.#rest?.stop()
  }

  /** How many steps can be undone and redone. */
  get steps() {
    return { undo: this.#undo.undoStack.length, redo: this.#undo.redoStack.length }
  }

  /** The next edit begins a step. */
  endStep() {
    this.#undo.stopCapturing()
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

  /** @param {Y.YTextEvent} _event @param {Y.Transaction} transaction */
  #received = (_event, { origin }) => {
    if (origin === this.#view?.state.facet(ySyncFacet)) return
    this.#hasReceived = true
    this.#rest?.changed(false)
  }

  /** @param {import("@codemirror/view").ViewUpdate} update */
  #updated({ docChanged, state }) {
    if (docChanged) this.#rest?.changed(!this.isServed && state.doc.length !== this.text.length)
  }

  /** The user's own letters enter the shared text; else the editor shows what is stored. */
  #mend() {
    const view = this.#view
    if (!view || this.isServed) return false
    if (view.compositionStarted) return null
    const [shown, shared] = [view.state.doc.toString(), this.text.toString()]
    const lost = this.#hasReceived ? null : differenceOf(shared, shown)
    this.#hasReceived = shown !== shared
    if (lost) this.#put(lost)
    else this.#replace(shared)
    return shown !== shared
  }

  /** @param {{ from: number, to: number, insert: string }} change of the shared text that the editor has */
  #put({ from, to, insert }) {
    this.text.doc?.transact(() => {
      this.text.delete(from, to - from)
      this.text.insert(from, insert)
    }, this.#view?.state.facet(ySyncFacet))
  }

  /** @param {string} next */
  #replace(next) {
    this.isServed = false
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
    if (!this.isServed || !change.docChanged || !this.isRemote(change)) return change
    this.isServed = false
    const changes = differenceOf(change.startState.doc.toString(), this.text.toString())
    return { ...(changes ? { changes } : {}), annotations: fromShared(change.startState) }
  }
}

/** The mark of a change that the shared text has already. @param {import("@codemirror/state").EditorState} state */
const fromShared = (state) => ySyncAnnotation.of(state.facet(ySyncFacet))
