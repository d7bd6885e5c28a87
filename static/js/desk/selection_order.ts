/** A selection whose text another edit replaces is a caret. CodeMirror maps its ends past each other, and the next key deletes between them. */

import { EditorState } from "../lib/vendor.ts"

export const selectionInOrder = EditorState.transactionFilter.of((change) => {
  const { from, to } = change.newSelection.main
  return from <= to ? change : [change, { selection: { anchor: from }, sequential: true }]
})
