/**
 * Only the user's own input is read off the page.
 *
 * The editor reads each change of its elements as typing, also that of a translator or of an extension. The browser announces the
 * user's by an event: keys, input methods, dictation, corrections and drops all have one. Over any other the editor draws
 * its text again.
 */

import { EditorView, ViewPlugin } from "../lib/vendor.ts"

/** A script that rewrites the text whenever it is drawn would never let the tab go. Undone changes in a period. */
const UNDONE_MAX = 100
/** In ms. */
const PERIOD = 1_000
const ANNOUNCING = ["beforeinput", "input", "compositionstart", "compositionupdate", "compositionend"]

export function announcedInput() {
  /** The last announcement whose change may not be read yet; 0: there is none. */
  let pending = 0
  let count = 0
  let undone = 0
  const announced = ({ type }: Event) => {
    const mine = (pending = ++count)
    const read = () => (pending = pending === mine ? 0 : pending)
    // On touch screens the editor may read the change with the next frame, elsewhere at once.
    if (0 < navigator.maxTouchPoints) window.requestAnimationFrame(() => window.setTimeout(read))
    else if (type === "input") queueMicrotask(read)
    else window.setTimeout(read)
  }
  /** Whether a change is undone. */
  const isForeign = (view: EditorView) => {
    // The editor on Android has its input by an EditContext, and hears of it before a listener that is added here.
    if (window.event?.type === "textupdate") return false
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
  class Watch {
    #stopped = new AbortController()
    #observer: MutationObserver | null = null

    constructor(view: EditorView) {
      // The focus may be elsewhere, and with it the event.
      for (const type of ANNOUNCING) document.addEventListener(type, announced, { capture: true, signal: this.#stopped.signal })
      queueMicrotask(() => {
        // The editor records no change of the page while it restores its selection, as after a focus. An update draws the
        // text over such a change. This observer stands behind the editor's own, which must read the user's input first.
        this.#observer = new MutationObserver(() => {
          if (pending === 0 && undone <= UNDONE_MAX && !view.compositionStarted) view.update([])
        })
        this.#observer.observe(view.contentDOM, { subtree: true, childList: true, characterData: true })
      })
    }

    destroy() {
      this.#stopped.abort()
      this.#observer?.disconnect()
    }
  }
  return [
    ViewPlugin.fromClass(Watch),
    EditorView.inputHandler.of(isForeign),
    // The editor has the attribute `translate`, which some translators do not read.
    EditorView.contentAttributes.of({ class: "notranslate" }),
  ]
}
