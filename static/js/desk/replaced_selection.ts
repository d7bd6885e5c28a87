/**
 * The editor itself replaces and deletes what is selected.
 *
 * The browser's own deletion takes out the widgets that the selection touches: drawing them again ends a composition. Over
 * several lines it puts the words of the widgets in their place (struck words, words of a suggestion), which would be read as
 * letters of the text.
 */

import { EditorView } from "../lib/vendor.ts"

/** @param mayType whether a composed text will be accepted */
export const replacedSelection = (mayType: () => boolean) => [
  EditorView.domEventObservers({
    compositionstart(_event, view) {
      const { main } = view.state.selection
      if (main.empty || view.state.readOnly || !mayType()) return
      view.dispatch({ changes: { from: main.from, to: main.to }, userEvent: "delete.compose" })
    },
  }),
  EditorView.domEventHandlers({
    beforeinput(event, view) {
      const replaced = replacedBy(event, view)
      if (replaced === null || !event.cancelable || view.compositionStarted || view.state.readOnly) return false
      const { from, to, text } = replaced
      const userEvent = text === "" ? "delete.selection" : "input.type"
      view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length }, scrollIntoView: true, userEvent })
      return true
    },
  }),
]

function replacedBy(event: InputEvent, view: EditorView): { from: number, to: number, text: string } | null {
  const { inputType, data } = event
  if (inputType === "insertReplacementText") {
    const [range] = event.getTargetRanges()
    const text = data ?? event.dataTransfer?.getData("text/plain")
    // Inside one node there is no widget.
    if (!range || !text || range.startContainer === range.endContainer) return null
    return { from: view.posAtDOM(range.startContainer, range.startOffset), to: view.posAtDOM(range.endContainer, range.endOffset), text }
  }
  const { from, to } = view.state.selection.main
  const text = inputType === "insertText" ? data : inputType.startsWith("delete") ? "" : null
  return text === null || from === to ? null : { from, to, text }
}
