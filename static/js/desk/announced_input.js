// @ts-check
/**
 * Only the user's own input is read off the page.
 *
 * The editor reads each change of its elements as typing, also that of a translator or of an extension. The browser announces the
 * user's by an event: keys, input methods, dictation, corrections and drops all have one. Over any other the editor draws
 * its text again.
 */

import { EditorView, ViewPlugin } from "../lib/vendor.js"

/** A script that rewrites the text whenever it is drawn would never let the tab go. Undone changes in a period. */
const UNDONE_MAX = 100
/** In ms. */
const PERIOD = 1_000

export function announcedInput() {
  /** The last announcement whose change may not be read yet; 0: there is none. */
  let pending = 0
  let count = 0
  let undone = 0
  const announced = () => {
    const mine = (pending = ++count)
    // Some browsers have their changes read with the next frame.
    const read = () => window.setTimeout(() => (pending = pending === mine ? 0 : pending))
    window.requestAnimationFrame(read)
  }
  /** Whether a change is undone. @param {EditorView} view */
  const isForeign = (view) => {
    // In such a loop the user's own change contains that of the script.
    if (0 < pending && undone <= UNDONE_MAX) return false
    if (undone++ === 0) {
      window.setTimeout(() => {
        undone = 0
        view.update([])
      }, PERIOD)
    }
    if (UNDONE_MAX < undone) throw new Error("a script rewrites the text of the editor again and again")
    return true
  }
  /** The editor overlooks changes while it restores its selection, as it does after a focus: this update draws over them. */
  class Overlooked {
    /** @type {MutationObserver | null} */
    observer = null

    /** @param {EditorView} view */
    constructor(view) {
      // After the editor's own observer, which an update would keep from seeing the change.
      queueMicrotask(() => {
        // An editor on Android has its input by a context of its own.
        const { editContext } = /** @type {{ editContext?: EventTarget }} */ (view.contentDOM)
        editContext?.addEventListener("textupdate", announced, true)
        this.observer = new MutationObserver(() => {
          if (pending === 0 && undone <= UNDONE_MAX && !view.compositionStarted) view.update([])
        })
        this.observer.observe(view.contentDOM, { subtree: true, childList: true, characterData: true })
      })
    }

    destroy() {
      this.observer?.disconnect()
    }
  }
  return [
    ViewPlugin.fromClass(Overlooked),
    EditorView.domEventObservers({ beforeinput: announced, input: announced, compositionstart: announced, compositionupdate: announced, compositionend: announced }),
    EditorView.inputHandler.of(isForeign),
    // The editor has the attribute `translate`, which some translators do not read.
    EditorView.contentAttributes.of({ class: "notranslate" }),
  ]
}
