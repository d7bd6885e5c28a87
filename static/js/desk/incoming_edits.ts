/**
 * The rule for text from outside (`lib/incoming.ts`), applied to the edits of the user.
 *
 * An edit of an input method waits for the end of its composition: a change of the composed text would end it.
 */

import type { Transaction } from "@codemirror/state"
import type { ViewUpdate } from "@codemirror/view"
import { incoming } from "../lib/incoming.ts"
import { EditorState, EditorView, ViewPlugin } from "../lib/vendor.ts"

/** The editor needs a moment to read the result of a composition, in ms. */
const COMPOSED_PAUSE = 60

/** A half of a surrogate pair at an end may join the text beside it. */
function typed(text: string) {
  const [, head = "", middle = "", tail = ""] = /^([\udc00-\udfff]?)([^]*?)([\ud800-\udbff]?)$/.exec(text) ?? []
  return head + incoming(middle) + tail
}

/** Cleans the text of a composition after its end. */
class Composed {
  declare view: EditorView
  /** Where it began. */
  #from = 0
  #timer = 0

  constructor(view: EditorView) {
    this.view = view
  }

  update({ changes }: ViewUpdate) {
    this.#from = changes.mapPos(Math.min(this.#from, changes.length), -1)
  }

  begun() {
    window.clearTimeout(this.#timer)
    this.#from = this.view.state.selection.main.from
  }

  ended() {
    this.#timer = window.setTimeout(() => {
      const { compositionStarted, state } = this.view
      const range = { from: this.#from, to: state.selection.main.head }
      const text = compositionStarted ? "" : state.sliceDoc(range.from, range.to)
      const insert = typed(text)
      if (insert !== text) this.view.dispatch({ changes: { ...range, insert }, userEvent: "input" })
    }, COMPOSED_PAUSE)
  }

  destroy() {
    window.clearTimeout(this.#timer)
  }
}

/** @param isRemote whether a change is not the user's */
export const incomingEdits = (isRemote: (change: Transaction) => boolean) => [
  EditorView.clipboardInputFilter.of(incoming),
  EditorState.transactionFilter.of((change) => {
    if (!change.docChanged || isRemote(change) || ["undo", "redo", "input.type.compose"].some((event) => change.isUserEvent(event))) return change
    const changes: { from: number, to: number, insert: string }[] = []
    change.changes.iterChanges((_fromA, _toA, from, to, inserted) => {
      const text = inserted.toString()
      const insert = typed(text)
      if (insert !== text) changes.push({ from, to, insert })
    })
    return changes.length === 0 ? change : [change, { changes, sequential: true }]
  }),
  ViewPlugin.fromClass(Composed, {
    eventObservers: {
      compositionstart() {
        this.begun()
      },
      compositionend() {
        this.ended()
      },
    },
  }),
]
