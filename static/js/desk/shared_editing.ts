/**
 * The writer's binding of the editor to the shared text: an edit of the one is an edit of the other.
 *
 * The shared text has an undo history that leaves the edits of other sessions alone.
 */

import type { Extension, Transaction } from "@codemirror/state"
import type { ViewUpdate } from "@codemirror/view"
import { EditorState, EditorView, keymap, Y, yCollab, ySyncAnnotation, ySyncFacet, yUndoManagerKeymap } from "../lib/vendor.ts"
import { AtRest } from "./at_rest.ts"
import { differenceOf } from "./difference.ts"
import { relativeAt } from "./positions.ts"

/** How the editor follows the shared text. */
export interface Binding {
  extensions: Extension
  attach: (view: EditorView, mended: () => void) => void // `mended`: the editor differed from the shared text
  isRemote: (change: Transaction) => boolean // whether a change is not the user's
  showServed: (served: string) => void
  endServed: () => void
  isServed: boolean // whether the page shows a copy of the server's text in place of the shared one
  asOneStep: (act: () => void) => () => void // makes an edit one step of the undo history; the answer undoes it
  steps: { undo: number, redo: number } // how many steps can be undone and redone
  endStep: () => void // the next edit begins a step
  stop: () => void
}

export class SharedEditing implements Binding {
  declare text: Y.Text
  declare extensions
  #view: EditorView | null = null
  /** Whether the page shows a copy of the server's text in place of the shared one. */
  isServed = false
  /** Whether the shared text has had changes of others since it was last seen to be that of the editor. */
  #hasReceived = false
  #rest: AtRest | null = null
  #undo

  constructor(text: Y.Text) {
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

  attach(view: EditorView, mended: () => void) {
    this.#view = view
    this.#rest = new AtRest(() => this.#mend(), mended)
    this.text.observe(this.#received)
    // The undo history asks where the caret is before each edit, and Yjs would walk there.
    view.state.facet(ySyncFacet).toYPos = (index, side = 0) => relativeAt(this.text, index, side)
  }

  isRemote(change: Transaction) {
    return change.annotation(ySyncAnnotation) !== undefined
  }

  /**
   * The shared text stays as it is, and takes over with its next change or with the seat: in one step of the
   * differing part, so that neither the scroll position nor the caret jumps.
   */
  showServed(served: string) {
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

  /** Makes an edit one step of the undo history. @returns undoes it, if it is still the last */
  asOneStep(act: () => void): () => void {
    this.#undo.stopCapturing()
    act()
    this.#undo.stopCapturing()
    const step = this.#undo.undoStack.at(-1)
    return () => {
      if (step === this.#undo.undoStack.at(-1)) this.#undo.undo()
    }
  }

  #received = (_event: Y.YTextEvent, { origin }: Y.Transaction) => {
    if (origin === this.#view?.state.facet(ySyncFacet)) return
    this.#hasReceived = true
    this.#rest?.changed(false)
  }

  #updated({ docChanged, state }: ViewUpdate) {
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

  /** @param change of the shared text that the editor has */
  #put({ from, to, insert }: { from: number, to: number, insert: string }) {
    this.text.doc?.transact(() => {
      this.text.delete(from, to - from)
      this.text.insert(from, insert)
    }, this.#view?.state.facet(ySyncFacet))
  }

  #replace(next: string) {
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

  #withoutServed(change: Transaction) {
    if (!this.isServed || !change.docChanged || !this.isRemote(change)) return change
    this.isServed = false
    const changes = differenceOf(change.startState.doc.toString(), this.text.toString())
    return { ...(changes ? { changes } : {}), annotations: fromShared(change.startState) }
  }
}

/** The mark of a change that the shared text has already. */
const fromShared = (state: import("@codemirror/state").EditorState) => ySyncAnnotation.of(state.facet(ySyncFacet))
